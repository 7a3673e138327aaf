"""Archive of a campaign's raw samples in a few compressed files, for relabelling.

<workload>.r<repeat>/samples.npz, run.json  ->  samples-0.parquet, ..., one row per run

A shipped data set holds the samples of a few runs (`scripts.settings.archive` reads and reduces
them); `num_runs` in its dataset.json is the number of measured runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.codec import to_dict
from driple.dataset.tables import require_pyarrow
from driple.errors import MeasureError
from driple.files import atomic_replace, wrap_os_error
from driple.measure.counters.samples import differences
from driple.measure.testbed.campaign import read_run

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ARCHIVES", "FILES", "write_archive", "write_runs"]

# Columns are differences of counters, which a dictionary encoding would enlarge.
_ZSTD_LEVEL = 15
# A file of 100 runs has some 6 MB, below the 20 MB that suit git.
_RUNS_PER_FILE = 100
FILES = "samples*.parquet"
ARCHIVES = "archives of samples"


def write_archive(campaign: Path, folder: Path) -> int:
    """Store all finished runs of a campaign in files of 100 runs; the number of runs.

    Raises:
        MeasureError: the campaign holds no run, or the archive cannot be written.
    """
    runs = sorted(campaign.glob("*.r[0-9]*"))
    if not runs:
        raise MeasureError(f"{campaign} holds no finished run; run driple measure first")
    left = set(folder.glob(FILES))
    for first in range(0, len(runs), _RUNS_PER_FILE):
        file = folder / f"samples-{first // _RUNS_PER_FILE}.parquet"
        _write_runs(runs[first : first + _RUNS_PER_FILE], file)
        left.discard(file)
    for file in left:  # left by a longer archive
        file.unlink()
    return len(runs)


def _write_runs(runs: list[Path], path: Path) -> None:
    pa = require_pyarrow(ARCHIVES)
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
    write_runs(pa.table(rows), path)


def write_runs(table: pa.Table, path: Path) -> None:
    """Write runs, a row each, to a file.

    Raises:
        MeasureError: it cannot be written.
    """
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
