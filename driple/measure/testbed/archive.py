"""Archive of a campaign's raw samples in a few compressed files, for relabelling.

<workload>.r<repeat>/samples.npz, run.json  <->  samples-0.parquet, ..., one row per run

A shipped data set holds the samples of a few runs (`reduce_archive`); `num_runs` in its
dataset.json is the number of measured runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driple.codec import from_json, to_dict
from driple.dataset.tables import read_table, require_pyarrow
from driple.errors import DatasetError, MeasureError
from driple.files import atomic_replace, wrap_os_error
from driple.measure.counters.samples import Samples, differences
from driple.measure.testbed.campaign import RunFacts, read_run
from driple.measure.testbed.cluster import RunRecord

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_archive", "reduce_archive", "write_archive"]

# Columns are differences of counters, which a dictionary encoding would enlarge.
_ZSTD_LEVEL = 15
# A file of 100 runs has some 6 MB, below the 20 MB that suit git.
_RUNS_PER_FILE = 100
_FILES = "samples*.parquet"
_WHAT = "archives of samples"


def write_archive(campaign: Path, folder: Path) -> int:
    """Store all finished runs of a campaign in files of 100 runs; the number of runs.

    Raises:
        MeasureError: the campaign holds no run, or the archive cannot be written.
    """
    runs = sorted(campaign.glob("*.r[0-9]*"))
    if not runs:
        raise MeasureError(f"{campaign} holds no finished run; run driple measure first")
    left = set(folder.glob(_FILES))
    for first in range(0, len(runs), _RUNS_PER_FILE):
        file = folder / f"samples-{first // _RUNS_PER_FILE}.parquet"
        _write_runs(runs[first : first + _RUNS_PER_FILE], file)
        left.discard(file)
    for file in left:  # left by a longer archive
        file.unlink()
    return len(runs)


def _write_runs(runs: list[Path], path: Path) -> None:
    pa = require_pyarrow(_WHAT)
    rows: dict[str, list[Any]] = {
        name: []
        for name in ("run", "about", "names", "period_s", "before_ns", "spent_ns", "values")
    }
    for folder in runs:
        record, facts = read_run(folder)
        samples = record.samples
        rows["run"].append(folder.name)
        rows["about"].append(json.dumps(to_dict(facts)))
        rows["names"].append(list(samples.names))
        rows["period_s"].append(samples.period_s)
        rows["before_ns"].append(differences(samples.before_ns))
        rows["spent_ns"].append(samples.after_ns - samples.before_ns)
        rows["values"].append(differences(samples.values).T.ravel())
    _write_table(pa.table(rows), path)


def _write_table(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet  # an extra, loaded when needed

    integers = dict.fromkeys(("before_ns", "spent_ns", "values"), "DELTA_BINARY_PACKED")
    with wrap_os_error(MeasureError, f"write {path}"), atomic_replace(path) as (part,):
        parquet.write_table(
            table,
            part,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=False,
            column_encoding={f"{name}.list.element": code for name, code in integers.items()},
        )


def reduce_archive(folder: Path, runs: Collection[str]) -> int:
    """Keep the samples of some runs and delete the others; the number of deleted runs.

    Args:
        folder: folder of the data set.
        runs: names of the runs to keep, `<workload>.r<repeat>`.

    Raises:
        MeasureError: there is no archive, it lacks one of the runs, or it cannot be written.
    """
    pa = require_pyarrow(_WHAT)
    files = _files(folder)
    try:
        whole = pa.concat_tables([read_table(file) for file in files])
        names = whole.column("run").to_pylist()
    except (DatasetError, KeyError, ValueError) as error:
        raise MeasureError(f"{folder} holds no archive of samples ({error})") from error
    if missing := sorted(set(runs) - set(names)):
        raise MeasureError(f"{folder} holds no samples of {missing[0]}; name one of its runs")
    kept = [row for row, name in enumerate(names) if name in set(runs)]
    _write_table(whole.take(kept), files[0])
    for file in files[1:]:
        file.unlink()
    return len(names) - len(kept)


def _files(folder: Path) -> list[Path]:
    """Files of the archive in a data set's folder, at least one."""
    files = sorted(folder.glob(_FILES))
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
    require_pyarrow(_WHAT)
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
