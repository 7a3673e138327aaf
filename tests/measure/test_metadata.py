"""TensorFlow's records of real steps become a trace whose parts fit together.

tests/data/throughput/lenet-*.pb.gz: three steps of lenet-x0.25/cifar10/b32/sgd/async, one worker
and one server on one machine, recorded with TensorFlow 2.21.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2

from driple.errors import TraceError
from driple.measure.metadata import ProfiledStep, job_trace_of
from driple.measure.profile import read_run_metadata
from driple.throughput.compiled import compile_job
from driple.throughput.jobtrace import JobTrace, Resource, read_job_trace, write_job_trace
from driple.throughput.overhead import Overhead
from driple.throughput.scaling import Cluster, simulate_workers

DATA = Path(__file__).parents[1] / "data" / "throughput"
RECORDS = [gzip.decompress(file.read_bytes()) for file in sorted(DATA.glob("lenet-*.pb.gz"))]
# 1,216 weights with their biases: 5x5x3x8+8, 5x5x8x16+16, 1024x128+128, 128x10+10.
PARAMETERS = (600, 8, 3200, 16, 131072, 128, 1280, 10)


def traced(records: list[bytes], step_s: float | None = None) -> JobTrace:
    steps = [ProfiledStep(metadata=record, begin_s=None) for record in records]
    return job_trace_of(
        steps, batch_size=32, bytes_per_s=1e9, untraced_step_s=step_s, about={"from": "a test"}
    )


def test_every_parameter_travels_once_each_way() -> None:
    trace = traced(RECORDS)
    for kind in (Resource.DOWNLINK, Resource.UPLINK):
        sizes = trace.sizes[trace.resources == kind]
        weights = sorted(size for size in sizes.tolist() if size > 4)
        assert weights == sorted(4 * count for count in PARAMETERS)


def test_ops_end_after_what_they_wait_for() -> None:
    """Clocks are one machine's, so an op starts when all that it reads is there."""
    trace = traced(RECORDS)
    sources, targets = trace.edges.T
    is_transfer = trace.resources[targets] >= Resource.DOWNLINK
    late = trace.start_s[:, targets] - trace.end_s[:, sources]
    assert (late[:, ~is_transfer] >= -5e-6).all()
    assert (trace.end_s[:, targets] >= trace.end_s[:, sources] - 5e-6).all()


def test_steps_end_with_their_last_op_or_as_long_as_without_tracing() -> None:
    trace = traced(RECORDS)
    assert trace.step_s == pytest.approx(trace.end_s.max(axis=1))
    longer = traced(RECORDS, step_s=0.5)
    assert np.median(longer.step_s) == pytest.approx(0.5)
    assert traced(RECORDS, step_s=1e-4).step_s == pytest.approx(trace.step_s)


def test_one_simulated_worker_takes_about_as_long_as_the_profiled_one(tmp_path: Path) -> None:
    write_job_trace(traced(RECORDS), tmp_path / "job.npz")
    trace = read_job_trace(tmp_path / "job.npz")
    job = compile_job(trace, Overhead())
    assert job.num_ops < compile_job(trace, Overhead(), merge=False).num_ops
    # A thousandth of the time is on the wire: what the records say is there by other causes.
    made = simulate_workers(job, Cluster(num_workers=1, bytes_per_s=1e9), num_steps=100)
    assert 0.5 * trace.step_s.mean() < made.step_s < 1.1 * trace.step_s.mean()


def without_received_by_server(record: bytes) -> bytes:
    """A record as TensorFlow writes it now and then: the server's transfers are missing."""
    made = config_pb2.RunMetadata.FromString(record)
    for device in made.step_stats.dev_stats:
        if "job:ps" in device.device:
            others = [node for node in device.node_stats if node.node_name != "RecvTensor"]
            del device.node_stats[:]
            device.node_stats.extend(others)
    return made.SerializeToString()


def test_a_step_without_all_transfers_is_left_out_and_no_transfer_with_it() -> None:
    """One bad record must not take the uplinks out of all steps."""
    trace = traced([*RECORDS[:2], without_received_by_server(RECORDS[2])])
    whole = traced(RECORDS[:2])
    assert trace.names == whole.names
    assert trace.num_steps == 2
    assert trace.about["left_out_steps"] == 1
    assert (trace.resources == Resource.UPLINK).any()


def test_damaged_and_partial_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="step 1 is damaged"):
        traced([RECORDS[0], b"\xff\xff", RECORDS[2]])
    with pytest.raises(TraceError, match="output_partition_graphs"):
        traced(RECORDS[1:])
    with pytest.raises(TraceError, match="1 step"):
        traced(RECORDS[:1])
    with pytest.raises(TraceError, match="cannot read"):
        read_run_metadata([tmp_path / "no.pb"], batch_size=1, bytes_per_s=1, step_s=None)
    timeline = tmp_path / "timeline.json"
    timeline.write_text('{"traceEvents": []}')
    with pytest.raises(TraceError, match="Chrome timeline"):
        read_run_metadata([timeline], batch_size=1, bytes_per_s=1, step_s=None)
