"""The engine `local`: processes of this machine; one worker that stays works in this process.

stream(task, shared, items) -> tasks in processes, few ahead -> results in order
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from driple.engine.engine import Engine
from driple.errors import EngineError
from driple.processes import end_with_parent

__all__ = ["LocalEngine"]

_AHEAD = 3  # tasks of each worker that are handed out before their results are asked for
_MOST_DEATHS = 3  # of workers, one after another, without a result between them

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Pending(Generic[_Item, _Result]):
    """An item whose result was not asked for yet."""

    entry: _Item
    future: Future[_Result]


class LocalEngine(Engine):
    """Processes of this machine, see `Engine`.

    Args:
        workers: processes; 1 is this one, unless it is to be replaced.
        tasks_per_worker: after which a process is replaced; None for never.
    """

    def __init__(self, workers: int, tasks_per_worker: int | None = None) -> None:
        self._workers = workers
        self._tasks_per_worker = tasks_per_worker
        self._pool: ProcessPoolExecutor | None = None

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        return self._workers

    def stream(
        self,
        task: Callable[[_Shared, _Item], _Result],
        shared: _Shared,
        items: Iterable[_Item],
    ) -> Iterator[_Result]:
        """See `Engine.stream`; a new pool of processes for each."""
        if self._workers == 1 and self._tasks_per_worker is None:
            for entry in items:
                yield task(shared, entry)
            return
        self.close()
        pending: deque[_Pending[_Item, _Result]] = deque()
        coming, deaths = iter(items), 0
        try:
            while True:
                while len(pending) < _AHEAD * self._workers:
                    try:
                        entry = next(coming)
                    except StopIteration:
                        break
                    pending.append(_Pending(entry, self._submit(task, shared, entry)))
                if not pending:
                    return
                try:
                    result = pending[0].future.result()
                except BrokenProcessPool as error:
                    deaths += 1
                    if deaths > _MOST_DEATHS:
                        raise EngineError(
                            f"{deaths} worker processes ended one after another without a result; "
                            "give fewer processes, if memory is short"
                        ) from error
                    self._begin_anew(task, shared, pending)
                    continue
                pending.popleft()
                deaths = 0
                yield result
        finally:
            self.close()

    def _submit(
        self, task: Callable[[_Shared, _Item], _Result], shared: _Shared, entry: _Item
    ) -> Future[_Result]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                max_workers=self._workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin_worker,
                initargs=(shared,),
                max_tasks_per_child=self._tasks_per_worker,
            )
        try:
            return self._pool.submit(_run, task, entry)
        except BrokenProcessPool as error:  # a worker has died meanwhile
            broken: Future[_Result] = Future()
            broken.set_exception(error)
            return broken

    def _begin_anew(
        self,
        task: Callable[[_Shared, _Item], _Result],
        shared: _Shared,
        pending: Iterable[_Pending[_Item, _Result]],
    ) -> None:
        """Replace the broken pool, and hand out again what has no result."""
        self.close()
        for waiting in pending:
            done = waiting.future.done() and not waiting.future.cancelled()
            if not done or isinstance(waiting.future.exception(), BrokenProcessPool):
                waiting.future = self._submit(task, shared, waiting.entry)

    def close(self) -> None:
        """End the processes."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


_WORKER: list[Any] = []  # in a worker: what all tasks share


def _begin_worker(shared: object) -> None:
    """Begin a worker, which ends with the process that started it."""
    end_with_parent()
    _WORKER[:] = [shared]


def _run(task: Callable[[Any, _Item], _Result], entry: _Item) -> _Result:
    """One task, in a worker."""
    return task(_WORKER[0], entry)
