"""Ops on a processor's cores, one after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from driple.cluster.setting import Setting
from driple.graph.signature import OpSignature, Tensor
from driple.jobs.pytorch.modules import job_of_module
from driple.simulate.optable import OpTable
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.processor import (
    SET_UP_OPS,
    SMALL_SIDE,
    TENSOR_OPS,
    ProcessorPace,
    is_measured,
    op_seconds,
    processor_pace,
    processor_times,
    processor_update_s,
    with_pace,
)
from scripts.studies.kit.results import pick, read_results
from scripts.studies.processor.run import RESULTS

PACE = ProcessorPace(flops_per_s=1e11, bytes_per_s=1e10, op_s=1e-5)
WORKER = Setting.parse("2x1xCPU/400M").worker


def prepared(network: nn.Module, *shape: int) -> PreparedJob:
    batch = torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long)
    return PreparedJob.of_job(job_of_module(network, batch, optimizer="momentum"))


def test_a_product_takes_its_multiply_adds_after_a_start() -> None:
    """[256, 2048] x [2048, 2048]: 2.1 GFLOP at 100 GFLOP/s, a short side of 256."""
    table = prepared(nn.Linear(2048, 2048), 256, 2048).kinds.table
    rows = np.flatnonzero(table.sides[:, 3])
    flops = 2 * 256 * 2048 * 2048
    wanted = flops / 1e11 * (1 + SMALL_SIDE / 256) + 1e-5
    np.testing.assert_allclose(op_seconds(table, PACE)[rows], wanted, rtol=1e-6)


def test_what_moves_nothing_takes_no_time() -> None:
    table = prepared(nn.Linear(64, 2), 8, 64).kinds.table
    still = replace(table, moved=np.zeros_like(table.moved), inner_kernels=0 * table.inner_kernels)
    assert op_seconds(still, PACE).tolist() == [0.0] * len(still.moved)


def test_what_computes_little_takes_its_bytes() -> None:
    """Memory of half the rate doubles what is left after the start."""
    table = prepared(nn.Sequential(nn.ReLU(), nn.Linear(1024, 2)), 512, 1024).kinds.table
    slow = replace(PACE, bytes_per_s=PACE.bytes_per_s / 2)
    rows = (table.sides[:, 3] == 0) & (table.moved > 0) & ~table.windowed
    assert rows.any()
    before, after = (op_seconds(table, pace)[rows] for pace in (PACE, slow))
    inner_s = 0.6e-5 * table.inner_kernels[rows]
    np.testing.assert_allclose(after - 1e-5 - inner_s, 2 * (before - 1e-5 - inner_s))


def test_a_convolution_is_set_up_with_effort() -> None:
    """On cores that compute and move in no time it takes nine starts, others one."""
    fast = ProcessorPace(flops_per_s=1e30, bytes_per_s=1e30, op_s=1.0)
    table = prepared(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2)),
                     2, 3, 8, 8).kinds.table  # fmt: skip
    there = table.moved > 0
    seconds = op_seconds(table, fast)
    np.testing.assert_allclose(seconds[there & table.windowed], 1 + SET_UP_OPS, atol=1e-6)
    plain = there & ~table.windowed & (table.inner_kernels == 0)
    np.testing.assert_allclose(seconds[plain], 1.0, atol=1e-6)
    assert (seconds[~there] == 0).all()


def test_an_update_moves_its_bytes_and_hands_on_each_tensor() -> None:
    assert processor_update_s(1e10, 100, PACE) == pytest.approx(1 + TENSOR_OPS * 100 * 1e-5)


def test_a_share_of_a_core_is_as_much_slower() -> None:
    """0.25 in place of 0.4 of a core: all three numbers, where nothing was measured."""
    more, less = (processor_pace(Setting.parse(f"2x1x{name}/400M").worker)
                  for name in ("CPU", "CPU25"))  # fmt: skip
    assert less.flops_per_s == pytest.approx(more.flops_per_s * 0.25 / 0.4)
    assert less.bytes_per_s == pytest.approx(more.bytes_per_s * 0.25 / 0.4)
    assert less.op_s == pytest.approx(more.op_s * 0.4 / 0.25)


def test_measured_cores_count() -> None:
    known = replace(WORKER, facts=with_pace(WORKER.facts, PACE))
    assert not is_measured(WORKER)
    assert is_measured(known)
    assert processor_pace(known) == PACE


def test_the_usual_core_is_that_of_the_study() -> None:
    """0.4 of it is the device `CPU`."""
    (row,) = pick(read_results(RESULTS), kind="pace")
    usual = processor_pace(WORKER)
    assert usual.flops_per_s / 0.4 == pytest.approx(row["flops_per_s"], rel=0.05)
    assert usual.bytes_per_s / 0.4 == pytest.approx(row["bytes_per_s"], rel=0.05)
    assert usual.op_s * 0.4 == pytest.approx(row["op_s"], rel=0.05)


def test_times_of_a_graph_are_those_of_its_ops_as_often_as_they_run() -> None:
    """All of it is busy, and memory is in use for the bytes, but no longer than the op."""
    table = prepared(nn.Linear(64, 32), 16, 64).kinds.table
    seconds = op_seconds(table, PACE)
    count = len(seconds)
    executions = np.arange(count)
    times = processor_times(table, np.arange(count)[::-1], executions, PACE)
    np.testing.assert_allclose(times.duration_s, seconds[::-1] * executions)
    np.testing.assert_allclose(times.busy_s, times.duration_s)
    moved_s = table.moved[::-1] / 1e10 * executions
    np.testing.assert_allclose(times.memory_s, np.minimum(moved_s, times.duration_s))
    assert (times.memory_s < times.duration_s).any()


def test_kernels_of_a_recurrent_layer_are_turns_of_a_loop() -> None:
    """On cores that compute and move in no time: 0.6 starts for each, beside the op's own."""
    fast = ProcessorPace(flops_per_s=1e30, bytes_per_s=1e30, op_s=1.0)
    rows = OpSignature(
        "embedding_gradient", (Tensor((4000, 16), 1), Tensor((4000,), 3)), (Tensor((64, 16), 1),)
    )
    table = OpTable.of([rows])
    assert op_seconds(table, fast)[0] == pytest.approx(1 + 0.6 * 30)


def test_a_product_of_a_side_of_one_takes_nine_times_as_long_for_each_multiply_add() -> None:
    """A side without elements counts as one; 2 x 64 x 32 x 1 FLOP at 1e11 a second."""
    table = OpTable.of(
        [OpSignature("matmul", (Tensor((64, 1), 1), Tensor((1, 32), 1)), (Tensor((64, 32), 1),))]
    )
    slow = replace(PACE, flops_per_s=1.0, bytes_per_s=1e30)
    assert op_seconds(table, slow)[0] == pytest.approx(2 * 64 * 32 * 9 + 1e-5)
