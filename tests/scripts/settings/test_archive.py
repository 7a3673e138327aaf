"""Samples of measured runs: those of the named runs stay, and damaged files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import MeasureError
from driple.jobs.workload import Workload
from driple.measure.testbed import archive
from scripts.settings.archive import read_archive, reduce_archive
from tests.measure.runs import run_folder

JOBS = [Workload.parse(f"lenet/mnist/b{size}/sgd/sync") for size in (1, 2)]


def test_a_reduced_archive_keeps_the_named_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The samples of one run of two, each in a file of its own, stay as they were."""
    for job in JOBS:
        run_folder(tmp_path / "runs", job, 0, "2026-11-21")
    monkeypatch.setattr(archive, "_RUNS_PER_FILE", 1)
    archive.write_archive(tmp_path / "runs", tmp_path)
    kept = f"{JOBS[1].file_name}.r0"
    before = read_archive(tmp_path)[kept]
    with pytest.raises(MeasureError, match=r"holds no samples of lenet.*; name one of its runs"):
        reduce_archive(tmp_path, ["lenet_mnist_b9_sgd_sync.r0"])
    assert reduce_archive(tmp_path, [kept]) == 1
    assert [file.name for file in tmp_path.glob("*.parquet")] == ["samples-0.parquet"]
    after = read_archive(tmp_path)
    assert set(after) == {kept}
    assert (after[kept].samples.values == before.samples.values).all()
    assert (after[kept].samples.before_ns == before.samples.before_ns).all()
    assert after[kept].step_times_ns == before.step_times_ns


def test_a_folder_without_an_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="holds no samples"):
        read_archive(tmp_path)
    (tmp_path / "samples-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(MeasureError, match="no archive"):
        read_archive(tmp_path)
