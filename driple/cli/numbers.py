"""Ranges of numeric options, checked while the command line is parsed: before any work.

    typer.Option(callback=whole_number(1, 100))  ->  the number, or ConfigError naming the flag

Text options that hold numbers, such as `--workers 1-4,8`, are checked where they are split.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import typer

from driple.checks import check_number, check_whole

__all__ = ["BANDWIDTH_HELP", "MOST_THREADS", "finite_number", "whole_number"]

BANDWIDTH_HELP = "rate of the network links in bit/s, such as 10G"
MOST_THREADS = 1024  # PyTorch's thread pool crashes at tens of thousands


def whole_number(least: int, most: int) -> Callable[[typer.CallbackParam, int | None], int | None]:
    """A callback that accepts whole numbers from `least` to `most`, and an option left out."""

    def check(param: typer.CallbackParam, value: int | None) -> int | None:
        if value is not None:
            check_whole(_flag_of(param), value, least, most)
        return value

    return check


def finite_number(
    *, least: float = -inf, above: float = -inf, most: float = inf, below: float = inf
) -> Callable[[typer.CallbackParam, float | None], float | None]:
    """A callback that accepts finite numbers within the bounds, and an option left out."""

    def check(param: typer.CallbackParam, value: float | None) -> float | None:
        if value is not None:
            check_number(_flag_of(param), value, least=least, above=above, most=most, below=below)
        return value

    return check


def _flag_of(param: typer.CallbackParam) -> str:
    """The long name of an option, as a user writes it."""
    return max(param.opts, key=len)
