"""A campaign: many workloads measured on one setting, one folder per run, resumable.

    campaign.json                   setting, plan, host, versions, date
    <workload>.r<repeat>/           appears atomically (by a rename) when the run is complete
        run.json                    step times, units, disturbances
        samples.npz                 every row of every counter
        graph.pb.gz                 the graph that was measured

Repeats are interleaved: every workload is measured once before any is measured twice, so that a
drift of the machine's speed spreads over all. A disturbed run is repeated.
"""

from __future__ import annotations

import datetime
import gzip
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from driple.cluster.setting import Setting
from driple.codec import Json, from_json, json_field, to_dict
from driple.errors import ConfigError, MeasureError
from driple.files import atomic_write, wrap_os_error
from driple.jobs.workload import Workload
from driple.locks import locked
from driple.measure.counters.machine import host_facts, wait_until_quiet
from driple.measure.counters.samples import Samples, read_samples, write_samples
from driple.measure.testbed.cluster import LocalCluster, RunPlan, RunRecord, require_measurable
from driple.storedfiles import read_json
from driple.trace.provenance import MeasuringHost

__all__ = [
    "Campaign",
    "CampaignRecord",
    "DisturbanceLimits",
    "Progress",
    "RunFacts",
    "read_campaign",
    "read_run",
]

