"""The checked error that belongs to one simulated answer, or that none does.

    Setting, JobKind, checked runs -> StatedError (median, 90th percentile, 90 % interval)

An error is stated of the same task, kind of network, scheme and precision; of other frameworks
where the job's own has no run on such a cluster in its precision. Where no run is of the answer's
kind, those of the nearest kind are taken, in a wider interval, and the answer says so. A job is at
best a new size of a published family, so the errors are those of runs whose family, or whose size
of a known family, was left out of the fit. Of a device without published runs of that kind, it is
the error on devices that were left out, and no smaller than of a known device. It grows with the
distance of the job's ops from those of the published jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from driple.answers.checked_runs import CheckedRun, RunColumns, shipped_run_columns, size_class
from driple.answers.conformal import ErrorSpread, Spread, error_quantiles
from driple.answers.error_statement import StatedError
from driple.answers.job_kind import JobKind, job_kind
from driple.answers.like_cluster import (
    ClusterKind,
    runs_like,
    unlike_servers,
)
from driple.answers.nearest_kind import RunKind, RunKinds
from driple.answers.op_mix import distance_of, network_of
from driple.answers.processor_steps import processor_error
from driple.answers.tuned_steps import with_tuning
from driple.catalog import DEVICES
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology
from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.remarks import Remark, remark
from driple.schemes.scheme import RUN_KINDS
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = [
    "ClusterKind",
    "ErrorTable",
    "JobKind",
    "StatedError",
    "job_kind",
    "stated_error",
]

_ENOUGH_RUNS = 5  # of one device, or in one framework, for an error of its own
_ENOUGH_FAMILIES = 5  # of runs like an answer; with fewer, runs of its scheme are asked too
_ENOUGH_ON_DEVICE = 2  # families that ran on a device by itself
_SIZE = "size"  # that was held out: evidence beside that of families, and no run more


def stated_error(
    setting: Setting,
    job: OpGraph | JobKind,
    *,
    runs: Sequence[CheckedRun] | None = None,
    calibration: Calibration | None = None,
    cost: GraphCost | None = None,
    topology: Topology | None = None,
    offloads: bool = False,
) -> StatedError:
    """The error that belongs to a simulated answer.

    Args:
        setting: the cluster.
        job: graph of the training step, or its kind.
        runs: that were checked; as installed by default.
        calibration: holds the errors on measured CPU settings; as installed by default.
        cost: of the graph, where it is known already.
        topology: machines of the setting, where they are known already.
        offloads: whether the job keeps states on hosts.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
        SettingError: an unknown device or link.
    """
    if setting.on_cpu and not setting.num_servers and job.framework != "tensorflow":
        return processor_error(setting)
    if setting.on_cpu:
        return _on_cpu(setting, calibration or shipped_calibration(setting))
    kind = job if isinstance(job, JobKind) else job_kind(job, cost)
    if kind.unlike is not None:
        return StatedError(runs=kind.unlike)
    cluster = ClusterKind.of(setting, topology, offloads=offloads)
    found = (
        _shipped_error(kind, cluster) if runs is None else ErrorTable(runs).error_of(kind, cluster)
    )
    return with_tuning(found, kind, setting.worker, is_alone=cluster.kind == "single")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """Runs like an answer, but for the distance of its job."""

    spread: ErrorSpread
    cells: tuple[npt.NDArray[np.bool_], ...]
    num_runs: int
    words: Remark
    short: Remark
    errors: tuple[float, float]  # median and 90th percentile of the runs themselves, as shares
    least: tuple[_Part, ...] = ()  # whose errors are no larger

    def at(self, distance: float) -> StatedError:
        """The error at a distance."""
        found = self._spread(distance)
        return StatedError(
            num_runs=self.num_runs,
            runs=self.words,
            short=self.short,
            median_pct=100 * found.median,
            p90_pct=100 * found.p90,
            runs_median_pct=100 * self.errors[0],
            runs_p90_pct=100 * self.errors[1],
            low_factor=found.low,
            high_factor=found.high,
        )

    def _spread(self, distance: float) -> Spread:
        found = self.spread.spread(distance, self.cells)
        for part in self.least:
            found = found.at_least(part._spread(distance))
        return found


class ErrorTable:
    """Checked runs, ready to be asked for the error of many answers.

    Args:
        runs: that were checked.
    """

    def __init__(self, runs: Sequence[CheckedRun] | RunColumns) -> None:
        self._runs = runs if isinstance(runs, RunColumns) else RunColumns.of(runs)
        self._known: dict[tuple[JobKind, ClusterKind], _Part | Remark] = {}
        # Runs are made of the columns for the tasks and networks that are asked for alone.
        self._mixes = cache(lambda task: np.array(sorted(self._runs.mixes(task))))
        self._networks = cache(self._mixes_by_network)
        self._of_network = cache(
            lambda task, network: self._runs.runs(task, self._networks(task)[network])
        )
        self._num_seen = cache(self._runs.devices_seen)
        self._kinds = cache(lambda: RunKinds(self._runs))

    def error_of(
        self, job: JobKind, cluster: ClusterKind, *, distance: float | None = None
    ) -> StatedError:
        """The error of an answer about a job on a cluster.

        Args:
            job: that asks.
            cluster: it runs on.
            distance: of the job from the nearest that a fit has seen; by default from the runs'.
        """
        cluster = self._as_measured(cluster)
        key = (replace(job, mix=()), cluster)
        if key not in self._known:
            self._known[key] = self._find(job, cluster)
        known = self._known[key]
        distance = self._distance(job) if distance is None else distance
        if isinstance(known, Remark):
            return self._of_nearest(job, cluster, distance, known)
        return known.at(distance)

    def _as_measured(self, cluster: ClusterKind) -> ClusterKind:
        """The same of a device with runs, where the cluster's has none and differs by memory."""
        name = cluster.devices[0]
        seen = {device for device, _ in self._num_seen()}
        if name in seen or name not in DEVICES:
            return cluster
        own = DEVICES[name]
        alike = (
            other for other in sorted(seen & set(DEVICES)) if own.is_as_fast_as(DEVICES[other])
        )
        other = next(alike, None)
        return cluster if other is None else cluster.on(other)

    def _of_nearest(
        self, job: JobKind, cluster: ClusterKind, distance: float, reason: Remark
    ) -> StatedError:
        """The error of the nearest kind of runs, in a wider interval."""
        kinds = self._kinds()
        for kind in kinds.by_distance(RunKind.of(job, cluster)):
            part = self._find(*kinds.stand_in(kind, job, cluster))
            if not isinstance(part, Remark):
                error = part.at(distance).of_nearest(reason, kinds.exponent(kind, cluster))
                one = cluster.one_machine
                if one is None:
                    return error
                return error.no_surer_than(self.error_of(job, one, distance=distance))
        return StatedError(runs=reason)

    def _find(self, job: JobKind, cluster: ClusterKind) -> _Part | Remark:
        """Runs like an answer, or why there are none."""
        if not self._has_runs(cluster.kind):
            return remark("no_run_of_scheme", kind=cluster.kind)
        some, reason = self._like_job(job)
        if reason is not None:
            return reason
        find = self._on_servers if cluster.kind == "servers" else self._joined_part
        part = find(job, cluster, some)
        if isinstance(part, Remark) and {job.framework} != set(self._runs.columns["framework"]):
            part = find(job, cluster, self._like_job(job, any_framework=True)[0])
            if not isinstance(part, Remark):
                words = remark("of_all_frameworks", runs=part.words, framework=job.framework)
                return replace(part, words=words)
        return part

    def _has_runs(self, kind: str) -> bool:
        """Whether runs may be of a kind of cluster: a known one, or one that some run is of."""
        return kind in RUN_KINDS or kind in self._runs.columns["kind"]

    def _joined_part(
        self, job: JobKind, cluster: ClusterKind, some: Sequence[CheckedRun]
    ) -> _Part | Remark:
        """Of some runs, those on clusters like an answer's; or why there are none."""
        like, reason = runs_like(some, cluster, compiled=job.compiled)
        if reason is not None:
            return reason
        around = [run for run in some if run.kind == cluster.kind]
        part, one = self._part(job, cluster, like, around=around), cluster.one_machine
        # Several machines are never surer than one of them, however few runs say so.
        return part if one is None else _no_surer(part, self._joined_part(job, one, some))

    def _like_job(
        self, job: JobKind, *, any_framework: bool = False
    ) -> tuple[list[CheckedRun], Remark | None]:
        """Runs of the same task, kind of network and compiler; or why there are none.

        Of the job's own framework where it has enough, unless any will do.
        """
        networks = self._networks(job.task)
        if not networks:
            return [], remark("no_run_of_task", task=job.task)
        if job.network not in networks:
            return [], remark(
                "other_networks",
                task=job.task,
                networks=tuple(sorted(networks)),
                network=job.network,
            )
        of_network = self._of_network(job.task, job.network)
        some = [run for run in of_network if run.compiled == job.compiled]
        if not some:
            return [], remark(
                "no_run_so_compiled", task=job.task, network=job.network, compiled=job.compiled
            )
        own = [run for run in some if run.framework == job.framework]
        return (own if len(own) >= _ENOUGH_RUNS and not any_framework else some), None

    def _on_servers(
        self, job: JobKind, cluster: ClusterKind, some: Sequence[CheckedRun]
    ) -> _Part | Remark:
        """Of clusters with servers; no surer than the device by itself, part of each step."""
        servers = [run for run in some if run.kind == "servers"]
        reason = unlike_servers(cluster, servers)
        if reason is not None:
            return reason
        alone = ClusterKind(kind="single", devices=cluster.devices)
        single = self._part(job, alone, [run for run in some if run.kind == "single"])
        return _no_surer(self._part(job, cluster, servers), single)

    def _part(
        self,
        job: JobKind,
        cluster: ClusterKind,
        some: Sequence[CheckedRun],
        around: Sequence[CheckedRun] = (),
    ) -> _Part | Remark:
        """Runs in this precision on the answer's device, or on devices that were left out.

        Where they are of few families, runs of the same scheme on other clusters, and in other
        precisions, are their surroundings.
        """
        some = [run for run in some if run.half == job.half]
        if not some:
            return remark("no_run_in_precision", kind=cluster.kind)
        known = self._knows(cluster, job, some)
        held_out = "model" if known else "device"
        pool = [run for run in some if run.held_out == held_out]
        if not pool:
            return remark("none_left_out", kind=cluster.kind, held_out=held_out)
        if known:
            return _part_of(job, cluster, _without_family(some), known=True, around=around)
        part = _part_of(job, cluster, pool, known=False, around=around)
        like = _without_family(some)
        if any(run.held_out == "model" for run in like):
            least = _part_of(job, cluster, like, known=False, around=around)
            part = replace(part, least=(least,))
        return part

    def _knows(self, cluster: ClusterKind, job: JobKind, like: Sequence[CheckedRun]) -> bool:
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
        if self._num_seen()[device, job.half] < _ENOUGH_RUNS:
            return False
        own = {run.family for run in like if run.held_out == "model" and device in run.devices}
        return cluster.kind != "single" or len(own) >= _ENOUGH_ON_DEVICE

    def _mixes_by_network(self, task: str) -> dict[str, set[tuple[float, ...]]]:
        """The mixes of a task's runs, by kind of network."""
        mixes: dict[str, set[tuple[float, ...]]] = defaultdict(set)
        for mix in self._runs.mixes(task):
            mixes[network_of(mix)].add(mix)
        return dict(mixes)

    def _distance(self, job: JobKind) -> float:
        """Distance of a job from the nearest published one of its task."""
        mixes = self._mixes(job.task)
        if not mixes.size or len(job.mix) != mixes.shape[1]:
            return 0.0
        return float(distance_of(job.mix, mixes).min())


