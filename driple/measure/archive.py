"""Every raw sample of a campaign in a few compressed files, so that labels can be made again.

<workload>.r<repeat>/samples.npz, run.json  <->  samples-0.parquet, ..., one row per run
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from driple.codec import from_json, to_dict
from driple.dataset.tables import require_pyarrow
from driple.errors import MeasureError
from driple.files import replacing, told_as
from driple.measure.campaign import RunFacts, read_run
from driple.measure.cluster import RunRecord
from driple.measure.samples import Samples, differences

__all__ = ["read_archive", "write_archive"]

# Columns are differences of counters, which a dictionary would only blow up.
_ZSTD_LEVEL = 15
# A file of so many runs has some 6 MB; git is no place for files over 20.
_RUNS_PER_FILE = 100
_FILES = "samples*.parquet"
_WHAT = "archives of samples"


def write_archive(campaign: Path, folder: Path) -> int:
    """Store all finished runs of a campaign in a folder, in files of 100 runs; how many runs.

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
    for file in left:  # of an archive that was longer
        file.unlink()
    return len(runs)


def _write_runs(runs: list[Path], path: Path) -> None:
    pa = require_pyarrow(_WHAT)
    from pyarrow import parquet  # an extra, loaded when needed

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
    integers = dict.fromkeys(("before_ns", "spent_ns", "values"), "DELTA_BINARY_PACKED")
    with told_as(MeasureError, f"write {path}"), replacing(path) as (part,):
        parquet.write_table(
            pa.table(rows),
            part,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=False,
            column_encoding={f"{name}.list.element": code for name, code in integers.items()},
        )


def read_archive(folder: Path) -> dict[str, RunRecord]:
    """All runs of the archive in a data set's folder, by the name of the run's folder.

    Raises:
        MeasureError: there is none, or a file is no archive of samples.
    """
    require_pyarrow(_WHAT)
    from pyarrow import parquet  # an extra, loaded when needed

    files = sorted(folder.glob(_FILES))
    if not files:
        raise MeasureError(f"{folder} holds no samples; build the data set with its traces")
    records: dict[str, RunRecord] = {}
    for file in files:
        try:
            rows = parquet.read_table(file).to_pylist()
            records |= {str(row["run"]): _record(row) for row in rows}
        except (OSError, KeyError, ValueError) as error:
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
