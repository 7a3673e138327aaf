"""The measuring of steps on a GPU: what it runs, and the table that is made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driple.errors import ConfigError
from scripts.fits.measured_gpu import (
    MEASURED_FILE,
    read_profiled_runs,
    write_profiled_runs,
)
from scripts.fits.measured_kernels import KERNELS_FILE, write_kernel_times
from scripts.pages.memory_measured import FOLDERS
from scripts.runs.gpu_jobs import JOBS, configured, hugging_face
from scripts.runs.gpu_tables import main as make_tables
from scripts.runs.gpu_tables import rows_of, setting_on, with_known
from scripts.runs.measure_gpu import main


def test_every_measured_row_is_a_job() -> None:
    """So that whoever has the device can measure each row again."""
    names = ("name", "batch", "size", "precision", "task", "optimizer", "channels_last",
             "checkpointing", "compiled")  # fmt: skip
    jobs = {tuple(getattr(job, one) for one in names) for job in JOBS}
    assert len(jobs) == len(JOBS)
    rows = [row for one in FOLDERS.values() for row in read_profiled_runs(one / MEASURED_FILE)]
    facts = ("job", "batch_size", *names[2:7], "is_checkpointed", "compiled")
    assert {tuple(getattr(row, one) for one in facts) for row in rows} <= jobs


def test_a_pattern_that_names_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, status 2."""
    assert main(["-o", str(tmp_path / "rows.jsonl"), "--rows", "nothing-of-this-name"]) == 2
    assert capsys.readouterr().err.startswith("error: no job's name matches --rows")
    assert main(["-o", str(tmp_path / "rows.jsonl"), "--rows", "("]) == 2
    assert "--rows is no regular expression" in capsys.readouterr().err


def test_configurations_are_those_of_their_names() -> None:
    """The classes exist, and `configured` names them."""
    pytest.importorskip("torch")
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    declare_torchvision_ops()
    transformers = pytest.importorskip("transformers")
    names = {job.name.removeprefix("hf:") for job in JOBS if job.name.startswith("hf:")}
    assert names == set(hugging_face())
    for name in names:
        assert hasattr(transformers, configured(name).architectures[0])


def _line(kind: str, **values: object) -> str:
    row = {"kind": kind, "name": "timm:resnet18", "batch": 8, "size": 224, "precision": "fp32",
           "task": "train", "optimizer": "momentum", "channels_last": False,
           "checkpointing": False, "compiled": False} | values  # fmt: skip
    return json.dumps(row)


def test_rows_of_two_runs(tmp_path: Path) -> None:
    """A later measurement wins; only failures for want of memory are kept."""
    machine = json.dumps({"kind": "machine", "device": "A"})
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text("\n".join([
        machine, _line("row", allocated_bytes=1), _line("failed", batch=16, error="CUDA error"),
        _line("failed", batch=32, error="OutOfMemoryError('...')"),
    ]))  # fmt: skip
    second.write_text("\n".join([machine, _line("row", allocated_bytes=2)]))
    _, rows, times = rows_of([first, second])
    assert not times
    assert [(one.batch_size, one.ran, one.allocated_bytes) for one in rows] == [
        (8, True, 2), (32, False, None),
    ]  # fmt: skip
    second.write_text(json.dumps({"kind": "machine", "device": "B"}))
    with pytest.raises(ConfigError, match="give those of one device"):
        rows_of([first, second])
    second.write_text("{")
    with pytest.raises(ConfigError, match="cannot read"):
        rows_of([second])


def test_rows_of_the_folder_stay_unless_measured_again(tmp_path: Path) -> None:
    """With their kernels, which the profiler gave to ops."""
    machine = json.dumps({"kind": "machine", "device": "A"})
    file = tmp_path / "1.jsonl"
    ops = [["aten::mm", "[]", 1, 0.5], ["aten::add", "[]", 1, 0.25]]
    file.write_text("\n".join([
        machine, _line("row", allocated_bytes=1, ops=ops),
        _line("row", allocated_bytes=1, batch=16, ops=ops),
    ]))  # fmt: skip
    _, rows, times = rows_of([file])
    assert [(one.part, one.seconds) for one in times] == [("matmul", 0.5), ("rest", 0.25)] * 2
    write_profiled_runs(tmp_path / MEASURED_FILE, rows)
    write_kernel_times(tmp_path / KERNELS_FILE, times)
    again = replace(rows[1], allocated_bytes=2)
    kept, kernels = with_known(tmp_path, [again], [])
    assert kept == [rows[0], again]
    assert {one.key for one in kernels} == {rows[0].key}


def test_tables_are_of_one_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which the catalogue knows by the driver's name of it."""
    assert setting_on("NVIDIA H200").worker.name == "H200"
    (tmp_path / "machine.json").write_text(json.dumps({"device": "NVIDIA H200"}))
    file = tmp_path / "1.jsonl"
    file.write_text(json.dumps({"kind": "machine", "device": "NVIDIA H100 80GB HBM3"}))
    assert make_tables([str(file), "--out", str(tmp_path)]) == 2
    assert "holds runs on NVIDIA H200, the files some on NVIDIA H100" in capsys.readouterr().err