def _no_surer(part: _Part | Remark, least: _Part | Remark) -> _Part | Remark:
    """The same, with errors no smaller than others where both are known."""
    if isinstance(part, Remark) or isinstance(least, Remark):
        return part
    return replace(part, least=(*part.least, least))


def _part_of(
    job: JobKind,
    cluster: ClusterKind,
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
    words = remark(
        "published_runs",
        network=job.network,
        task=job.task,
        kind=cluster.kind,
        devices=tuple(names),
        several_machines=None if any_place else cluster.several_machines,
        held_out=held_out,
        too_few_of=None if known else device,
        others_count=bool(around) and not any_place,
    )
    spread = ErrorSpread(
        np.array([run.log_ratio for run in pool]),
        np.array([run.distance for run in pool]),
        _weights(pool),
        [run.family for run in pool],
    )
    errors = error_quantiles(np.array([run.log_ratio for run in shown]), _weights(shown))
    short = remark("runs_in_short", network=job.network, left_out=None if known else device)
    return _Part(
        spread=spread,
        cells=cells,
        num_runs=len(shown),
        words=words,
        short=short,
        errors=errors,
    )


def _without_family(runs: Sequence[CheckedRun]) -> list[CheckedRun]:
    """Those whose family was left out, and those of known families whose size was."""
    return [run for run in runs if run.held_out in {"model", _SIZE}]


@cache
def _shipped_table() -> ErrorTable:
    """Of the installed runs, which do not change while a program runs."""
    return ErrorTable(shipped_run_columns())


@lru_cache(maxsize=64)
def _shipped_error(job: JobKind, cluster: ClusterKind) -> StatedError:
    """Asked for by each method of a question, and looked up once."""
    return _shipped_table().error_of(job, cluster)


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
        return StatedError(runs=remark("measured_cpu_settings", settings=tuple(sorted(measured))))
    found = measured[setting.name]
    return StatedError(
        num_runs=found.rows,
        runs=remark("measured_workloads", setting=setting.name),
        median_pct=found.median_pct,
        p90_pct=found.p90_pct,
        runs_median_pct=found.median_pct,
        runs_p90_pct=found.p90_pct,
    )
