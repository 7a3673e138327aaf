"""Which part of a step an op of PyTorch belongs to, by its name and the sizes of its inputs.

ops of scripts/runs/measure_gpu.py -> KernelTime of each part
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from scripts.fits.measured_kernels import PARTS, REST, UPDATE, KernelTime

__all__ = ["part_of", "parts_of"]

_UNKNOWN = frozenset({"", "Activity Buffer Request", "Command Buffer Full"})  # the profiler's own
_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "_addmm_activation", "dot", "mv", "addmv"})
_PART_OF_WORD = MappingProxyType(
    {"attention": "attention", "rnn": "recurrent", "pool": "pooling", "softmax": "softmax"}
)
_UPDATES = ("_foreach", "_fused_adam", "_fused_sgd", "_amp")


def parts_of(key: str, ops: Iterable[Sequence[object]]) -> list[KernelTime]:
    """Kernels and seconds of each part of a step.

    Args:
        key: of the step's row.
        ops: name, sizes of the inputs as JSON, kernels, and seconds of each.
    """
    kernels = dict.fromkeys((*PARTS, ""), 0)
    seconds = dict.fromkeys((*PARTS, ""), 0.0)
    for name, sizes, count, taken in ops:
        part = part_of(str(name), str(sizes))
        kernels[part] += int(str(count))
        seconds[part] += float(str(taken))
    return [
        KernelTime(key=key, part=part, kernels=kernels[part], seconds=round(seconds[part], 9))
        for part in kernels
        if kernels[part]
    ]


def part_of(name: str, sizes: str) -> str:
    """Part of one op; empty where the profiler names no op."""
    if name in _UNKNOWN:
        return ""
    op = name.removeprefix("aten::")
    if "conv" in op:
        return _convolution(json.loads(sizes), after=int("backward" in op))
    if op.startswith(_UPDATES):
        return UPDATE
    if "norm" in op and "vector_norm" not in op:
        return "norm_gradient" if "backward" in op else "norm"
    usual = "matmul" if op in _PRODUCTS else REST
    return next((part for word, part in _PART_OF_WORD.items() if word in op), usual)


def _convolution(sizes: Sequence[Sequence[int]], *, after: int) -> str:
    """By the channels of images and filters; a backward pass has its gradient as first input."""
    images, filters = sizes[after], sizes[after + 1]
    if len(images) < 3 or len(filters) < 3 or images[1] == filters[1]:
        return "convolution"
    return "depthwise_convolution" if filters[1] == 1 else "grouped_convolution"
