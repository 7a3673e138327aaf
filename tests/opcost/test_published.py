"""FLOPs of shipped training graphs against published counts: a step's forward half, by image."""

from pathlib import Path

import numpy as np
import pytest

from driple.graph.opgraph import OpGraph
from driple.opcost import cost_of_graph
from driple.simulate.published import read_rows
from driple.zoo.store import GraphStore
from tests.zoo.test_architectures import PUBLISHED

DATA = Path(__file__).parents[2] / "data"
ZENG = {row["model"]: row for row in read_rows(DATA / "published" / "zeng_flops.csv.gz")}
STORE = GraphStore.open(DATA / "calibration" / "graphs")
BATCH_SIZE = 32
COUNTED = ("Conv2D", "MatMul")  # what the publications count


def graph_of(model: str) -> OpGraph:
    return STORE.graph(f"{model}/imagenet/b{BATCH_SIZE}/sgd/async/nchw")


def forward_flops(graph: OpGraph) -> float:
    """FLOPs of an image's way through convolutions and matrix products."""
    counts = zip(graph.op_types, graph.names, strict=True)
    forward = [kind in COUNTED and "gradients" not in name for kind, name in counts]
    flops = cost_of_graph(graph).flops
    return float(flops[np.array(forward)].sum()) / BATCH_SIZE


MODELS = sorted({name.split("/", maxsplit=1)[0] for name in STORE.places})


@pytest.mark.parametrize("model", [name for name in MODELS if PUBLISHED[f"{name}/imagenet"][1]])
def test_forward_flops_are_two_for_each_published_multiply_add(model: str) -> None:
    millions = PUBLISHED[f"{model}/imagenet"][1]
    assert forward_flops(graph_of(model)) == pytest.approx(2e6 * (millions or 0), rel=0.01)


# Zeng's other models are built otherwise: stride and shortcuts of ResNets, windows of OverFeat.
@pytest.mark.parametrize(
    ("model", "off"), [("alexnet", 1e-9), ("vgg11", 1e-3), ("vgg16", 1e-3), ("vgg19", 1e-3),
                       ("inception3", 0.02)]
)  # fmt: skip
def test_forward_flops_are_those_of_zengs_closed_form(model: str, off: float) -> None:
    """Of VGG and Inception v3 his layer lists differ in the last layer, of 1,000 or 1,001."""
    wanted = float(ZENG[model]["forward_conv_flops_per_image"])
    assert forward_flops(graph_of(model)) == pytest.approx(wanted, rel=off)


@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50"])
def test_each_gradient_of_a_convolution_costs_what_it_costs(model: str) -> None:
    """The graph holds the first layer's gradient by the image too, which nobody reads."""
    graph = graph_of(model)
    flops, kinds = cost_of_graph(graph).flops, np.array(graph.op_types)
    forward = flops[kinds == "Conv2D"].sum()
    for gradient in ("Conv2DBackpropFilter", "Conv2DBackpropInput"):
        assert flops[kinds == gradient].sum() == pytest.approx(forward)
