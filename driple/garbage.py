"""When Python searches for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_search_for_garbage"]


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
