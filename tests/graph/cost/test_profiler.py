"""FLOPs of real training graphs against TensorFlow's own op statistics.

Two of its formulas only come near; they are put right from the same graph before they are compared.
The gradients of a convolution take image / stride^2 for the size of the output, too much without
padding; a batched product takes the last side of its first matrix for the inner one even where that
matrix is turned.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.graph import graph_from_graphdef_bytes
from driple.graph.cost import cost_of_graph
from tests.conftest import RunTensorFlow, asked, usual

COUNT = """
import json, sys
from pathlib import Path
from tensorflow.python.framework import ops
import tensorflow.python.profiler.internal.flops_registry
from driple.jobs import Workload
from driple.jobs.tensorflow.training import ClusterShape, build_training_step
from driple.jobs.tensorflow.training import graphdef_of, use_graph_mode
use_graph_mode()

def correction(op):
    if op.type in ("Conv2DBackpropInput", "Conv2DBackpropFilter"):
        image = op.outputs[0] if op.type == "Conv2DBackpropInput" else op.inputs[0]
        at = slice(2, 4) if op.get_attr("data_format") == b"NCHW" else slice(1, 3)
        made, wide = op.inputs[2].shape[at].num_elements(), image.shape[at].num_elements()
        strides = op.get_attr("strides")[at]
        return made * strides[0] * strides[1] / wide
    if op.type.startswith("BatchMatMul") and op.get_attr("adj_x"):
        shape = op.inputs[0].shape
        return int(shape[-2]) / int(shape[-1])
    return 1

facts = {}
for number, name in enumerate(sys.argv[2:]):
    step = build_training_step(Workload.parse(name), ClusterShape(num_servers=1, num_workers=2), 0)
    file = Path(sys.argv[1]) / f"{number}.pb"
    file.write_bytes(graphdef_of(step))
    counts = {}
    for node in step.graph.as_graph_def(add_shapes=True).node:
        if "worker" not in node.device:
            continue
        try:
            found = ops.get_stats_for_node_def(step.graph, node, "flops").value
        except ValueError:  # a shape that is not known
            continue
        if found:
            op = step.graph.get_operation_by_name(node.name)
            counts[node.name] = node.op, float(found) * correction(op)
    facts[name] = {"file": str(file), "flops": counts}
print(json.dumps(facts))
"""

# One of each family and kind of op; narrow, since widths change no formula.
NAMES = (
    "alexnet/imagenet/b4/sgd/sync",
    "googlenet/imagenet/b2/momentum/async",
    "inception3-x0.25/imagenet/b2/sgd/async",
    "inception4-x0.25/imagenet/b2/sgd/sync",
    "vgg11-x0.25/imagenet/b2/sgd/sync",
    "overfeat-x0.25/imagenet/b2/rmsprop/async",
    "resnet50/imagenet/b2/sgd/sync/fp16/nchw",
    "resnet20_v2/cifar10/b32/adam/async",
    "resnet56_v2/cifar10/b32/adam/async",
    "densenet40_k12/cifar10/b4/sgd/sync",
    "lenet/mnist/b8/sgd/async",
    "nmt_small/europarl-short/b4/sgd/sync",
    "transformer/europarl-short/b4/adam/async",
    "transformer_aan-x0.5/europarl-short/b4/adam/sync",
)


# In the usual run: convolutions with and without normalisation, a loop, and attention.
QUICK = (
    "alexnet/imagenet/b4/sgd/sync",
    "overfeat-x0.25/imagenet/b2/rmsprop/async",
    "lenet/mnist/b8/sgd/async",
    "resnet20_v2/cifar10/b32/adam/async",
    "nmt_small/europarl-short/b4/sgd/sync",
    "transformer/europarl-short/b4/adam/async",
)


@pytest.fixture(scope="module")
def counted(
    request: pytest.FixtureRequest,
    run_tensorflow: RunTensorFlow,
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    folder = tmp_path_factory.mktemp("graphs")
    return run_tensorflow(COUNT, str(folder), *asked(request, "name"))


@pytest.mark.parametrize("name", usual(NAMES, QUICK))
def test_flops_are_those_of_tensorflows_statistics(counted: dict[str, Any], name: str) -> None:
    """Within 2 % in all and for each op type that TensorFlow has a number for, loops once.

    Of the nodes that a step runs: the gradient by the images, for one, is in the file, and nothing
    reads it.
    """
    graph = graph_from_graphdef_bytes(Path(counted[name]["file"]).read_bytes())
    cost = cost_of_graph(graph)
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    for node, op_type, flops in zip(graph.names, graph.op_types, cost.flops.tolist(), strict=True):
        ours[op_type] += flops
        theirs[op_type] += counted[name]["flops"].get(node, (op_type, 0.0))[1]
    theirs = +theirs
    assert sum(theirs.values()) > 0.8 * sum(flops for _, flops in counted[name]["flops"].values())
    assert sum(theirs.values()) > 0
    known = sum(ours[op_type] for op_type in theirs)
    assert known == pytest.approx(sum(theirs.values()), rel=0.02)
    off = {
        op_type: (ours[op_type], value)
        for op_type, value in theirs.items()
        if abs(ours[op_type] - value) > 0.02 * value and value > 1e-4 * sum(theirs.values())
    }
    assert not off


@pytest.mark.parametrize("name", usual(NAMES, QUICK))
def test_every_op_of_the_zoo_has_a_formula(counted: dict[str, Any], name: str) -> None:
    graph = graph_from_graphdef_bytes(Path(counted[name]["file"]).read_bytes())
    assert not cost_of_graph(graph).unknown


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("nmt")])
def test_loops_turn_once_per_position(counted: dict[str, Any], name: str) -> None:
    """Encoder, decoder and both of their gradients: all run once per position."""
    graph = graph_from_graphdef_bytes(Path(counted[name]["file"]).read_bytes())
    assert graph.report.loops_of_unknown_length == 0
    assert len(np.unique(graph.executions)) == 2
    products = [
        turns
        for op_type, turns in zip(graph.op_types, graph.executions.tolist(), strict=True)
        if op_type == "MatMul"
    ]
    assert max(products) > 1
