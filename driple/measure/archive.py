"""Every raw sample of a campaign in one compressed file, so that labels can be made again from it.

<workload>.r<repeat>/samples.npz, run.json  <->  samples.parquet, one row per run
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from driple.errors import MeasureError, MissingExtraError
from driple.files import replacing, told_as
from driple.measure.campaign import RECORD_FACTS, read_run
from driple.measure.cluster import RunRecord
from driple.measure.samples import Samples, differences

__all__ = ["read_archive", "write_archive"]

# Columns are differences of counters, which a dictionary would only blow up.
_ZSTD_LEVEL = 15


def write_archive(campaign: Path, path: Path) -> int:
    """Store all finished runs of a campaign; their number.

    Raises:
        MeasureError: the campaign holds no run, or the archive cannot be written.
    """
    pa, parquet = _pyarrow()
    rows: dict[str, list[Any]] = {
        name: []
        for name in ("run", "about", "names", "period_s", "before_ns", "spent_ns", "values")
    }
    for folder in sorted(campaign.glob("*.r[0-9]*")):
        record, about = read_run(folder)
        samples = record.samples
        rows["run"].append(folder.name)
        rows["about"].append(json.dumps(about))
        rows["names"].append(list(samples.names))
        rows["period_s"].append(samples.period_s)
        rows["before_ns"].append(differences(samples.before_ns))
        rows["spent_ns"].append(samples.after_ns - samples.before_ns)
        rows["values"].append(differences(samples.values).T.ravel())
    if not rows["run"]:
        raise MeasureError(f"{campaign} holds no finished run; run driple measure first")
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
    return len(rows["run"])


def read_archive(path: Path) -> dict[str, RunRecord]:
    """All runs of an archive, by the name of their folder.

    Raises:
        MeasureError: the file is no archive of samples.
    """
    _pa, parquet = _pyarrow()
    try:
        rows = parquet.read_table(path).to_pylist()
        return {str(row["run"]): _record(row) for row in rows}
    except (OSError, KeyError, ValueError) as error:
        raise MeasureError(f"{path} is no archive of samples ({error})") from error


def _record(row: dict[str, Any]) -> RunRecord:
    about = json.loads(row["about"])
    before_ns = np.cumsum(np.array(row["before_ns"], dtype=np.int64))
    columns = np.array(row["values"], dtype=np.int64).reshape(len(row["names"]), -1)
    samples = Samples(
        names=tuple(row["names"]),
        before_ns=before_ns,
        after_ns=before_ns + np.array(row["spent_ns"], dtype=np.int64),
        values=np.cumsum(columns, axis=1).T,
        period_s=row["period_s"],
    )
    return RunRecord(samples=samples, **{name: about[name] for name in RECORD_FACTS})


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "archives of samples need pyarrow, which is not installed; pip install 'driple[train]'"
        ) from error
    return pa, parquet
