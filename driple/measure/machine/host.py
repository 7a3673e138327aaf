"""Seconds of the host: tiny steps, single ops, and what each trained tensor adds.

Clock -> (HostProgram, seconds) ...;  OpTime by kind;  seconds of a trained tensor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from driple.catalog.machine_file import OpTime
from driple.measure.machine.clock import Clock
from driple.measure.machine.programs import PROGRAMS, HostProgram, op_modules, step_of

__all__ = ["HostTimes", "measure_host", "op_times", "program_seconds", "tensor_s"]

_FEW, _MANY = 16, 112  # trained tensors; the difference is that of as many as a network has
_REPEATED = 8  # runs of an op in a step, so that the step's own time is a small part


@dataclass(frozen=True, kw_only=True, slots=True)
class HostTimes:
    """What a host takes.

    Attributes:
        programs: with the seconds of a step.
        ops: by kind.
        tensor_s: seconds for each trained tensor.
    """

    programs: tuple[tuple[HostProgram, float], ...]
    ops: tuple[OpTime, ...]
    tensor_s: float


def measure_host(clock: Clock, progress: Callable[[str], None] = lambda _: None) -> HostTimes:
    """Time all programs that show the pace of the host with this device.

    Args:
        clock: of a GPU, or of the processor.
        progress: called with each step of the work.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny tensors; the time of other threads is no time of the host
    try:
        is_gpu = clock.device.type == "cuda"
        programs = [one for one in PROGRAMS if is_gpu or one.counts_without_gpu]
        return HostTimes(
            programs=tuple(program_seconds(clock, progress, programs)),
            ops=tuple(op_times(clock, progress)),
            tensor_s=tensor_s(clock),
        )
    finally:
        torch.set_num_threads(threads)


def program_seconds(
    clock: Clock,
    progress: Callable[[str], None] = lambda _: None,
    programs: Sequence[HostProgram] = PROGRAMS,
) -> list[tuple[HostProgram, float]]:
    """Seconds of a step of each program.

    Args:
        clock: of the device that the tensors are on.
        progress: called before each.
        programs: that are timed.
    """
    timed = []
    for program in programs:
        progress(f"host: {program.name}")
        timed.append((program, clock.step_s(step_of(program, clock.device))))
    return timed


def op_times(clock: Clock, progress: Callable[[str], None] = lambda _: None) -> list[OpTime]:
    """What the host takes for a module of each kind: its call, dispatch, autograd and launches."""
    times = []
    for kind, module, shape in op_modules():
        progress(f"host: {kind}")
        module.to(clock.device)
        inputs = torch.ones(shape, device=clock.device, requires_grad=True)
        times.append(
            OpTime(
                kind=kind,
                forward_us=_each_us(clock, module, inputs, phase="forward"),
                training_us=_each_us(clock, module, inputs, phase="training"),
                autocast_us=_autocast_us(clock, module, inputs),
            )
        )
    return times


def _autocast_us(clock: Clock, module: nn.Module, inputs: torch.Tensor) -> float | None:
    """None where the processor lacks a kernel, such as an LSTM in bfloat16 without AVX-512."""
    try:
        return _each_us(clock, module, inputs, phase="autocast")
    except RuntimeError as error:
        if "could not create a primitive" in str(error):  # of oneDNN
            return None
        raise


def _each_us(clock: Clock, module: nn.Module, inputs: torch.Tensor, *, phase: str) -> float:
    def run() -> torch.Tensor:
        output = module(inputs)
        result: torch.Tensor = output[0] if isinstance(output, tuple) else output
        return result

    def step() -> None:
        for _ in range(_REPEATED):
            if phase == "training":
                output = run()
                torch.autograd.backward(output, torch.ones_like(output))
            elif phase == "autocast":
                with torch.no_grad(), torch.autocast(clock.device.type, torch.bfloat16):
                    run()
            else:
                with torch.no_grad():
                    run()

    return 1e6 * clock.step_s(step) / _REPEATED


def tensor_s(clock: Clock) -> float:
    """Seconds for each trained tensor more: adding up its gradient, zeroing, its update.

    The update is AdamW's on a GPU; on processors, where its lists go one by one, that of SGD.
    """
    optimizer = "adamw" if clock.device.type == "cuda" else "momentum"
    few, many = (clock.step_s(_update(count, clock.device, optimizer)) for count in (_FEW, _MANY))
    return max(many - few, 1e-8 * (_MANY - _FEW)) / (_MANY - _FEW)


def _update(count: int, device: torch.device, optimizer: str) -> Callable[[], object]:
    tensors = [nn.Parameter(torch.ones(4, device=device)) for _ in range(count)]
    optimiser: torch.optim.Optimizer
    if optimizer == "adamw":
        optimiser = torch.optim.AdamW(tensors, lr=1e-4, foreach=True)
    else:
        optimiser = torch.optim.SGD(tensors, lr=1e-4, momentum=0.9, foreach=True)

    def step() -> object:
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(torch.cat(list(tensors)).sum())
        return optimiser.step()

    return step
