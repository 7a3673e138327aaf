"""Loops over the tokens of a sequence: four turns are followed, the third stands for most others.

    for index in range(2048): ...   ->   turns 0, 1, 2, 2047; ops of turn 2 run 2,045 times

State-space models without kernels of their own run a dozen ops for each token and layer, forward
and backward. All turns but the first ones and the last are alike.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

import torch
from torch import Tensor

__all__ = ["REPEATS", "Repeats", "few_turns"]

_FEWEST = 16  # turns of a loop that is cut short
_BEFORE = 2  # turns before the one that stands for others: the first differ


@dataclass(slots=True)
class Repeats:
    """Turns that stand for others, of one step.

    Attributes:
        now: how often what runs now is to be counted.
        spans: autograd's numbers at which a turn begins and ends that counts for others, and how
            often it counts.
        begun: called when a turn begins that counts more than once.
        ended: called with how often a turn counts when it has ended.
    """

    now: int = 1
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    begun: Callable[[], None] = lambda: None
    ended: Callable[[int], None] = lambda _: None

    def of_node(self, sequence: int) -> int:
        """How often the gradient of a forward op counts, by its number of autograd."""
        return next((many for first, end, many in self.spans if first <= sequence < end), 1)


# Of the step that is recorded by shapes alone; None outside of one.
REPEATS: ContextVar[Repeats | None] = ContextVar("REPEATS", default=None)


def few_turns(lengths: set[int], noted: Callable[[], None]) -> Callable[..., Any]:
    """A `range` that is cut short where it counts the tokens of a sequence.

    Args:
        lengths: of the sequences of a batch.
        noted: called when it cuts a loop short.
    """

    def counted(*bounds: int) -> Any:
        known = range(*bounds)
        repeats = REPEATS.get()
        whole = len(bounds) == 1 and known.stop in lengths
        if repeats is None or not whole or len(known) < _FEWEST or repeats.now > 1:
            return known
        frame = sys._getframe(1)
        if not _is_loop(frame.f_code, frame.f_lasti):
            return known
        noted()
        return _turns(len(known), repeats, frame)

    return counted


@cache
def _is_loop(code: CodeType, call: int) -> bool:
    """Whether a `for` statement runs over what a call gives, and nothing lists it.

    Args:
        code: of the function that calls.
        call: offset of the call in it.
    """
    after = [one.opname for one in dis.get_instructions(code) if one.offset > call]
    return after[:2] == ["GET_ITER", "FOR_ITER"]


def _turns(count: int, repeats: Repeats, frame: Any) -> Iterator[int]:
    """The first turns and the last; lists to which each turn adds get an entry for every turn."""
    yield from range(_BEFORE)
    before = {name: len(one) for name, one in frame.f_locals.items() if type(one) is list}
    first, repeats.now = _next_node(), count - _BEFORE - 1
    repeats.begun()
    try:
        yield _BEFORE
    finally:
        many, repeats.now = repeats.now, 1
        repeats.spans.append((first, _next_node(), many))
        repeats.ended(many)
    for name, length in before.items():
        added = frame.f_locals[name]
        if len(added) == length + 1:
            last = added[-1]
            # Their gradients are those of the turn that counts for all.
            added.extend([last.detach() if isinstance(last, Tensor) else last] * (many - 1))
    yield count - 1


def _next_node() -> int:
    return int(torch._C._autograd._get_sequence_nr())
