"""Sentences on what differs between a prediction and the record of the same job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.quantities import size
from driple.units import counted

__all__ = ["SENTENCES"]

_ALIKE = 0.05
_NOTHING_MB = 1e-3  # the chatter of a machine


def _step(*, factor: float, inside: bool | None) -> str:
    if abs(factor - 1) <= _ALIKE:
        words = "the step takes as long as predicted"
    elif factor > 1:
        words = f"the step takes {factor:.2g} times as long as predicted"
    else:
        words = f"the step is {100 * (1 - factor):.0f} % shorter than predicted"
    if inside is None:
        return words
    return f"{words}, {'within' if inside else 'outside'} the interval"


def _memory(*, predicted: float, measured: float) -> str:
    words = f"the device shows {size(measured)} in use, predicted are {size(predicted)}"
    if measured > predicted:
        return f"{words}: other processes, cached blocks, or another batch or precision"
    return f"{words}: another batch, precision or optimizer, or recomputation"


def _bytes(*, predicted_mb: Sequence[float], measured_mb: Sequence[float]) -> str:
    if max(measured_mb) < _NOTHING_MB:
        amount = "sends and receives nothing"
    else:
        amount = f"sends {measured_mb[0]:.3g} and receives {measured_mb[1]:.3g} MB a step"
    expected = f"{predicted_mb[0]:.3g} and {predicted_mb[1]:.3g} MB a step"
    words = f"the host {amount}, predicted are {expected}"
    if sum(measured_mb) > sum(predicted_mb):
        return f"{words}: input from the network, another scheme, or other programs"
    return f"{words}: devices of one host, compressed or accumulated gradients, or another scheme"


def _number(*, recorded: int, asked: int) -> str:
    return (
        f"the record is of {counted(recorded, 'device')}, the answer of {asked}: give the "
        "--setting that was recorded, or the records of all hosts"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "measured_elsewhere": (
        "the record is of {recorded}, the answer of {asked}: give the --setting that was recorded"
    ),
    "measured_number": _number,
    "trace_of_host": (
        "the trace has no kernels of a GPU: measured times are those of ops on the host, predicted "
        "ones of {asked}"
    ),
    "trace_without_steps": (
        "the trace marks no steps, and counts as one step: call step() of the profiler after each"
    ),
    "trace_of_one_device": (
        "the trace has {others} more GPUs; the one whose kernels take most time is shown"
    ),
    "trace_with_collectives": (
        "kernels that exchange with other devices also wait for these; no prediction is beside "
        "them here (driple predict has it)"
    ),
    "trace_without_modules": (
        "the trace names no modules: record it with torch.profiler.profile(with_stack=True), or "
        "put record_function with a module's path around its calls"
    ),
    "trace_modules_unmatched": (
        "modules of the trace and of the job are not called in the same order, and are not compared"
    ),
    "measured_step": _step,
    "measured_device_waits": (
        "the device is busy {measured:.0f} % of the time, predicted are {predicted:.0f} %: it "
        "waits, for the host, the input pipeline or the network"
    ),
    "measured_device_slower": (
        "the device is busy {measured:.0f} % of the time, predicted are {predicted:.0f} %: its own "
        "work takes longer (clocks, another precision, other programs)"
    ),
    "aligned_by_wall_clocks": (
        "{record} is aligned with {other} by the wall clocks alone; driple.mark_step() on both "
        "would check them"
    ),
    "wall_clock_corrected": lambda record, other, skew_s: (
        f"the wall clock of {record} is {skew_s:+.3g} s from that of {other} by the marked steps; "
        "corrected"
    ),
    "measured_memory": _memory,
    "measured_bytes": _bytes,
}
