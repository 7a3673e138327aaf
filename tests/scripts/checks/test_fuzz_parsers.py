"""A sample of damaged inputs for each parser; the whole is `scripts.checks.fuzz_parsers`."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from driple.errors import ConfigError
from scripts.checks.fuzz_parsers import Tally, fuzz
from scripts.checks.parsers import PARSERS, Parser

# Inputs of each parser, and seconds: all take half a minute, those of the slow part three minutes.
SAMPLES = [(100, 2.0), pytest.param(1000, 6.0, marks=pytest.mark.slow)]
EXTRAS = {"web-json": "fastapi", "web-form": "fastapi", "yaml": "yaml", "cluster": "yaml"}


@pytest.mark.parametrize(("most", "most_s"), SAMPLES)
@pytest.mark.parametrize("name", PARSERS)
def test_damaged_inputs_end_in_an_error_of_ours(
    name: str, most: int, most_s: float, tmp_path: Path
) -> None:
    """The undamaged ones are parsed, or `fuzz` fails."""
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    tally = fuzz(name, PARSERS[name], most, tmp_path, most_s=most_s)
    assert tally.faults == []
    assert tally.inputs == tally.parsed + tally.refused > 0
    assert tally.ends


def parser_of(parse: object) -> Parser:
    return Parser(form="text", seeds=lambda _: [b"0 good"], parse=parse)  # type: ignore[arg-type]


def test_other_errors_are_faults_and_their_inputs_are_kept(tmp_path: Path) -> None:
    def parse(data: bytes, _: Path) -> None:
        if b"good" not in data:
            raise KeyError("x")

    tally = fuzz("a", parser_of(parse), 200, tmp_path)
    assert 0 < len(tally.faults) < 200
    number, words = tally.faults[0]
    assert words.startswith("KeyError: 'x'")
    assert b"good" not in (tmp_path / "a" / f"fault-{number}").read_bytes()
    assert tally.inputs == 200


def test_a_process_that_dies_is_a_fault_and_the_rest_goes_on(tmp_path: Path) -> None:
    def parse(data: bytes, _: Path) -> None:
        if b"good" not in data:
            os.kill(os.getpid(), signal.SIGKILL)

    tally = fuzz("a", parser_of(parse), 30, tmp_path)
    assert tally.inputs == 30
    assert tally.faults
    assert all(words == "the process ended with -9" for _, words in tally.faults)


def test_an_input_without_end_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.checks.fuzz_parsers.MOST_S", 1)

    def parse(data: bytes, _: Path) -> None:
        if b"good" not in data:
            time.sleep(60)

    tally = fuzz("a", parser_of(parse), 30, tmp_path, most_s=3)
    assert tally.faults[0][1] == "the process ended with -14"


def test_inputs_refused_at_a_new_place_are_damaged_further(tmp_path: Path) -> None:
    """A run goes on where the last one stopped, and gives what one run would have given."""

    def parse(data: bytes, _: Path) -> None:
        from driple.checks import check_choice

        if b"good" not in data:
            check_choice("data", data.decode(errors="replace"), ("good",))

    both = [fuzz(name, parser_of(parse), 1000, tmp_path / name) for name in "ab"]
    assert both[0].refused == fuzz("a", parser_of(parse), 1000, tmp_path / "a").refused
    assert both[0].ends and list((tmp_path / "a" / "a" / "corpus").iterdir())
    stored = json.loads((tmp_path / "a" / "a" / "tally.json").read_text(encoding="utf-8"))
    assert stored["inputs"] == 1000
    again = fuzz("a", parser_of(parse), 1500, tmp_path / "a")
    assert again.inputs == 1500
    assert isinstance(again, Tally)


def test_our_errors_are_no_faults(tmp_path: Path) -> None:
    def parse(data: bytes, _: Path) -> None:
        if b"good" not in data:
            raise ConfigError("no")

    tally = fuzz("a", parser_of(parse), 100, tmp_path)
    assert tally.faults == []
    assert tally.refused > 0
