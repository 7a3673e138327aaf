"""Every numeric option of every command is checked before any work.

The commands' own work is cut off: parsing alone must refuse what is out of range. What the commands
do with numbers within the range is tested elsewhere.
"""

from __future__ import annotations

import inspect
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import typer.main

from driple.cli import main
from driple.cli.main import app
from driple.cli.overrides import SetValue, read_values, set_values
from driple.errors import ConfigError
from scripts.checks.count_options import leaf_commands
from tests.cli.test_main import EXAMPLE, refused

# Options for which zero is a value of its own: no seed is special.
ZERO_IS_FINE = {"--top", "--depth"}
ANY_PORT = "--port"  # with zero, `driple serve` takes a port that is free, and does not end
NEVER = ("nan", "inf", "-inf", "-1", "1e20", str(10**20), "-1e300", "few")

commands = leaf_commands


def kind_of(command: Any, parameter: str) -> Any:
    """The type of a command's parameter, without Annotated and None."""
    # A command with the shared options of a JOB states its signature itself.
    function = inspect.unwrap(command.callback, stop=lambda one: "__signature__" in vars(one))
    hint = get_type_hints(function, include_extras=True)[parameter]
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    kinds = [kind for kind in get_args(bare) if kind is not NoneType]
    return kinds[0] if len(kinds) == 1 and NoneType in get_args(bare) else bare


def numeric_options() -> list[tuple[tuple[str, ...], str]]:
    return [
        (path, max(parameter.opts, key=len))
        for path, command in commands(typer.main.get_command(app))
        for parameter in command.params
        if kind_of(command, parameter.name) in (int, float)
    ]


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The commands without their work."""
    group = typer.main.get_command(app)
    for _, command in commands(group):
        monkeypatch.setattr(command, "callback", lambda **_: None)
    monkeypatch.setattr(main, "app", group)
    return group


def required(group: Any, path: tuple[str, ...], but: str) -> list[str]:
    """The options and arguments that a command cannot do without."""
    command = dict(commands(group))[path]
    words = []
    for parameter in command.params:
        flag = max(parameter.opts, key=len)
        if parameter.required and flag != but:
            words += [flag, "1"] if flag.startswith("--") else ["1"]
    return words


def test_the_options_are_found() -> None:
    """Of every kind, so that the others cannot pass because there are none."""
    flags = {flag for _, flag in numeric_options()}
    assert {"--batch-size", "--samples", "--global-batch", "--top"} <= flags
    assert len(numeric_options()) > 20


@pytest.mark.parametrize(("path", "flag"), numeric_options(), ids=str)
def test_numbers_that_make_no_sense_are_refused_by_name(
    path: tuple[str, ...], flag: str, cut_off: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    others = required(cut_off, path, flag)
    zero_is_fine = flag in ZERO_IS_FINE
    for value in NEVER if zero_is_fine or flag == ANY_PORT else (*NEVER, "0"):
        status = main._run([*path, f"{flag}={value}", *others])
        said = capsys.readouterr()
        assert status == 2, f"{' '.join(path)} {flag}={value} is accepted"
        assert len(said.err.splitlines()) == 1
        assert flag in said.err
        assert said.out == ""
    if zero_is_fine:
        assert main._run([*path, f"{flag}=0", *others]) == 0


def numeric_values() -> list[tuple[str, SetValue]]:
    """Every numeric value of a `--set`, with its command."""
    return [
        (" ".join(path), value)
        for path, command in commands(typer.main.get_command(app))
        for value in set_values(command.callback)
        if value.rule.type in (int, float)
    ]


def test_numeric_values_of_set_are_found() -> None:
    assert {"seed", "steps", "deviation", "measured", "repeats", "loop_turns", "memory_gib"} <= {
        value.name for _, value in numeric_values()
    }


@pytest.mark.parametrize(
    "value",
    [value for _, value in numeric_values()],
    ids=[f"{command} {value.name}" for command, value in numeric_values()],
)
def test_values_that_make_no_sense_are_refused_by_name(value: SetValue) -> None:
    for given in NEVER:
        with pytest.raises(ConfigError, match=f"--set {value.name} "):
            read_values([value], [f"{value.name}={given}"])


@pytest.mark.parametrize(
    "words",
    [
        ("predict", EXAMPLE, "--set=max_mib=nan"),
        ("predict", EXAMPLE, "--set=seed=-1"),
        ("predict", EXAMPLE, "--set=steps=1e20"),
        ("sweep", "job.npz", "--set=price=inf"),
        ("train", "--setting", "CPU-P1w2", "--set=seed=-1"),
        ("sweep", EXAMPLE, f"--bandwidth={'9' * 400}G"),
        ("sweep", EXAMPLE, f"--workers={'9' * 5000}"),
        ("sweep", EXAMPLE, "--compress=nan"),
        ("sweep", EXAMPLE, "--compress=0.9-0.1"),
        ("jobs", "build", "-o", "tokens.npy", "--set", "length=1000000", "--samples=1000000"),
        ("profile", "run", f"--set=bandwidth={'9' * 400}M"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}"[:40],
)
def test_whole_commands_refuse_them_too(words: tuple[object, ...]) -> None:
    """Also the numbers in text options."""
    assert str(words[-1]).split("=")[0] in refused(*words)
