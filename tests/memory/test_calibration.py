"""Constants of a device's memory: every lookup has an answer, and the file comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from driple.errors import ConfigError
from driple.memory.calibration import (
    FORMAT,
    ErrorRange,
    MemoryCalibration,
    shipped_memory_calibration,
)

WIDE = ErrorRange(low=0.5, high=2.0, median_pct=10.0, p90_pct=40.0, runs=9)
NARROW = ErrorRange(low=0.9, high=1.1, median_pct=2.0, p90_pct=5.0, runs=30)
MADE = MemoryCalibration(
    workspace_bytes={"Hopper": 32e6, "": 8e6},
    context_bytes={"Volta": 4e8, "": 5e8},
    group_bytes=1e8,
    cache_share={"torch1": 0.2, "": 0.1},
    usable_share=0.98,
    yes_below=0.95,
    no_above=1.02,
    errors={"reserved": {"ddp images": NARROW, "images": replace(NARROW, runs=8), "": WIDE}},
)


def test_what_was_not_measured_has_the_usual_constant() -> None:
    assert (MADE.workspace_of("Hopper"), MADE.workspace_of("Ampere")) == (32e6, 8e6)
    assert (MADE.context_of("Volta"), MADE.context_of("Hopper")) == (4e8, 5e8)
    assert (MADE.cache_of("torch1"), MADE.cache_of("torch2.4")) == (0.2, 0.1)


def test_errors_are_those_of_the_kind_then_of_its_samples_then_of_all() -> None:
    assert MADE.error_of("reserved", "ddp images") is NARROW
    fsdp = MADE.error_of("reserved", "fsdp images")
    assert fsdp is not None and fsdp.runs == 8
    assert MADE.error_of("reserved", "fsdp others") is WIDE
    assert MADE.error_of("reserved", "") is WIDE
    assert MADE.error_of("allocated", "ddp images") is None


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (1.1, 2.0), (0.5, 0.9), (-1.0, 1.0)])
def test_an_interval_of_factors_holds_1(low: float, high: float) -> None:
    with pytest.raises(ConfigError, match="holds 1"):
        replace(WIDE, low=low, high=high)
    replace(WIDE, low=1.0, high=1.0)


def test_a_calibration_comes_back_from_its_file() -> None:
    assert MemoryCalibration.from_json(json.dumps(MADE.to_dict())) == MADE
    assert MADE.to_dict()["format"] == FORMAT


@pytest.mark.parametrize("damage", ["{}", "nothing", json.dumps({"format": 99})])
def test_other_files_are_refused_with_what_makes_one(damage: str) -> None:
    with pytest.raises(ConfigError, match="memory calibration"):
        MemoryCalibration.from_json(damage)


def test_the_shipped_file_answers_for_all() -> None:
    known = shipped_memory_calibration()
    text = files("driple.memory").joinpath("calibration-memory.json").read_text()
    assert json.loads(json.dumps(known.to_dict())) == json.loads(text)
    assert 0 < known.yes_below < known.no_above <= 1
    assert 0.9 < known.usable_share <= 1
    for number in ("allocated", "device_total"):
        for kind in ("single images", "ddp others", "fsdp images"):
            error = known.error_of(number, kind)
            assert error is not None and error.runs > 0
