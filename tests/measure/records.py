"""Three real steps of lenet-x0.25/cifar10/b32/sgd/async, recorded with TensorFlow 2.21.

One worker and one server on one machine; see tests/data/throughput/README.md.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from driple.async_sgd.jobtrace import JobTrace
from driple.async_sgd.origin import TraceOrigin
from driple.measure.testbed.metadata import ProfiledStep, records_of
from driple.measure.testbed.step_trace import job_trace_of

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
