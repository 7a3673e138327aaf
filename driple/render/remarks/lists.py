"""Names in a row, as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["first_of", "named"]

_MOST_NAMED = 4


def first_of(names: Sequence[str], count: int) -> str:
    """The first names of several: `a, b, c, ...`.

    Args:
        names: the first few.
        count: how many there are.
    """
    return ", ".join(names) + (", ..." if count > len(names) else "")


def named(names: Sequence[str]) -> str:
    """Names in a row, `a, b and c`; only their number if there are many."""
    if len(names) > _MOST_NAMED:
        return f"{len(names)} kinds"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
