"""The checked error that belongs to one simulated answer, or that none does.

    Setting, JobKind, checked runs -> StatedError (median, 90th percentile, 90 % interval)

An error is stated only of the same task, kind of network, scheme and precision; of other frameworks
where the job's own has no run on such a cluster in its precision. A job is at best a new size of a
published family, so the errors are those of runs whose family, or whose size of a known family, was
left out of the fit. Of a device without published runs of that kind, it is the error on devices
that were left out, and no smaller than of a known device. It grows with the distance of the job's
ops from those of the published jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from driple.answers.checked_runs import CheckedRun, shipped_checked_runs, size_class
from driple.answers.conformal import ErrorSpread, error_quantiles
from driple.answers.error_statement import GUESS_FACTOR, StatedError
from driple.answers.job_kind import JobKind, job_kind
from driple.answers.like_cluster import (
    SCHEME_WORDS,
    Cluster,
    named,
    runs_like,
    unlike_servers,
    where_of,
)
from driple.answers.op_mix import distance_of, network_of
from driple.catalog import Device
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology
from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = [
    "GUESS_FACTOR",
    "Cluster",
    "ErrorTable",
    "JobKind",
    "StatedError",
    "job_kind",
    "stated_error",
]

_ENOUGH_RUNS = 5  # of one device, or in one framework, for an error of its own
_ENOUGH_FAMILIES = 5  # of runs like an answer; with fewer, runs of its scheme are asked too
_ENOUGH_ON_DEVICE = 2  # families that ran on a device by itself
_TASKS = {"train": "training", "forward": "forward passes"}
_OF_FIT = {"model": "model family", "device": "device"}
_SIZE = "size"  # that was held out: evidence beside that of families, and no run more


def stated_error(
    setting: Setting,
    job: OpGraph | JobKind,
    *,
    runs: Sequence[CheckedRun] | None = None,
    calibration: Calibration | None = None,
    cost: GraphCost | None = None,
    topology: Topology | None = None,
) -> StatedError:
    """The error that belongs to a simulated answer.

    Args:
        setting: the cluster.
        job: graph of the training step, or its kind.
        runs: that were checked; as installed by default.
        calibration: holds the errors on measured CPU settings; as installed by default.
        cost: of the graph, where it is known already.
        topology: machines of the setting, where they are known already.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
        SettingError: an unknown device or link.
    """
    if setting.on_cpu:
        return _on_cpu(setting, calibration or shipped_calibration(setting))
    kind = job if isinstance(job, JobKind) else job_kind(job, cost)
    if kind.unlike:
        return StatedError(runs=kind.unlike)
    table = _shipped_table() if runs is None else ErrorTable(runs)
    found = table.error_of(kind, Cluster.of(setting, topology))
    return _with_tuning(found, setting.worker)


def _with_tuning(found: StatedError, device: Device) -> StatedError:
    """An error no smaller than that of the runs that the device was tuned to, each left out."""
    median, fact = device.find("tuned_median_pct"), device.find("tuned_p90_pct")
    if median is not None and found.median_pct is not None and float(median) > found.median_pct:
        found = replace(found, median_pct=float(median), tuned=("median_pct",))
    if fact is None or found.p90_pct is None or float(fact) <= found.p90_pct:
        return found
    share = float(fact) / 100
    low, high = found.low_factor, found.high_factor
    return replace(
        found,
        p90_pct=100 * share,
        tuned=(*found.tuned, "p90_pct"),
        low_factor=None if low is None else min(low, 1 / (1 + share)),
        high_factor=None if high is None else max(high, 1 / max(1 - share, 1 / GUESS_FACTOR)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """Runs like an answer, but for the distance of its job."""

    spread: ErrorSpread
    cells: tuple[npt.NDArray[np.bool_], ...]
    num_runs: int
    words: str
    errors: tuple[float, float]  # median and 90th percentile of the runs themselves, as shares
    least: _Part | None = None  # whose error is no larger

    def at(self, distance: float) -> StatedError:
        """The error at a distance."""
        found = self.spread.spread(distance, self.cells)
        if self.least is not None:
            found = found.at_least(self.least.spread.spread(distance, self.least.cells))
        return StatedError(
            num_runs=self.num_runs,
            runs=self.words,
            median_pct=100 * found.median,
            p90_pct=100 * found.p90,
            runs_median_pct=100 * self.errors[0],
            runs_p90_pct=100 * self.errors[1],
            low_factor=found.low,
            high_factor=found.high,
        )


class ErrorTable:
    """Checked runs, ready to be asked for the error of many answers.

    Args:
        runs: that were checked.
    """

    def __init__(self, runs: Sequence[CheckedRun]) -> None:
        self._runs = tuple(runs)
        self._networks = {mix: network_of(mix) for mix in {run.mix for run in runs}}
        self._parts: dict[tuple[JobKind, Cluster], tuple[tuple[_Part, ...], str]] = {}
        self._mixes = {
            task: np.array(sorted({run.mix for run in runs if run.task == task}))
            for task in {run.task for run in runs}
        }

    def error_of(
        self, job: JobKind, cluster: Cluster, *, distance: float | None = None
    ) -> StatedError:
        """The error of an answer about a job on a cluster.

        Args:
            job: that asks.
            cluster: it runs on.
            distance: of the job from the nearest that a fit has seen; by default from the runs'.
        """
        key = (replace(job, mix=()), cluster)
        if key not in self._parts:
            self._parts[key] = self._find(job, cluster)
        parts, reason = self._parts[key]
        distance = self._distance(job) if distance is None else distance
        found = [part.at(distance) for part in parts]
        if reason:
            also = f"; of computing alone: {found[0].sentence()}" if found else ""
            return StatedError(runs=f"{reason}{also}")
        return max(found, key=lambda error: error.p90_pct or 0.0)

    def _find(self, job: JobKind, cluster: Cluster) -> tuple[tuple[_Part, ...], str]:
        """Runs like an answer, or why there are none."""
        if cluster.kind not in SCHEME_WORDS:
            return (), f"no published run in the stated errors uses {cluster.kind}"
        some, reason = self._like_job(job)
        if reason:
            return (), reason
        if cluster.kind == "servers":
            return self._on_servers(job, cluster, some)
        part, reason = self._joined_part(job, cluster, some)
        if part is None and any(run.framework != job.framework for run in self._runs):
            others = self._joined_part(job, cluster, self._like_job(job, any_framework=True)[0])[0]
            if others is not None:
                words = f"{others.words} (of all frameworks, as {job.framework} has none such)"
                return (replace(others, words=words),), ""
        return (() if part is None else (part,)), reason

    def _joined_part(
        self, job: JobKind, cluster: Cluster, some: Sequence[CheckedRun]
    ) -> tuple[_Part | None, str]:
        """Of some runs, those on clusters like an answer's; or why there are none."""
        like, reason = runs_like(some, cluster)
        if reason:
            return None, reason
        around = [run for run in some if run.kind == cluster.kind]
        return self._part(job, cluster, like, around=around)

    def _like_job(
        self, job: JobKind, *, any_framework: bool = False
    ) -> tuple[list[CheckedRun], str]:
        """Runs of the same task, kind of network and compiler; or why there are none.

        Of the job's own framework where it has enough, unless any will do.
        """
        some = [run for run in self._runs if run.task == job.task]
        if not some:
            return [], f"no published run is of {_TASKS[job.task]}"
        names = sorted({self._networks[run.mix] for run in some})
        some = [run for run in some if self._networks[run.mix] == job.network]
        if not some:
            return [], (
                f"published runs of {_TASKS[job.task]} are of {named(names)} networks, this one is "
                f"{job.network}"
            )
        some = [run for run in some if run.compiled == job.compiled]
        if not some:
            words = "compiled" if job.compiled else "not compiled"
            return (
                [],
                f"no published run of {_TASKS[job.task]} of a {job.network} network is {words}",
            )
        own = [run for run in some if run.framework == job.framework]
        return (own if len(own) >= _ENOUGH_RUNS and not any_framework else some), ""

    def _on_servers(
        self, job: JobKind, cluster: Cluster, some: Sequence[CheckedRun]
    ) -> tuple[tuple[_Part, ...], str]:
        """Of few clusters with servers; and of the device by itself, which is part of each step."""
        alone = Cluster(kind="single", devices=cluster.devices)
        single, _ = self._part(job, alone, [run for run in some if run.kind == "single"])
        parts = () if single is None else (single,)
        servers = [run for run in some if run.kind == "servers"]
        reason = unlike_servers(cluster, servers)
        if reason:
            return parts, reason
        part, reason = self._part(job, cluster, servers)
        return (parts, reason) if part is None else ((*parts, part), "")

    def _part(
        self,
        job: JobKind,
        cluster: Cluster,
        some: Sequence[CheckedRun],
        around: Sequence[CheckedRun] = (),
    ) -> tuple[_Part | None, str]:
        """Runs in this precision on the answer's device, or on devices that were left out.

        Where they are of few families, runs of the same scheme on other clusters, and in other
        precisions, are their surroundings.
        """
        words = SCHEME_WORDS[cluster.kind]
        some = [run for run in some if run.half == job.half]
        if not some:
            return None, f"no published run of {words} is in this precision"
        known = self._knows(cluster, job, some)
        held_out = "model" if known else "device"
        pool = [run for run in some if run.held_out == held_out]
        if not pool:
            return None, (
                f"no published run of {words} was predicted without its {_OF_FIT[held_out]}"
            )
        if known:
            return _part_of(job, cluster, _without_family(some), known=True, around=around), ""
        part = _part_of(job, cluster, pool, known=False, around=around)
        like = _without_family(some)
        if any(run.held_out == "model" for run in like):
            least = _part_of(job, cluster, like, known=False, around=around)
            part = replace(part, least=least)
        return part, ""

    def _knows(self, cluster: Cluster, job: JobKind, like: Sequence[CheckedRun]) -> bool:
        """Whether a fit has seen enough of a device in one precision.

        Of several devices, whatever the network. One by itself is known by networks like the job's
        of two families or more: without them, the device that most such runs are of would speak
        for it.

        Args:
            cluster: whose first device it is.
            job: that asks.
            like: runs like the answer.
        """
        device = cluster.devices[0]
        seen = [
            run for run in self._runs
            if run.held_out == "model" and device in run.devices and run.half == job.half
        ]  # fmt: skip
        if len(seen) < _ENOUGH_RUNS:
            return False
        own = {run.family for run in like if run.held_out == "model" and device in run.devices}
        return cluster.kind != "single" or len(own) >= _ENOUGH_ON_DEVICE

    def _distance(self, job: JobKind) -> float:
        """Distance of a job from the nearest published one of its task."""
        mixes = self._mixes.get(job.task)
        if mixes is None or len(job.mix) != mixes.shape[1]:
            return 0.0
        return float(distance_of(job.mix, mixes).min())


