"""When Python searches for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_search_for_garbage", "rare_search_for_garbage"]

# New objects, less freed ones, before a search; Python's own 700 searches hundreds of times while
# modules are imported and a graph is read, which leave almost no cycles behind.
_NEW_OBJECTS = 100_000


@contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """Let Python search for no cycles of garbage meanwhile; as a context, or around a function.

    Each search walks through all that a long computation keeps, and the more it keeps, the more
    often one begins. Objects that are in no cycle are freed as ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def rare_search_for_garbage() -> Iterator[None]:
    """Let Python search for cycles of garbage a hundred times less often, while a command runs."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
