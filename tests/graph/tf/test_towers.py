"""A worker of several devices: one of them is kept, with its share of the samples."""

from pathlib import Path

import numpy as np
import pytest

from driple.graph import graph_from_text, read_graph
from driple.graph.cost import cost_of_graph
from driple.jobs.load import JobOptions, load_job
from driple.render.remarks import sentence, sentences
from tests.graph.graphs import node_text

DATA = Path(__file__).parents[2] / "data/graphs"


def tower(number: int, samples: int) -> str:
    """Forward and backward pass of one GPU, on its slice of the batch."""
    on, rows = f"/device:GPU:{number}", f"{samples}x40"
    return "".join(
        (
            node_text(f"x{number}", "StridedSlice", "x", device=on, shape=rows),
            node_text(f"y{number}", "MatMul", f"x{number}", "w", device=on, shape=f"{samples}x30"),
            node_text(f"g{number}", "MatMul", f"x{number}", f"y{number}", device=on, shape="40x30"),
        )
    )


def towers(samples: tuple[int, ...], batch: int = 64) -> str:
    """A dense layer on several GPUs, whose gradients the CPU adds up."""
    cpu = "/device:CPU:0"
    gradients = [f"g{number}" for number in range(len(samples))]
    return "".join(
        (
            node_text("x", "Placeholder", device=cpu, shape=f"{batch}x40"),
            node_text("w", "VariableV2", device=cpu, shape="40x30"),
            *(tower(number, rows) for number, rows in enumerate(samples)),
            node_text("sum", "AddN", *gradients, device=cpu, shape="40x30"),
            node_text("up", "ApplyGradientDescent", "w", "w", "sum", device=cpu, shape="40x30"),
        )
    )


@pytest.mark.parametrize(("samples", "share"), [((32, 32), 0.5), ((16, 48), 0.25), ((64,), 1.0)])
def test_the_share_of_samples_is_that_of_the_kept_tower(
    samples: tuple[int, ...], share: float
) -> None:
    """GPU 0 stays."""
    report = graph_from_text(towers(samples)).report
    assert report.samples_share == share
    said = f"the kept device computes {samples[0]} of the 64 samples of a step"
    assert (said in sentences(report.notes)) == (share < 1)


def test_layers_on_two_gpus_compute_all_samples() -> None:
    """Nothing splits the batch."""
    text = towers((64, 64)).replace('op: "StridedSlice"', 'op: "Identity"')
    assert graph_from_text(text).report.samples_share == 1.0


def test_a_price_is_of_the_batch_of_the_kept_tower(tmp_path: Path) -> None:
    """The inputs have 64 samples, each of two devices computes 32."""
    file = tmp_path / "towers.pbtxt"
    file.write_text(towers((32, 32)))
    given = load_job(str(file), JobOptions(batch_size=64))
    assert given.batch_size == 32


def test_of_a_mirrored_strategy_on_two_processors_one_replica_stays() -> None:
    """Dense layers 6 x 20 and 20 x 10 on 16 samples: three products each but for the first."""
    graph = read_graph(DATA / "mirrored_cpus.pb.gz")
    parameters = 4 * (6 * 20 + 20 + 20 * 10 + 10)
    assert graph.layout == "all_reduce"
    assert graph.sent_bytes == pytest.approx(parameters, abs=20)
    products = np.array(graph.op_types) == "MatMul"
    assert cost_of_graph(graph).flops[products].sum() == 2 * 16 * (2 * 6 * 20 + 3 * 20 * 10)
    assert not any("replica_1" in name for name in graph.names)
    assert "graph names 2 CPUs" in sentence(graph.report.notes[0])
