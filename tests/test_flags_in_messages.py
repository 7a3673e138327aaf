"""Messages name only flags that the user's command has.

every string of the package that holds `--flag`  +  who can reach it  ->  sentences on wrong flags

Reachability is by symbols: a command's function, the functions and classes that it names, those
that they name, and so on. The sentence of a remark is a message of whoever calls `remark` with its
code. A flag after `driple COMMAND` in a message belongs to that command.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
import typer.main

from driple.cli.main import app
from driple.cli.overrides import set_values
from tests.cli.test_numbers import commands

PACKAGE = Path(__file__).resolve().parents[1] / "driple"
# A flag, or `--set` with the name of a value; not `--set needs ...`.
FLAG = re.compile(r"(?<![\w-])--(?:set (?!needs|applies)[a-z_]+|[a-z][a-z-]*[a-z])")

# Modules whose flags are those of other programs.
OTHER_PROGRAMS = {
    "driple.profiler.train": "flags of the script `python -m driple.profiler.train`",
    "driple.profiler.api": "command lines of driple.profiler.train",
    "driple.render.emit.slurm": "flags of sbatch and torchrun, in the script that it writes",
    "driple.render.emit.kubernetes": "flags of torchrun, in the manifests that it writes",
    "driple.render.emit.skypilot": "flags of torchrun, in the task that it writes",
    "driple.measure.testbed.network": "flags of nsenter",
    "driple.cli.oldnames": "options that are gone, printed as old names",
}
# Flags of other programs that messages name.
OTHER_FLAGS = {
    "--nproc-per-node": "torchrun",
    "--verbose": "of driple itself, which any command may be given",
    "--epochs": "of the user's script, after --",
}
# What these print reaches an assistant, whose tools have an argument for a flag of the same name.
TO_ASSISTANTS = ("mcp",)
SENTENCES_IN = "driple.render.remarks"
# What a command reaches, but cannot print, since it gives that value itself.
# The same for all of a package: these commands build their graphs, read them without options, and
# show none of the reader's messages.
BUILD_THEIR_GRAPHS = ("driple.graph.", ("data label", "measure", "jobs build"))
# A table of rows has a column for each option of a job; the error says so and names the row.
# `data import` offers those of graph files, which take no adapters.
TABLE_OF_OPTIONS = (("driple.jobs.options", "driple.graph.torch.lora"), ("data import",))
# `measure --machine` reads programs of its own, with options that fit them.
ROWS_OF_JOBS = (("driple.jobs.", "driple.graph."), ("validate", "transfer", "measure"))
CANNOT_PRINT = {
    **{
        (f"driple.training.{place}", f"--set {name}"): (
            ("evaluate",),
            "its method transferred tunes with the preset's own values",
        )
        for place, names in (
            ("transfer_config.TransferConfig", ("tuned_share", "layers")),
            ("transfer.transfer", ("align",)),
            ("fine_tuning.TunedInspector", ("tuned_share", "layers")),
        )
        for name in names
    },
    ("driple.inspector.predict._refuse_impossible", "--set preset"): (
        ("measure",),
        "it says in its own words which workload the inspector does not know",
    ),
    **{
        (f"driple.answers.{place}", flag): (("sweep",), "it asks by the usual options")
        for place, flag in (
            ("by_simulator._with_host", "--set host_us_per_op"),
            ("options.MethodOptions", "--set host_us_per_op"),
            ("options.MethodOptions", "--set host"),
            ("options.MethodOptions", "--method"),
        )
    },
    ("driple.api.device_remarks._untold", "--method"): (
        ("plan",),
        "all of its offers are simulated, and this is said of inspectors",
    ),
    ("driple.analytic.advice.rate_from_measured", "--set measured"): (
        ("predict",),
        "it gives the closed form no measured time",
    ),
}


@dataclass
class Symbol:
    """One function, class or value at the top of a module."""

    uses: set[tuple[str, str]] = field(default_factory=set)  # (module, name)
    messages: list[str] = field(default_factory=list)


def modules() -> dict[str, Path]:
    files = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("driple", *file.relative_to(PACKAGE).with_suffix("").parts)
        files[".".join(part for part in parts if part != "__init__")] = file
    return files


def imports_of(nodes: list[ast.stmt]) -> dict[str, tuple[str, str]]:
    """Local name -> (module, name) of from-imports among the statements, TYPE_CHECKING left out."""
    imports = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("driple"):
            for alias in node.names:
                imports[alias.asname or alias.name] = (node.module or "", alias.name)
    return imports


class _Reader(ast.NodeVisitor):
    """Names and messages of one symbol; annotations and docstrings are neither."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.imports: dict[str, tuple[str, str]] = {}
        self.messages: list[str] = []
        self.codes: set[str] = set()  # of the remarks that it makes

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "remark" and node.args:
            self.codes.add(ast.literal_eval(node.args[0]))
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports |= imports_of([node])

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Nothing: an annotation."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        inner = _Reader()
        for part in (*node.decorator_list, node.args, *node.body):
            inner.visit(part)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        self.names |= inner.names - {argument.arg for argument in arguments}
        self.imports |= inner.imports
        self.messages += inner.messages
        self.codes |= inner.codes

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        self._keep("".join(str(text) for text in texts))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._keep(node.value)

    def _keep(self, text: str) -> None:
        if FLAG.search(text):
            self.messages.append(text)


