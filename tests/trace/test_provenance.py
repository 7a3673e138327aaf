"""What data sets record of their labels: every shipped file comes back as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driple.codec import from_json, to_dict
from driple.errors import ConfigError
from driple.trace.provenance import Provenance, Repeatability, RunPlan, TimeError

DATASETS = Path(__file__).parents[2] / "datasets"
FOLDER_KEYS = {
    "format",
    "name",
    "setting",
    "num_examples",
    "num_graphs",
    "reader_version",
    "graphs_in",
}


def test_every_shipped_data_set_comes_back_and_has_no_unknown_key() -> None:
    files = sorted(DATASETS.rglob("dataset.json"))
    assert len(files) > 20
    for file in files:
        stored = {k: v for k, v in json.loads(file.read_text()).items() if k not in FOLDER_KEYS}
        read = from_json(Provenance, stored, where=str(file))
        assert to_dict(read) == stored, file
        assert not read.others, file


def test_what_is_not_known_is_not_written() -> None:
    """Fields at their defaults are left out; keys of other programs stay."""
    assert to_dict(Provenance()) == {}
    provenance = Provenance(licence="MIT", others={"extra": [1]})
    assert to_dict(provenance) == {"licence": "MIT", "extra": [1]}
    assert from_json(Provenance, to_dict(provenance), where="x") == provenance
    assert to_dict(Repeatability()) == {"workloads": 0}
    error = TimeError(rows=3, median_pct=1.0, p90_pct=2.0)
    assert to_dict(error) == {"rows": 3, "median_pct": 1.0, "p90_pct": 2.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_grid_s": "fast"}, "label_grid_s must be a finite number, got 'fast'"),
        ({"host": {"cores": 2.5}}, "host.cores must be a whole number"),
        ({"measured": {"first": "x"}}, "measured.last is missing"),
        ({"iteration_time_error": {"rows": 1}}, "iteration_time_error.median_pct is missing"),
        ({"origins": [{"num_runs": "two"}]}, r"origins\[0\].num_runs must be a whole number"),
        ({"plan": {**to_dict(RunPlan()), "pace": 1}}, "plan.pace is unknown; known are share"),
    ],
)
def test_a_damaged_field_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^d.json: {message}"):
        from_json(Provenance, change, where="d.json")


def test_a_plan_takes_as_many_iterations_as_time_allows() -> None:
    """By hand: 9 s of 0.1 s are 90; at 1 s a step the most is 16; never below 10."""
    assert [RunPlan().iterations(s) for s in (0.1, 1.0, 100.0)] == [90, 16, 10]
