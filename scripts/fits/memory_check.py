"""Estimates of device memory beside published ones.

    MemoryRun, MemoryStore, MemoryCalibration -> CheckedMemory -> errors, intervals, fits or not

Constants are fitted on families of even folds; errors are stated on those of odd folds. Sources
weigh the same, and families within a source, however many runs there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import SchemeChoice
from driple.memory.calibration import MemoryCalibration
from driple.memory.estimate import error_kind, memory_of_step
from driple.memory.memory_estimate import MemoryEstimate
from driple.memory.place import MemoryPlace
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import Sharding
from scripts.fits.memory_rows import MemoryRun
from scripts.fits.memory_store import MemoryStore

__all__ = ["NUMBERS", "CheckedMemory", "FitScore", "Pair", "checked_rows", "coverage_of",
           "fit_score", "pairs_of", "place_of_row", "quantile", "weights_of"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

NUMBERS = ("allocated", "reserved", "device_total")
_MEASURED = {
    "allocated": "allocated_bytes",
    "reserved": "reserved_bytes",
    "device_total": "device_bytes",
}
_GIB = 2.0**30


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedMemory:
    """A run, and what is estimated of it."""

    row: MemoryRun
    estimate: MemoryEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One number, estimated and measured, in bytes."""

    row: MemoryRun
    kind: str
    estimated: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error of the estimate."""
        return self.estimated / self.measured - 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FitScore:
    """How often `fits` is right.

    Attributes:
        ran: runs that ran, by answer.
        failed: runs that ran out of memory, by answer.
    """

    ran: Mapping[str, int]
    failed: Mapping[str, int]

    @property
    def right(self) -> float:
        """Mean of both classes' shares that are right: half for a constant answer."""
        ran, failed = sum(self.ran.values()), sum(self.failed.values())
        fits = self.ran.get("yes", 0) / max(ran, 1)
        return (fits + 1 - self.failed.get("yes", 0) / max(failed, 1)) / 2

    @property
    def wrong_fits(self) -> float:
        """Share of the answers `yes` that ran out of memory, where both classes are as frequent."""
        ran, failed = sum(self.ran.values()), sum(self.failed.values())
        good, bad = self.ran.get("yes", 0) / max(ran, 1), self.failed.get("yes", 0) / max(failed, 1)
        return bad / (good + bad) if good + bad else 0.0


def place_of_row(row: MemoryRun) -> MemoryPlace:
    """The device of a run."""
    scheme = SchemeChoice.usual().name if row.scheme == "none" else row.scheme
    sharding = scheme_named(scheme).sharding or Sharding()
    return MemoryPlace(
        scheme=scheme,
        shards=sharding.num_shards(row.num_devices, min(row.per_machine, row.num_devices)),
        replicas=row.num_devices,
        generation=row.generation,
        capacity_bytes=row.capacity_bytes,
    )


def checked_rows(
    rows: Iterable[MemoryRun], store: MemoryStore, calibration: MemoryCalibration
) -> list[CheckedMemory]:
    """All rows whose step is in the store, with their estimates."""
    known: dict[object, MemoryEstimate] = {}
    checked = []
    for row in rows:
        line = store.steps.get(row.step)
        if line is None:
            continue
        place = place_of_row(row)
        key = (row.step, row.batch_size, row.masters, place)
        if key not in known:
            known[key] = memory_of_step(
                line.at(row.batch_size),
                place,
                calibration,
                masters=row.masters,
                library=row.library,
            )
        checked.append(CheckedMemory(row=row, estimate=known[key]))
    return checked


def pairs_of(checked: Iterable[CheckedMemory], number: str) -> list[Pair]:
    """Runs that measured a number, one of `NUMBERS`."""
    pairs = []
    for checked_row in checked:
        measured = getattr(checked_row.row, _MEASURED[number])
        estimated = getattr(checked_row.estimate, number)
        if measured is not None and estimated is not None:
            pairs.append(
                Pair(
                    row=checked_row.row,
                    kind=error_kind(
                        place_of_row(checked_row.row), images=checked_row.row.has_images
                    ),
                    estimated=estimated.value,
                    measured=measured,
                )
            )
    return pairs


def weights_of(rows: Sequence[MemoryRun]) -> FloatArray:
    """A weight of each run: sources weigh the same, families in a source, and steps in a family."""
    steps: dict[object, Counter[object]] = defaultdict(Counter)
    families: dict[str, set[str]] = defaultdict(set)
    keys = [(row.source, row.family) for row in rows]
    jobs = [(row.step, row.batch_size, row.scheme, row.num_devices, row.ran) for row in rows]
    for key, job in zip(keys, jobs, strict=True):
        steps[key][job] += 1
        families[key[0]].add(key[1])
    return np.array(
        [
            1.0 / (len(families[key[0]]) * len(steps[key]) * steps[key][job])
            for key, job in zip(keys, jobs, strict=True)
        ]
    )


def quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """Weighted quantile."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, share * sums[-1]).clip(0, len(values) - 1)])


def coverage_of(
    pairs: Sequence[Pair], interval: Callable[[Sequence[Pair]], tuple[float, float]]
) -> tuple[float, float]:
    """Share of runs within their interval, and the median width (upper over lower end).

    The interval of each family is made from the other families' runs.

    Args:
        pairs: held-out runs of one kind.
        interval: factors on an estimate from some runs.
    """
    inside, widths = np.zeros(len(pairs)), np.zeros(len(pairs))
    families = {pair.row.family for pair in pairs}
    for family in sorted(families):
        low, high = interval([pair for pair in pairs if pair.row.family != family])
        for i, pair in enumerate(pairs):
            if pair.row.family == family:
                ratio = pair.measured / pair.estimated
                inside[i], widths[i] = low <= ratio <= high, high / low
    weights = weights_of([pair.row for pair in pairs])
    return float(np.average(inside, weights=weights)), quantile(widths, weights, 0.5)


def fit_score(checked: Iterable[CheckedMemory]) -> FitScore:
    """Answers to `fits` by what happened."""
    ran: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for run in checked:
        (ran if run.row.ran else failed)[run.estimate.fits or "unknown"] += 1
    return FitScore(ran=dict(ran), failed=dict(failed))
