"""How much work a piece of code does, counted: no other program on the machine changes it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any


def num_calls(work: Callable[[], object]) -> int:
    """The calls of functions, Python's and built-in ones, that `work` makes; coverage may be on."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@contextmanager
def calls_of(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """How often each function is called meanwhile, by its name; wherever it was imported."""
    names: dict[CodeType, str] = {one.__code__: one.__qualname__ for one in functions}
    counts: Counter[str] = Counter(dict.fromkeys(names.values(), 0))

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            counts[names[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        yield counts
    finally:
        sys.setprofile(None)
