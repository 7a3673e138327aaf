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

from collections.abc import Sequence
from functools import cache, lru_cache

from driple.answers.checked_runs import CheckedRun, shipped_run_columns
from driple.answers.error_scale import shipped_scale
from driple.answers.error_statement import StatedError
from driple.answers.error_table import ErrorTable
from driple.answers.job_kind import JobKind, job_kind
from driple.answers.like_cluster import ClusterKind
from driple.answers.processor_steps import processor_error
from driple.answers.tuned_steps import with_tuning
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology
from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.remarks import remark
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = [
    "ClusterKind",
    "ErrorTable",
    "JobKind",
    "StatedError",
    "job_kind",
    "stated_error",
]


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
    error = (
        _shipped_error(kind, cluster) if runs is None else ErrorTable(runs).error_of(kind, cluster)
    )
    return with_tuning(error, kind, setting.worker, is_alone=cluster.kind == "single")


@cache
def _shipped_table() -> ErrorTable:
    """Of the installed runs, which do not change while a program runs."""
    return ErrorTable(shipped_run_columns(), shipped_scale())


@lru_cache(maxsize=1024)
def _shipped_error(job: JobKind, cluster: ClusterKind) -> StatedError:
    """Asked for by each method of a question, and looked up once."""
    return _shipped_table().error_of(job, cluster)


def _on_cpu(setting: Setting, calibration: Calibration) -> StatedError:
    """Settings of CPUs were measured here, with the workloads of the catalogue."""
    servers = calibration.errors.get("servers")
    measured = {} if servers is None else servers.settings
    if setting.name not in measured:
        return StatedError(runs=remark("measured_cpu_settings", settings=tuple(sorted(measured))))
    facts = measured[setting.name]
    return StatedError(
        num_runs=facts.rows,
        runs=remark("measured_workloads", setting=setting.name),
        median_pct=facts.median_pct,
        p90_pct=facts.p90_pct,
        runs_median_pct=facts.median_pct,
        runs_p90_pct=facts.p90_pct,
    )
