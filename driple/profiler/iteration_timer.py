"""Time the iterations of an unmodified training script from inside its process.

    for batch in DataLoader -> request | wait | compute | request ...   -> seconds per iteration

The timer wraps the script's own loader: an iteration lasts from one request for a batch to the
next. A loader is the training loader if an optimizer steps while its batches are in use. In
synthetic steps the loader reads one batch, keeps it on the device and returns it repeatedly, so
that only computation and gradient exchange take time (section IV-B). The process ends after the
requested iterations.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from driple.codec import to_dict
from driple.errors import MeasureError
from driple.files import atomic_write
from driple.profiler.gradients import GradientTimer
from driple.profiler.profile_records import RankResult
from driple.units import counted

__all__ = ["REFUSED", "IterationTimer", "active_timer"]

REFUSED = 3  # exit status of a process that recorded why it cannot be measured

# DataLoader options for reading a single batch: no processes, no prefetching, no pinning.
_PLAIN = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "timeout": 0,
    "multiprocessing_context": None,
    "pin_memory": False,
}
_EMPTY_ROUNDS = 2000

_active: list[IterationTimer] = []


def active_timer() -> IterationTimer | None:
    """The timer of this process, if it is being profiled."""
    return _active[-1] if _active else None


class _Pass:
    """One pass of the script over a loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.trains = False


