"""RunMetadata of real steps, and of damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.async_sgd.jobtrace import Resource
from driple.errors import TraceError
from driple.measure.testbed.profile import read_recorded
from tests.measure.records import RECORDS, traced

# 1,216 weights with their biases: 5x5x3x8+8, 5x5x8x16+16, 1024x128+128, 128x10+10.
PARAMETERS = (600, 8, 3200, 16, 131072, 128, 1280, 10)


def test_every_parameter_travels_once_each_way() -> None:
    trace = traced(RECORDS)
    for kind in (Resource.DOWNLINK, Resource.UPLINK):
        sizes = trace.sizes[trace.resources == kind]
        weights = sorted(size for size in sizes.tolist() if size > 4)
        assert weights == sorted(4 * count for count in PARAMETERS)


def damaged(change: str) -> bytes:
    """The first record with one thing that no step has."""
    from tensorflow.core.protobuf import config_pb2

    record = config_pb2.RunMetadata.FromString(RECORDS[0])
    nodes = [node for graph in record.partition_graphs for node in graph.node]
    output = next(
        each for device in record.step_stats.dev_stats for node in device.node_stats
        for each in node.output if each.tensor_description.shape.dim
    )  # fmt: skip
    if change == "task":
        for node in nodes:  # a record without any known device has no transfers either
            if "/job:ps" not in node.device:
                continue
            node.device = node.device.replace("/task:0", "/task:x")
    elif change == "text":
        next(node for node in nodes if "tensor_name" in node.attr).attr["tensor_name"].s = b"\xff"
    else:
        output.tensor_description.shape.dim[0].size = 2**62 if change == "overflow" else -7
    return record.SerializeToString()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("task", "a task such as ps:0 is needed"),
        ("text", "which is no UTF-8"),
        ("overflow", "the record is damaged"),
        ("negative", "the record is damaged"),
    ],
)
def test_records_that_no_step_leaves_are_refused(change: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        traced([damaged(change), *RECORDS[1:]])


def test_damaged_and_partial_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="step 1 is damaged"):
        traced([RECORDS[0], b"\xff\xff", RECORDS[2]])
    with pytest.raises(TraceError, match="output_partition_graphs"):
        traced(RECORDS[1:])
    with pytest.raises(TraceError, match="1 step"):
        traced(RECORDS[:1])
    with pytest.raises(TraceError, match="cannot read"):
        read_recorded([tmp_path / "no.pb"], batch_size=1, bytes_per_s=1, step_s=None)
