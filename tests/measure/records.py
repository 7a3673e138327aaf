"""Three real steps of lenet-x0.25/cifar10/b32/sgd/async, recorded with TensorFlow 2.21.

One worker and one server on one machine; see tests/data/throughput/README.md.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from driple.measure.metadata import ProfiledStep, records_of
from driple.measure.steprecord import job_trace_of
from driple.throughput.jobtrace import JobTrace
from driple.throughput.origin import TraceOrigin

DATA = Path(__file__).parents[1] / "data" / "throughput"
RECORDS = [gzip.decompress(file.read_bytes()) for file in sorted(DATA.glob("lenet-*.pb.gz"))]


def traced(records: list[bytes], step_s: float | None = None) -> JobTrace:
    """The job trace of serialised RunMetadata."""
    steps = [ProfiledStep(metadata=record, begin_s=None) for record in records]
    return job_trace_of(
        *records_of(steps),
        batch_size=32,
        bytes_per_s=1e9,
        untraced_step_s=step_s,
        about=TraceOrigin(others={"from": "a test"}),
    )
