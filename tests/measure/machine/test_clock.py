"""Times are those of a step, whatever the number of steps of a round."""

import time

import pytest
import torch

from driple.measure.machine.clock import Clock, Effort

CPU = torch.device("cpu")
QUICK = Effort(rounds=3, round_s=0.005, tries=2)


def _spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("seconds", [2e-4, 2e-2])
def test_a_step_takes_as_long_as_its_work(seconds: float) -> None:
    clock = Clock(CPU, QUICK)
    assert clock.step_s(lambda: _spin(seconds)) == pytest.approx(seconds, rel=0.2)
    assert clock.kernel_s(lambda: _spin(seconds)) == pytest.approx(seconds, rel=0.2)


def test_a_disturbed_round_is_measured_again() -> None:
    """One slow try of two leaves no trace."""
    steps = iter(range(10**6))

    def step() -> None:
        _spin(5e-3 if next(steps) in range(6, 8) else 1e-3)

    assert Clock(CPU, Effort(rounds=3, round_s=1e-3, tries=3)).step_s(step) < 1.5e-3