FORMAT = 1
LOCK_FILE = "campaign.lock"
CAMPAIGN_FILE = "campaign.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class CampaignRecord:
    """Content of campaign.json.

    Attributes:
        format: number of the format.
        setting: full name of the setting.
        plan: length and shares of each run.
        host: the machine that measures.
        created: start of the campaign, ISO format.
        versions: versions of the software, by name; empty before the first run.
    """

    format: int = FORMAT
    setting: str
    plan: RunPlan
    host: MeasuringHost
    created: str
    versions: Mapping[str, str] | None = field(default=None, metadata=json_field(optional=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """Content of run.json; the samples have a file of their own.

    Attributes:
        workload, step_times_ns, units, num_parameters, other_cores, steal_cores: see `RunRecord`.
        gap_share: fraction of the time missing in the samples; None if it is not recorded.
        measured: end of the run, ISO format.
        repeat: number of the repeat, from 0; None if it is not recorded.
        attempts: number of tries; None if it is not recorded.
        disturbed: whether even the best try exceeded a limit.
    """

    workload: str
    step_times_ns: dict[str, list[int]]
    units: dict[str, float]
    num_parameters: int
    other_cores: float
    steal_cores: float
    gap_share: float | None = field(default=None, metadata=json_field(optional=True))
    measured: str
    repeat: int | None = field(default=None, metadata=json_field(optional=True))
    attempts: int | None = field(default=None, metadata=json_field(optional=True))
    disturbed: bool

    def record(self, samples: Samples) -> RunRecord:
        """The run, with its samples."""
        return RunRecord(
            workload=self.workload,
            samples=samples,
            step_times_ns=self.step_times_ns,
            units=self.units,
            num_parameters=self.num_parameters,
            other_cores=self.other_cores,
            steal_cores=self.steal_cores,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DisturbanceLimits:
    """Limits above which a run counts as disturbed.

    Attributes:
        other_cores: cores that other programs may use.
        steal_cores: cores that the hypervisor may take.
        gap_share: fraction of the time that may be missing in the samples.
        tries: tries per run before the least disturbed is kept and marked.
        quiet_wait_s: maximum wait for a quiet machine before each run, seconds.
    """

    other_cores: float = 0.2
    steal_cores: float = 0.05
    gap_share: float = 0.02
    tries: int = 4
    quiet_wait_s: float = 600.0

    def disturbance(self, record: RunRecord) -> float:
        """Largest ratio of a disturbance to its limit; up to 1 is undisturbed."""
        return max(
            record.other_cores / self.other_cores,
            record.steal_cores / self.steal_cores,
            record.samples.disturbed_share / self.gap_share,
        )


# Called with the workload's name, the runs done, the total number of runs, and a remark.
Progress = Callable[[str, int, int, str], None]


class Campaign:
    """A folder of measured runs.

    Args:
        folder: created if missing; an existing campaign is continued.
        setting: the setting to measure.
        plan: length and shares of each run.
        limits: limits of disturbances.

    Raises:
        MeasureError: the folder holds a campaign of another setting or plan, or another process is
            measuring into it.
        ConfigError: the folder cannot be written.
    """

    def __init__(
        self, folder: Path, setting: Setting, plan: RunPlan, limits: DisturbanceLimits | None = None
    ) -> None:
        require_measurable(setting)
        self.folder, self.setting, self.plan = folder, setting, plan
        self.limits = limits or DisturbanceLimits()
        with wrap_os_error(ConfigError, f"make folder {folder}", "give another --output"):
            folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self.about = self._begin()

    def _locked(self) -> AbstractContextManager[None]:
        """Lock the folder against other measuring processes."""
        return locked(
            self.folder / LOCK_FILE,
            error=MeasureError,
            held=f"another driple measure is at work in {self.folder}; wait for it to end, or give "
            "another --output",
        )

    def _begin(self) -> CampaignRecord:
        """Content of campaign.json, which is written if it is missing."""
        folder, setting, plan = self.folder, self.setting, self.plan
        file = folder / CAMPAIGN_FILE
        if file.exists():
            stored = _read_campaign(file, "restore it, or give another --output")
            if (stored.setting, stored.plan) != (setting.name, plan):
                raise MeasureError(
                    f"{folder} holds a campaign of another setting or plan ({stored.setting}, "
                    f"{stored.plan}); give another folder"
                )
            return stored
        record = CampaignRecord(setting=setting.name, plan=plan, host=host_facts(), created=_now())
        _write_json(file, to_dict(record))
        return record

    def path(self, workload: Workload, repeat: int) -> Path:
        """Folder of a finished run."""
        return self.folder / f"{workload.file_name}.r{repeat}"

    def measure(
        self,
        workloads: Sequence[Workload],
        *,
        repeats: int,
        repeat_every: int = 1,
        progress: Progress,
    ) -> list[str]:
        """Measure all missing runs; the failed workloads, each with its reason.

        Args:
            workloads: the workloads to measure.
            repeats: runs of each repeated workload, after one run of every workload.
            repeat_every: repeat every n-th workload; the others are measured once.
            progress: called before and after each run.

        Raises:
            MeasureError: the cluster cannot be started, or three workloads in a row failed.
            ConfigError: a run cannot be written; finished runs are kept.
        """
        repeated = workloads[::repeat_every]
        wanted = [(w, r) for r in range(repeats) for w in (repeated if r else workloads)]
        todo = [(w, r) for w, r in wanted if not self.path(w, r).exists()]
        if not todo:
            return []
        failed: list[str] = []
        in_a_row, done = 0, len(wanted) - len(todo)
        with self._locked(), LocalCluster(self.setting, self.plan) as cluster:
            for left in self.folder.glob(".part-*"):  # left by a killed run
                shutil.rmtree(left)
            self.about = replace(self.about, versions=cluster.versions)
            _write_json(self.folder / CAMPAIGN_FILE, to_dict(self.about))
            for workload, repeat in todo:
                progress(workload.name, done, len(wanted), "")
                try:
                    at = partial(progress, workload.name, done, len(wanted))
                    remark = self._measure_one(cluster, workload, repeat, at)
                    in_a_row = 0
                except MeasureError as error:
                    failed.append(f"{workload.name}: {error}")
                    remark, in_a_row = f"failed: {error}", in_a_row + 1
                    if in_a_row == 3:
                        raise MeasureError(
                            f"three workloads in a row failed, the last with: {error}"
                        ) from error
                done += 1
                progress(workload.name, done, len(wanted), remark)
        return failed

    def _measure_one(
        self,
        cluster: LocalCluster,
        workload: Workload,
        repeat: int,
        report: Callable[[str], None],
    ) -> str:
        """Repeat a run until it is undisturbed, keep the least disturbed; a remark for the log."""

        def waits(cores: float) -> None:
            report(
                f"waiting up to {self.limits.quiet_wait_s:g} s for a quiet machine: other programs "
                f"use {cores:.1f} cores (--set quiet_wait=SECONDS)"
            )

        best: tuple[float, Path] | None = None
        for attempt in range(self.limits.tries):
            wait_until_quiet(self.limits.other_cores, self.limits.quiet_wait_s, waits)
            part = self.folder / f".part-{workload.file_name}-{attempt}"
            part.mkdir()
            record = cluster.run(workload, part / "graph.pb")
            score = self.limits.disturbance(record)
            _save(record, part, (repeat, attempt + 1), disturbed=score > 1)
            if best is None or score < best[0]:
                best = (score, part)
            if score <= 1:
                break
        if best is None:
            raise MeasureError("no run was tried; set tries to 1 or more")
        best[1].rename(self.path(workload, repeat))
        for left in self.folder.glob(f".part-{workload.file_name}-*"):
            shutil.rmtree(left)
        return f"disturbed {best[0]:.1f}x" if best[0] > 1 else ""


def _save(
    record: RunRecord, folder: Path, repeat_and_attempts: tuple[int, int], *, disturbed: bool
) -> None:
    graph = folder / "graph.pb"
    packed = gzip.compress(graph.read_bytes(), mtime=0)
    atomic_write(folder / "graph.pb.gz", packed, error=ConfigError)
    graph.unlink()
    write_samples(record.samples, folder / "samples.npz")
    repeat, attempts = repeat_and_attempts
    facts = RunFacts(
        workload=record.workload,
        step_times_ns=record.step_times_ns,
        units=record.units,
        num_parameters=record.num_parameters,
        other_cores=record.other_cores,
        steal_cores=record.steal_cores,
        gap_share=record.samples.disturbed_share,
        measured=_now(),
        repeat=repeat,
        attempts=attempts,
        disturbed=disturbed,
    )
    _write_json(folder / "run.json", to_dict(facts))


def read_campaign(folder: Path) -> CampaignRecord:
    """The campaign of a folder.

    Raises:
        MeasureError: the folder holds no campaign, or it is damaged.
    """
    return _read_campaign(folder / CAMPAIGN_FILE, "give a folder that driple measure filled")


def _read_campaign(file: Path, advice: str) -> CampaignRecord:
    try:
        stored = read_json(file)
    except (OSError, ValueError) as error:
        raise MeasureError(f"{file} cannot be read ({error}); {advice}") from error
    return from_json(
        CampaignRecord, stored, where=f"{file} holds no campaign", error=MeasureError, advice=advice
    )


def read_run(folder: Path) -> tuple[RunRecord, RunFacts]:
    """A saved run and its run.json.

    Raises:
        MeasureError: the folder holds no complete run.
        TraceError: the samples cannot be read.
    """
    try:
        stored = read_json(folder / "run.json")
    except (OSError, ValueError) as error:
        raise MeasureError(f"{folder} holds no whole run ({error}); measure it again") from error
    where = f"{folder} holds no whole run, run.json"
    facts = from_json(RunFacts, stored, where=where, error=MeasureError, advice="measure it again")
    return facts.record(read_samples(folder / "samples.npz")), facts


def _write_json(path: Path, value: Json) -> None:
    atomic_write(path, json.dumps(value, indent=1).encode(), error=ConfigError)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
