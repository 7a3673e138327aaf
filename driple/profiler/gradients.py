"""Ready times of the gradients of a training step, recorded in one warm-up iteration.

    request for a batch -> forward -> backward: gradient, gradient, ... -> optimizer step

DistributedDataParallel sends gradients during the backward pass; the overlap depends on the ready
times. On GPUs the times come from events in the stream, since the host runs ahead.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from driple.profiler.profile_records import SeenGradients

__all__ = ["GradientTimer"]


class GradientTimer:
    """Records sizes and ready times of gradients once, without later overhead."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Any]] = []
        self._handles: list[Any] = []
        self._begin: Any = None
        self._end: Any = None
        self._state = "idle"  # -> ready -> timing -> over
        self._numels: dict[int, int] = {}

    def begin(self) -> None:
        """Start an iteration."""
        if self._state == "ready":
            self._state, self._begin = "timing", _mark()

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """Handle an optimizer step: hooks are set after the first, and removed after the second."""
        if self._state == "idle":
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.requires_grad:
                        self._handles.append(
                            parameter.register_post_accumulate_grad_hook(self._seen)
                        )
            self._state = "ready"
        elif self._state == "timing":
            self._end = _mark()
            for handle in self._handles:
                handle.remove()
            self._handles.clear()
            self._state = "over"

    def _seen(self, parameter: torch.Tensor) -> None:
        if self._state == "timing":
            gradient = parameter.grad if parameter.grad is not None else parameter
            self._events.append((gradient.numel() * gradient.element_size(), _mark()))

    def seen(self) -> SeenGradients | None:
        """Bytes and ready time of each gradient, in that order of time; None without any."""
        if self._state != "over" or not self._events:
            return None
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return SeenGradients(
            nbytes=tuple(nbytes for nbytes, _ in self._events),
            ready_s=tuple(_seconds(self._begin, mark) for _, mark in self._events),
            step_s=_seconds(self._begin, self._end),
        )


def _mark() -> Any:
    if torch.cuda.is_available():
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event
    return time.perf_counter()


def _seconds(begin: Any, end: Any) -> float:
    return float(end - begin) if isinstance(begin, float) else begin.elapsed_time(end) / 1e3
