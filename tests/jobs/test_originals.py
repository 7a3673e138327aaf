"""The catalogue's image models against graphs that tf_cnn_benchmarks built.

One subprocess builds the graphs (TensorFlow's graph mode cannot be undone) and counts what one step
runs on the worker: the ancestors of the fetched tensor that are placed on its GPU.
"""

from typing import Any

import pytest

from tests.conftest import RunTensorFlow, asked, usual

COUNT = """
import json, sys
from driple.jobs import Workload
from driple.graph.tf.op_kinds import kind_of_op_type
from scripts.studies.catalogue.counts import kind_counts
from driple.jobs.tensorflow.training import *
use_graph_mode()
facts = {}
for name in sys.argv[1:]:
    shape = ClusterShape(num_servers=1, num_workers=2, device_type="GPU")
    made = build_training_step(Workload.parse(name), shape, 0)
    todo, step = [made.step.op], set()
    while todo:
        op = todo.pop()
        if op not in step:
            step.add(op)
            todo += [*op.control_inputs, *(tensor.op for tensor in op.inputs)]
    mine = [op.type for op in step if "GPU" in op.device]
    facts[name] = {
        **kind_counts(map(kind_of_op_type, mine)),
        "moving averages": sum(op.type == "AssignSub" for op in step),
        "averages on the worker": sum(op.type == "AssignSub" and "GPU" in op.device for op in step),
        "total": len(mine),
        "parameters": made.num_parameters,
    }
print(json.dumps(facts))
"""

# Counted in graphs that the repository tensorflow/benchmarks (commit 8fb7907) built with TensorFlow
# 2.21: --variable_update=parameter_server, one server, two workers, batch size 32, sgd; what
# `main_fetch_group` needs, on the worker's GPU. `total` includes constants and other small ops.
KINDS = ("convolution", "product", "normalisation", "bias", "relu", "pooling", "weight decay",
         "sum", "cast", "moving averages", "total", "parameters")  # fmt: skip
ORIGINALS = {
    "resnet50/imagenet/b32/sgd/async/nchw": (
        158,
        3,
        106,
        2,
        98,
        2,
        55,
        89,
        0,
        106,
        752,
        25_559_081,
    ),
    "resnet50/imagenet/b32/sgd/async/fp16/nchw": (
        158,
        3,
        106,
        2,
        98,
        2,
        55,
        89,
        112,
        106,
        1_348,
        25_559_081,
    ),
    "resnet50_v2/imagenet/b32/sgd/async/nchw": (
        158,
        3,
        100,
        2,
        100,
        2,
        55,
        89,
        0,
        100,
        762,
        25_536_361,
    ),
    "inception3/imagenet/b32/sgd/async/nchw": (
        281,
        3,
        188,
        2,
        188,
        28,
        96,
        113,
        0,
        188,
        1_505,
        23_819_401,
    ),
    "googlenet/imagenet/b32/sgd/async": (170, 3, 0, 116, 114, 28, 116, 127, 0, 0, 1_263, 6_999_577),
    "vgg16/imagenet/b32/sgd/async/nchw": (38, 9, 0, 32, 30, 10, 32, 34, 0, 0, 376, 138_361_641),
    "overfeat/imagenet/b32/sgd/async/nchw": (14, 9, 0, 16, 14, 6, 16, 18, 0, 0, 228, 145_924_969),
    "alexnet/imagenet/b32/sgd/async": (14, 9, 0, 16, 14, 6, 16, 18, 0, 0, 226, 61_842_345),
    "alexnet/cifar10/b32/sgd/async/nchw": (5, 9, 4, 10, 8, 4, 10, 12, 0, 0, 154, 1_756_619),
    "resnet20/cifar10/b32/sgd/async": (56, 3, 38, 2, 36, 4, 21, 41, 0, 38, 358, 269_787),
    "resnet20_v2/cifar10/b32/sgd/async/nchw": (56, 3, 40, 2, 40, 4, 21, 41, 0, 40, 377, 269_467),
    "densenet40_k12/cifar10/b32/sgd/async": (116, 3, 78, 80, 82, 4, 80, 118, 0, 78, 1_275, 357_491),
}
LENET = "lenet/mnist/b32/sgd/async"
# In the usual run: the small ones, with and without normalisation, in both formats.
QUICK = (
    "alexnet/imagenet/b32/sgd/async",
    "alexnet/cifar10/b32/sgd/async/nchw",
    "resnet20/cifar10/b32/sgd/async",
    "resnet20_v2/cifar10/b32/sgd/async/nchw",
)


@pytest.fixture(scope="module")
def counted(request: pytest.FixtureRequest, run_tensorflow: RunTensorFlow) -> dict[str, Any]:
    """Counts of every model that is asked for."""
    return run_tensorflow(COUNT, *asked(request, "name"))


@pytest.mark.parametrize("name", usual(ORIGINALS, QUICK))
def test_a_step_has_the_ops_of_the_original(counted: dict[str, Any], name: str) -> None:
    """Every kind exactly, and thus no gradient of the images; all ops together within 2 %."""
    original = dict(zip(KINDS, ORIGINALS[name], strict=True))
    total = original.pop("total")
    assert {kind: counted[name][kind] for kind in original} == original
    assert counted[name]["total"] == pytest.approx(total, rel=0.02)


@pytest.mark.parametrize("name", usual(ORIGINALS, QUICK))
def test_moving_averages_run_on_the_server(counted: dict[str, Any], name: str) -> None:
    """They follow their variables; the worker sends one vector for each."""
    assert counted[name]["averages on the worker"] == 0


@pytest.mark.parametrize("name", [LENET])
def test_lenet_has_the_ops_of_the_original(counted: dict[str, Any], name: str) -> None:
    """Layers as in the original, which reads images of three channels and has 1,001 classes."""
    layers = ("convolution", "product", "bias", "relu", "pooling", "weight decay", "sum")
    assert [counted[name][kind] for kind in layers] == [5, 6, 8, 6, 4, 8, 10]
