"""Reader of DriplePerf's result table: one row per job and resource, with its three figures.

    TABLE.csv + graph files by job name  ->  Dataset

Columns: GPU, Model, Data Set, Sync/Async, Hyper-Parameter, Job Name, Resource (GPU util,
GPU MEM util, Network_tx or Network_rx), avg Idle time, avg Active time, avg Peak consumption.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.errors import DatasetError, SettingError
from driple.graph.opgraph import OpGraph
from driple.graph.options import ReadOptions
from driple.graph.tf.reader import DEFAULT_MAX_BYTES, read_graph
from driple.storedfiles import read_bytes
from driple.trace.provenance import Provenance
from driple.trace.targets import FIGURES, RESOURCES, Targets
from driple.units import counted

__all__ = ["read_perf_table"]

MAX_FILE_BYTES = 64 * 2**20
RESOURCE_OF = {
    "gpu util": "device_util",
    "gpu mem util": "device_mem_util",
    "network_tx": "net_tx",
    "network_rx": "net_rx",
}
COLUMN_OF = {
    "burst_amount": "avg Peak consumption",
    "burst_duration": "avg Active time",
    "idle_duration": "avg Idle time",
}
COLUMNS = (
    "GPU",
    "Model",
    "Data Set",
    "Sync/Async",
    "Hyper-Parameter",
    "Job Name",
    "Resource",
    *COLUMN_OF.values(),
)
Row = dict[str, str]
_AS_THEY_ARE = ReadOptions()


def read_perf_table(
    path: str | Path,
    setting: Setting,
    graphs: str | Path,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    options: ReadOptions = _AS_THEY_ARE,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Dataset:
    """The jobs of one setting in a table of DriplePerf, each with its graph.

    Args:
        path: the table.
        setting: setting of the jobs; rows of other GPUs are left out.
        graphs: folder with a graph file for each job, named after it (`JOB.pbtxt`, `JOB.pb.gz`).
        max_bytes: largest graph file that is read.
        options: how unknown dimensions of the graphs are settled.
        progress: called with (jobs read, jobs in all).

    Raises:
        DatasetError: no such file, a column, resource, number or graph is missing or odd.
        GraphError: a graph that cannot be read.
    """
    file, folder = Path(path), Path(graphs)
    jobs = _jobs(file, setting)
    files = {job: _graph_file(folder, job) for job in jobs}
    missing = [job for job, where in files.items() if where is None]
    if missing:
        raise DatasetError(
            f"{folder} has no graph of {counted(len(missing), 'job')} of {file.name}, the first is "
            f"{missing[0]!r}; put its graph there as {_stem(missing[0])}.pbtxt"
        )
    read: dict[Path, OpGraph] = {}
    examples = []
    for job, rows in jobs.items():
        where = files[job]
        if where is not None and where not in read:
            read[where] = read_graph(where, max_bytes=max_bytes, options=options)
        examples.append(_example(file, job, rows, setting, read[where or folder]))
        progress(len(examples), len(jobs))
    return Dataset(
        name=f"{setting.file_name}-perf",
        setting=setting.name,
        examples=tuple(examples),
        about=Provenance(
            source="table of DriplePerf, imported",
            file=file.name,
            label_source="published",
            note="iteration times derived from the durations of the network's bursts and gaps",
        ),
    )


def _jobs(file: Path, setting: Setting) -> dict[str, dict[str, Row]]:
    """Rows of the setting's device by job and resource."""
    jobs: dict[str, dict[str, Row]] = {}
    others: set[str] = set()
    for number, row in _rows(file):
        if not _is_device(row["GPU"], setting):
            others.add(row["GPU"])
            continue
        resource = RESOURCE_OF.get(" ".join(row["Resource"].split()).lower())
        if resource is None:
            raise DatasetError(
                f"{file}, line {number}: resource is {row['Resource']!r}, must be one of GPU util, "
                "GPU MEM util, Network_tx, Network_rx"
            )
        rows = jobs.setdefault(row["Job Name"], {})
        if resource in rows:
            raise DatasetError(
                f"{file}, line {number}: job {row['Job Name']!r} has two rows of {row['Resource']}"
            )
        rows[resource] = row
    if not jobs:
        seen = ", ".join(sorted(others)) or "none"
        raise DatasetError(f"{file} has no job on {setting.device}; its GPUs are {seen}")
    for job, rows in jobs.items():
        lacking = [name for name in RESOURCES if name not in rows]
        if lacking:
            raise DatasetError(f"{file}: job {job!r} has no row of {', '.join(lacking)}")
    return jobs


def _rows(file: Path) -> list[tuple[int, Row]]:
    """Line numbers and cells of the table."""
    try:
        data = read_bytes(file, MAX_FILE_BYTES)
        if len(data) > MAX_FILE_BYTES:
            raise DatasetError(f"{file} is larger than {MAX_FILE_BYTES} bytes; split it")
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error
    reader = csv.DictReader(text.splitlines())
    lacking = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if lacking:
        names = f"{'column' if len(lacking) == 1 else 'columns'} {', '.join(lacking)}"
        raise DatasetError(f"{file} lacks {names}; see driple data import --help")
    rows = []
    try:
        for row in reader:
            cells = {name: (row[name] or "").strip() for name in COLUMNS}
            if any(cells.values()):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise DatasetError(f"{file}, line {reader.line_num}: {error}") from error
    return rows


def _is_device(name: str, setting: Setting) -> bool:
    """Whether a cell of the column GPU means the setting's device."""
    try:
        return device_named(name).name == device_named(setting.device).name
    except SettingError:
        return name.lower() == setting.device.lower()


def _stem(job: str) -> str:
    return job.replace("/", "_")


def _graph_file(folder: Path, job: str) -> Path | None:
    """The graph of a job; the first by name if there are several."""
    stem = _stem(job)
    for suffix in (".pbtxt", ".pb", ".meta", ".pbtxt.gz", ".pb.gz", ".meta.gz"):
        file = folder / f"{stem}{suffix}"
        if file.is_file():
            return file
    return None


def _example(
    file: Path, job: str, rows: dict[str, Row], setting: Setting, graph: OpGraph
) -> Example:
    values = [
        [_number(file, rows[resource], COLUMN_OF[figure]) for figure in FIGURES]
        for resource in RESOURCES
    ]
    first = rows[RESOURCES[0]]
    targets = Targets(np.array(values, dtype=np.float64))
    sent = targets.values[RESOURCES.index("net_tx"), 1:].sum()
    return Example(
        workload=job,
        family=(re.match(r"[a-z]+", first["Model"].lower()) or ["other"])[0],
        setting=setting.name,
        graph=graph,
        targets=targets,
        iteration_time_s=targets.iteration_time_s or float(sent),
        label_source="published",
        details={
            "model": first["Model"],
            "data_set": first["Data Set"],
            "sync": first["Sync/Async"].lower() == "sync",
            "hyper_parameter": first["Hyper-Parameter"],
        },
    )


def _number(file: Path, row: Row, column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DatasetError(
            f"{file}: job {row['Job Name']!r}, {row['Resource']}: {column} is {row[column]!r}, "
            "needed is a number"
        )
    return value
