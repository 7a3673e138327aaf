"""Two contents of a file are compared: what may differ, and how far off the rest is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from scripts.build import ROOT
from scripts.checks.compared import (
    BUT_DATES,
    BUT_RUN,
    DIFFERS,
    EQUAL,
    SIX_DIGITS,
    UNPACKED,
    compared,
    difference,
    rows_made,
)
from scripts.fits.memory_store import MemoryStore, write_memory_steps

STEPS = ROOT / "datasets" / "runs" / "published" / "memory_steps.xz"


def checkpoint(weight: float, *, epochs: int = 3, date: str = "2026-01-02") -> bytes:
    about = {"epochs": epochs, "trained_on": {"date": date}, "versions": {"torch": date}}
    return save({"weight": np.array([weight], np.float32)}, {"driple": json.dumps(about)})


def test_dates_and_packing_are_no_differences() -> None:
    assert compared(b"2026-01-02, 1", b"2026-03-04, 1", "a.json") == BUT_DATES
    stored, packed = (gzip.compress(b"1,2" * 99, level) for level in (0, 9))
    assert compared(stored, packed, "a.csv.gz") == UNPACKED
    assert compared(gzip.compress(b"1"), gzip.compress(b"2"), "a.csv.gz") == DIFFERS


def test_a_number_beside_a_date_is_a_difference() -> None:
    before, after = b'{"date": "2026-01-02", "a": 1}', b'{"date": "2026-03-04", "a": 2}'
    assert compared(before, after, "a.json") == DIFFERS


def test_seconds_of_a_training_and_versions_are_of_the_run() -> None:
    def fold(seconds: float, error: float) -> bytes:
        text = {"train_seconds": seconds, "versions": {"torch": str(seconds)}, "error": error}
        return gzip.compress(json.dumps(text).encode())

    assert compared(fold(1.0, 0.5), fold(2.0, 0.5), "folds/a.json.gz") == BUT_RUN
    assert compared(fold(1.0, 0.5), fold(1.0, 0.6), "folds/a.json.gz") == DIFFERS


def test_weights_and_facts_of_a_checkpoint_count() -> None:
    ships, name = checkpoint(1.0), "a.safetensors"
    assert compared(ships, checkpoint(1.0), name) == EQUAL
    assert compared(ships, checkpoint(1.0, date="another day"), name) == BUT_RUN
    assert compared(ships, checkpoint(1.0, epochs=4), name) == DIFFERS
    assert compared(ships, checkpoint(1.5), name) == DIFFERS
    assert difference(ships, checkpoint(1.5), name).startswith("1 of 1 numbers differ, by 33 %")


@pytest.mark.parametrize(
    ("after", "result"),
    [
        ('{"a": 0.12345679, "b": 12}', SIX_DIGITS),
        ('{"a": 0.1234567, "b": 12}', SIX_DIGITS),
        ('{"a": 0.1234578, "b": 12}', DIFFERS),
        ('{"a": 0.12345678, "b": 13}', DIFFERS),
        ('{"a": 0.12345679, "c": 12}', DIFFERS),
        ('{"a": -0.12345678, "b": 12}', DIFFERS),
    ],
)
def test_last_digits_of_fractions_are_a_result_of_their_own(after: str, result: str) -> None:
    ships = b'{"a": 0.12345678, "b": 12}'
    for name in ("a.json", "a.jsonl"):
        assert compared(ships, after.encode(), name) == result
    big = [b'{"seed": 10000000}', b'{"seed": 10000001}']
    assert compared(big[0], big[1], "a.json") == DIFFERS  # whole numbers are exact


def test_rows_are_lines_without_dates() -> None:
    ships = gzip.compress(b"id,seconds\na,1\nb,2\nb,2\n")
    for lines, equal in ((b"b,2\n", 1), (b"b,2\nb,2\nb,2\n", 2), (b"b,2\na,3\n", 1)):
        num_lines = lines.count(b"\n")
        assert rows_made(ships, gzip.compress(lines), "a.csv.gz") == (equal, num_lines, 4)
    assert rows_made(b"on 2026-01-02\n", b"on 2026-03-04\n", "a.md") == (1, 1, 1)


def test_rows_of_the_memory_store_are_its_steps(tmp_path: Path) -> None:
    steps = MemoryStore.open(STEPS).steps
    names = sorted(steps)[:3]
    few, moved = tmp_path / "few.xz", tmp_path / "moved.xz"
    write_memory_steps(few, {name: steps[name] for name in names})
    write_memory_steps(
        moved, dict(zip(names, [steps[name] for name in reversed(names)], strict=True))
    )
    assert rows_made(few.read_bytes(), few.read_bytes(), STEPS.name) == (3, 3, 3)
    assert rows_made(few.read_bytes(), moved.read_bytes(), STEPS.name) == (1, 3, 3)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (b"1,4", "1 of 2 numbers differ, by 50 % in the median and 50 % at most"),
        (b"1,2,3", "3 numbers in place of 2"),
        (b"1;2", "the numbers are equal"),
    ],
)
def test_a_difference_says_how_far_off_numbers_are(after: bytes, words: str) -> None:
    assert difference(b"1,2", after, "a.csv") == words
