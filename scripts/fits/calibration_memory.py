"""Fit the constants of device memory: driple/memory/calibration-memory.json.

    datasets/runs/published: memory_rows.csv.gz, memory_steps.xz -> calibration-memory.json

    python -m scripts.fits.calibration_memory [--out FILE]

Constants are chosen on families of even folds (datasets/runs/published/folds.csv): those that make
the mean of |ln(estimated / measured)| smallest; sources weigh the same, and families within a
source. Errors are those of constants that a run's family had no part in: runs of odd folds by the
constants that ship, runs of even folds by constants of the odd ones. There is no random number.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from driple.errors import ConfigError, DripleError
from driple.estimate import LEVEL
from driple.files import atomic_write
from driple.memory.calibration import ErrorRange, MemoryCalibration
from scripts.fits.memory_check import (
    NUMBERS,
    CheckedMemory,
    Pair,
    checked_rows,
    coverage_of,
    fit_score,
    pairs_of,
    quantile,
    weights_of,
)
from scripts.fits.memory_rows import MEMORY_FILE, MemoryRun, read_memory_runs
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "datasets" / "runs" / "published"
OUT = ROOT / "driple" / "memory" / "calibration-memory.json"
_MIB, _GIB = 2.0**20, 2.0**30
OLD = "torch1"  # generation of PyTorch whose allocator's cache has a share of its own
JUDGED = ("timm", "fms-acceleration", "litgpt")  # sources with runs that ran out of memory
_LEVELS, _SHORT = (0.9, 0.92, 0.94, 0.96, 0.98, 1.0), 0.01
_LEAST_RUNS, _LEAST_FAMILIES = 30, 3  # of a kind of scheme that has errors of its own
_MOST_LOG = 0.5  # errors beyond it are of other models than those that were built
MOST_WRONG = 0.02  # share of answers `yes` that may be wrong
# cuBLAS: PyTorch gives it 8 MiB + 128 KiB for each handle and stream, 32 MiB from Hopper on
# (aten/src/ATen/cuda/CublasHandlePool.cpp); forward and backward pass have a handle each.
_WORKSPACE = {"": 2 * (8 * _MIB + 128 * 1024), "Hopper": 2 * 32 * _MIB, "Blackwell": 2 * 32 * _MIB}
_CONTEXTS = tuple(_GIB * one for one in np.arange(0.6, 2.01, 0.1))
_GROUPS = tuple(_GIB * one for one in np.arange(0.0, 1.51, 0.25))
_CACHES = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--published", type=Path, default=PUBLISHED)
    given = parser.parse_args(argv)
    try:
        rows = read_memory_runs(given.published / MEMORY_FILE)
        calibration = fitted(rows, MemoryStore.open(given.published / MEMORY_STEPS_FILE))
        text = json.dumps(calibration.to_dict(), indent=1, sort_keys=True) + "\n"
        atomic_write(given.out, text.encode(), error=ConfigError)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def start() -> MemoryCalibration:
    """Constants before a fit."""
    return MemoryCalibration(
        workspace_bytes=_WORKSPACE,
        context_bytes={"": 0.0},
        group_bytes=0.0,
        cache_share={"": 0.0},
        usable_share=1.0,
        yes_below=1.0,
        no_above=1.0,
        errors={},
    )


def fitted(rows: Sequence[MemoryRun], store: MemoryStore) -> MemoryCalibration:
    """The calibration of these rows: constants of one half, errors of both, each by the other's."""
    halves = [[row for row in rows if row.is_held_out == held] for held in (False, True)]
    calibrations = [constants(half, store) for half in halves]
    known = calibrations[0]
    others = [
        pair_list
        for half, other in zip(halves, reversed(calibrations), strict=True)
        for pair_list in [checked_rows(half, store, other)]
    ]
    known = with_thresholds(halves[0], store, known)
    families = sorted({row.family for row in halves[0]})
    return replace(
        known,
        errors=errors_of([one for part in others for one in part]),
        fitted_on=f"{len(halves[0])} runs of {len(families)} model families (even folds); errors "
        f"of {len(rows)} runs, by constants that their families had no part in",
    )


def constants(rows: Sequence[MemoryRun], store: MemoryStore) -> MemoryCalibration:
    """The constants that suit some runs."""
    known = replace(start(), usable_share=usable_share(rows))
    return with_constants(rows, store, known)


