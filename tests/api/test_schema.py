"""The JSON of every command is as driple/api/schema.json describes it.

Commands that need a machine of their own, or minutes, are checked where their tests run them.
"""

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import driple
from driple.api.results import schema_text
from driple.codec import to_dict
from driple.runs.validation.held_out import ErrorRow
from driple.runs.validation.paper_figures import Fact
from driple.runs.validation.scores import GroupScore
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
    ("plan", GRAPH, "--batch-size", "24", "--instance", "p3", "--machines", "1,2"),
    ("plan", OPEN, "--batch-size", "8", "--instance", "p3.2xlarge"),
    ("sweep", GRAPH, "--bandwidth", "1G,10G", "--workers", "1-3"),
    ("sweep", OPEN, "--workers", "2"),
    ("sweep", TRACE, "--workers", "1-2", "--set", "steps=20", "--set", "price=1,0.5"),
    ("inspect", GRAPH),
    ("inspect", OPEN),
    ("inspect", GRAPH, "--setting", RING, "--depth", "3"),
    ("inspect", "mobilenet_v2", "--setting", "1xA100"),
    ("inspect", "mobilenet_v2", "--setting", "1xA100", "--memory"),
    ("inspect", OPEN, "--memory"),
    ("inspect", "tests/data/cases/08_inference_only.pbtxt"),
    ("list", "devices"),
    ("list", "links"),
    ("list", "instances", "p3"),
    ("list", "settings"),
    ("list", "checkpoints", "V100"),
    ("jobs", "list", "lenet"),
    ("data", "list"),
    ("data", "list", "datasets/settings/CPU-P1w2_ho-200M"),
    ("data", "show", "datasets/settings/CPU-P1w2_ho-200M", "resnet20/cifar10/b24/adam/sync"),
    ("profile", "links", GRAPH, "--bandwidth", "10G"),
    ("env",),
)


# The question of a command with two words; otherwise it is the command.
QUESTIONS = {
    ("jobs", "list"): "jobs",
    ("data", "list"): "data_list",
    ("data", "show"): "label",
    ("profile", "links"): "stalls",
}
# Questions that other tests check, with the file.
ELSEWHERE = {
    "predict_jobs": "cli/test_predict_jobs.py",
    "tune": "cli/test_transfer_gpu.py",
    "build": "cli/test_stalls.py",
    "links": "cli/test_stalls.py",
    "profile": "cli/test_stalls.py",
    "train": "cli/test_training.py",
    "evaluate": "cli/test_training.py",
    "transfer": "cli/test_transfer.py",
    "trace": "cli/test_throughput.py",
    "platform": "api/test_schema.py",
    "measure": "cli/test_measure.py",
    "record": "cli/test_record.py",
    "measure_machine": "cli/test_measure_machine.py",
    "data_made": "cli/test_import.py",
    "data_simulated": "cli/test_data_simulate.py",
}


@cache
def schema() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(schema_text())
    Draft202012Validator.check_schema(document)
    return document


def errors_of(value: dict[str, Any]) -> list[str]:
    """What a result has that its part of the schema does not describe."""
    part = {"$ref": f"#/$defs/{value['question']}", "$defs": schema()["$defs"]}
    errors = Draft202012Validator(part).iter_errors(value)
    return [f"{'/'.join(map(str, one.absolute_path))}: {one.message[:300]}" for one in errors]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_command_prints_what_the_schema_describes(
    line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    done = command(*line, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    if result["question"] == "data_set":
        assert line[:2] == ("data", "list")
    else:
        assert result["question"] == QUESTIONS.get(line[:2], line[0])
    assert errors_of(result) == []
    assert Draft202012Validator(schema()).is_valid(result)


def test_every_question_is_in_the_schema() -> None:
    """Each is printed above, or where its name stands beside `errors_of` in another test."""
    parts = {one["$ref"].rpartition("/")[2] for one in schema()["oneOf"]}
    printed = {QUESTIONS.get(line[:2], line[0]) for line in LINES} | {"data_set"}
    assert printed | {"validate", *ELSEWHERE} == parts
    for file in ELSEWHERE.values():
        assert "errors_of" in (ROOT / "tests" / file).read_text()


def test_every_command_that_prints_json_is_checked() -> None:
    """`print_json` is given a question that the schema has."""
    given = set()
    for file in (ROOT / "driple" / "cli").glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print_json":
                given |= {one.value for one in call.args[1:] if isinstance(one, ast.Constant)}
    assert given <= {one["$ref"].rpartition("/")[2] for one in schema()["oneOf"]}
    assert len(given) > 15


def test_a_validation_is_as_described() -> None:
    """Without the minutes of fits: the result of two rows."""
    from driple.api.validating import ValidateResult

    row = ErrorRow(
        kind="ring", held_out="model", source="all", rows=3, median_pct=5.0, p90_pct=9.0,
        roofline_median_pct=20.0, roofline_p90_pct=40.0,
    )  # fmt: skip
    fact = Fact(section="4", what="iteration", unit="s", paper=1.0, simulated=None, note="")
    score = GroupScore(
        by="task", group="single, vision", mode="train", split="family", predictor="simulator",
        rows=3, families=2, median_pct=7.0, p90_pct=9.0, signed_pct=-1.0, tau=None,
        coverage_pct=90.0, width=1.5,
    )  # fmt: skip
    result = ValidateResult(errors=(row,), facts=(fact,), scores=(score,))
    assert errors_of(result.to_dict()) == []
    assert result.to_frame()["median_pct"].tolist() == [5.0, 20.0, 7.0]


def test_the_record_of_a_link_is_as_described() -> None:
    """What `driple trace link` measures needs root; here is one of its records."""
    from driple.async_sgd.origin import PlatformRecord
    from driple.async_sgd.overhead import Overhead

    record = PlatformRecord(
        bits_per_s=2e8, bytes_per_s=2.4e7, overhead=Overhead(1e-9, 1e-4), r_squared=0.9,
        sizes=(1, 2), overhead_s=(1e-4, 1e-4), measured="2026-11-20",
    )  # fmt: skip
    assert errors_of({"question": "platform", **to_dict(record)}) == []  # type: ignore[dict-item]


@pytest.mark.parametrize("wrong", ["iteration_s", "iteration_time_s"])
def test_a_number_without_its_method_is_refused(wrong: str) -> None:
    """Neither another name of the step time nor a bare number passes."""
    result: Any = driple.predict(ROOT / GRAPH, SERVERS).to_dict()
    assert errors_of(result) == []
    result["answers"][0][wrong] = 0.5
    assert errors_of(result)
