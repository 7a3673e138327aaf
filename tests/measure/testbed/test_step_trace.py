"""Records of real steps become a trace whose parts fit together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2

from driple.async_sgd.compiled import compile_job
from driple.async_sgd.jobtrace import Resource, read_job_trace, write_job_trace
from driple.async_sgd.overhead import Overhead
from driple.async_sgd.scaling import ScaledCluster, simulate_workers
from tests.measure.records import RECORDS, traced


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
    simulated = simulate_workers(job, ScaledCluster(num_workers=1, bytes_per_s=1e9), num_steps=100)
    assert 0.5 * trace.step_s.mean() < simulated.step_s < 1.1 * trace.step_s.mean()


def without_received_by_server(record: bytes) -> bytes:
    """A record as TensorFlow writes it now and then: the server's transfers are missing."""
    metadata = config_pb2.RunMetadata.FromString(record)
    for device in metadata.step_stats.dev_stats:
        if "job:ps" in device.device:
            others = [node for node in device.node_stats if node.node_name != "RecvTensor"]
            del device.node_stats[:]
            device.node_stats.extend(others)
    return metadata.SerializeToString()


def test_a_step_without_all_transfers_is_left_out_and_no_transfer_with_it() -> None:
    """One bad record must not take the uplinks out of all steps."""
    trace = traced([*RECORDS[:2], without_received_by_server(RECORDS[2])])
    whole = traced(RECORDS[:2])
    assert trace.names == whole.names
    assert trace.num_steps == 2
    assert trace.about.left_out_steps == 1
    assert (trace.resources == Resource.UPLINK).any()