def usable_share(rows: Sequence[MemoryRun]) -> float:
    """Share of a device's memory that runs reached at most: the median of the fullest tenth."""
    shares = sorted(
        row.device_bytes / row.capacity_bytes
        for row in rows
        if row.device_bytes and row.capacity_bytes
    )
    return round(float(np.median(shares[-len(shares) // 10 :])), 4)


def with_constants(
    rows: Sequence[MemoryRun], store: MemoryStore, known: MemoryCalibration
) -> MemoryCalibration:
    """Context, buffers of NCCL and the cache, by the smallest error of `device_total`."""
    measured = [row for row in rows if row.device_bytes is not None]
    unlimited = [replace(row, capacity_bytes=1e6 * _GIB) for row in measured]
    checked = checked_rows(unlimited, store, known)
    pairs = pairs_of(checked, "device_total")
    by_id = {row.id: row for row in measured}
    base = np.array([pair.estimated for pair in pairs])
    truth = np.array([pair.measured for pair in pairs])
    full = np.array([by_id[pair.row.id].capacity_bytes for pair in pairs])
    several = np.array([pair.row.num_devices > 1 for pair in pairs], dtype=np.float64)
    moving = np.array([_moving(one) for one in checked])
    weights = weights_of([pair.row for pair in pairs])
    old = np.array([by_id[pair.row.id].library == OLD for pair in pairs])
    best, chosen = np.inf, (0.0, 0.0, 0.0, 0.0)
    for context, group, cache, older in product(_CONTEXTS, _GROUPS, _CACHES, _CACHES):
        total = base + context + group * several + np.where(old, older, cache) * moving
        total = np.minimum(total, full * known.usable_share)
        logs = np.minimum(np.abs(np.log(total / truth)), _MOST_LOG)
        error = float(np.average(logs, weights=weights))
        if error < best:
            best, chosen = error, (context, group, cache, older)
    context, group, cache, older = chosen
    print(f"context {context / _GIB:.2f} GiB, NCCL {group / _GIB:.2f} GiB, cache {cache:.3f}, of "
          f"PyTorch 1 {older:.3f}; mean |ln| {best:.3f}")  # fmt: skip
    shares = {"": float(cache), OLD: float(older)}
    return replace(known, context_bytes={"": context}, group_bytes=group, cache_share=shares)


def _moving(checked: CheckedMemory) -> float:
    """Bytes that a step adds to parameters, gradients and states."""
    estimate = checked.estimate
    kept = estimate.parts["parameters"] + estimate.parts["gradients"] + estimate.parts["optimizer"]
    return 0.0 if estimate.allocated is None else max(estimate.allocated.value - kept, 0.0)


def with_thresholds(
    rows: Sequence[MemoryRun], store: MemoryStore, known: MemoryCalibration
) -> MemoryCalibration:
    """Shares of the usable memory up to which a job fits, and from which on it does not.

    The first is the largest at which few answers `yes` are wrong; the second that from which on
    runs that ran are as rare.
    """
    judged = checked_rows([row for row in rows if row.source in JUDGED], store, known)
    shares = np.arange(0.6, 1.1, 0.005)
    scored = [(share, fit_score(_at(judged, known, float(share)))) for share in shares]
    allowed = [one for one in scored if one[1].wrong_fits <= MOST_WRONG]
    below = max(allowed or scored[:1], key=lambda one: one[1].right)[0]
    above = next(
        (share for share, _ in scored if share > below and _late(judged, float(share))), 1.1
    )
    print(f"fits below {below:.3f}, not from {above:.3f} of the usable memory")
    return replace(known, yes_below=round(float(below), 4), no_above=round(float(above), 4))


def _need(checked: CheckedMemory) -> float:
    """Tensors and what is outside the allocator, as a share of the usable memory."""
    usable, margin = checked.estimate.usable_bytes, checked.estimate.margin_bytes
    return 1.0 - (margin or 0.0) / (usable or 1.0)


def _at(
    judged: Sequence[CheckedMemory], known: MemoryCalibration, share: float
) -> list[CheckedMemory]:
    """The runs with the answers that a threshold gives."""
    return [
        replace(one, estimate=replace(one.estimate, fits="yes" if _need(one) <= share else "no"))
        for one in judged
    ]


def _late(judged: Sequence[CheckedMemory], share: float) -> bool:
    """Whether hardly any run that ran needs this share or more."""
    ran = [one for one in judged if one.row.ran]
    return sum(_need(one) >= share for one in ran) <= MOST_WRONG * len(ran)


def errors_of(checked: Sequence[CheckedMemory]) -> Mapping[str, Mapping[str, ErrorRange]]:
    """Errors by number, then by kind of scheme and of samples, where there are enough runs."""
    ranges: dict[str, dict[str, ErrorRange]] = {}
    for number in NUMBERS:
        pairs = pairs_of(checked, number)
        groups: dict[str, list[Pair]] = {"": pairs}
        for pair in pairs:
            groups.setdefault(pair.kind, []).append(pair)
            groups.setdefault(pair.kind.partition(" ")[2], []).append(pair)
        ranges[number] = {
            kind: error_range(some)
            for kind, some in sorted(groups.items())
            if len(some) >= _LEAST_RUNS and len({p.row.family for p in some}) >= _LEAST_FAMILIES
        }
    return {number: kinds for number, kinds in ranges.items() if kinds}


def error_range(pairs: Sequence[Pair]) -> ErrorRange:
    """Errors of some runs."""
    low, high = interval_of(pairs, level_of(pairs))
    errors = np.abs([pair.error for pair in pairs])
    weights = weights_of([pair.row for pair in pairs])
    return ErrorRange(
        low=round(low, 4),
        high=round(high, 4),
        median_pct=round(100 * quantile(errors, weights, 0.5), 2),
        p90_pct=round(100 * quantile(errors, weights, 0.9), 2),
        runs=len(pairs),
    )


def interval_of(pairs: Sequence[Pair], level: float = LEVEL) -> tuple[float, float]:
    """Factors on an estimate to the ends of its interval: quantiles of measured / estimated."""
    ratios = np.array([pair.measured / pair.estimated for pair in pairs])
    weights = weights_of([pair.row for pair in pairs])
    low = quantile(ratios, weights, (1 - level) / 2)
    high = quantile(ratios, weights, (1 + level) / 2)
    return min(low, 1.0), max(high, 1.0)


def level_of(pairs: Sequence[Pair]) -> float:
    """The level of quantiles whose intervals hold 90 % of runs of families that they have not seen.

    Few families are no sample of all: quantiles of their runs alone would be too narrow.
    """
    for level in _LEVELS:
        if coverage_of(pairs, partial(interval_of, level=level))[0] >= LEVEL - _SHORT:
            return level
    return _LEVELS[-1]


if __name__ == "__main__":
    sys.exit(main())
