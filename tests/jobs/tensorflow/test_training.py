"""Graphs of the zoo, built by TensorFlow in a process of its own.

TensorFlow's graph mode cannot be undone in a process, so one subprocess builds everything and
prints what the tests look at.
"""

from pathlib import Path
from typing import Any

import pytest

from driple.graph import graph_from_graphdef_bytes, read_graph
from tests.conftest import RunTensorFlow, asked, usual

BUILD = """
import json, sys
from driple.jobs import Workload
from driple.jobs.tensorflow.training import *
use_graph_mode()
out = sys.argv[1]
facts = {}
for name in sys.argv[2:]:
    step = build_training_step(Workload.parse(name), ClusterShape(), 0)
    data = graphdef_of(step)
    again = graphdef_of(build_training_step(Workload.parse(name), ClusterShape(), 0))
    file = out + "/" + Workload.parse(name).file_name
    open(file + ".pb", "wb").write(data)
    write_graph(step, __import__("pathlib").Path(file + ".pbtxt"))
    facts[name] = {"parameters": step.num_parameters, "file": file, "same": data == again}
print(json.dumps(facts))
"""

# Trainable parameters as published: torchvision 0.26's model pages for VGG and ResNet (ImageNet),
# He et al. 2016a Table 6 for ResNet-20/56/110.
PUBLISHED_MILLIONS = {
    "resnet50/imagenet/b1/sgd/sync": 25.557,
    "vgg11/imagenet/b1/sgd/sync": 132.863,
    "vgg16/imagenet/b1/sgd/sync": 138.358,
    "resnet20/cifar10/b1/momentum/async": 0.27,
    "resnet56/cifar10/b1/sgd/sync": 0.85,
}
TOLERANCE = {
    "resnet20/cifar10/b1/momentum/async": 0.02,
}
OTHERS = [
    "alexnet-x0.25/cifar10/b2/rmsprop/sync",
    "lenet-x0.25/mnist/b2/sgd/async",
    "overfeat-x0.125/imagenet64/b2/sgd/sync",
    "googlenet-x0.25/cifar10/b2/sgd/sync",
    "resnet20_v2/cifar10/b2/sgd/sync",
    "densenet40_k12/cifar10/b1/adam/async",
    "transformer-x0.125/europarl-short/b2/adam/sync",
    "transformer_aan-x0.125/europarl-short/b2/adam/async",
    "nmt_small-x0.125/europarl-short/b2/sgd/sync",
]
# A few small ones in the usual run: of images, with and without normalisation, and a recurrent one.
QUICK = (
    "resnet20/cifar10/b1/momentum/async",
    "alexnet-x0.25/cifar10/b2/rmsprop/sync",
    "lenet-x0.25/mnist/b2/sgd/async",
    OTHERS[-1],
)


@pytest.fixture(scope="module")
def built(
    request: pytest.FixtureRequest,
    run_tensorflow: RunTensorFlow,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """Facts of every workload that is asked for, and its graph on disk."""
    folder = tmp_path_factory.mktemp("zoo")
    return run_tensorflow(BUILD, str(folder), *asked(request, "name"))


@pytest.mark.parametrize("name", usual(PUBLISHED_MILLIONS, QUICK))
def test_parameter_counts_are_the_published_ones(built: dict[str, Any], name: str) -> None:
    """Within 1 %, or within the rounding of a figure given with two digits."""
    tolerance = TOLERANCE.get(name, 0.01)
    assert built[name]["parameters"] / 1e6 == pytest.approx(PUBLISHED_MILLIONS[name], rel=tolerance)


@pytest.mark.parametrize("name", usual([*PUBLISHED_MILLIONS, *OTHERS], QUICK))
def test_graphs_are_deterministic_and_placed(built: dict[str, Any], name: str) -> None:
    """Same bytes twice; forward and backward on the worker, variables on the parameter server."""
    assert built[name]["same"]
    graph = graph_from_graphdef_bytes(Path(built[name]["file"] + ".pb").read_bytes())
    assert all("worker" in device for device in graph.devices if device)
    remote = {item.op_type for item in graph.remote}
    assert remote & {"VariableV2", "Variable"}
    assert not {"VariableV2"} <= set(graph.op_types) or "VariableV2" in remote
    kinds = set(graph.op_types)
    assert kinds & {"Conv2DBackpropFilter", "MatMul"}
    assert (graph.tensor_bytes > 0).mean() > 0.5


@pytest.mark.parametrize("name", ["resnet20/cifar10/b1/momentum/async", OTHERS[-1]])
def test_text_and_binary_read_alike(built: dict[str, Any], name: str) -> None:
    """The same graph from .pb and .pbtxt."""
    binary, text = (read_graph(built[name]["file"] + end) for end in (".pb", ".pbtxt"))
    assert binary.names == text.names
    assert binary.op_types == text.op_types
    assert (binary.edges == text.edges).all()
    assert (binary.tensor_bytes == text.tensor_bytes).all()
    assert binary.remote == text.remote


@pytest.mark.parametrize("name", OTHERS[-1:])
def test_batch_size_shows_in_the_tensor_sizes(built: dict[str, Any], name: str) -> None:
    """LSTM loops are real loops, and sync training adds accumulators on the servers."""
    nmt = read_graph(built[name]["file"] + ".pb")
    assert {"Enter", "Exit", "NextIteration"} <= set(nmt.op_types)
    remote = {item.op_type for item in nmt.remote}
    assert any("Accumulator" in kind for kind in remote)
