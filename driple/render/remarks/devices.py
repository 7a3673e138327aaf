"""Sentences on what devices lack, and on their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.render.remarks.runs import kind_words
from driple.units import counted

__all__ = ["SENTENCES"]

_MOST_NAMED = 8


def _no_bfloat16(device: str, precision: str, has_tensor_cores: bool) -> str:
    instead = " (its tensor cores compute in fp16)" if has_tensor_cores else ""
    return (
        f"{device} has no units for bfloat16: products in {precision} are taken to run in single "
        f"precision{instead}"
    )


def _memory_not_estimated(scheme: str, kind: str, known: Sequence[str]) -> str:
    return (
        f"the memory of scheme {scheme} ({kind_words(kind)}) is not estimated; schemes with an "
        f"estimate are {', '.join(known)}"
    )


def _largest_batch(batch_size: int | None, devices: Sequence[str]) -> str:
    words = (
        "no batch size of these fits the device's memory"
        if batch_size is None
        else f"the largest of these batch sizes that fits: {batch_size}"
    )
    return f"{words}; least room: {', '.join(devices)}" if devices else words


def _counts_left_out(counts: Sequence[int], reason: str) -> str:
    named = ", ".join(map(str, counts[:_MOST_NAMED]))
    more = f" and {len(counts) - _MOST_NAMED} more" if len(counts) > _MOST_NAMED else ""
    devices = "device" if tuple(counts) == (1,) else "devices"
    return f"left out: {named}{more} {devices}; {reason}"


def _flops_unknown(op_types: Sequence[str], counts: Sequence[int]) -> str:
    named = ", ".join(f"{name} ({count})" for name, count in zip(op_types, counts, strict=True))
    return f"FLOPs of {counted(sum(counts), 'op')}: {named}"


_LIFETIMES = "lifetimes of the step's tensors and a model of PyTorch's caching allocator"

SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "no_bfloat16": _no_bfloat16,
    "no_tf32": "{device} has no TF32: products run in fp32",
    "low_precision": (
        "{precision} is that of linear layers, by kernels of inference builds: no step in it is "
        "among the runs behind the stated error, and memory is that of bf16-mixed"
    ),
    "attention_of_other_device": lambda device, compute_capability: (
        "the job was read with the attention of another device (compute capability "
        f"{compute_capability or 'no NVIDIA GPU'}), {device} takes other kernels; in Python, "
        "load_job(..., setting=...) reads it for this setting"
    ),
    "attention_of_first_device": lambda device, others: (
        f"attention runs by the kernels of {device} on all devices; {', '.join(others)} would take "
        "others"
    ),
    "tuning_left_out": (
        "{device} is tuned by {file}, which no inspector has learned from: its answer leaves the "
        "tuning out (--method simulator has it)"
    ),
    # memory
    "memory_not_estimated": _memory_not_estimated,
    "memory_of_tensors": "lifetimes of the step's tensors",
    "memory_by_lifetimes": _LIFETIMES,
    "memory_by_lifetimes_checked": (
        f"{_LIFETIMES}; the device's memory was within {{p90_pct:.0f}} % on nine in ten of "
        "{num_runs} held-out runs ({median_pct:.0f} % in the median)"
    ),
    "memory_by_lifetimes_nearest": lambda kind, num_runs, median_pct, p90_pct: (
        f"{_LIFETIMES}; too few published peaks are of {kind_words(kind)}: of the nearest kind, "
        f"the device's memory was within {p90_pct:.0f} % on nine in ten of {num_runs} held-out "
        f"runs of one device ({median_pct:.0f} % in the median), and the interval is wider by a "
        "fourth"
    ),
    "memory_of_uncompiled": "{source}; not compiled, which takes up to twice as much",
    "memory_unknown": "memory: unknown; {reason}",
    "largest_batch": _largest_batch,
    "counts_left_out": _counts_left_out,
    "whole_gpu_taken": (
        "TensorFlow takes nearly all memory of a GPU when it starts, unless allow_growth is set "
        "(TF_FORCE_GPU_ALLOW_GROWTH=true): the device then shows more than the step needs"
    ),
    "order_of_ops": (
        "lifetimes follow from the order of the graph's ops; TensorFlow may run them in another"
    ),
    # what is unknown of a job
    "unknown_count_as_1": "{unknown}; they count as 1",
    "flops_unknown": _flops_unknown,
    "optimizer_unknown": "the optimizer",
    "batch_size_unknown": "the batch size (--batch-size states it)",
    "phases_not_shown": ("the graph does not show which ops are of the forward or backward pass"),
    "no_modules": "the graph names no modules",
}
