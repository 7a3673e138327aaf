"""Many tasks at once, by an engine that a user names.

    with open_engine("local", workers=2) as engine:
        for result in engine.stream(task, shared, items): ...

`local` runs processes of this machine, `ray` tasks of a cluster. Results are those of a loop, in
its order, with either, whatever the number of workers and whichever of them die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar, get_args

from driple.checks import check_choice, check_whole

__all__ = ["ENGINES", "MOST_WORKERS", "Engine", "EngineName", "open_engine"]

EngineName = Literal["local", "ray"]
ENGINES: tuple[str, ...] = get_args(EngineName)
MOST_WORKERS = 256

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Engine(Protocol):
    """Runs tasks; `close` ends all that it has started.

    Attributes:
        workers: tasks at a time.
    """

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        ...

    def stream(
        self,
        task: Callable[[_Shared, _Item], _Result],
        shared: _Shared,
        items: Iterable[_Item],
    ) -> Iterator[_Result]:
        """The result of each item, in order; few items are taken ahead of what is asked for.

        Args:
            task: a function of a module, which depends on its arguments alone: it is run again
                where a worker dies.
            shared: first argument of all tasks, which each worker gets once.
            items: second arguments, as they are needed.

        Raises:
            EngineError: workers die over and over.
            Exception: of the task.
        """
        ...

    def close(self) -> None:
        """End what was started; a second time does nothing."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_engine(
    name: str = "local", *, workers: int = 2, tasks_per_worker: int | None = None
) -> Engine:
    """An engine by its name.

    Args:
        name: one of `ENGINES`. Ray joins the cluster of `RAY_ADDRESS`; without it starts one on
            this machine.
        workers: tasks at a time; on a cluster that is there, its own processors count.
        tasks_per_worker: after which a process is replaced, as it keeps something of each.

    Raises:
        ConfigError: no such engine, or a number of workers that is out of range.
        MissingExtraError: Ray is not installed.
        EngineError: the cluster cannot be reached.
    """
    check_choice("engine", name, ENGINES)
    check_whole("number of workers", workers, 1, MOST_WORKERS)
    if name == "ray":
        from driple.engine.ray_engine import RayEngine

        return RayEngine(workers, tasks_per_worker)
    from driple.engine.local import LocalEngine

    return LocalEngine(workers, tasks_per_worker)
