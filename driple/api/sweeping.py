"""The question `sweep`: what more bandwidth, workers, servers or compression would bring.

JOB on servers -> closed form over a grid of clusters;  JOB on devices -> simulated points
job trace (.npz) -> simulated workers;  all -> SweepResult: a column per quantity, a row per cluster
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from driple.api.arguments import PathLike, catalog_of, machine_of, own_setting, settings_of
from driple.api.results import Cell, Result, job_facts
from driple.cluster.setting import Setting
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.jobs.job import ON_SERVERS
from driple.jobs.load import Job, JobOptions, JobSource, load_job
from driple.jobs.options import options_of
from driple.remarks import Remark

if TYPE_CHECKING:
    from driple.analytic.whatif import GridOptions, GridSweep
    from driple.api.json_types.sweep import (
        ColumnIntervalJson,
        ColumnJson,
        SweepFactsJson,
        SweepJson,
    )
    from driple.api.sweeping_traces import TraceOptions, TraceSweep
    from driple.catalog.machine_file import MachineFile
    from driple.estimate import Method, Source

__all__ = ["TRACE_SUFFIX", "Column", "SweepResult", "is_trace", "sweep"]

TRACE_SUFFIX = ".npz"


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One estimated quantity at every point: an `Estimate` whose numbers are lists.

    Attributes:
        value: shape [n], in the unit that the column's name states.
        interval: shape [n, 2], lower and upper ends, the upper one None if the error has no upper
            bound; None if the error is unknown.
        level: share of true values within the intervals.
        method: what computed it.
        source: what it rests on.
    """

    value: Sequence[float]
    interval: Sequence[tuple[float, float | None]] | None = None
    level: float | None = None
    method: Method
    source: Source = "simulated"

    def to_dict(self) -> ColumnJson:
        """As the JSON holds it."""
        ends: ColumnIntervalJson | None = None
        if self.interval is not None:
            ends = {
                "low": [low for low, _ in self.interval],
                "high": [high for _, high in self.interval],
                "level": self.level,
            }
        return {
            "value": self.value,
            "interval": ends,
            "method": self.method,
            "source": self.source,
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class SweepResult(Result):
    """The answer at every point, column by column.

    Attributes:
        kind: what was swept: a job by its graph, or a trace of one worker.
        job: the training job; None for a trace.
        setting: cluster that the rest is taken from; None for a trace.
        clusters: what each point is: numbers by name, shape [n] each; None where there is none, as
            of the bandwidth of one device.
        estimates: what is estimated at each point.
        bottlenecks: what holds each point back; None where nothing is claimed.
        bottleneck_words: meaning of these.
        assumptions: what the answers rest on.
        remarks: what a user should know.
        facts: other numbers that the answer rests on.
        grid: the sweep of a job with all its parts; None for a trace.
        trace: the sweep of a trace; None for a job.
    """

    kind: Literal["job", "trace"]
    job: Job | None = None
    setting: Setting | None = None
    clusters: Mapping[str, Sequence[float | None]]
    estimates: dict[str, Column]
    bottlenecks: list[str] | None = None
    bottleneck_words: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()
    facts: SweepFactsJson
    grid: GridSweep | None = None
    trace: TraceSweep | None = None

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple sweep --json` prints."""
        sweep_: SweepJson = {
            "question": "sweep",
            "kind": self.kind,
            "job": None if self.job is None else job_facts(self.job),
            "setting": None if self.setting is None else self.setting.name,
            "clusters": self.clusters,
            "estimates": {name: column.to_dict() for name, column in self.estimates.items()},
            "bottleneck": self.bottlenecks,
            "bottleneck_words": self.bottleneck_words,
            "assumptions": self.assumptions,
            "remarks": self.remarks,
            "facts": self.facts,
        }
        return to_dict(sweep_)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per point: its cluster, then every estimated quantity."""
        columns: dict[str, Sequence[Cell]] = {**self.clusters}
        columns |= {name: one.value for name, one in self.estimates.items()}
        if self.bottlenecks is not None:
            columns["bottleneck"] = self.bottlenecks
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_trace(source: JobSource) -> bool:
    """Whether a JOB is a job trace (.npz) of one worker."""
    return isinstance(source, str | Path) and Path(source).suffix == TRACE_SUFFIX


def sweep(
    source: JobSource,
    setting: str | Setting | None = None,
    *,
    grid: GridOptions | None = None,
    batch_sizes: Sequence[int] = (),
    link_bandwidth: str | None = None,
    trace: TraceOptions | None = None,
    options: JobOptions | None = None,
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
    progress: Callable[[int], None] | None = None,
) -> SweepResult:
    """What other clusters would bring for a job, or for a trace of one worker.

    Args:
        source: JOB as on the command line, a graph or a `Job`; or a job trace (.npz).
        setting: cluster that the rest is taken from; V100-P1w2/ho-PCIe if None. Not for a trace.
        grid: which clusters are compared, for a job; without parameter servers its workers and
            bandwidths count.
        batch_sizes: samples of a device in a step, for a job: its steps are simulated.
        link_bandwidth: measured bus bandwidth of a large all-reduce, such as `5.08GB/s`, or the
            path of a table of all_reduce_perf, on a setting without parameter servers.
        trace: which clusters are simulated, for a trace.
        options: batch size, shapes of inputs and the like, for a job.
        catalogs: own devices and links (TOML) for a setting that is a name; they take precedence.
        machine: file of `driple measure --machine`, whose values take precedence over `catalogs`.
        progress: called after each simulated point with how many there are.

    Raises:
        ConfigError: options of a job with a trace, or of a trace with a job.
        SettingError: an unknown setting, or none of the clusters can be made of it.
        GraphError: a job that cannot be read, or sends no gradients.
        DatasetError: a trace that cannot be read.
        MissingExtraError: Numba is needed for a trace and not installed.
    """
    own = machine_of(machine)
    catalog = catalog_of(catalogs, own)
    given = options_of(options).given
    if is_trace(source):
        asked = grid is not None or setting is not None or batch_sizes or link_bandwidth
        if asked or given or catalog is not None:
            raise ConfigError(
                f"{source} is a job trace, which states its job and devices; leave out options of "
                "graphs and settings"
            )
        from driple.api.sweeping_traces import TraceOptions, sweep_trace

        return sweep_trace(Path(str(source)), trace or TraceOptions(), progress)
    if trace is not None:
        raise ConfigError(
            f"these options are for job traces ({TRACE_SUFFIX}), and {source} is none; leave them "
            "out"
        )
    from driple.analytic.whatif import GridOptions

    setting = setting or own_setting(own)
    wanted = None if setting is None else settings_of([setting], catalog, options, own)[0]
    if own is not None and (wanted is None or (link_bandwidth and own.collectives)):
        reason = "--link-bandwidth states its links too" if wanted else "it names no GPU"
        raise ConfigError(
            f"--machine {own.file}: {reason}; "
            f"{'give one of them' if wanted else 'give --setting, such as 8xH100'}"
        )
    grid = grid or GridOptions()
    has_servers = wanted is None or wanted.num_servers > 0
    if link_bandwidth is None and not batch_sizes and has_servers:
        (named,) = settings_of([ON_SERVERS if wanted is None else wanted], catalog, options)
        return _with_machine(_sweep_job(source, named, grid, options), own, named)
    from driple.api.sweeping_devices import DevicesAsked, sweep_devices

    _check_axes(grid, wanted, has_servers=has_servers)
    result = sweep_devices(
        source,
        wanted,
        DevicesAsked(
            batch_sizes=tuple(batch_sizes),
            grid=grid,
            link_bandwidth=link_bandwidth,
        ),
        options=options,
        progress=progress,
    )
    return _with_machine(result, own, wanted)


def _with_machine(
    result: SweepResult, machine: MachineFile | None, setting: Setting | None
) -> SweepResult:
    """The result, with what a machine file leaves open."""
    if machine is None or setting is None:
        return result
    from driple.simulate.own_machine import machine_remarks

    return replace(result, remarks=(*result.remarks, *machine_remarks(machine, setting)))


def _check_axes(grid: GridOptions, setting: Setting | None, *, has_servers: bool) -> None:
    """Refuse what only the closed form of servers varies, and what it varies beside batches."""
    from driple.analytic.whatif import GridOptions

    of_devices = replace(grid, workers=(), bandwidths_bits_per_s=())
    if has_servers and grid != GridOptions():
        raise ConfigError(
            "several numbers of --batch-size are simulated, and --workers, --bandwidth, --ps and "
            "--compress of parameter servers are not: vary one at a time, or name a setting "
            "without servers (--setting 8xA100)"
        )
    if of_devices != GridOptions():
        where = "the job's own setting" if setting is None else setting.name
        raise ConfigError(
            "values of --set, --ps and --compress are for parameter servers, and "
            f"{where} has none; leave them out"
        )


def _sweep_job(
    source: JobSource, setting: Setting, grid: GridOptions, options: JobOptions | None
) -> SweepResult:
    from driple.analytic.advice import BOTTLENECKS
    from driple.analytic.whatif import grid_of, sweep_grid
    from driple.simulate.prepared_job import PreparedJob, closed_form_assumptions

    grid_of(setting, grid)  # refuses too many points before a large graph is read
    job = load_job(source, options, setting=setting)
    job.require_decided("time", "a sweep")
    grid_sweep = sweep_grid(PreparedJob.of_job(job), setting, grid)
    flat, parts = grid_sweep.points.arrays(), grid_sweep.parts
    estimates = {
        "iteration_time_s": parts.total_s,
        "compute_s": parts.compute_s,
        "push_s": parts.push_s,
        "aggregate_s": parts.aggregate_s,
        "pull_s": parts.pull_s,
        "straggler_s": parts.straggler_s,
    }
    advise = not job.has_unknown  # without the sizes of the graph, advice would be wrong
    if advise:
        for name, gain in grid_sweep.gains().items():
            estimates[f"saved_by_doubling_{name}"] = gain
    return SweepResult(
        kind="job",
        job=job,
        setting=setting,
        clusters={
            "bandwidth_bits_per_s": (8 * grid_sweep.rates).tolist(),
            "workers": flat["workers"].tolist(),
            "servers": flat["servers"].tolist(),
            "compression": flat["compression"].tolist(),
        },
        estimates={
            name: Column(value=values.tolist(), method="zhang")
            for name, values in estimates.items()
        },
        bottlenecks=grid_sweep.bottlenecks.tolist() if advise else None,
        bottleneck_words=dict(BOTTLENECKS),
        assumptions=closed_form_assumptions(job.graph, setting),
        remarks=(*grid_sweep.remarks, *grid_sweep.spread.remarks()),
        facts={"exchange": grid.exchange, "placement": grid.placement},
        grid=grid_sweep,
    )
