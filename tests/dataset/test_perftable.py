"""A table of DriplePerf and the graphs of its jobs become a data set."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.dataset.perftable import COLUMNS, read_perf_table
from driple.errors import DatasetError

SETTING = Setting.parse("2080Ti-P1w2/ho-PCIe")
GRAPH = 'node { name: "a" op: "Placeholder" device: "/job:worker/device:GPU:0" }\n'
RESOURCES = ("GPU util", "GPU MEM util", "Network_tx", "Network_rx")


def rows(job: str, gpu: str = "2080Ti") -> list[dict[str, object]]:
    return [
        {
            "GPU": gpu,
            "Model": "ResNet50",
            "Data Set": "ImageNet",
            "Sync/Async": "sync",
            "Hyper-Parameter": "batch 64, sgd",
            "Job Name": job,
            "Resource": resource,
            "avg Idle time": 0.5 + i,
            "avg Active time": 1.5 + i,
            "avg Peak consumption": 10.0 + i,
        }
        for i, resource in enumerate(RESOURCES)
    ]


def table(folder: Path, lines: list[dict[str, object]]) -> Path:
    file = folder / "result.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(lines)
    return file


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    folder = tmp_path / "graphs"
    folder.mkdir()
    for job in ("job1", "net_job2"):
        (folder / f"{job}.pbtxt").write_text(GRAPH)
    return folder


def test_each_job_becomes_a_workload(tmp_path: Path, graphs: Path) -> None:
    lines = rows("job1") + rows("net/job2", "GeForce RTX 2080 Ti") + rows("other", "V100")
    seen = []
    data = read_perf_table(
        table(tmp_path, lines), SETTING, graphs, progress=lambda *now: seen.append(now)
    )
    assert data.workloads == ("job1", "net/job2")
    assert seen == [(1, 2), (2, 2)]
    first = data.examples[0]
    assert first.family == "resnet"
    assert first.details["sync"] is True
    assert first.targets.to_dict()["net_rx"] == {
        "burst_amount": 13.0,
        "burst_duration": 4.5,
        "idle_duration": 3.5,
    }
    assert first.iteration_time_s == 8.0
    assert not data.is_grouped


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (rows("job1")[:3], "no row of net_rx"),
        (rows("job1") + rows("job1")[:1], "two rows of GPU util"),
        (rows("job1", "V100"), "no job on 2080Ti; its GPUs are V100"),
        (rows("nowhere"), r"put its graph there as nowhere\.pbtxt"),
        ([{**row, "avg Idle time": "soon"} for row in rows("job1")], "needed is a number"),
        ([{**row, "Resource": "Disk"} for row in rows("job1")], "must be one of GPU util"),
    ],
)
def test_what_is_odd_is_told(
    tmp_path: Path, graphs: Path, lines: list[dict[str, object]], words: str
) -> None:
    with pytest.raises(DatasetError, match=words):
        read_perf_table(table(tmp_path, lines), SETTING, graphs)


def test_other_tables_are_refused(tmp_path: Path, graphs: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(DatasetError, match="lacks column"):
        read_perf_table(file, SETTING, graphs)
    file.write_bytes(b"\xff\xfe\x00")
    for path in (file, tmp_path / "none.csv"):
        with pytest.raises(DatasetError, match="cannot be read"):
            read_perf_table(path, SETTING, graphs)