def _part_of(
    job: JobKind,
    cluster: Cluster,
    pool: Sequence[CheckedRun],
    *,
    known: bool,
    around: Sequence[CheckedRun],
) -> _Part:
    """Errors of some runs, in cells: like the answer, of a size like its cluster's, its device.

    Args:
        job: that asks.
        cluster: it runs on.
        pool: runs like the answer, predicted without the same part.
        known: whether the device counts.
        around: what surrounds them where they are of few families; of all held-out parts.
    """
    device, size = cluster.devices[0], size_class(cluster.num_workers)
    held_out = next(run.held_out for run in pool if run.held_out != _SIZE)
    own = {id(run) for run in pool}
    few = len({run.family for run in pool if run.held_out == held_out}) < _ENOUGH_FAMILIES
    parts = {run.held_out for run in pool} | ({_SIZE} if held_out == "model" else set())
    around = [run for run in around if run.held_out in parts] if few else []
    pool = around or pool
    like = np.array([id(run) in own for run in pool])
    of_size = like & np.array([size_class(run.num_devices) == size for run in pool])
    of_device = of_size & np.array([device in run.devices for run in pool])
    cells = (*((like,) if around else ()), of_size, *((of_device,) if known else ()))
    once = np.array([run.held_out == held_out for run in pool])  # a run is there for its size too
    chosen = next((cell for cell in reversed(cells) if (cell & once).sum() >= _ENOUGH_RUNS), once)
    shown = [run for i, run in enumerate(pool) if chosen[i] and once[i]]
    names = sorted({name for run in shown for name in run.devices})
    any_place = bool(around) and chosen is once
    where = f"{SCHEME_WORDS[cluster.kind]} of {named(names)}" if any_place else ""
    words = (
        f"published runs of {job.network} networks, {_TASKS[job.task]}, "
        f"{where or where_of(cluster, names)}, without their {_OF_FIT[held_out]} in the fit"
    )
    if not known:
        words += f", as too few are of {device}"
    if around and not any_place:
        words += f" (they are few, so other runs of {SCHEME_WORDS[cluster.kind]} count as well)"
    spread = ErrorSpread(
        np.array([run.log_ratio for run in pool]),
        np.array([run.distance for run in pool]),
        _weights(pool),
        [run.family for run in pool],
    )
    errors = error_quantiles(np.array([run.log_ratio for run in shown]), _weights(shown))
    return _Part(spread=spread, cells=cells, num_runs=len(shown), words=words, errors=errors)


