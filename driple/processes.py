"""Processes that work for another: they end when it does, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """Let this process of `multiprocessing` end as soon as the one that started it has ended.

    A pool's processes wait for tasks on a pipe whose other end each of them holds too, so they
    would never learn that whoever fills it was killed. Call it first in each of them.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
