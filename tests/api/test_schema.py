"""Every JSON of the commands about a job is as driple/api/schema.json describes it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import driple
from driple.api.results import schema_text
from driple.calibration.paper_figures import Fact
from driple.calibration.validate import ErrorRow
from tests.cli.test_main import driple as command

ROOT = Path(__file__).resolve().parents[2]
GRAPH = "datasets/examples/resnet20.pbtxt"
OPEN = "tests/data/cases/11_unknown_batch.pbtxt"
TRACE = "tests/data/throughput/inception3.npz"
RING, SERVERS = "V100-R8/ho-NVLink", "V100-P1w2/ho-PCIe"
LINES = (
    ("predict", GRAPH),
    ("predict", GRAPH, "--setting", RING),
    ("predict", GRAPH, "--setting", RING, "--setting", SERVERS, "--set", "steps=4"),
    ("predict", GRAPH, "--method", "analytic"),
    ("predict", GRAPH, "--method", "all", "--setting", "CPU-P1w2", "--set", "steps=4"),
    ("predict", OPEN, "--method", "all", "--setting", RING, "--set", "steps=4"),
    ("plan", GRAPH, "--batch-size", "32", "--instance", "p3", "--machines", "1,2"),
    ("plan", OPEN, "--batch-size", "8", "--instance", "p3.2xlarge"),
    ("sweep", GRAPH, "--bandwidth", "1G,10G", "--workers", "1-3"),
    ("sweep", OPEN, "--workers", "2"),
    ("sweep", TRACE, "--workers", "1-2", "--set", "steps=20", "--set", "price=1,0.5"),
    ("inspect", GRAPH),
    ("inspect", OPEN),
)


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema_text())
    Draft202012Validator.check_schema(found)
    return found


def errors_of(value: dict[str, Any]) -> list[str]:
    """What a result has that its part of the schema does not describe."""
    part = {"$ref": f"#/$defs/{value['question']}", "$defs": schema()["$defs"]}
    found = Draft202012Validator(part).iter_errors(value)
    return [f"{'/'.join(map(str, one.absolute_path))}: {one.message[:300]}" for one in found]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_command_prints_what_the_schema_describes(
    line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    done = command(*line, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["question"] == line[0]
    assert errors_of(found) == []


def test_every_question_is_in_the_schema() -> None:
    parts = [one["$ref"].rpartition("/")[2] for one in schema()["oneOf"]]
    assert parts == ["predict", "plan", "sweep", "inspect", "validate"]
    assert {line[0] for line in LINES} == {*parts} - {"validate"}


def test_a_validation_is_as_described() -> None:
    """Without the minutes of fits: the result of two rows."""
    from driple.api.validating import ValidateResult

    row = ErrorRow(
        kind="ring", held_out="model", source="all", rows=3, median_pct=5.0, p90_pct=9.0,
        roofline_median_pct=20.0, roofline_p90_pct=40.0,
    )  # fmt: skip
    fact = Fact(section="4", what="iteration", unit="s", paper=1.0, simulated=None, note="")
    result = ValidateResult(errors=(row,), facts=(fact,))
    assert errors_of(result.to_dict()) == []
    assert result.to_frame()["median_pct"].tolist() == [5.0]


@pytest.mark.parametrize("wrong", ["iteration_s", "iteration_time_s"])
def test_a_number_without_its_method_is_refused(wrong: str) -> None:
    """Neither another name of the step time nor a bare number passes."""
    found: Any = driple.predict(ROOT / GRAPH, SERVERS).to_dict()
    assert errors_of(found) == []
    found["answers"][0][wrong] = 0.5
    assert errors_of(found)
