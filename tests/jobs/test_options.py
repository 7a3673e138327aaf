"""Options of a job: those of a graph file's reader are given like all others."""

from __future__ import annotations

import pytest

import driple
from driple.errors import GraphError
from driple.graph.options import ReadOptions
from driple.jobs.training_config import TrainingConfig


def test_values_of_a_graph_file_reach_its_reader() -> None:
    """Each value of `ReadOptions` is one of `JobOptions`, and there is no second place for it."""
    values = {"batch_size": 8, "inputs": {"x": (8, 3)}, "target": "train", "loop_turns": 5}
    options = driple.JobOptions(**values)  # type: ignore[arg-type]
    assert options.read == ReadOptions(**values)  # type: ignore[arg-type]
    assert set(ReadOptions.__slots__) == set(values)
    with pytest.raises(TypeError, match="read"):
        driple.JobOptions(read=ReadOptions())  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batch_size": 0}, "--batch-size must be from 1"),
        ({"inputs": {"x": (0,)}}, "--input x needs"),
        ({"loop_turns": 0}, "--set loop_turns must be from 1"),
    ],
)
def test_values_of_a_graph_file_are_checked_at_once(values: dict[str, object], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        driple.JobOptions(**values)  # type: ignore[arg-type]


def test_a_training_config_gives_the_batch_size_that_is_left_out() -> None:
    config = TrainingConfig(batch_size=4)
    assert driple.JobOptions(config=config).with_config().read.batch_size == 4
    assert driple.JobOptions(batch_size=8, config=config).with_config().read.batch_size == 8
