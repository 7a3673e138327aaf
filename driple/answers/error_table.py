"""Checked runs, asked for the error that belongs to an answer, or why none does.

    JobKind, ClusterKind, checked runs --ErrorTable.error_of--> StatedError

Which runs an answer is like decides whether it is checked and what it says of them; how large its
own error is comes from the scale of all runs (`error_scale`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from driple.answers.checked_runs import CheckedRun, RunColumns, size_class
from driple.answers.error_scale import ErrorScale, Spread, error_quantiles, traits_of
from driple.answers.error_statement import StatedError
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind, runs_like, unlike_servers
from driple.answers.nearest_kind import RunKind, RunKinds
from driple.answers.op_mix import distance_of, network_of
from driple.catalog import DEVICES
from driple.remarks import Remark, remark
from driple.schemes.scheme import RUN_KINDS

__all__ = ["ErrorTable"]

_ENOUGH_RUNS = 5  # of one device, or in one framework, for an error of its own
_ENOUGH_ON_DEVICE = 2  # families that ran on a device by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """Runs like an answer, and what decides how large its error is but for the distance."""

    task: str
    traits: tuple[str, ...]
    known: bool  # whether the fit has seen the device
    num_runs: int
    words: Remark
    short: Remark
    errors: tuple[float, float]  # median and 90th percentile of the runs themselves, as shares
    least: _Part | None = None  # whose errors are no larger

    def at(self, distance: float, scale: ErrorScale) -> StatedError:
        """The error at a distance."""
        spread = self._spread(distance, scale)
        return StatedError(
            num_runs=self.num_runs,
            runs=self.words,
            short=self.short,
            median_pct=100 * spread.median,
            p90_pct=100 * spread.p90,
            runs_median_pct=100 * self.errors[0],
            runs_p90_pct=100 * self.errors[1],
            low_factor=spread.low,
            high_factor=spread.high,
        )

    def _spread(self, distance: float, scale: ErrorScale) -> Spread:
        spread = scale.spread(self.task, self.traits, distance, known=self.known)
        return (
            spread if self.least is None else spread.at_least(self.least._spread(distance, scale))
        )


class ErrorTable:
    """Checked runs, ready to be asked for the error of many answers.

    Args:
        runs: that were checked.
        scale: of their errors; fitted to the runs by default.
    """

    def __init__(
        self, runs: Sequence[CheckedRun] | RunColumns, scale: ErrorScale | None = None
    ) -> None:
        self._runs = runs if isinstance(runs, RunColumns) else RunColumns.of(runs)
        self._scale = cache(lambda: ErrorScale.of(self._runs) if scale is None else scale)
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
        return known.at(distance, self._scale())

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
                exponent = kinds.exponent(kind, cluster)
                error = part.at(distance, self._scale()).of_nearest(reason, exponent)
                machine = cluster.one_machine
                if machine is None:
                    return error
                return error.no_surer_than(self.error_of(job, machine, distance=distance))
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
        part, machine = self._part(job, cluster, like), cluster.one_machine
        # Several machines are never surer than one of them, however few runs say so.
        return part if machine is None else _no_surer(part, self._joined_part(job, machine, some))

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
        self, job: JobKind, cluster: ClusterKind, some: Sequence[CheckedRun]
    ) -> _Part | Remark:
        """Runs in this precision on the answer's device, or on devices that were left out."""
        some = [run for run in some if run.half == job.half]
        if not some:
            return remark("no_run_in_precision", kind=cluster.kind)
        known = self._knows(cluster, job, some)
        held_out = "model" if known else "device"
        pool = [run for run in some if run.held_out == held_out]
        if not pool:
            return remark("none_left_out", kind=cluster.kind, held_out=held_out)
        return _part_of(job, cluster, pool, known=known)

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
    return replace(part, least=least)


def _part_of(
    job: JobKind, cluster: ClusterKind, pool: Sequence[CheckedRun], *, known: bool
) -> _Part:
    """What an answer says of runs like it: of clusters of its size and of its device, if enough.

    Args:
        job: that asks.
        cluster: it runs on.
        pool: runs like the answer, predicted without the same part.
        known: whether the device counts.
    """
    device, size = cluster.devices[0], size_class(cluster.num_workers)
    of_size = [run for run in pool if size_class(run.num_devices) == size]
    of_device = [run for run in of_size if known and device in run.devices]
    shown = next((some for some in (of_device, of_size) if len(some) >= _ENOUGH_RUNS), pool)
    words = remark(
        "published_runs",
        network=job.network,
        task=job.task,
        kind=cluster.kind,
        devices=tuple(sorted({name for run in shown for name in run.devices})),
        several_machines=cluster.several_machines,
        held_out=pool[0].held_out,
        too_few_of=None if known else device,
    )
    return _Part(
        task=job.task,
        traits=traits_of(
            kind=cluster.kind,
            network=job.network,
            num_devices=cluster.num_workers,
            half=job.half,
            several_machines=cluster.several_machines,
            framework=job.framework,
            compiled=job.compiled,
            devices=cluster.devices if known else (),
        ),
        known=known,
        num_runs=len(shown),
        words=words,
        short=remark("runs_in_short", network=job.network, left_out=None if known else device),
        errors=error_quantiles(np.array([run.log_ratio for run in shown]), _weights(shown)),
    )


def _weights(pool: Sequence[CheckedRun]) -> npt.NDArray[np.float64]:
    """Weights of runs, so that each family weighs the same."""
    sums: dict[str, float] = defaultdict(float)
    for run in pool:
        sums[run.family] += run.weight
    return np.array([run.weight / sums[run.family] for run in pool])
