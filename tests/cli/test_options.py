"""How many commands and options the command line has, and that a name has one meaning.

Typer's tree  ->  (command, option, help)  ->  counts, and names with two meanings

Run `python -m tests.cli.test_options` to print the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import typer.main

from driple.cli.main import app
from tests.cli.test_numbers import commands

# The numbers today; lower them when an option goes. The goal is 24, 120 and 70. The options of a
# JOB are defined once (driple/cli/joboptions.py) and given to every command that takes one: they
# count once, and have a limit of their own.
MOST_COMMANDS, MOST_OPTIONS, MOST_JOB_OPTIONS, MOST_NAMES = 24, 133, 25, 70
JOB_COMMANDS = ("predict", "plan", "sweep", "inspect", "profile links")

# Each name with what every help text of it contains: words of its one meaning.
MEANING = {
    "--against": ("names with commas", "scored beside"),
    "--all": ("every workload",),
    "--bandwidth": ("links in bit/s", "link in bit/s"),
    "--catalog": ("your own", "of your own"),
    "--batch-size": ("samples of a",),
    "--activation-checkpointing": ("of a model",),
    "--compile": ("torch.compile",),
    "--data": ("of your own model",),
    "--devices": ("devices",),
    "--dataset": ("data set folder",),
    "--datasets": ("folder",),
    "--input": ("shape of an input",),
    "--json": ("one JSON",),
    "--link": ("driple trace link",),
    "--list": ("paper", "cpu"),
    "--grad-accumulation": ("passes per update",),
    "--loss": ("outputs and labels",),
    "--optimizer": ("of a model",),
    "--output": ("to write",),
    "--placement": ("variables on servers",),
    "--plot": ("draw ",),
    "--preset": ("inspector",),
    "--processes": ("parallel processes",),
    "--repeats": ("repeated measurements",),
    "--samples": ("samples",),
    "--seed": ("random seed",),
    "--set": ("change a value",),
    "--scheme": ("share the work",),
    "--setting": ("setting", "ring"),
    "--steps": ("steps",),
    "--precision": ("of a model",),
    "--seq-len": ("tokens of a sample",),
    "--training-config": ("training arguments",),
}
SHORT = {"-o": "--output", "-h": "--help"}


def options() -> Iterator[tuple[str, str, str]]:
    """(command, long name, help) of every option."""
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if parameter.opts[0].startswith("-"):
                yield " ".join(path), max(parameter.opts, key=len), parameter.help or ""


def by_name() -> dict[str, list[tuple[str, str]]]:
    """Commands and help texts of each name."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for command, name, words in options():
        found[name].append((command, words))
    return found


def job_options() -> set[str]:
    """Names of the options of a JOB: those that all commands with a JOB share."""
    given: dict[str, set[str]] = defaultdict(set)
    for command, name, _ in options():
        given[command].add(name)
    everywhere = set.intersection(*(given[command] for command in JOB_COMMANDS))
    return everywhere - {"--json", "--setting", "--catalog", "--set"}


def num_options() -> int:
    """Options of all commands; those of a JOB once."""
    shared = job_options()
    return sum(name not in shared for _, name, _ in options()) + len(shared)


def table() -> str:
    """A line for each command, then the sums."""
    counts: dict[str, int] = defaultdict(int)
    for command, _ in commands(typer.main.get_command(app)):
        counts[" ".join(command)] = 0
    for command, _, _ in options():
        counts[command] += 1
    lines = [f"{name:15} {number:3}" for name, number in counts.items()]
    total = sum(counts.values())
    lines.append(f"{len(counts)} commands, {total} options, {len(by_name())} names")
    return "\n".join(
        [*lines, f"{num_options()} options with the {len(job_options())} of a JOB once"]
    )


def test_the_numbers_do_not_grow() -> None:
    assert len(list(commands(typer.main.get_command(app)))) <= MOST_COMMANDS, table()
    assert num_options() - len(job_options()) <= MOST_OPTIONS, table()
    assert len(job_options()) <= MOST_JOB_OPTIONS, table()
    assert len(by_name()) <= MOST_NAMES, table()


def test_a_name_has_one_meaning() -> None:
    """Every name of several commands has its words here, and every help text contains them."""
    shared = {name: uses for name, uses in by_name().items() if len(uses) > 1}
    assert not set(shared) - set(MEANING), "give the meaning of a new shared name"
    wrong = [
        f"{command} {name}: {words}"
        for name, uses in shared.items()
        for command, words in uses
        if not any(meant in words for meant in MEANING[name])
    ]
    assert not wrong


def test_short_names_and_help_texts() -> None:
    """A short name belongs to one long name; every option is explained."""
    for _, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            for name in parameter.opts:
                if name.startswith("-") and not name.startswith("--"):
                    assert SHORT[name] in parameter.opts
    assert not [f"{command} {name}" for command, name, words in options() if not words]


def test_every_command_has_json() -> None:
    given: dict[str, set[str]] = defaultdict(set)
    for command, name, _ in options():
        given[command].add(name)
    lacking: list[Any] = [command for command, names in given.items() if "--json" not in names]
    assert not lacking


if __name__ == "__main__":
    print(table())
