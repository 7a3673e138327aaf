"""Ops on a processor's cores, one after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from driple.cluster.setting import Setting
from driple.jobs.pytorch.modules import job_of_module
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.processor import (
    SET_UP_OPS,
    SMALL_SIDE,
    TENSOR_OPS,
    ProcessorPace,
    is_measured,
    op_seconds,
    processor_pace,
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
