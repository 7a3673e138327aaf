"""A campaign: many workloads measured on one setting, one folder per run, resumable.

    campaign.json                   setting, plan, host, versions, date
    <workload>.r<repeat>/           appears in one step (a rename) when the run is whole
        run.json                    step times, units, what disturbed it
        samples.npz                 every row of every counter
        graph.pb.gz                 the graph that was measured

Repeats are interleaved: every workload is measured once before any is measured twice, so that a
drift of the machine's speed spreads over all. A run that something disturbed is done again.
"""

from __future__ import annotations

import dataclasses
import datetime
import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.errors import ConfigError, MeasureError
from driple.files import told_as, write_whole
from driple.locks import locked
from driple.measure.cluster import LocalCluster, RunPlan, RunRecord, require_measurable
from driple.measure.machine import host_facts, wait_until_quiet
from driple.measure.samples import read_samples, write_samples
from driple.settings import Setting
from driple.storedfiles import read_json
from driple.zoo.workload import Workload

__all__ = ["Campaign", "Limits", "Progress", "read_run"]

FORMAT = 1
LOCK_FILE = "campaign.lock"

# What run.json holds of a RunRecord; the samples have a file of their own.
RECORD_FACTS = (
    "workload",
    "step_times_ns",
    "units",
    "num_parameters",
    "other_cores",
    "steal_cores",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When a run counts as disturbed.

    Attributes:
        other_cores: cores that other programs may use meanwhile.
        steal_cores: cores that the hypervisor may take away meanwhile.
        gap_share: share of the time that may be missing in the samples.
        tries: runs of one workload before the least disturbed of them is kept, marked as such.
        quiet_wait_s: how long to wait for a quiet machine before each run.
    """

    other_cores: float = 0.2
    steal_cores: float = 0.05
    gap_share: float = 0.02
    tries: int = 4
    quiet_wait_s: float = 600.0

    def disturbance(self, record: RunRecord) -> float:
        """How many times over the worst limit the run is; up to 1 is undisturbed."""
        return max(
            record.other_cores / self.other_cores,
            record.steal_cores / self.steal_cores,
            record.samples.disturbed_share / self.gap_share,
        )


# Called with the workload's name, the runs done and the runs in all, and a remark.
Progress = Callable[[str, int, int, str], None]


class Campaign:
    """A folder of measured runs.

    Args:
        folder: made if it is not there; one that is there is continued.
        setting: what to measure on.
        plan: how long, with what shares.
        limits: what counts as disturbed.

    Raises:
        MeasureError: the folder holds a campaign of another setting or plan, or another process
            measures into it.
        ConfigError: it cannot be written.
    """

    def __init__(
        self, folder: Path, setting: Setting, plan: RunPlan, limits: Limits | None = None
    ) -> None:
        require_measurable(setting)
        self.folder, self.setting, self.plan = folder, setting, plan
        self.limits = limits or Limits()
        with told_as(ConfigError, f"make folder {folder}", "give another --out"):
            folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self.about = self._begin()

    def _locked(self) -> AbstractContextManager[None]:
        """Nobody else measures into the folder meanwhile."""
        return locked(
            self.folder / LOCK_FILE,
            error=MeasureError,
            held=f"another driple measure is at work in {self.folder}; wait for it to end, or give "
            "another --out",
        )

    def _begin(self) -> dict[str, Any]:
        """What campaign.json holds, which is written if it is not there."""
        folder, setting, plan = self.folder, self.setting, self.plan
        about = folder / "campaign.json"
        mine = {"setting": setting.name, "plan": dataclasses.asdict(plan)}
        if about.exists():
            try:
                found = dict(read_json(about))
            except (OSError, ValueError, TypeError) as error:
                raise MeasureError(
                    f"{about} cannot be read ({error}); restore it, or give another --out"
                ) from error
            theirs = {key: found.get(key) for key in mine}
            if theirs != mine:
                raise MeasureError(
                    f"{folder} holds a campaign of another setting or plan ({theirs}); "
                    "give another folder"
                )
            return found
        made = {"format": FORMAT, **mine, "host": host_facts(), "created": _now()}
        _write_json(about, made)
        return made

    def path(self, workload: Workload, repeat: int) -> Path:
        """Where a run lies when it is done."""
        return self.folder / f"{workload.file_name}.r{repeat}"

    def measure(
        self,
        workloads: Sequence[Workload],
        *,
        repeats: int,
        repeat_every: int = 1,
        progress: Progress,
    ) -> list[str]:
        """Measure what is not yet there; returns the workloads that failed, each with its reason.

        Args:
            workloads: what to measure.
            repeats: times that a workload is measured; all others are measured once before.
            repeat_every: that every so-manieth workload is repeated; the others are measured once.
            progress: called before and after each run.

        Raises:
            MeasureError: the cluster cannot be started, or three workloads in a row failed.
            ConfigError: a run cannot be written; what is finished stays.
        """
        repeated = workloads[::repeat_every]
        wanted = [(w, r) for r in range(repeats) for w in (repeated if r else workloads)]
        todo = [(w, r) for w, r in wanted if not self.path(w, r).exists()]
        if not todo:
            return []
        failed: list[str] = []
        in_a_row, done = 0, len(wanted) - len(todo)
        with self._locked(), LocalCluster(self.setting, self.plan) as cluster:
            for left in self.folder.glob(".part-*"):  # of a run that was killed
                shutil.rmtree(left)
            self.about["versions"] = cluster.versions
            _write_json(self.folder / "campaign.json", self.about)
            for workload, repeat in todo:
                progress(workload.name, done, len(wanted), "")
                try:
                    remark = self._measure_one(cluster, workload, repeat)
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

    def _measure_one(self, cluster: LocalCluster, workload: Workload, repeat: int) -> str:
        """Run until a run is undisturbed, keep the least disturbed; a remark for the log."""
        best: tuple[float, Path] | None = None
        for attempt in range(self.limits.tries):
            wait_until_quiet(self.limits.other_cores, self.limits.quiet_wait_s)
            part = self.folder / f".part-{workload.file_name}-{attempt}"
            part.mkdir()
            record = cluster.run(workload, part / "graph.pb")
            score = self.limits.disturbance(record)
            _save(record, part, repeat=repeat, attempts=attempt + 1, disturbed=score > 1)
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


def _save(record: RunRecord, folder: Path, **extra: Any) -> None:
    graph = folder / "graph.pb"
    packed = gzip.compress(graph.read_bytes(), mtime=0)
    write_whole(folder / "graph.pb.gz", packed, error=ConfigError)
    graph.unlink()
    write_samples(record.samples, folder / "samples.npz")
    about = {
        **{name: getattr(record, name) for name in RECORD_FACTS},
        "gap_share": record.samples.disturbed_share,
        "measured": _now(),
        **extra,
    }
    _write_json(folder / "run.json", about)


def read_run(folder: Path) -> tuple[RunRecord, dict[str, Any]]:
    """A saved run and its run.json.

    Raises:
        MeasureError: the folder is not one of a whole run.
        TraceError: the samples cannot be read.
    """
    try:
        about = read_json(folder / "run.json")
        facts = {name: about[name] for name in RECORD_FACTS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MeasureError(f"{folder} holds no whole run ({error}); measure it again") from error
    return RunRecord(samples=read_samples(folder / "samples.npz"), **facts), about


def _write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1).encode(), error=ConfigError)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
