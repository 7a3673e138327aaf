"""Training steps that show what a processor's cores reach."""

import torch

from driple.measure.machine.clock import Clock, Effort
from driple.measure.machine.processor import PROGRAMS, step_seconds

QUICK = Clock(torch.device("cpu"), Effort(rounds=1, round_s=1e-4, tries=1))


def test_every_program_steps() -> None:
    """Of different names, some of words and some of numbers."""
    seen: list[str] = []
    timed = step_seconds(QUICK, seen.append)
    assert len({program.name for program, _ in timed}) == len(PROGRAMS) == len(seen)
    assert all(seconds > 0 for _, seconds in timed)
    assert {bool(program.vocabulary) for program, _ in timed} == {True, False}
