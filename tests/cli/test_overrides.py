"""`--set NAME=VALUE`: names, bounds, and what the help shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from driple.cli.overrides import (
    number,
    override,
    set_option,
    set_values,
    switch,
    text,
    texts,
    whole,
)
from driple.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    share: float = number(0.4, "cores", above=0, most=8)
    tries: int = whole(4, "runs", 1, 10)
    layers: str | None = text(None, "what is tuned")
    align: bool | None = switch(None, "levels")
    files: tuple[str, ...] = texts("to read")


@dataclass(frozen=True, kw_only=True, slots=True)
class Others:
    """Of others."""

    size: int = whole(3, "in MB", 1, 10)


def test_values_are_changed_and_the_others_keep_their_defaults() -> None:
    assert override(Values, None) == Values()
    values = override(Values, ["share=0.8", "layers=phi_r,mlp", "align=off"])
    assert values == Values(share=0.8, layers="phi_r,mlp", align=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "share",
            "--set needs NAME=VALUE with one of share, tries, layers, align, files, got 'share'",
        ),
        ("size=3", "one of share, tries, layers, align, files, got 'size=3'"),
        ("share=0", "--set share must be a number above 0 and at most 8, got 0.0"),
        ("share=nan", "--set share must be a number"),
        ("share=few", "--set share must be a number, got 'few'"),
        ("tries=1.5", "--set tries must be a whole number from 1 to 10, got '1.5'"),
        ("tries=11", "--set tries must be a whole number from 1 to 10, got 11"),
        ("align=maybe", "--set align must be on or off, got 'maybe'"),
    ],
)
def test_bad_values_are_refused_by_name(given: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(Values, [given])
    assert words in str(caught.value)


def test_the_help_lists_every_value() -> None:
    option = set_option(Values)
    lines = "share=0.4: cores\ntries=4: runs\nlayers: what is tuned\nalign: levels\nfiles: to read"
    assert option.help.endswith(f"several times:\n{lines}")
    assert option.names == ("share", "tries", "layers", "align", "files")


def test_the_names_of_a_command_are_those_that_it_declares() -> None:
    def command(set_: Annotated[list[str] | None, set_option(Values, Others)] = None) -> None:
        """Help text that names no=value: as such."""

    def other(words: str = "") -> None: ...

    assert tuple(value.name for value in set_values(command)) == (
        "share",
        "tries",
        "layers",
        "align",
        "files",
        "size",
    )
    assert set_values(other) == ()


def test_a_command_for_two_kinds_lists_the_values_of_each() -> None:
    assert set_option(Values, Others).help.endswith("files: to read\nOf others:\nsize=3: in MB")
    with pytest.raises(ConfigError, match="--set needs NAME=VALUE for others with one of size"):
        override(Others, ["share=1"], of=" for others")


def test_some_values_are_given_several_times() -> None:
    assert override(Values, ["files=a", "files=b"]).files == ("a", "b")
    assert override(Values, ["share=1", "share=2"]).share == 2
