"""The question `sweep` on settings without servers, and at several batch sizes: simulated points.

JOB, setting, batch sizes x numbers of devices x rates of the network
    -> an answer of the simulator for each -> SweepResult
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from driple.analytic.whatif import GridOptions
from driple.api.arguments import settings_of
from driple.api.memory import JobMemory, memory_beside
from driple.api.sweeping import Column, SweepResult
from driple.checks import check_whole
from driple.cluster.resized import resized, with_rate
from driple.cluster.setting import Setting
from driple.errors import ConfigError, SettingError
from driple.estimate import LEVEL
from driple.jobs.load import Job, JobOptions, JobSource, load_job
from driple.remarks import Remark, remark
from driple.simulate.measured_link import with_link_bandwidth

if TYPE_CHECKING:
    from driple.answers.method_answer import MethodAnswer
    from driple.api.json_types.sweep import DevicesFactsJson
    from driple.catalog import Link
    from driple.memory.memory_estimate import Bytes, MemoryEstimate

__all__ = ["DevicesAsked", "sweep_devices"]

_MOST_POINTS = 1000
_MOST_SIZES = 40
_MOST_DEVICES = 16_384


@dataclass(frozen=True, kw_only=True, slots=True)
class DevicesAsked:
    """What is varied; an empty tuple leaves it as the job or the setting has it.

    Attributes:
        batch_sizes: samples of a device in a pass.
        grid: its workers are devices in all; its bandwidths are rates of the network between
            machines, or within the machine, if there is but one.
        link_bandwidth: measured, as `with_link_bandwidth` takes it; None without.

    Raises:
        ConfigError: too many batch sizes, or two statements of one link.
    """

    batch_sizes: tuple[int, ...] = ()
    grid: GridOptions = field(default_factory=GridOptions)
    link_bandwidth: str | None = None

    def __post_init__(self) -> None:
        if len(self.batch_sizes) > _MOST_SIZES:
            raise ConfigError(
                f"--batch-size takes 1 to {_MOST_SIZES} numbers, got {len(self.batch_sizes)}"
            )
        for count in self.grid.workers:
            check_whole("--workers", count, 1, _MOST_DEVICES)
        if self.link_bandwidth is not None and self.grid.bandwidths_bits_per_s:
            raise ConfigError(
                "--bandwidth varies the link that --link-bandwidth states; leave out one of them"
            )


def sweep_devices(
    source: JobSource,
    setting: str | Setting | None,
    asked: DevicesAsked,
    *,
    options: JobOptions | None = None,
    progress: Callable[[int], None] | None = None,
) -> SweepResult:
    """Step time, scaling and memory of a job on other numbers of devices, links and batches.

    Args:
        source: JOB as on the command line.
        setting: cluster; the job's own if None.
        asked: what is varied.
        options: of the job; without a batch size, if that is varied.
        progress: called after each point with how many there are.

    Raises:
        ConfigError: too many points, or a job that has no use for a batch size.
        GraphError: a job that cannot be read.
        SettingError: an unknown setting, or none of the points can be had on its machines.
        CatalogError: the catalogue lacks a fact about a device.
    """
    given = options or JobOptions()
    sizes: Sequence[int | None] = asked.batch_sizes or (None,)
    points: list[_Point] = []
    named: Setting | None = None
    left_out: tuple[Remark, ...] = ()
    for size in sizes:
        job, base = _job_on(
            source, setting, given if size is None else replace(given, batch_size=size)
        )
        places, left_out = _places(base, asked)
        named = named or base
        total = len(places) * len(sizes)
        if total > _MOST_POINTS:
            raise ConfigError(f"these are {total} points, more than {_MOST_POINTS}; ask for fewer")
        for point in _points(job, places):
            points.append(point)
            if progress is not None:
                progress(total)
    return replace(_result(points, asked, left_out), setting=named)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    """The answers at one point.

    Attributes:
        job: at its batch size.
        setting: its machines.
        answer: of the simulator.
        assumptions: what it rests on.
        memory: of the device with least room; None on processors.
        alone_s: seconds of a step of one device by itself; None with servers.
        waiting: share of the step in which a device waits for exchanges; None if it is not known.
        enough_bytes_per_s: rate of the link from which that is little; None if there is none.
    """

    job: Job
    setting: Setting
    answer: MethodAnswer
    assumptions: tuple[Remark, ...]
    memory: JobMemory | None
    alone_s: float | None = None
    waiting: float | None = None
    enough_bytes_per_s: float | None = None

    @property
    def samples(self) -> int | None:
        """Samples of all devices per step; None if the batch size is not known."""
        size = self.job.batch_size
        return (
            None if size is None else size * self.job.grad_accumulation * self.setting.num_replicas
        )

    @property
    def efficiency(self) -> float | None:
        """Samples/s of a device, over those of one by itself; None with servers."""
        if self.alone_s is None:
            return None
        share = self.setting.num_replicas / self.setting.num_workers
        return share * self.alone_s / self.answer.step_s

    @property
    def link(self) -> Link | None:
        """What joins the devices; None for one alone."""
        return None if self.setting.num_workers < 2 else self.setting.cluster.joining_link

    @property
    def link_name(self) -> str | None:
        """Its name; None for one device."""
        return None if self.link is None else self.link.name

    @property
    def link_bits_per_s(self) -> float | None:
        """Its rate; None for one device."""
        return None if self.link is None else 8 * self.link.bytes_per_s


def _job_on(
    source: JobSource, setting: str | Setting | None, options: JobOptions
) -> tuple[Job, Setting]:
    named = None if setting is None else settings_of([setting], options=options)[0]
    job = load_job(source, options, setting=named)
    job.require_decided("time", "a sweep")
    return job, named or Setting.parse(job.usual_setting)


def _places(base: Setting, asked: DevicesAsked) -> tuple[list[Setting], tuple[Remark, ...]]:
    """Settings to look at, and what cannot be had on such machines.

    Raises:
        SettingError: none can be had, or servers whose workers or links are to vary.
    """
    if asked.link_bandwidth is not None:
        base = with_link_bandwidth(base, asked.link_bandwidth)
    if not (asked.grid.workers or asked.grid.bandwidths_bits_per_s):
        return [base], ()
    per_machine = len(base.cluster.machines[0].devices)
    counts = asked.grid.workers or (base.num_workers,)
    rates = asked.grid.bandwidths_bits_per_s
    several = base.cluster.network is not None or max(counts) > per_machine
    joined = [with_rate(base, rate, between=several) for rate in rates] or [base]
    places: dict[tuple[str, float], Setting] = {}
    lost: list[tuple[int, SettingError]] = []
    for setting in joined:
        for count in counts:
            try:
                same = setting is base and count == base.num_workers
                resized_setting = setting if same else resized(setting, count)
            except SettingError as error:
                lost.append((count, error))
                continue
            link = resized_setting.cluster.joining_link
            places.setdefault(
                (resized_setting.name, 0.0 if link is None else link.bytes_per_s), resized_setting
            )
    if not places:
        number, first = lost[0]
        raise SettingError(f"--workers {number} on {base.name}: {first}")
    reasons: dict[str, dict[int, None]] = {}
    for number, why in lost:
        reasons.setdefault(str(why), {})[number] = None
    remarks = [
        remark("counts_left_out", counts=tuple(counts), reason=reason)
        for reason, counts in reasons.items()
    ]
    return [*places.values()], tuple(remarks)


def _points(job: Job, places: Sequence[Setting]) -> Iterator[_Point]:
    from driple.answers.by_simulator import ask_simulator, ask_step
    from driple.answers.network_speed import enough_bytes_per_s, waiting_share
    from driple.answers.ready_job import ReadyJob
    from driple.answers.step_parts import alone_of
    from driple.answers.tcp_networks import taken_as_rdma
    from driple.simulate.place import place_of
    from driple.simulate.run import calibration_assumptions

    ready = ReadyJob(job)
    for number, setting in enumerate(places):
        place = place_of(setting)
        # The first one has the assumptions of all; others leave traces and targets out.
        answer = ask_step(ready, place) if number else ask_simulator(ready, place)
        said = (
            *answer.assumptions,
            *calibration_assumptions(place.topology, place.calibration),
            *taken_as_rdma(place),
        )
        point = _Point(
            job=job,
            setting=setting,
            answer=answer,
            assumptions=said,
            memory=memory_beside(job, setting),
        )
        if not setting.num_servers:
            point = replace(
                point,
                alone_s=alone_of(ready, place).step_s,
                waiting=waiting_share(ready, place, answer.step_s),
                enough_bytes_per_s=enough_bytes_per_s(ready, place),
            )
        yield point


def _result(
    points: Sequence[_Point], asked: DevicesAsked, remarks: tuple[Remark, ...]
) -> SweepResult:
    first = points[0]
    times = [one.answer.step_time for one in points]
    ends = [(one.interval.low, one.interval.high) for one in times if one.interval is not None]
    has_all = len(ends) == len(times)
    estimates = {
        "iteration_time_s": Column(
            value=[one.value for one in times],
            interval=ends if has_all else None,
            level=times[0].interval.level if has_all and times[0].interval else None,
            method="simulator",
        ),
    }
    samples = [one.samples for one in points if one.samples is not None]
    if len(samples) == len(points):
        rates = [count / one.value for count, one in zip(samples, times, strict=True)]
        spans = [
            (0.0 if high is None else count / high, count / low if low > 0 else None)
            for count, (low, high) in zip(samples, ends, strict=True)
        ] if has_all else None  # fmt: skip
        estimates["samples_per_s"] = Column(
            value=rates,
            interval=spans,
            level=estimates["iteration_time_s"].level,
            method="simulator",
        )
    shares = [one.efficiency for one in points if one.efficiency is not None]
    if len(shares) == len(points):
        percent = [100 * share for share in shares]
        estimates["scaling_efficiency_pct"] = Column(value=percent, method="simulator")
    columns, facts, memory_remarks = _memory(points, asked)
    return SweepResult(
        kind="job",
        job=first.job,
        setting=first.setting,
        clusters={
            "batch_size": [one.job.batch_size for one in points],
            "workers": [one.setting.num_workers for one in points],
            "machines": [len(one.setting.cluster.machines) for one in points],
            "bandwidth_bits_per_s": [one.link_bits_per_s for one in points],
        },
        estimates=estimates | columns,
        assumptions=tuple(dict.fromkeys(said for one in points for said in one.assumptions)),
        remarks=(*remarks, *memory_remarks),
        facts={
            **facts,
            "settings": [one.setting.name for one in points],
            "links": [one.link_name for one in points],
            "waiting_pct": [_pct(one.waiting) for one in points],
            "enough_bandwidth_bits_per_s": [
                None if one.enough_bytes_per_s is None else 8 * one.enough_bytes_per_s
                for one in points
            ],
        },
    )


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _memory(
    points: Sequence[_Point], asked: DevicesAsked
) -> tuple[dict[str, Column], DevicesFactsJson, tuple[Remark, ...]]:
    """Columns of memory, whether each point fits, and remarks."""
    known = [one.memory.estimate for one in points if one.memory and one.memory.estimate]
    empty: DevicesFactsJson = {
        "fits": [None] * len(points), "margin_bytes": [None] * len(points),
        "settings": [], "links": [], "waiting_pct": [], "enough_bandwidth_bits_per_s": [],
    }  # fmt: skip
    if len(known) < len(points):
        reason = None if points[0].memory is None else points[0].memory.reason
        remarks = () if reason is None else (remark("memory_unknown", reason=reason),)
        return {}, empty, remarks
    columns = {}
    for name in ("allocated", "reserved", "device_total"):
        column = _column([getattr(one, name) for one in known])
        if column is not None:
            columns[f"{name}_bytes"] = column
    facts: DevicesFactsJson = {
        **empty,
        "fits": [one.fits for one in known],
        "margin_bytes": [one.margin_bytes for one in known],
        "capacity_bytes": known[0].capacity_bytes,
        "largest": [one.largest for one in known],
    }
    if known[0].device:  # of unlike devices, the one with least room may change with the batch size
        facts["device"] = [one.device for one in known]
        facts["device_capacity_bytes"] = [one.capacity_bytes for one in known]
        del facts["capacity_bytes"]
    if len(asked.batch_sizes) < 2 or asked.grid.workers or asked.grid.bandwidths_bits_per_s:
        return columns, facts, ()
    return columns, facts, (_largest_that_fits(known, asked.batch_sizes),)


def _column(numbers: Sequence[Bytes | None]) -> Column | None:
    known = [one for one in numbers if one is not None]
    if len(known) < len(numbers):
        return None
    ends = [
        (one.lower, one.upper) for one in known if one.lower is not None and one.upper is not None
    ]
    return Column(
        value=[one.value for one in known],
        interval=ends if len(ends) == len(known) else None,
        level=LEVEL if len(ends) == len(known) else None,
        method="simulator",
    )


def _largest_that_fits(known: Sequence[MemoryEstimate], batch_sizes: Sequence[int]) -> Remark:
    fitting = [size for one, size in zip(known, batch_sizes, strict=True) if one.fits == "yes"]
    return remark(
        "largest_batch",
        batch_size=max(fitting, default=None),
        devices=tuple(dict.fromkeys(one.device for one in known if one.device)),
    )
