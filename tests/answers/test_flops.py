"""Model FLOPs utilisation: FLOPs of a step over those of the peak, without recomputation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.answers.flops import flops_utilisation_pct
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.simulate.place import Place, place_of
from driple.simulate.prepared_job import PreparedJob
from tests.step.layered import FLOAT, HALF, layered

ROWS, WIDTH = 256, 1024


def place(name: str) -> Place:
    return place_of(Setting.parse(name))


def graph(dtype: int = FLOAT, *, phases: bool = True) -> OpGraph:
    """Three layers; each product forward, and one of its gradients."""
    return layered([WIDTH] * 4, rows=ROWS, dtype=dtype, phases=phases)


def pct(op_graph: OpGraph, name: str, step_s: float = 1.0) -> float | None:
    return flops_utilisation_pct(PreparedJob(op_graph), place(name), step_s)


def test_by_hand_in_half_precision() -> None:
    """6 products of 2 x 256 x 1024 x 1024 FLOPs over the tensor cores' peak."""
    peak = place("1xH100").topology.workers[0].half_flops
    flops = 6 * 2 * ROWS * WIDTH * WIDTH
    assert pct(graph(HALF), "1xH100", 1e-3) == pytest.approx(100 * flops / (peak * 1e-3))


def test_in_single_precision_the_plain_cores_or_tf32_count() -> None:
    device = place("1xV100").topology.workers[0]
    flops = 6 * 2 * ROWS * WIDTH * WIDTH
    share_pct = pct(graph(), "1xV100", 1e-3)
    assert share_pct == pytest.approx(100 * flops / (device.fp32_flops * 1e-3))


@pytest.mark.parametrize("name", ["1xV100", "8xH100"])
def test_twice_the_time_is_half_the_share(name: str) -> None:
    once, twice = (pct(graph(HALF), name, step_s) for step_s in (0.5, 1.0))
    assert once is not None and once == pytest.approx(2 * (twice or 0.0))


def test_what_recomputation_repeats_does_not_count() -> None:
    forward_once = graph(HALF)
    phases = forward_once.phases.copy()
    phases[:3] = Phase.RECOMPUTE
    again = replace(forward_once, phases=phases)
    assert pct(again, "1xH100") == pytest.approx((pct(forward_once, "1xH100") or 0.0) / 2)
    assert pct(graph(HALF, phases=False), "1xH100") == pytest.approx(pct(forward_once, "1xH100"))


def test_passes_count_each_time() -> None:
    once = graph(HALF)
    thrice = replace(once, executions=3 * once.executions)
    assert pct(thrice, "1xH100") == pytest.approx(3 * (pct(once, "1xH100") or 0.0))


def test_devices_of_a_replica_share_the_flops() -> None:
    whole, split = (pct(graph(HALF), name) for name in ("8xH100", "8xH100@tp4"))
    assert whole is not None and split == pytest.approx(whole / 4)


def test_nothing_is_known_without_flops_time_or_a_gpu() -> None:
    assert pct(graph(), "2xCPU") is None
    assert pct(graph(), "1xH100", 0.0) is None
    op_graph = graph()
    never = replace(op_graph, executions=np.zeros(6, dtype=np.int64))
    assert pct(never, "1xH100") is None
