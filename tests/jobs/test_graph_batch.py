"""The batch that a TensorFlow graph fixes: stated, with throughput, and not to be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import GraphError
from driple.jobs.load import JobOptions, load_job

DATA = Path(__file__).resolve().parents[1] / "data"
EXAMPLES = DATA.parents[1] / "datasets" / "examples"


QUEUES = DATA / "queues"  # made by generators/01_batch_fixed_by_queue.py


@pytest.mark.parametrize(
    ("name", "batch_size"),
    [("a_batch1_time_open", 1), ("a2_batch1_time_open_no_loose", 1), ("b_batch25", 25)],
)
def test_a_queue_that_fixes_the_batch_states_it(name: str, batch_size: int) -> None:
    file = str(QUEUES / f"{name}.pbtxt")
    assert load_job(file).batch_size == batch_size
    assert load_job(file, JobOptions(batch_size=batch_size)).batch_size == batch_size
    with pytest.raises(GraphError, match=f"the graph has a fixed batch of {batch_size}, at its"):
        load_job(file, JobOptions(batch_size=4))


def test_a_number_without_a_shape_is_said_to_be_one() -> None:
    """A keep probability, as `placeholder(tf.float32)` makes it."""
    (note,) = (
        note
        for note in load_job(str(QUEUES / "a_batch1_time_open.pbtxt")).graph.report.notes
        if note.code == "inputs_without_shape"
    )
    assert note.values == {"num_names": 1, "names": ("keep",)}


@pytest.mark.parametrize(("name", "batch_size"), [("resnet20", 24), ("resnet50", 32)])
def test_data_in_a_variable_have_the_batch_of_convolutions_and_loss(
    name: str, batch_size: int
) -> None:
    assert load_job(str(EXAMPLES / f"{name}.pbtxt")).batch_size == batch_size


def test_a_batch_size_that_changes_nothing_is_refused() -> None:
    """Of a graph that reads no data, such as one that learns a constant."""
    file = str(DATA / "cases" / "19_tf2_while_loop_training_step.pbtxt")
    open_batch = str(DATA / "cases" / "11_unknown_batch.pbtxt")
    assert load_job(open_batch).batch_size is None
    assert load_job(open_batch, JobOptions(batch_size=8)).batch_size == 8
    with pytest.raises(GraphError, match=r"--batch-size 7"):
        load_job(file, JobOptions(batch_size=7))
