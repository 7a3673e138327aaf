"""Campaigns: resuming, refusing, keeping the least disturbed run."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.errors import ConfigError, MeasureError
from driple.jobs import Workload
from driple.locks import locked
from driple.measure.counters.samples import Samples
from driple.measure.testbed import archive, network
from driple.measure.testbed import campaign as campaign_module
from driple.measure.testbed.archive import write_archive
from driple.measure.testbed.campaign import Campaign, DisturbanceLimits, read_run
from driple.measure.testbed.cluster import RunPlan, RunRecord
from driple.trace.provenance import MeasuringHost
from scripts.settings.archive import read_archive

SETTING = Setting.parse("CPU-P1w2")
JOBS = [Workload.parse(f"lenet/mnist/b{size}/sgd/sync") for size in (1, 2, 3)]


def record_of(workload: str, *, other_cores: float = 0.0) -> RunRecord:
    """One second of steady counters."""
    before = np.arange(200, dtype=np.int64) * 5_000_000
    names = tuple(f"w0.{kind}" for kind in ("device_util", "device_mem_util", "net_tx", "net_rx"))
    values = np.arange(200, dtype=np.int64)[:, None] * np.array([1, 2, 3, 4])
    return RunRecord(
        workload=workload,
        samples=Samples(
            names=names, before_ns=before, after_ns=before + 1, values=values, period_s=0.005
        ),
        step_times_ns={"w0": [0, 10**9]},
        units=dict.fromkeys(("device_util", "device_mem_util", "net_tx", "net_rx"), 1.0),
        num_parameters=5,
        other_cores=other_cores,
        steal_cores=0.0,
    )


class FakeCluster:
    """Stands in for the processes; the campaign's own logic is what is tested here."""

    runs: list[str] = []  # noqa: RUF012  # shared on purpose: the test reads it
    noise: list[float] = []  # noqa: RUF012
    broken: set[str] = set()  # noqa: RUF012

    def __init__(self, *_: Any) -> None:
        self.versions = {"tensorflow": "0"}

    def __enter__(self) -> "FakeCluster":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, workload: Workload, graph_path: Path) -> RunRecord:
        """Record the call."""
        self.runs.append(workload.name)
        if workload.name in self.broken:
            raise MeasureError("role w0 died")
        graph_path.write_bytes(b"graph")
        return record_of(workload.name, other_cores=self.noise.pop(0) if self.noise else 0.0)


@pytest.fixture(autouse=True)
def fake_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes, no waiting."""
    FakeCluster.runs, FakeCluster.noise, FakeCluster.broken = [], [], set()
    monkeypatch.setattr(campaign_module, "LocalCluster", FakeCluster)
    monkeypatch.setattr(campaign_module, "wait_until_quiet", lambda *_: 0.0)
    monkeypatch.setattr(
        campaign_module, "host_facts", lambda: MeasuringHost(memory_write_bytes_per_s=10**9)
    )


def measure(
    folder: Path,
    jobs: list[Workload],
    repeats: int = 1,
    limits: DisturbanceLimits | None = None,
    repeat_every: int = 1,
) -> Any:
    """Run a campaign."""
    campaign = Campaign(folder, SETTING, RunPlan(), limits)
    return campaign.measure(
        jobs, repeats=repeats, repeat_every=repeat_every, progress=lambda *_: None
    )


def test_finished_runs_are_not_measured_again(tmp_path: Path) -> None:
    """The same command after a kill goes on where it was."""
    measure(tmp_path, JOBS[:1])
    (tmp_path / ".part-left-over").mkdir()
    measure(tmp_path, JOBS)
    assert FakeCluster.runs == [job.name for job in JOBS]
    assert not list(tmp_path.glob(".part-*"))


def test_repeats_are_interleaved(tmp_path: Path) -> None:
    """Every workload once before any twice."""
    measure(tmp_path, JOBS[:2], repeats=2)
    assert FakeCluster.runs == [JOBS[0].name, JOBS[1].name] * 2


def test_one_in_so_many_is_repeated(tmp_path: Path) -> None:
    """All once, then the first and the third of three again, and again."""
    measure(tmp_path, JOBS, repeats=3, repeat_every=2)
    names = [job.name for job in JOBS]
    assert FakeCluster.runs == names + 2 * [names[0], names[2]]


def test_disturbed_runs_are_done_again_and_the_best_is_kept(tmp_path: Path) -> None:
    """Four tries; the least disturbed one stays, marked as disturbed."""
    FakeCluster.noise = [0.9, 0.5, 0.7, 0.6]
    measure(tmp_path, JOBS[:1], limits=DisturbanceLimits(tries=4, other_cores=0.2))
    _record, about = read_run(tmp_path / f"{JOBS[0].file_name}.r0")
    assert (about.other_cores, about.disturbed) == (0.5, True)
    FakeCluster.noise = [0.9, 0.1]
    measure(tmp_path, JOBS[1:2], limits=DisturbanceLimits(tries=4, other_cores=0.2))
    _record, about = read_run(tmp_path / f"{JOBS[1].file_name}.r0")
    assert (about.other_cores, about.disturbed, about.attempts) == (0.1, False, 2)


def test_a_failing_workload_does_not_stop_the_others_but_three_in_a_row_do(tmp_path: Path) -> None:
    """One bad model is reported; a broken machine ends the campaign."""
    FakeCluster.broken = {JOBS[1].name}
    failed = measure(tmp_path, JOBS)
    assert len(failed) == 1
    assert "role w0 died" in failed[0]
    FakeCluster.broken = {job.name for job in JOBS}
    with pytest.raises(MeasureError, match="three workloads in a row"):
        measure(tmp_path / "other", JOBS)


def test_a_full_disk_ends_the_campaign_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure of the workload: nothing more is measured that could not be kept."""
    measure(tmp_path, JOBS[:1])
    flush = os.fsync

    def full(descriptor: int) -> None:
        if "samples.npz" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"cannot write .*samples.npz: No space left on device"):
        measure(tmp_path, JOBS)
    assert FakeCluster.runs == [JOBS[0].name, JOBS[1].name]
    assert [path.name for path in tmp_path.glob("*.r*")] == [f"{JOBS[0].file_name}.r0"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A file where the folder should be; an archive into a folder that is not there."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot make folder .*give another --out"):
        Campaign(tmp_path / "file", SETTING, RunPlan())
    measure(tmp_path / "runs", JOBS[:1])
    with pytest.raises(MeasureError, match=r"cannot write .*samples-0.parquet: "):
        write_archive(tmp_path / "runs", tmp_path / "none")


