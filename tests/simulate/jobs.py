"""A small convolutional net as a graph, at any batch size."""

from __future__ import annotations

import numpy as np

from driple.graph.opgraph import OpGraph, RemoteOps, Traffic
from driple.graph.optimizers import update_of_remote
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.calibration import (
    Calibration,
    ClusterErrors,
    CoreModel,
    LinkEfficiency,
    Reached,
)
from driple.simulate.kernels import Efficiency
from tests.simulate.core_model import DEVICE, KERNELS

FLOAT, INT = 1, 3
EFFICIENCY = Efficiency(kernels=KERNELS, device=DEVICE)
CALIBRATION = Calibration(
    model=CoreModel(
        kernels=KERNELS,
        devices=Reached(
            measured={"V100": DEVICE},
            generations={"Volta": DEVICE},
            usual=DEVICE,
            tensor_fall=0.5,
        ),
    ),
    links={
        "Ethernet": LinkEfficiency(0.9, 1e-4, 0.0),
        "PCIe3": LinkEfficiency(0.6, 1e-5, 0.3),
    },
    bridge_bytes_per_s=3e9,
    apply_s_per_byte=2e-10,
    jitter=0.01,
    role_copy_bytes_per_s=1e10,
    memory_activity=1.5,
    errors={"servers": ClusterErrors(rows=20, median_pct=8.0, p90_pct=20.0)},
    about={"source": "made up"},
)


def net(batch_size: int, *, sync: bool = False, depth: int = 3, channels: int = 64) -> OpGraph:
    """Convolutions with ReLU, one dense layer, and the gradients of all by their weights."""
    image, window = (batch_size, 28, 28, channels), (3, 3, channels, channels)
    ops: list[tuple[str, OpSignature]] = []
    for i in range(depth):
        conv = OpSignature.of_op_type(
            "Conv2D", (Tensor(image, FLOAT), Tensor(window, FLOAT)), (Tensor(image, FLOAT),)
        )
        relu = OpSignature.of_op_type("Relu", (Tensor(image, FLOAT),), (Tensor(image, FLOAT),))
        ops += [(f"conv{i}", conv), (f"relu{i}", relu)]
    features, classes = 28 * 28 * channels, 10
    flat, scores = Tensor((batch_size, features), FLOAT), Tensor((batch_size, classes), FLOAT)
    weights = Tensor((features, classes), FLOAT)
    ops.append(("dense", OpSignature.of_op_type("MatMul", (flat, weights), (scores,))))
    ops.append(("dense_grad", OpSignature.of_op_type("MatMul", (flat, scores), (weights,))))
    for i in reversed(range(depth)):
        inputs = (Tensor(image, FLOAT), Tensor((4,), INT), Tensor(image, FLOAT))
        grad = OpSignature.of_op_type("Conv2DBackpropFilter", inputs, (Tensor(window, FLOAT),))
        ops.append((f"conv{i}_grad", grad))
    signatures = tuple(dict.fromkeys(signature for _, signature in ops))
    sizes = [sum(out.elements for out in signature.outputs) for _, signature in ops]
    count = len(ops)
    window_bytes, dense_bytes = 4 * 9 * channels**2, 4 * features * classes
    readers = [[i, 2 * i] for i in range(depth)] + [[depth, 2 * depth]]
    remote = (
        RemoteOps.of_op_type("ApplyGradientDescent", num_nodes=depth + 1, tensor_bytes=0),
        *([RemoteOps.of_op_type("ConditionalAccumulator", num_nodes=1, tensor_bytes=0)] * sync),
    )
    traffic = Traffic(
        received_bytes=np.array([window_bytes] * depth + [dense_bytes], dtype=np.int64),
        readers=np.array(readers, dtype=np.int32),
        sent_bytes=np.array([dense_bytes] + [window_bytes] * depth, dtype=np.int64),
        senders=np.arange(2 * depth + 1, count, dtype=np.int32),
    )
    return OpGraph(
        names=tuple(name for name, _ in ops),
        op_types=tuple(signature.stored_name for _, signature in ops),
        devices=("/job:worker/task:0/device:GPU:0",) * count,
        edges=np.array([[i, i + 1] for i in range(count - 1)], dtype=np.int32),
        is_control=np.zeros(count - 1, dtype=np.bool_),
        tensor_elements=np.array(sizes, dtype=np.int64),
        tensor_bytes=4 * np.array(sizes, dtype=np.int64),
        remote=remote,
        traffic=traffic,
        update=update_of_remote(remote, traffic),
        signatures=signatures,
        signature_of=np.array([signatures.index(s) for _, s in ops], dtype=np.int32),
        executions=np.ones(count, dtype=np.int64),
    )