def read_of(node: ast.AST) -> _Reader:
    reader = _Reader()
    reader.visit(node)
    return reader


def named_at_the_top(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Functions, classes and values of a module."""
    own: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return own


@cache
def messages_of_codes() -> dict[str, list[str]]:
    """Messages in the sentence of each remark, and in what the sentence names in its module."""
    by_code: dict[str, list[str]] = {}
    for module, file in modules().items():
        own = named_at_the_top(ast.parse(file.read_text()).body)
        table = own.get("SENTENCES")
        if not module.startswith(SENTENCES_IN) or not isinstance(table, ast.AnnAssign):
            continue
        assert isinstance(table.value, ast.Dict)
        for key, value in zip(table.value.keys, table.value.values, strict=True):
            if key is None:  # the tables of the other modules
                continue
            known, waiting, messages = set(), [read_of(value)], []
            while waiting:
                reader = waiting.pop()
                messages += reader.messages
                named = (reader.names & own.keys()) - known
                known |= named
                waiting += [read_of(own[name]) for name in named]
            by_code[ast.literal_eval(key)] = messages
    return by_code


@cache
def symbols() -> dict[tuple[str, str], Symbol]:
    """All symbols of the package."""
    symbols_by_name: dict[tuple[str, str], Symbol] = {}
    for module, file in modules().items():
        body = ast.parse(file.read_text()).body
        imported = imports_of(body)
        own = named_at_the_top(body)
        for name, node in own.items():
            if module.startswith(SENTENCES_IN) and name == "SENTENCES":
                continue  # of whoever makes these remarks
            reader = read_of(node)
            said = [text for code in reader.codes for text in messages_of_codes()[code]]
            symbol = Symbol(messages=[*reader.messages, *said])
            for used in reader.names:
                if used in reader.imports:
                    symbol.uses.add(reader.imports[used])
                elif used in imported:
                    symbol.uses.add(imported[used])
                elif used in own and used != name:
                    symbol.uses.add((module, used))
            symbols_by_name[module, name] = symbol
        for name, source in imported.items():
            symbols_by_name.setdefault((module, name), Symbol(uses={source}))
    return symbols_by_name


def reachable(start: tuple[str, str]) -> set[tuple[str, str]]:
    known, waiting = {start}, [start]
    while waiting:
        for used in symbols().get(waiting.pop(), Symbol()).uses:
            if used not in known:
                known.add(used)
                waiting.append(used)
    return known


@cache
def options() -> dict[str, set[str]]:
    """Flags of each command."""
    return {
        " ".join(path): {
            flag
            for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        | {f"--set {value.name}" for value in set_values(command.callback)}
        | {"--help"}
        for path, command in commands(typer.main.get_command(app))
    }


@cache
def reached_by() -> dict[tuple[str, str], set[str]]:
    """Commands that reach each symbol."""
    reached: dict[tuple[str, str], set[str]] = {}
    for path, command in commands(typer.main.get_command(app)):
        if tuple(path) == ("serve",):
            continue  # it answers requests, whose messages name fields: driple.web.field_names
        function = inspect.unwrap(command.callback)
        for symbol in reachable((function.__module__, function.__name__)):
            reached.setdefault(symbol, set()).add(" ".join(path))
    return reached


def flags_of(message: str) -> Iterator[tuple[str, str | None]]:
    """Flags of a message, and the command that each follows, if the message names one."""
    names = sorted(options(), key=len, reverse=True)
    named = re.compile(r"driple (" + "|".join(map(re.escape, names)) + r")\b")
    for match in FLAG.finditer(message):
        before = re.split(r"[;()]", message[: match.start()])[-1]
        calls = named.findall(before)
        yield match[0], calls[-1] if calls else None


def wrong_flags(extra: dict[tuple[str, str], Symbol] | None = None) -> list[str]:
    """A sentence for each flag that a command has not."""
    sentences = []
    for (module, name), symbol in {**symbols(), **(extra or {})}.items():
        if module in OTHER_PROGRAMS:
            continue
        for message in symbol.messages:
            for flag, command in flags_of(message):
                if flag in OTHER_FLAGS:
                    continue
                users = {command} if command else reached_by().get((module, name), set())
                if not users and not any(flag in known for known in options().values()):
                    sentences.append(f"{module}.{name}: no command has {flag}: {message}")
                excused, _ = CANNOT_PRINT.get((f"{module}.{name}", flag), ((), ""))
                excused = (*excused, *TO_ASSISTANTS)
                if module.startswith(BUILD_THEIR_GRAPHS[0]) and not command:
                    excused = (*excused, *BUILD_THEIR_GRAPHS[1])
                if module in TABLE_OF_OPTIONS[0]:
                    excused = (*excused, *TABLE_OF_OPTIONS[1])
                if module.startswith(ROWS_OF_JOBS[0]) and not command:
                    excused = (*excused, *ROWS_OF_JOBS[1])
                lacking = sorted(
                    user for user in users if flag not in options()[user] and user not in excused
                )
                if lacking:
                    sentences.append(
                        f"{module}.{name}: {flag}, not of {', '.join(lacking)}: {message}"
                    )
    return sentences


def test_every_flag_in_a_message_is_one_of_the_command() -> None:
    assert not wrong_flags()


def test_a_wrong_flag_is_found() -> None:
    """In a function that all commands with a graph reach, one that one of them has."""
    place, others = ("driple.graph.tf.reader", "read_graph"), wrong_flags()
    wrong = Symbol(messages=["too large; raise the limit with --max-bytes"])
    assert len(wrong_flags({place: wrong})) == len(others) + 1
    assert wrong_flags({place: Symbol(messages=["raise it with --set max_mib=N"])}) == others


def test_a_wrong_value_of_set_is_found() -> None:
    place, others = ("driple.cli.train", "train"), len(wrong_flags())
    assert len(wrong_flags({place: Symbol(messages=["give --set seed=1"])})) == others
    assert len(wrong_flags({place: Symbol(messages=["give --set speed=1"])})) == others + 1


def test_flags_after_a_command_are_those_of_that_command() -> None:
    wrong = Symbol(messages=["no data set; measure one: driple measure --learning-rate"])
    assert wrong_flags({("driple.graph.tf.reader", "read_graph"): wrong})
    assert list(flags_of("give --output; driple train --set seed=1")) == [
        ("--output", None),
        ("--set seed", "train"),
    ]


@pytest.mark.parametrize(("place", "flag"), CANNOT_PRINT)
def test_exceptions_are_still_needed(place: str, flag: str) -> None:
    module, _, name = place.rpartition(".")
    assert any(flag in message for message in symbols()[module, name].messages)
    excused, reason = CANNOT_PRINT[place, flag]
    assert set(excused) <= reached_by()[module, name]
    assert reason