def _without_family(runs: Sequence[CheckedRun]) -> list[CheckedRun]:
    """Those whose family was left out, and those of known families whose size was."""
    return [run for run in runs if run.held_out in {"model", _SIZE}]


@cache
def _shipped_table() -> ErrorTable:
    """Of the installed runs, which do not change while a program runs."""
    return ErrorTable(shipped_checked_runs())


def _weights(pool: Sequence[CheckedRun]) -> npt.NDArray[np.float64]:
    """Weights of runs, so that each family weighs the same."""
    sums: dict[str, float] = defaultdict(float)
    for run in pool:
        sums[run.family] += run.weight
    return np.array([run.weight / sums[run.family] for run in pool])


def _on_cpu(setting: Setting, calibration: Calibration) -> StatedError:
    """Settings of CPUs were measured here, with the workloads of the catalogue."""
    servers = calibration.errors.get("servers")
    measured = {} if servers is None else servers.settings
    if setting.name not in measured:
        return StatedError(
            runs=f"settings of CPUs that were measured are {', '.join(sorted(measured))}"
        )
    found = measured[setting.name]
    return StatedError(
        num_runs=found.rows,
        runs=f"workloads of the catalogue, measured on {setting.name}",
        median_pct=found.median_pct,
        p90_pct=found.p90_pct,
        runs_median_pct=found.median_pct,
        runs_p90_pct=found.p90_pct,
    )
