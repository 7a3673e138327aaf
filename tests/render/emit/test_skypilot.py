"""A task that SkyPilot's schema takes, and a time estimator that runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml

from driple.render.emit.scheduled_job import ScheduledJob
from driple.render.emit.skypilot import accelerator_name, skypilot_estimator, skypilot_task
from tests.render.emit.trainings import training

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "data/schemas/skypilot-0.14.1.json").read_text(encoding="utf-8")
)


def _task(job: ScheduledJob) -> dict[str, Any]:
    task = yaml.safe_load(skypilot_task(job))
    jsonschema.validate(task, SCHEMA["task"])
    jsonschema.validate(task["resources"], SCHEMA["resources"])
    return dict(task)


def test_a_task_names_the_instance_and_its_time() -> None:
    task = _task(training())
    assert task["num_nodes"] == 2
    assert task["resources"] == {
        "cloud": "aws", "instance_type": "p4d.24xlarge", "use_spot": False,
    }  # fmt: skip
    assert "timeout 12000s torchrun" in task["run"]


def test_machines_of_ones_own_are_named_by_their_accelerators() -> None:
    task = _task(training(instance=None, device="A100-80G", limit_s=None))
    assert task["resources"] == {"accelerators": "A100-80GB:8"}
    assert "timeout" not in task["run"]
    assert [accelerator_name(name) for name in ("4090", "H100", "3080Ti")] == [
        "RTX4090", "H100", "RTX3080Ti",
    ]  # fmt: skip


def test_the_schema_refuses_an_unknown_field() -> None:
    """The check above can fail."""
    task = _task(training())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**task, "time_estimator_func": "x"}, SCHEMA["task"])


def _estimator(*jobs: ScheduledJob) -> Callable[[Any], float]:
    space: dict[str, Any] = {}
    exec(compile(skypilot_estimator(jobs), "estimator.py", "exec"), space)  # noqa: S102
    return space["time_estimator_func"]  # type: ignore[no-any-return]


def test_an_estimator_knows_the_machines_that_were_asked() -> None:
    """As the optimizer calls it: with an instance, an accelerator, or both."""
    other = training(instance=None, device="H100", training_s=2000.4)
    slower = training(training_s=9999.0)
    estimate = _estimator(training(), other, slower)
    both = SimpleNamespace(instance_type="p4d.24xlarge", accelerators={"A100": 8})
    assert estimate(both) == 5400
    assert estimate(SimpleNamespace(instance_type=None, accelerators={"A100": 8})) == 5400
    assert estimate(SimpleNamespace(instance_type="p5.x", accelerators={"H100": 8.0})) == 2000
    for unknown in ({"H100": 4}, {"T4": 8}, None):
        with pytest.raises(ValueError, match="Driple was not asked about"):
            estimate(SimpleNamespace(instance_type=None, accelerators=unknown))


def test_a_name_cannot_leave_its_comment() -> None:
    """Facts hold names that users typed; they are lines of comments, whatever they hold."""
    estimate = _estimator(training(facts=('a """ + boom() \\', "b")))
    assert estimate(SimpleNamespace(instance_type="p4d.24xlarge", accelerators=None)) == 5400
