"""Samples of measured runs in a data set's folder: read, and reduced to a few runs.

samples-0.parquet, ..., one row per run  ->  RunRecord, ...

`driple.measure.testbed.archive` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from driple.codec import from_json
from driple.dataset.tables import read_table, require_pyarrow
from driple.errors import DatasetError, MeasureError
from driple.measure.counters.samples import Samples
from driple.measure.testbed.archive import ARCHIVES, FILES, write_runs
from driple.measure.testbed.campaign import RunFacts
from driple.measure.testbed.cluster import RunRecord

__all__ = ["read_archive", "reduce_archive"]


def reduce_archive(folder: Path, runs: Collection[str]) -> int:
    """Keep the samples of some runs and delete the others; the number of deleted runs.

    Args:
        folder: folder of the data set.
        runs: names of the runs to keep, `<workload>.r<repeat>`.

    Raises:
        MeasureError: there is no archive, it lacks one of the runs, or it cannot be written.
    """
    pa = require_pyarrow(ARCHIVES)
    files = _files(folder)
    try:
        whole = pa.concat_tables([read_table(file) for file in files])
        names = whole.column("run").to_pylist()
    except (DatasetError, KeyError, ValueError) as error:
        raise MeasureError(f"{folder} holds no archive of samples ({error})") from error
    if missing := sorted(set(runs) - set(names)):
        raise MeasureError(f"{folder} holds no samples of {missing[0]}; name one of its runs")
    kept = [row for row, name in enumerate(names) if name in set(runs)]
    write_runs(whole.take(kept), files[0])
    for file in files[1:]:
        file.unlink()
    return len(names) - len(kept)


def _files(folder: Path) -> list[Path]:
    """Files of the archive in a data set's folder, at least one."""
    files = sorted(folder.glob(FILES))
    if not files:
        raise MeasureError(
            f"{folder} holds no samples; build it with its traces, or restore those of a shipped "
            "data set as datasets/README.md shows"
        )
    return files


def read_archive(folder: Path) -> dict[str, RunRecord]:
    """All runs of the archive in a data set's folder, by the name of the run's folder.

    Raises:
        MeasureError: there is no archive, or a file of it is damaged.
    """
    require_pyarrow(ARCHIVES)
    records: dict[str, RunRecord] = {}
    for file in _files(folder):
        try:
            rows = read_table(file).to_pylist()
            records |= {str(row["run"]): _record(row) for row in rows}
        except (DatasetError, KeyError, ValueError) as error:
            raise MeasureError(f"{file} is no archive of samples ({error})") from error
    return records


def _record(row: dict[str, Any]) -> RunRecord:
    facts = from_json(
        RunFacts, json.loads(row["about"]), where=f"run {row['run']}", error=MeasureError
    )
    before_ns = np.cumsum(np.array(row["before_ns"], dtype=np.int64))
    columns = np.array(row["values"], dtype=np.int64).reshape(len(row["names"]), -1)
    samples = Samples(
        names=tuple(row["names"]),
        before_ns=before_ns,
        after_ns=before_ns + np.array(row["spent_ns"], dtype=np.int64),
        values=np.cumsum(columns, axis=1).T,
        period_s=row["period_s"],
    )
    return facts.record(samples)
