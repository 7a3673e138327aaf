"""How much work a piece of code does, counted: no other program on the machine changes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


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
