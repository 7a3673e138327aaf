"""Work that takes longer than a request: kept in memory, for some minutes, up to a number.

WorkStore.add(future) -> ID;  .find(ID) -> its future, or None
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from driple.web.limits import Limits
from driple.web.refusals import busy

__all__ = ["WorkStore"]


class WorkStore:
    """Futures by IDs that nobody can guess.

    Args:
        limits: of the server.
        clock: seconds.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._kept: OrderedDict[str, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    def __len__(self) -> int:
        self._drop_old()
        return len(self._kept)

    def add(self, future: asyncio.Future[Any]) -> str:
        """Keep a future; the oldest that is done gives way where there are too many.

        Whoever asks the same shares a future, and its ID.

        Raises:
            Refusal: as many are still at work.
        """
        self._drop_old()
        known = next((name for name, (_, kept) in self._kept.items() if kept is future), None)
        if known is not None:
            return known
        if len(self._kept) >= self._limits.work_kept:
            done = next((name for name, (_, kept) in self._kept.items() if kept.done()), None)
            if done is None:
                raise busy(f"{len(self._kept)} long questions are at work")
            del self._kept[done]
        name = secrets.token_urlsafe(18)
        future.add_done_callback(_seen)
        self._kept[name] = (self._clock(), future)
        return name

    def find(self, name: str) -> asyncio.Future[Any] | None:
        """The future with this ID; None if there is none, or none any more."""
        self._drop_old()
        return self._kept[name][1] if name in self._kept else None

    def _drop_old(self) -> None:
        oldest = self._clock() - self._limits.work_kept_s
        for name in [name for name, (since, _) in self._kept.items() if since < oldest]:
            del self._kept[name]  # it ends by its own limit; others may wait for it


def _seen(future: asyncio.Future[Any]) -> None:
    """Nobody may fetch it, and its error is no defect then."""
    if not future.cancelled():
        future.exception()
