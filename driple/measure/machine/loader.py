"""Samples a second of the user's data loader by number of workers.

FILE.py:FUNCTION -> Dataset or DataLoader -> LoaderRate for 0, 1, 2, 4 ... workers

The file is the user's own and runs in this process, as in his training program.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from driple.catalog.machine_file import LoaderRate
from driple.errors import ConfigError
from driple.units import counted

__all__ = ["loader_rates", "made_data"]

_SECONDS = 1.5  # of each number of workers, after the first batch
_MOST_WORKERS = 32
_BATCH = 32  # of a data set without a loader


def made_data(text: str) -> Any:
    """What the user's function returns.

    Args:
        text: `FILE.py:FUNCTION`.

    Raises:
        ConfigError: no such file or function, or it fails or returns no data.
    """
    place, _, name = text.rpartition(":")
    file = Path(place)
    if not place.endswith(".py") or not file.is_file():
        raise ConfigError(
            f"--data needs FILE.py:FUNCTION, a function without arguments that returns a Dataset "
            f"or a DataLoader, got '{text[:200]}'"
        )
    spec = importlib.util.spec_from_file_location(f"driple_data_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--data {text}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that its data set can be sent to workers
    try:
        spec.loader.exec_module(module)
        data = getattr(module, name)()
    except Exception as error:  # of the user's own code, whatever it raises
        raise ConfigError(
            f"--data {text} failed: {type(error).__name__}: {str(error)[:200]}"
        ) from error
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise ConfigError(
            f"--data {text} returned {type(data).__name__}; return a Dataset or a DataLoader"
        )
    return data


def loader_rates(
    data: Any,
    workers: Sequence[int] | None = None,
    *,
    seconds: float = _SECONDS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[LoaderRate]:
    """Samples a second, by number of workers.

    Args:
        data: a Dataset, or a DataLoader, whose batch size and collation stay.
        workers: their numbers; 0, 1, 2, 4 ... up to the cores if None.
        seconds: that each is measured.
        progress: called before each.

    Raises:
        ConfigError: the data set has too few samples, or fails.
    """
    most = min(len(os.sched_getaffinity(0)), _MOST_WORKERS)
    counts = workers or [0, *(2**k for k in range(most.bit_length()) if 2**k <= most)]
    rates = []
    for count in counts:
        progress(f"data: {counted(count, 'worker')}")
        try:
            rate = _rate(_loader(data, count), seconds)
        except ConfigError:
            raise
        except Exception as error:  # of the user's own code, whatever it raises
            lines = str(error).strip().splitlines() or [""]  # of a worker: its traceback
            raise ConfigError(
                f"--data failed with {counted(count, 'worker')}: {type(error).__name__}: "
                f"{lines[-1][:200]}"
            ) from error
        rates.append(LoaderRate(workers=count, samples_per_s=rate))
    return rates


def _loader(data: Any, count: int) -> DataLoader[Any]:
    if not isinstance(data, DataLoader):
        return DataLoader(data, batch_size=_BATCH, num_workers=count)
    known: dict[str, Any] = {"num_workers": count, "collate_fn": data.collate_fn}
    if data.batch_size is None or isinstance(data.dataset, IterableDataset):
        return DataLoader(data.dataset, batch_size=data.batch_size, **known)
    return DataLoader(data.dataset, batch_sampler=data.batch_sampler, **known)


def _rate(loader: DataLoader[Any], seconds: float) -> float:
    """Samples a second after the first batch, over as many epochs as it takes."""
    samples, begin = 0, None
    while begin is None or time.perf_counter() - begin < seconds:
        had = samples
        for batch in loader:
            if begin is None:  # workers have started then
                begin, had = time.perf_counter(), -1
                continue
            samples += _samples(batch)
            if time.perf_counter() - begin > seconds:
                break
        if begin is None or samples == had:
            raise ConfigError("--data has fewer samples than two batches; give more")
    return samples / (time.perf_counter() - begin)


def _samples(batch: Any) -> int:
    """Samples of a batch: the length of its first tensor."""
    while isinstance(batch, list | tuple | dict) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape else 1