class IterationTimer:
    """Wraps the loaders and optimizers of this process, and ends it after the timed iterations.

    Args:
        out: file for the measurements.
        synthetic: return one batch repeatedly.
        warmup: number of iterations before the timed ones.
        iterations: number of timed iterations.
        world_size: expected number of processes.
        time_gradients: record the ready time of each gradient in one warm-up iteration.
        clock: monotonic clock, seconds.
    """

    def __init__(
        self,
        out: Path,
        *,
        synthetic: bool,
        warmup: int,
        iterations: int,
        world_size: int,
        time_gradients: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._out, self._synthetic = out, synthetic
        self._warmup, self._iterations, self._world_size = warmup, iterations, world_size
        self._clock = clock
        self._gradients = GradientTimer() if time_gradients else None
        self._current: _Pass | None = None
        self._last_s = 0.0
        self._done = 0  # warm-up iterations done
        self._durations: list[float] = []
        self._batch_size: int | None = None
        self._has_batch = False
        self._batches_per_epoch: int | None = None
        self._ddp_mib: float | None = None

    def install(self) -> None:
        """Wrap every loader, optimizer and DistributedDataParallel of this process."""
        _active.append(self)
        original_iter = DataLoader.__iter__
        original_init = DataLoader.__init__
        original_ddp = DistributedDataParallel.__init__
        parameters = inspect.signature(original_init)

        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            bound = parameters.bind(loader, *args, **kwargs)
            bound.arguments.update(_PLAIN)
            original_init(*bound.args, **bound.kwargs)

        def wrap(module: Any, *args: Any, **kwargs: Any) -> None:
            original_ddp(module, *args, **kwargs)
            self._ddp_mib = float(module.bucket_bytes_cap) / 2**20

        if self._synthetic:
            _replace(DataLoader, "__init__", init)
        _replace(
            DataLoader,
            "__iter__",
            lambda loader: self.watch(loader, lambda: original_iter(loader)),
        )
        _replace(DistributedDataParallel, "__init__", wrap)
        register_optimizer_step_post_hook(self.stepped)

    def watch(self, loader: Any, batches: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Endless iterator over the loader's batches that times each iteration.

        Args:
            loader: the object that the script iterates over.
            batches: returns one pass over its data.
        """
        this = _Pass(loader)
        self._requested(this)
        kept: list[Any] = []
        while True:
            given = 0
            for batch in kept or batches():
                given += 1
                placed = _on_device(batch) if self._synthetic and not kept else batch
                self._received(this, placed)
                yield placed
                self._requested(this)
                if self._synthetic:
                    kept = [placed]
                    break
            if not given:
                self._refuse(_no_batch(loader))
            if not self._synthetic and not this.trains:
                return  # a loader without optimizer steps ends as usual

    def _requested(self, this: _Pass) -> None:
        """Handle a request for a batch: end the current iteration and start the next."""
        if self._current is this and this.trains:
            self._finish_iteration()
        if self._done == self._warmup and not self._durations:
            _synchronize()
        self._last_s = self._clock()
        if self._gradients is not None:
            self._gradients.begin()

    def _finish_iteration(self) -> None:
        if self._done < self._warmup:
            self._done += 1
            return
        if len(self._durations) + 1 == self._iterations:
            _synchronize()
        self._durations.append(self._clock() - self._last_s)
        if len(self._durations) == self._iterations:
            self._finish()

    def _received(self, this: _Pass, batch: Any) -> None:
        self._current = this
        if not self._has_batch:
            self._batch_size, self._has_batch = _rows(batch), True

    def stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Handle an optimizer step: the loader in use is a training loader."""
        if self._gradients is not None:
            self._gradients.stepped(optimizer)
        this = self._current
        if this is None or this.trains:
            return
        this.trains = True
        self._check_processes()
        self._describe(this.loader)

    def _check_processes(self) -> None:
        """Raise MeasureError if the number of processes differs from the expected one."""
        num_processes = distributed.get_world_size() if distributed.is_initialized() else 1
        if num_processes != self._world_size:
            self._refuse(
                f"the script trains with {counted(num_processes, 'process')} where "
                f"{self._world_size} were started; let it call "
                "torch.distributed.init_process_group() without a world size of its own, and wrap "
                "its model in DistributedDataParallel"
            )

    def _describe(self, loader: Any) -> None:
        """Properties of the training loader.

        A wrapped iterable that is no DataLoader has no length and no batch size.
        """
        size, sampler = getattr(loader, "batch_size", None), getattr(loader, "sampler", None)
        try:
            samples, per_epoch = len(sampler), len(loader)  # type: ignore[arg-type]
        except TypeError:
            samples, per_epoch = None, None
        if size is not None and samples is not None and samples < size:
            self._refuse(_no_batch(loader))
        self._batch_size, self._has_batch = size or self._batch_size, True
        self._batches_per_epoch = per_epoch

    def _finish(self) -> NoReturn:
        """Synchronise all processes, write the measurements, and end the process."""
        if distributed.is_initialized():
            distributed.barrier()
        result = RankResult(
            batch_size=self._batch_size,
            batches_per_epoch=self._batches_per_epoch,
            iterations_s=tuple(self._durations),
            wrapped=self._ddp_mib is not None,
            bucket_mib=self._ddp_mib,
            meter_s=self._own_seconds(),
            device=torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
            backend=distributed.get_backend() if distributed.is_initialized() else None,
            gradients=None if self._gradients is None else self._gradients.seen(),
        )
        atomic_write(self._out, json.dumps(to_dict(result)).encode(), error=MeasureError)
        raise SystemExit(0)

    def _refuse(self, why: str) -> NoReturn:
        atomic_write(self._out, json.dumps({"error": why}).encode(), error=MeasureError)
        raise SystemExit(REFUSED)

    def _own_seconds(self) -> float:
        """Overhead of the timer per iteration, seconds, from empty iterations of a second timer."""
        twin = IterationTimer(
            self._out,
            synthetic=False,
            warmup=0,
            iterations=_EMPTY_ROUNDS + 2,
            world_size=self._world_size,
            clock=self._clock,
        )
        batches = twin.watch(None, lambda: [None] * _EMPTY_ROUNDS)
        next(batches)
        if twin._current is not None:  # its own pass, just started
            twin._current.trains = True
        begin_s = self._clock()
        for _ in range(_EMPTY_ROUNDS - 1):
            next(batches)
            twin.stepped(None)  # type: ignore[arg-type]
        return (self._clock() - begin_s) / (_EMPTY_ROUNDS - 1)


def _replace(kind: type, method: str, function: Callable[..., Any]) -> None:
    """Replace a method of a class for the rest of this process."""
    setattr(kind, method, function)


def _synchronize() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def _on_device(batch: Any) -> Any:
    """The batch with all its tensors on this process's device."""
    if isinstance(batch, torch.Tensor):
        return batch.cuda() if torch.cuda.is_available() else batch
    if isinstance(batch, dict):
        return type(batch)({key: _on_device(value) for key, value in batch.items()})
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_on_device(value) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_on_device(value) for value in batch)
    return batch


def _rows(batch: Any) -> int | None:
    """Number of rows of the first tensor of a batch."""
    if isinstance(batch, torch.Tensor):
        return int(batch.shape[0]) if batch.dim() else None
    values = batch.values() if isinstance(batch, dict) else batch
    if not isinstance(batch, dict | list | tuple):
        return None
    return next((rows for rows in map(_rows, values) if rows is not None), None)


def _no_batch(loader: Any) -> str:
    size, sampler = getattr(loader, "batch_size", None), getattr(loader, "sampler", None)
    try:
        samples: int | str = len(sampler)  # type: ignore[arg-type]
    except TypeError:
        samples = "an unknown number of"
    return (
        f"the data set has {samples} samples for this process and a batch needs {size or 'more'}; "
        "give a smaller batch or more data"
    )
