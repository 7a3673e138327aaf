"""Host programs run on a processor too, and what they take grows with what they do."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from driple.measure.machine.clock import Clock, Effort
from driple.measure.machine.host import op_times, program_seconds, tensor_s
from driple.measure.machine.programs import PROGRAMS, step_of

QUICK = Clock(torch.device("cpu"), Effort(rounds=2, round_s=1e-3, tries=1))


class DispatchedOps(TorchDispatchMode):
    """Counts the ops that PyTorch dispatches, backward passes included."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


class OpClock(Clock):
    """A clock that no other program disturbs: a second for each op that a step dispatches."""

    def step_s(self, step: Callable[[], object]) -> float:
        with DispatchedOps() as ops:
            step()
        return float(ops.count)


STEADY = OpClock(torch.device("cpu"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_program_steps(program) -> None:  # type: ignore[no-untyped-def]
    """A training step changes the parameters, a forward pass does not."""
    torch.manual_seed(0)
    step = step_of(program, torch.device("cpu"))
    step()
    assert program.name.count("training") == program.trains


def test_names_of_programs_differ() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
    assert any(program.precision == "amp-bf16" and program.trains for program in PROGRAMS)


def test_training_takes_longer_than_a_forward_pass() -> None:
    both = [one for one in PROGRAMS if one.model == "mlp" and one.optimizer == "momentum"
            and one.precision == "fp32"]  # fmt: skip
    assert all(seconds > 0 for _, seconds in program_seconds(QUICK, programs=both))
    ops = {program.trains: count for program, count in program_seconds(STEADY, programs=both)}
    assert 0 < 2 * ops[False] < ops[True]


def test_every_kind_of_op_is_timed() -> None:
    seen: list[str] = []
    times = op_times(QUICK, seen.append)
    assert len(times) == len(seen) == 9
    assert all(op.forward_us > 0 and op.training_us > 0 for op in times)
    assert all(0 < op.forward_us < op.training_us for op in op_times(STEADY))


class WithoutKernel(nn.Module):
    """Fails under autocast, as an LSTM does on a processor without AVX-512."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if torch.is_autocast_enabled("cpu"):
            raise RuntimeError(self.message)
        return 2 * inputs


def test_an_op_without_a_kernel_under_autocast_has_no_time_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = "could not create a primitive descriptor for the LSTM forward propagation primitive"
    for message, times in ((missing, True), ("out of memory", False)):
        modules = [("recurrent layer", WithoutKernel(message), (4,))]
        monkeypatch.setattr("driple.measure.machine.host.op_modules", lambda rows=modules: rows)
        if times:
            (op,) = op_times(QUICK)
            assert op.autocast_us is None
            assert op.forward_us > 0
        else:
            with pytest.raises(RuntimeError, match="out of memory"):
                op_times(QUICK)


def test_a_tensor_takes_microseconds() -> None:
    assert 0.1e-6 < tensor_s(QUICK) < 1e-3
