"""The engine `ray`: tasks of a cluster (extra `cluster`).

stream(task, shared, items) -> shared in the object store, tasks on one processor each, few ahead
    -> results in order; what a dead node had is worked out anew by Ray

A worker keeps what its tasks share, and so what they have worked out on it, until another stream.

It joins the cluster of RAY_ADDRESS, else starts one on this machine. Ray's own statistics, which it
would send to its makers, are off.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from driple.engine.engine import Engine
from driple.errors import EngineError, MissingExtraError, install_hint

__all__ = ["RayEngine"]

_AHEAD = 3  # tasks of each processor that are handed out before their results are asked for
_MOST_RETRIES = 20  # of a task whose node or worker died
_STATISTICS = "RAY_USAGE_STATS_ENABLED"
_ADDRESS = "RAY_ADDRESS"

_Shared = TypeVar("_Shared")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class RayEngine(Engine):
    """Tasks of a cluster, see `Engine`.

    Args:
        workers: processors of the cluster that is started where none is named.
        tasks_per_worker: after which a process is replaced; None for never.

    Raises:
        MissingExtraError: Ray is not installed.
        EngineError: the cluster cannot be reached.
    """

    def __init__(self, workers: int, tasks_per_worker: int | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError(
                f"engine ray needs Ray, which is not installed; {install_hint('cluster')}"
            ) from error
        self._ray: Any = ray
        self._max_calls = tasks_per_worker or 0  # 0 is Ray's word for never
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            os.environ.setdefault(_STATISTICS, "0")
            address = os.environ.get(_ADDRESS)
            own: dict[str, Any] = (
                {} if address else {"num_cpus": workers, "include_dashboard": False}
            )
            try:
                ray.init(
                    address=address or "local",
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **own,
                )
            except (ConnectionError, OSError, RuntimeError, ValueError) as error:
                self._is_ours = False
                words = " ".join(str(error).split())[:300]
                raise EngineError(
                    f"no cluster of Ray at {_ADDRESS}={address}: {words}; start it (ray up), or "
                    f"leave {_ADDRESS} out"
                ) from error

    @property
    def workers(self) -> int:
        """Processors of the cluster now."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def stream(
        self,
        task: Callable[[_Shared, _Item], _Result],
        shared: _Shared,
        items: Iterable[_Item],
    ) -> Iterator[_Result]:
        """See `Engine.stream`."""
        run = self._ray.remote(num_cpus=1, max_retries=_MOST_RETRIES, max_calls=self._max_calls)(
            _run
        )
        reference = self._ray.put(shared)
        pending: deque[Any] = deque()
        shared_by = [reference]  # in a list it stays a reference, which a worker looks up once
        try:
            for entry in items:
                if len(pending) >= _AHEAD * self.workers:
                    yield self._result(pending.popleft())
                pending.append(run.remote(task, shared_by, entry))
            while pending:
                yield self._result(pending.popleft())
        finally:
            for waiting in pending:
                self._ray.cancel(waiting)

    def _result(self, reference: Any) -> Any:
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._ray.get(reference)
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            words = " ".join(str(error).split())[:300]
            raise EngineError(
                f"the cluster has lost a task {_MOST_RETRIES} times: {words}; look at its nodes"
            ) from error

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._is_ours:
            self._is_ours = False
            self._ray.shutdown()


_SHARED: dict[str, Any] = {}  # in a worker: what the tasks of its last stream share


def _run(task: Callable[[Any, _Item], _Result], shared_by: Sequence[Any], entry: _Item) -> _Result:
    """One task, in a worker."""
    import ray

    (reference,) = shared_by
    name = reference.hex()
    if name not in _SHARED:
        shared = ray.get(reference)
        _SHARED.clear()
        _SHARED[name] = shared
    return task(_SHARED[name], entry)
