"""The training step of a PyTorch model as an `OpGraph`, without running it.

    model on the meta device -> forward, loss, backward: nothing is computed, only shapes
    -> ops as they come (aten) -> OpGraph: nodes, who reads whose memory, parameters, gradients

Needs neither a GPU nor the model's memory: BERT-large takes some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from driple.errors import ConfigError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.optimizers import update_of_kinds
from driple.graph.signature import OpSignature
from driple.graph.signature import Tensor as Shape
from driple.graph.torch.aten import Input, Kernel, kernels_of, tensors_in
from driple.graph.torch.autocast import gpu_autocast

__all__ = ["UPDATE", "graph_of_step", "recorded_step"]

_DTYPES = {
    dtype: NUMBER_OF[f"DT_{name}"]
    for dtype, name in (
        (torch.float32, "FLOAT"), (torch.float64, "DOUBLE"), (torch.float16, "HALF"),
        (torch.bfloat16, "BFLOAT16"), (torch.int64, "INT64"), (torch.int32, "INT32"),
        (torch.int16, "INT16"), (torch.int8, "INT8"), (torch.uint8, "UINT8"),
        (torch.bool, "BOOL"),
    )
}  # fmt: skip
_DEVICE = "/job:worker/task:0/device:GPU:0"
UPDATE = "update_momentum"  # as driple.profiler.train updates


def graph_of_step(
    model: nn.Module, inputs: Tensor, loss: Callable[[Any], Tensor], update: str = UPDATE
) -> OpGraph:
    """Forward pass, loss and backward pass of a model, as a graph of one worker.

    Args:
        model: model to train, on the meta device.
        inputs: a batch, on the meta device.
        loss: loss of the model's outputs.
        update: kind of the optimizer's update, such as `update_adam`.

    Raises:
        ConfigError: the model or the batch is not on the meta device, or nothing has a gradient.
    """
    with gpu_autocast():
        return recorded_step(model, inputs, loss, update)


def recorded_step(
    called: Callable[[Any], Any],
    inputs: Any,
    loss: Callable[[Any], Tensor],
    update: str,
    *,
    model: nn.Module | None = None,
) -> OpGraph:
    """Do the work of `graph_of_step` within `gpu_autocast`; `model` if `called` only calls it."""
    owner = called if model is None else model
    if not isinstance(owner, nn.Module):
        raise ConfigError(f"a model (torch.nn.Module) was expected, got {type(owner).__name__}")
    parameters = [one for one in owner.parameters() if one.requires_grad]
    given = [one for one in tree_leaves(inputs) if isinstance(one, Tensor)]
    if any(tensor.device.type != "meta" for tensor in (*parameters, *given)):
        raise ConfigError(
            "the model and its batch must be on the meta device; build both within "
            "torch.device('meta')"
        )
    recorder = _Recorder(parameters)
    # Attention as separate ops: a fused kernel would hide its products.
    with sdpa_kernel(SDPBackend.MATH), recorder:
        loss(called(inputs)).backward()  # type: ignore[no-untyped-call]
    return recorder.graph(update)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """Notes every kernel, and whose results it reads: results are known by their memory."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._parameters = list(parameters)
        self._number = {_memory(one): i for i, one in enumerate(self._parameters)}
        self._kept: list[Any] = []  # so that no memory is given out twice
        self._made_by: dict[int, int] = {}
        self._signatures: dict[OpSignature, int] = {}
        self._signature_of: list[int] = []
        self._op_types: list[str] = []
        self._names: list[str] = []
        self._made: list[tuple[int, int]] = []  # elements and bytes of each node's outputs
        self._edges: list[tuple[int, int]] = []
        self._readers: list[tuple[int, int]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the op on shapes alone, and note it."""
        named: Mapping[str, Any] = kwargs or {}
        made = func(*args, **named)
        arguments = (*args, *named.values())
        kernels = kernels_of(func, arguments, made)
        op_type = func.name().partition(".")[0]
        for kernel in kernels:
            self._note(kernel, op_type)
        if not kernels:  # a view in memory of its own is as old as what it shows
            shown = [self._made_by[key] for one in tensors_in(arguments)
                     if (key := _memory(one)) in self._made_by]  # fmt: skip
            for tensor in tensors_in(made):
                self._keep(tensor)
                if shown:
                    self._made_by.setdefault(_memory(tensor), shown[0])
        return made

    def _note(self, kernel: Kernel, op_type: str) -> None:
        node = len(self._op_types)
        shapes = [
            tuple(self._shape(item) for item in items) for items in (kernel.inputs, kernel.outputs)
        ]
        signature = OpSignature(kernel.kind, shapes[0], shapes[1], kernel.numbers)
        self._op_types.append(op_type)
        self._names.append(f"{kernel.kind}_{node}")
        self._signature_of.append(self._signatures.setdefault(signature, len(self._signatures)))
        self._made.append((sum(one.elements for one in shapes[1]),
                           sum(one.nbytes for one in shapes[1])))  # fmt: skip
        for item in kernel.inputs:
            if item.tensor is None:
                continue
            key = _memory(item.tensor)
            if key in self._made_by:
                self._edges.append((self._made_by[key], node))
            elif key in self._number:
                self._readers.append((self._number[key], node))
        for item in kernel.outputs:
            if item.tensor is not None:
                self._keep(item.tensor)
                self._made_by[_memory(item.tensor)] = node

    def _shape(self, item: Input) -> Shape:
        if item.tensor is None:
            return Shape(item.shape, _DTYPES[torch.int32])
        sizes = tuple(item.tensor.shape) if item.shape is None else item.shape
        return Shape(sizes, _DTYPES.get(item.tensor.dtype, 0), _memory(item.tensor) in self._number)

    def _keep(self, tensor: Tensor) -> None:
        self._kept.append(tensor.untyped_storage())

    def graph(self, update: str) -> OpGraph:
        """The notes so far."""
        sent: dict[tuple[int, int], int] = {}
        for parameter in self._parameters:
            if parameter.grad is not None and _memory(parameter.grad) in self._made_by:
                sent[self._made_by[_memory(parameter.grad)], len(sent)] = parameter.nbytes
        if not sent:
            raise ConfigError("no parameter has a gradient; give a model that can be trained")
        senders = sorted(sent)
        made = np.array(self._made, dtype=np.int64)
        edges = sorted(set(self._edges))
        sizes = [parameter.nbytes for parameter in self._parameters]
        count = len(self._op_types)
        return OpGraph(
            names=tuple(self._names),
            op_types=tuple(self._op_types),
            devices=(_DEVICE,) * count,
            edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
            is_control=np.zeros(len(edges), dtype=np.bool_),
            tensor_elements=made[:, 0],
            tensor_bytes=made[:, 1],
            remote=(
                RemoteOps(
                    op_type=update, kind=update, num_nodes=len(sizes), tensor_bytes=sum(sizes)
                ),
            ),
            traffic=Traffic(
                received_bytes=np.array(sizes, dtype=np.int64),
                readers=np.array(sorted(set(self._readers)), dtype=np.int32).reshape(-1, 2),
                sent_bytes=np.array([sent[key] for key in senders], dtype=np.int64),
                senders=np.array([node for node, _ in senders], dtype=np.int32),
            ),
            layout="one_device",
            report=ReadReport(nodes_in_file=count),
            signatures=tuple(self._signatures),
            signature_of=np.array(self._signature_of, dtype=np.int32),
            executions=np.ones(count, dtype=np.int64),
            framework="pytorch",
            update=update_of_kinds({update: len(sizes)}, sum(sizes)),
        )


def _memory(tensor: Tensor) -> int:
    """Key of the memory that a tensor lies in: views share it."""
    return int(tensor.untyped_storage()._cdata)
