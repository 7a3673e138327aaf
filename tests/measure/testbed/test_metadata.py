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


def test_damaged_and_partial_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="step 1 is damaged"):
        traced([RECORDS[0], b"\xff\xff", RECORDS[2]])
    with pytest.raises(TraceError, match="output_partition_graphs"):
        traced(RECORDS[1:])
    with pytest.raises(TraceError, match="1 step"):
        traced(RECORDS[:1])
    with pytest.raises(TraceError, match="cannot read"):
        read_recorded([tmp_path / "no.pb"], batch_size=1, bytes_per_s=1, step_s=None)
