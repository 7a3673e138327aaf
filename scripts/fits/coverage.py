"""Whether stated intervals hold: on runs that the intervals were not calibrated with.

CheckedRun, ... --cross_conformal--> CoveredRun, ... --coverage_of--> Coverage by group

Each family fold is left out of the runs that intervals are made of, and so is each device; what is
left out is asked as a user would ask. A run whose size was left out is asked without any error of
its family, at its distance from the sizes that its fit had seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1

import numpy as np

from driple.answers.checked_runs import CheckedRun
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.answers.op_mix import network_of
from driple.answers.stated_error import ErrorTable, StatedError
from driple.catalog import link_named
from driple.runs.measured_run import fold_of
from driple.runs.validation.metrics import weighted_quantile

__all__ = ["Coverage", "CoveredRun", "coverage_of", "cross_conformal", "weights_by_family"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CoveredRun:
    """A run and what an answer about it would have stated.

    Attributes:
        run: the run.
        stated: by runs without its family (also where its size was held out), or without its
            device.
    """

    run: CheckedRun
    stated: StatedError

    @property
    def is_inside(self) -> bool:
        """Whether the published time lies in the interval."""
        low, high = self.stated.low_factor, self.stated.high_factor
        return low is not None and high is not None and low <= exp(-self.run.log_ratio) <= high

    @property
    def is_below_p90(self) -> bool:
        """Whether the error is at most the stated 90th percentile."""
        p90 = self.stated.p90
        return p90 is not None and abs(expm1(self.run.log_ratio)) <= p90

    @property
    def width(self) -> float:
        """Upper over lower end."""
        return (self.stated.high_factor or 0.0) / (self.stated.low_factor or 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """How well intervals hold on a group of runs, each family weighted alike.

    Attributes:
        by: what the runs were grouped by: `all`, `kind` of cluster, `network`, `family` (of sizes
            that were held out), or `device`.
        group: name of the group.
        held_out: `model`, `size` or `device`.
        task: `train` or `forward`.
        runs: how many have an interval.
        coverage_pct: share of published times within their interval.
        below_p90_pct: share of errors that are at most the stated 90th percentile.
        width: median of upper over lower end.
        inside: how many of the runs are in their interval.
        row_width: median of upper over lower end, each run alike.
    """

    by: str
    group: str
    held_out: str
    task: str
    runs: int
    coverage_pct: float
    below_p90_pct: float
    width: float
    inside: int
    row_width: float


def cross_conformal(
    runs: Sequence[CheckedRun],
    folds: Mapping[str, int] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[CoveredRun]:
    """What answers about the runs state when the runs are left out of what intervals are made of.

    Args:
        runs: that were checked.
        folds: fold of each family.
        progress: called with each part that is left out.
    """
    parts: dict[tuple[str, object], list[CheckedRun]] = defaultdict(list)
    for run in runs:
        by_device = run.held_out == "device"
        left: object = run.devices if by_device else fold_of(run.family, folds)
        parts[run.held_out, left].append(run)
    covered = []
    for (held_out, out), some in parts.items():
        progress(f"without {out}")
        if held_out == "device":
            rest = [run for run in runs if not set(run.devices) & set(some[0].devices)]
        else:
            rest = [run for run in runs if fold_of(run.family, folds) != out]
        table = ErrorTable(rest)
        for run in some:
            near = run.distance if held_out == "size" else None  # its family's other sizes
            stated = table.error_of(_job(run), _cluster(run), distance=near)
            covered.append(CoveredRun(run=run, stated=stated))
    return covered


def _job(run: CheckedRun) -> JobKind:
    return JobKind(
        framework=run.framework,
        task=run.task,
        network=network_of(run.mix),
        half=run.half,
        compiled=run.compiled,
        mix=run.mix,
    )


def _cluster(run: CheckedRun) -> ClusterKind:
    return ClusterKind(
        kind=run.kind,
        devices=run.devices,
        num_workers=run.num_devices,
        num_servers=run.num_servers,
        several_machines=run.several_machines,
        link=run.link,
        link_bytes_per_s=link_named(run.link).bytes_per_s if run.link else 0.0,
    )


def coverage_of(covered: Sequence[CoveredRun]) -> list[Coverage]:
    """Coverage of all and of each group, of the runs that have a stated error."""
    groups_covered = []
    keys: tuple[tuple[str, Callable[[CheckedRun], str]], ...] = (
        ("all", lambda run: "all"),
        ("kind", lambda run: run.kind),
        ("network", lambda run: network_of(run.mix)),
        ("family", lambda run: run.family if run.held_out == "size" else ""),
        ("device", lambda run: "+".join(run.devices)),
    )
    for by, key in keys:
        groups: dict[tuple[str, str, str], list[CoveredRun]] = defaultdict(list)
        for covered_run in covered:
            if not covered_run.stated.num_runs:
                continue
            name = key(covered_run.run)
            if name:
                groups[covered_run.run.task, covered_run.run.held_out, name].append(covered_run)
        for (task, held_out, group), some in sorted(groups.items()):
            weights = weights_by_family([one.run for one in some])
            inside = np.array([one.is_inside for one in some])
            below = np.array([one.is_below_p90 for one in some])
            width = np.array([one.width for one in some])
            groups_covered.append(
                Coverage(
                    by=by,
                    group=group,
                    held_out=held_out,
                    task=task,
                    runs=len(some),
                    coverage_pct=100 * float(weights @ inside),
                    below_p90_pct=100 * float(weights @ below),
                    width=weighted_quantile(width, weights, 0.5),
                    inside=int(inside.sum()),
                    row_width=float(np.median(width)),
                )
            )
    return groups_covered


def weights_by_family(runs: Sequence[CheckedRun]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Weights that sum to 1, each family alike."""
    sums: dict[str, float] = defaultdict(float)
    for run in runs:
        sums[run.family] += run.weight
    return np.array([run.weight / sums[run.family] / len(sums) for run in runs])
