"""Record the ops of a training step as they come: kernels, phases, modules, memory.

    model, batch -> forward, loss, backward under `StepRecorder` -> Record

Works below autograd, so that it sees the backward pass as well. Storages are known by their
address: views share one, and a weak reference reports when the last tensor on it is gone, which is
when PyTorch's allocator would get the memory back.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from driple.graph.datatypes import NUMBER_OF
from driple.graph.low_precision import LOW_MARK
from driple.graph.signature import OpSignature
from driple.graph.signature import Tensor as Shape
from driple.graph.step_facts import Phase
from driple.graph.torch.aten import Input, Kernel, kernels_of, tensors_in
from driple.graph.torch.data_dependence import refuse_values
from driple.graph.torch.gradient_sums import adds_in_place, sole_uses
from driple.graph.torch.library_values import note_result, result_assumed
from driple.graph.torch.memory_format import as_on_gpu
from driple.graph.torch.remembered import results_of_process
from driple.graph.torch.turns import REPEATS, Repeats

__all__ = ["Allocation", "Record", "StepRecorder", "memory_of"]

DTYPES = {
    dtype: NUMBER_OF[f"DT_{name}"]
    for dtype, name in (
        (torch.float32, "FLOAT"), (torch.float64, "DOUBLE"), (torch.float16, "HALF"),
        (torch.bfloat16, "BFLOAT16"), (torch.int64, "INT64"), (torch.int32, "INT32"),
        (torch.int16, "INT16"), (torch.int8, "INT8"), (torch.uint8, "UINT8"),
        (torch.bool, "BOOL"), (torch.complex64, "COMPLEX64"), (torch.complex128, "COMPLEX128"),
    )
}  # fmt: skip
_NO_NODE, _NO_TASK = -1, -1
# By default PyTorch computes these without TF32, and convolutions and recurrent layers with it.
_MATRIX_PRODUCTS = frozenset({"matmul", "batch_matmul"})
_NO_TF32 = ("tf32", (0,))
_LINEAR = "matmul"
# Modules whose products stay in 16 bits: the last layer of a language model.
_IN_16_BITS = frozenset({"lm_head", "output", "output_layer", "embed_out"})
_ACCUMULATION = "AccumulateGrad"  # node of autograd that adds to a parameter's gradient
_NODES_OF_AN_OP = 3  # that autograd may make, the later ones for what is written in place


@dataclass(slots=True)
class Allocation:
    """Memory of one storage.

    Attributes:
        nbytes: its size.
        made_by: node that allocates it, -1 before the step.
        freed_after: last node before it is freed; None while it lives.
        written_by: last node that wrote it, -1 for none.
    """

    nbytes: int
    made_by: int
    freed_after: int | None = None
    written_by: int = _NO_NODE


@dataclass(slots=True)
class Record:
    """Notes of a step, one entry for each node or as named.

    Attributes:
        op_types: op type of each kernel.
        signature_of: position of its signature.
        outputs: elements and bytes that it makes.
        phases: phase of each.
        module_of: position in `modules`, -1 for none.
        accumulates: whether it adds to a gradient of an earlier pass.
        turns: how often it runs in a pass.
        signatures: each once.
        modules: paths.
        edges: (node, node that reads its result).
        readers: (position of a parameter, node that reads it).
        allocations: in the order in which they are made.
    """

    op_types: list[str] = field(default_factory=list)
    signature_of: list[int] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    module_of: list[int] = field(default_factory=list)
    accumulates: list[bool] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    signatures: dict[OpSignature, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=dict)
    edges: set[tuple[int, int]] = field(default_factory=set)
    readers: set[tuple[int, int]] = field(default_factory=set)
    allocations: list[Allocation] = field(default_factory=list)


class StepRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """Notes every kernel, whose results it reads, and when memory is made and freed.

    Args:
        model: whose modules and parameters are named.
        device: type of the device that runs it: `meta`, or `cpu` for real inputs.
        tf32: whether matrix products in single precision may run in TF32.
        low: what products of linear layers in half precision say of a format of fewer bits; 0 where
            they run as they are.
        on_gpu: whether results have the memory format that kernels of a GPU give them.
    """

    def __init__(
        self, model: nn.Module, *, device: str, tf32: bool, low: int = 0, on_gpu: bool = True
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.record = Record()
        self._sole_uses = sole_uses()
        self.parameters = dict(model.named_parameters())
        self._tf32, self._device, self._on_gpu, self._low = tf32, device, on_gpu, low
        self._paths: dict[int, str] = {}
        for path, module in model.named_modules():
            self._paths.setdefault(id(module), path)
        self._results = results_of_process()
        self._owner: dict[int, str] = {}
        for name, parameter in self.parameters.items():
            self._owner.setdefault(id(parameter), name.rpartition(".")[0])
        self._number: dict[int, int] = {}
        self._live: dict[int, Allocation] = {}
        self._watches: dict[int, weakref.ref[Any]] = {}
        self._stack: list[str] = []
        self._last_path: str | None = None
        self._path_of_sequence: dict[int, str] = {}
        self._repeats = Repeats(begun=self._turn_began, ended=self._turn_ended)
        self._last_sequence, self._kept_from = _NO_NODE, 0
        for number, parameter in enumerate(self.parameters.values()):
            self._number.setdefault(memory_of(parameter), number)
            self.before_step(parameter)
        for buffer in model.buffers():
            self.before_step(buffer)

    def before_step(self, tensor: Tensor) -> Allocation:
        """Note memory that exists before the step."""
        key = memory_of(tensor)
        if key not in self._live:
            self._watch(key, tensor.untyped_storage(), _NO_NODE)
        return self._live[key]

    def allocation_of(self, tensor: Tensor) -> Allocation | None:
        """The memory of a tensor that still lives; None if no op of the step made it."""
        return self._live.get(memory_of(tensor))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what runs within."""
        entered = register_module_forward_pre_hook(self._enter)
        left = register_module_forward_hook(self._leave, always_call=True)
        token = REPEATS.set(self._repeats if self._device == "meta" else None)
        try:
            with self:
                yield
        finally:
            REPEATS.reset(token)
            entered.remove()
            left.remove()
            # What is freed from here on outlives the step.
            self._watches.clear()

    @contextmanager
    def within(self, module: nn.Module) -> Iterator[None]:
        """Name a module while its forward pass runs outside of its own call."""
        self._enter(module, None)
        try:
            yield
        finally:
            self._leave(module, None, None)

    def _enter(self, module: nn.Module, _: Any) -> None:
        path = self._paths.get(id(module))
        self._stack.append(path if path is not None else self._stack[-1] if self._stack else "")

    def _leave(self, module: nn.Module, _: Any, __: Any) -> None:
        if self._stack:
            self._stack.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the op on shapes alone, and note it."""
        named: dict[str, Any] = kwargs or {}
        with refuse_values(func, args):
            if adds_in_place(func, args, named, self._sole_uses):
                result = args[0].add_(args[1])
            else:
                result = self._run(func, args, named)
            if self._on_gpu:
                result = as_on_gpu(func, args, result)
        arguments = (*args, *named.values())
        phase, path, accumulates = self._place()
        kernels = kernels_of(func, args, named, result) if self._is_here(result, arguments) else []
        if kernels:
            for kernel in kernels:
                self._note(kernel, phase, path, accumulates)
            for tensor in tensors_in(result):  # such as a workspace, which is no output
                self._allocated(tensor, len(self.record.op_types) - 1)
        else:
            self._viewed(arguments, result)
        return result

    def _run(self, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What the op gives; without values, what libraries' models usually get."""
        try:
            result = self._results.run(func, args, named)
        except (RuntimeError, NotImplementedError) as error:
            result = result_assumed(error, func, args, named)
            if result is NotImplemented:
                raise
        note_result(func.name().partition("::")[2].partition(".")[0], args, result)
        return result

    def _is_here(self, result: Any, arguments: Sequence[Any]) -> bool:
        """Whether the op runs on the device: the program may compute a few numbers on the host."""
        tensors = (*tensors_in(result), *tensors_in(arguments))
        return any(tensor.device.type == self._device for tensor in tensors)

    def _viewed(self, arguments: Sequence[Any], result: Any) -> None:
        """A view in memory of its own is as old as what it shows."""
        shown = [
            allocation
            for tensor in tensors_in(arguments)
            if (allocation := self.allocation_of(tensor))
        ]
        for tensor in tensors_in(result):
            allocation = self._allocated(tensor, len(self.record.op_types))
            if shown and allocation.written_by == _NO_NODE:
                allocation.written_by = shown[0].written_by

    def _place(self) -> tuple[Phase, str | None, bool]:
        """Phase and module of the op that runs now, and whether it adds to an older gradient.

        Autograd has numbered the op's node by now: its backward ops find the module by that number.
        """
        if torch._C._current_graph_task_id() == _NO_TASK:
            return Phase.FORWARD, self._numbered(self._stack[-1] if self._stack else None), False
        if torch.is_grad_enabled() or self._stack:
            path = self._stack[-1] if self._stack else self._path_of_backward()[0]
            return Phase.RECOMPUTE, self._numbered(path), False
        path, accumulates = self._path_of_backward()
        self._last_path = path
        return Phase.BACKWARD, path, accumulates

    def _numbered(self, path: str | None) -> str | None:
        if path is not None:
            self._path_of_sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, path)
        return path

    def _path_of_backward(self) -> tuple[str | None, bool]:
        """The module of the forward op whose gradient is computed, and whether that is added up."""
        node = torch._C._current_autograd_node()
        if node is None:  # gradients of two readers are added up, right after the second
            return self._last_path, False
        if node.name().endswith(_ACCUMULATION):
            return self._owner.get(id(getattr(node, "variable", None))), True
        sequence = node._sequence_nr()
        for earlier in range(sequence, sequence - _NODES_OF_AN_OP, -1):
            if earlier in self._path_of_sequence:
                return self._path_of_sequence[earlier], False
        return None, False

    def _note(self, kernel: Kernel, phase: Phase, path: str | None, accumulates: bool) -> None:
        record, node = self.record, len(self.record.op_types)
        inputs = tuple([self._shape(one) for one in kernel.inputs])
        outputs = tuple([self._shape(one) for one in kernel.outputs])
        numbers = kernel.numbers
        if not self._tf32 and kernel.kind in _MATRIX_PRODUCTS:
            numbers = tuple(sorted((*numbers, _NO_TF32)))
        if self._low and kernel.kind == _LINEAR and _last_of(path) not in _IN_16_BITS:
            numbers = tuple(sorted((*numbers, (LOW_MARK, (self._low,)))))
        signature = OpSignature(kernel.kind, inputs, outputs, numbers)
        record.op_types.append(kernel.op_type)
        record.signature_of.append(record.signatures.setdefault(signature, len(record.signatures)))
        record.outputs.append(
            (sum(one.elements for one in outputs), sum(one.nbytes for one in outputs))
        )
        record.phases.append(int(phase))
        record.module_of.append(
            _NO_NODE if path is None else record.modules.setdefault(path, len(record.modules))
        )
        record.accumulates.append(accumulates)
        record.turns.append(self._turns(phase))
        for operand in kernel.inputs:
            if operand.tensor is not None:
                self._read(memory_of(operand.tensor), node)
        for operand in kernel.outputs:
            if operand.tensor is not None:
                self._allocated(operand.tensor, node).written_by = node

    def _turns(self, phase: Phase) -> int:
        """How often the op that runs now runs in a pass; a gradient as often as its forward op."""
        if phase != Phase.BACKWARD or not self._repeats.spans:
            return self._repeats.now
        node = torch._C._current_autograd_node()
        if node is not None:  # it stands until the next, while what it gave is added up
            self._last_sequence = node._sequence_nr()
        return self._repeats.of_node(self._last_sequence)

    def _turn_began(self) -> None:
        self._kept_from = len(self.record.allocations)

    def _turn_ended(self, turns: int) -> None:
        """What a turn keeps, each of the turns that it stands for keeps."""
        for kept in self.record.allocations[self._kept_from :]:
            if kept.freed_after is None:
                kept.nbytes *= turns

    def _read(self, key: int, node: int) -> None:
        live = self._live.get(key)
        if live is not None and live.written_by not in {_NO_NODE, node}:
            self.record.edges.add((live.written_by, node))
        number = self._number.get(key)
        if number is not None:
            self.record.readers.add((number, node))

    def _shape(self, operand: Input) -> Shape:
        if operand.tensor is None:
            return Shape(operand.shape, DTYPES[torch.int32])
        sizes = tuple(operand.tensor.shape) if operand.shape is None else operand.shape
        of_parameter = memory_of(operand.tensor) in self._number
        return Shape(sizes, DTYPES.get(operand.tensor.dtype, 0), of_parameter)

    def _allocated(self, tensor: Tensor, node: int) -> Allocation:
        """The memory of a result, which is new unless it is a view or written in place."""
        storage = tensor.untyped_storage()
        key = int(storage._cdata)
        allocation = self._live.get(key)
        if allocation is None:
            self._watch(key, storage, node)
            allocation = self._live[key]
        return allocation

    def _watch(self, key: int, storage: Any, node: int) -> None:
        allocation = Allocation(nbytes=int(storage.nbytes()), made_by=node)
        self._live[key] = allocation
        self.record.allocations.append(allocation)
        self._watches[key] = weakref.ref(storage, partial(self._freed, key))

    def _freed(self, key: int, _: Any) -> None:
        """The last tensor on a storage is gone: its address may be used again."""
        if self._watches.pop(key, None) is not None:
            self._live.pop(key).freed_after = len(self.record.op_types) - 1


def memory_of(tensor: Tensor) -> int:
    """Key of the memory that a tensor lies in: views share it."""
    return int(tensor.untyped_storage()._cdata)


def _last_of(path: str | None) -> str:
    """Last part of a module's path."""
    return "" if path is None else path.rpartition(".")[2]
