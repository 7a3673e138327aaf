"""Allocated bytes of a real training step on the CPU, by PyTorch's own profiler.

    model, StepOptions -> two steps under torch.profiler -> bytes after each allocator event

The profiler's allocator events (`profile_memory=True`) begin before the model is built, so that
what they add up to is all that is allocated; the second step is taken, as states exist by then.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile, record_function

from driple.graph.torch.checkpointing import checkpointed
from driple.graph.torch.options import StepOptions
from driple.graph.torch.precision import autocast_of, cast_batch
from scripts.studies.memory.models import StudyModel, loss_of

__all__ = ["Measured", "measured_step", "prepared"]

IntArray = npt.NDArray[np.int64]

_WHOLE = {"bf16": torch.bfloat16, "fp16": torch.float16}
_PASS, _UPDATE = "measured_pass", "measured_update"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What the allocator reported of one step.

    Attributes:
        nbytes: shape [e], bytes that are allocated after each event, and before the first.
        workspace: shape [e], bytes of these that an op takes and gives back itself.
        ops: names of the ops of the last pass, in the order in which they run.
        of_ops: shape [o], most bytes of tensors while each of them runs.
    """

    nbytes: IntArray
    workspace: IntArray
    ops: tuple[str, ...]
    of_ops: IntArray

    @property
    def peak_bytes(self) -> int:
        """Most that is allocated."""
        return int(self.nbytes.max())

    @property
    def peak_of_tensors(self) -> int:
        """Most that is allocated, without the workspace of kernels."""
        return int((self.nbytes - self.workspace).max())


@dataclass(frozen=True, slots=True)
class _Event:
    start_ns: int
    address: int
    nbytes: int
    op: int  # number of the op that it happens in, 0 for none


def prepared(study: StudyModel, *, checkpoint: bool) -> tuple[nn.Module, Any]:
    """Model and batch in single precision, with the library's own checkpointing."""
    model = study.make()
    if checkpoint and study.checkpoint is not None:
        study.checkpoint(model)
    return model, study.batch()


def measured_step(
    study: StudyModel,
    options: StepOptions,
    ops: Container[str],
    *,
    checkpoint: bool = False,
) -> Measured:
    """What is allocated in the last pass and the update of the second step.

    Args:
        study: the model.
        options: precision, optimizer and accumulation.
        ops: names of the ops that count as one, such as `aten::mm`.
        checkpoint: whether blocks are computed again in the backward pass.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        model, batch = prepared(study, checkpoint=checkpoint)
        dtype = _WHOLE.get(options.precision)
        if dtype is not None:
            model, batch = model.to(dtype), cast_batch(batch, options.precision)
        optimizer = _optimizer(model, options)
        wraps = checkpoint and study.checkpoint is None
        with checkpointed(model, "full" if wraps else "none", lambda _: nullcontext()):
            for _ in range(2):
                _step(model, batch, optimizer, options)
    return _read(recorded.profiler.kineto_results.experimental_event_tree(), ops)


def _optimizer(model: nn.Module, options: StepOptions) -> torch.optim.Optimizer:
    """The optimizer as PyTorch implements it on a GPU by default: foreach."""
    trained = [one for one in model.parameters() if one.requires_grad]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(trained, foreach=True)
    momentum = 0.9 if options.optimizer == "momentum" else 0.0
    return torch.optim.SGD(trained, lr=1e-3, momentum=momentum, foreach=True)


def _step(
    model: nn.Module, batch: Any, optimizer: torch.optim.Optimizer, options: StepOptions
) -> None:
    for _ in range(options.grad_accumulation):
        with record_function(_PASS):
            with autocast_of(options.precision, "cpu"):
                outputs = model(**batch) if isinstance(batch, dict) else model(batch)
                loss = loss_of(outputs)
                del outputs
            loss.backward()  # type: ignore[no-untyped-call]
    with record_function(_UPDATE):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _read(nodes: Sequence[Any], ops: Container[str]) -> Measured:
    events, starts = _events(nodes, ops)
    sizes = np.array([one.nbytes for one in events], dtype=np.int64)
    workspace = np.where(_of_kernels(events), sizes, 0)
    times = np.array([one.start_ns for one in events])
    (begin_ns, pass_end_ns), (_, end_ns) = _last(nodes, _PASS), _last(nodes, _UPDATE)
    first = max(0, int(np.searchsorted(times, begin_ns)) - 1)
    last = int(np.searchsorted(times, end_ns, side="right"))
    tensors = np.cumsum(sizes - workspace)
    inside = [(start, name) for start, name in starts if begin_ns <= start <= pass_end_ns]
    edges = np.array([start for start, _ in inside] + [pass_end_ns])
    places = np.searchsorted(times, edges, side="right") - 1
    of_ops = [
        int(tensors[one : max(one, after) + 1].max())
        for one, after in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)
    ]
    return Measured(
        nbytes=np.cumsum(sizes)[first:last],
        workspace=np.cumsum(workspace)[first:last],
        ops=tuple(name for _, name in inside),
        of_ops=np.array(of_ops, dtype=np.int64),
    )


def _events(
    nodes: Iterable[Any], ops: Container[str]
) -> tuple[list[_Event], list[tuple[int, str]]]:
    """Allocator events in the order of time, each with its op of `ops`, and when these begin."""
    events: list[_Event] = []
    starts: list[tuple[int, str]] = []
    waiting: list[tuple[Any, int]] = [(node, 0) for node in nodes]
    while waiting:
        node, owner = waiting.pop()
        if node.tag == _EventType.Allocation:
            fields = node.extra_fields
            events.append(_Event(node.start_time_ns, fields.ptr, fields.alloc_size, owner))
            continue
        name = node.name.removesuffix("_")  # in place or not
        if not owner and name in ops:
            starts.append((node.start_time_ns, name))
            owner = len(starts)
        waiting += [(child, owner) for child in node.children]
    return sorted(events, key=lambda event: event.start_ns), sorted(starts)


def _of_kernels(events: Sequence[_Event]) -> npt.NDArray[np.bool_]:
    """Whether each event is of memory that one op takes and gives back: a kernel's workspace."""
    begun: dict[int, int] = {}
    inside = np.zeros(len(events), dtype=np.bool_)
    for i, event in enumerate(events):
        if event.nbytes > 0:
            begun[event.address] = i
        elif (first := begun.pop(event.address, None)) is not None and event.op:
            inside[[first, i]] = events[first].op == event.op
    return inside


def _last(nodes: Iterable[Any], name: str) -> tuple[int, int]:
    """Begin and end of the last mark of a name, nanoseconds."""
    last = (0, 0)
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.name == name:
            last = max(last, (node.start_time_ns, node.end_time_ns))
        waiting += node.children
    return last
