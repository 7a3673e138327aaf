"""Which of some words a mistyped one may stand for; upper and lower case count as one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from itertools import takewhile

__all__ = ["alike", "unknown_name"]

# Least similarity, from 0 to 1, of short words and of others: sdg is sgd, mobilenet no googlenet.
_SHORT = 4
_ALIKE_SHORT, _ALIKE = 0.65, 0.75


def alike(typed: str, words: Iterable[str], most: int = 2) -> list[str]:
    """The word itself; or else those that begin so, the shortest first; or else the most alike.

    Of words that are equally alike that with the longer beginning in common comes first.

    Args:
        typed: what was typed.
        words: that there are.
        most: so many of them at most.
    """
    wanted = typed.lower()
    by_lower = {word.lower(): word for word in words}
    if wanted in by_lower:
        return [by_lower[wanted]]
    begun = sorted(
        (word for word in by_lower if wanted and word.startswith(wanted)),
        key=lambda word: (len(word), word),
    )
    least = _ALIKE_SHORT if len(wanted) <= _SHORT else _ALIKE
    near = begun or sorted(
        difflib.get_close_matches(wanted, by_lower, max(len(by_lower), 1), least),
        key=lambda word: (-_likeness(wanted, word), -_same_beginning(wanted, word), word),
    )
    return [by_lower[word] for word in near[:most]]


def unknown_name(what: str, name: object, known: Collection[str]) -> str:
    """What to say of a name that nobody knows: the nearest ones, or all that there are.

    Args:
        what: it is a name of, such as `field`.
        name: that was given.
        known: names that there are.
    """
    shown = str(name)[:80]
    near = alike(shown, known)
    offer = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
    return f"unknown {what} '{shown}'; {offer}"


def _likeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, name).ratio()


def _same_beginning(name: str, other: str) -> int:
    pairs = zip(name, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