def test_another_plan_is_refused(tmp_path: Path) -> None:
    """Runs of two plans never mix in one folder."""
    Campaign(tmp_path, SETTING, RunPlan())
    with pytest.raises(MeasureError, match="another setting or plan"):
        Campaign(tmp_path, SETTING, RunPlan(share=0.3))


def test_archive_holds_every_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of the archive comes what the runs hold."""
    measure(tmp_path / "runs", JOBS[:2])
    (tmp_path / "samples-7.parquet").write_bytes(b"of an archive that was longer")
    monkeypatch.setattr(archive, "_RUNS_PER_FILE", 1)
    assert write_archive(tmp_path / "runs", tmp_path) == 2
    assert sorted(file.name for file in tmp_path.glob("*.parquet")) == [
        "samples-0.parquet",
        "samples-1.parquet",
    ]
    records = read_archive(tmp_path)
    assert set(records) == {f"{job.file_name}.r0" for job in JOBS[:2]}
    expected = record_of(JOBS[0].name)
    record = records[f"{JOBS[0].file_name}.r0"]
    assert (record.samples.values == expected.samples.values).all()
    assert (record.samples.before_ns == expected.samples.before_ns).all()
    assert record.step_times_ns == expected.step_times_ns


def test_a_folder_without_a_whole_run_is_refused(tmp_path: Path) -> None:
    """Missing or foreign files are one-line errors."""
    with pytest.raises(MeasureError, match="no whole run"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"workload": "x"}))
    with pytest.raises(MeasureError, match="no whole run"):
        read_run(tmp_path)


def test_a_second_run_deletes_nothing_of_the_first(tmp_path: Path) -> None:
    """The folder is locked before what a killed run left is removed; a kill gives it back."""
    part = tmp_path / ".part-lenet-0"
    part.mkdir()
    (part / "graph.pb").write_bytes(b"being written")
    lock = tmp_path / campaign_module.LOCK_FILE
    with (
        locked(lock, error=MeasureError, held=""),
        pytest.raises(MeasureError, match=r"another driple measure is at work in .*--out"),
    ):
        Campaign(tmp_path, SETTING, RunPlan())
    campaign = Campaign(tmp_path, SETTING, RunPlan())
    with (
        locked(lock, error=MeasureError, held=""),
        pytest.raises(MeasureError, match="another driple measure is at work"),
    ):
        campaign.measure(JOBS, repeats=1, progress=lambda *_: None)
    assert (part / "graph.pb").read_bytes() == b"being written"
    campaign.measure(JOBS, repeats=1, progress=lambda *_: None)
    assert not part.exists()


def test_a_machine_is_held_by_a_plain_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in the folder for temporary files leads root nowhere."""
    monkeypatch.setattr(network.tempfile, "gettempdir", lambda: str(tmp_path))
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "driple-measure.lock").symlink_to(target)
    with pytest.raises(MeasureError, match="no link"):
        network._lock_machine()
    assert target.read_text() == "kept"
    (tmp_path / "driple-measure.lock").unlink()
    held = network._lock_machine()
    with pytest.raises(MeasureError, match="another measuring run is on this machine"):
        network._lock_machine()
    os.close(held)
    os.close(network._lock_machine())
