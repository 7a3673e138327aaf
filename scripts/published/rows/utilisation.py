"""Utilisation that NVML saw in real training runs, one sample every two to three seconds.

utilisation_runs of lambda -> rows of `utilisation_runs.csv.gz`, with JOB and device
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isnan

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw

__all__ = ["UTILISATION_COLUMNS", "utilisation_rows"]

UTILISATION_COLUMNS = (
    "row", "source_file", "date", "library", "device", "devices", "link_within", "model", "family",
    "job", "batch", "size", "precision", "optimizer", "data", "step_s", "samples",
    "steady_samples", "util_mean", "util_median", "util_p10", "util_p90", "mem_median_mib",
)  # fmt: skip


def utilisation_rows(
    raw: Iterable[Raw], runs: Mapping[str, PublishedRun], rows: Iterable[PublishedRun]
) -> Iterator[tuple[object, ...]]:
    """Runs with what their system's configuration says of the job.

    Args:
        raw: gathered runs.
        runs: each run as a row, by source file.
        rows: training rows, whose ids are named where a run has one.
    """
    ids = {row.source_file: row.id for row in rows}
    for entry in raw:
        run = runs[entry["source_file"]]
        step_s = "" if isnan(run.step_s) or run.unused_why else f"{run.step_s:.6g}"
        yield (
            ids.get(run.source_file, ""), run.source_file, run.date, run.library, run.device,
            run.num_devices, run.link_within, run.model, run.family, run.job, run.batch_size or "",
            run.size or "", run.precision, run.optimizer, run.data, step_s, entry["samples"],
            entry["steady_samples"], entry["util_mean"], entry["util_median"], entry["util_p10"],
            entry["util_p90"], entry["mem_median_mib"],
        )  # fmt: skip
