"""Published steps as one table: every op of every step, with what it takes to apply gradients."""

from __future__ import annotations

import numpy as np
import pytest

from driple.catalog import device_named
from driple.runs.tensorflow_runs import TensorFlowRun
from scripts.fits.batched import BatchedGraph
from scripts.fits.fit import StepRows, step_rows
from scripts.fits.roofline import Roofline
from tests.simulate.jobs import net

GRAPHS = {
    (name, False): BatchedGraph.of((16, net(16, depth=depth)), (32, net(32, depth=depth)))
    for name, depth in {"net": 3, "deep": 9}.items()
}
BATCH_SIZES = (1, 4, 16, 32, 64, 256)


def a_run(batch_size: int, model: str = "net", device: str = "V100") -> TensorFlowRun:
    return TensorFlowRun(
        source="made up",
        kind="single",
        job=model,
        batch_size=batch_size,
        precision="fp32",
        compiled=False,
        devices=(device,),
        num_servers=0,
        per_machine=1,
        link="PCIe3",
        overlapped=True,
        step_s=1.0,
    )


def rows_of(*models: str, device: str = "V100") -> StepRows:
    return step_rows([a_run(n, name, device) for name in models for n in BATCH_SIZES], GRAPHS)


@pytest.mark.parametrize("device", ["V100", "T4"])
def test_a_step_is_the_sum_of_its_kernels_and_the_update(device: str) -> None:
    roofline, spec = Roofline(compute=0.5, memory=0.55, op_s=2e-5), device_named(device)
    found_s = roofline.seconds(spec, rows_of("net", "deep", device=device))
    wanted_s = []
    for model in ("net", "deep"):
        graph = GRAPHS[model, False]
        for batch_size in BATCH_SIZES:
            table = graph.table(batch_size)
            update_s = 3 * graph.graph.received_bytes / (spec.bytes_per_s * roofline.memory)
            whole_s = update_s
            for sides, moved, runs in zip(table.sides, table.moved, graph.runs, strict=True):
                if moved > 0:
                    compute_s = 2 * np.prod(sides) / (spec.matrix_flops * roofline.compute)
                    memory_s = moved / (spec.bytes_per_s * roofline.memory)
                    whole_s += runs * (max(compute_s, memory_s) + roofline.op_s)
            wanted_s.append(whole_s)
    np.testing.assert_allclose(found_s, wanted_s, rtol=1e-9)


def test_runs_of_the_same_step_are_one_case() -> None:
    rows = step_rows([a_run(4), a_run(16), a_run(4)], GRAPHS)
    assert rows.case_of.tolist() == [0, 1, 0]
    assert len(rows.starts) == 2
