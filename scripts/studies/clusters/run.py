"""Wrong on one GPU, or wrong in the network? Published series relative to their smallest member.

    python -m scripts.studies.clusters.run series          from the shipped held-out predictions
    python -m scripts.studies.clusters.run rows            traces and predicts the rows of clusters
    python -m scripts.studies.clusters.run mlperf          needs the fits of scripts.fits.heldout

Each writes its kind of lines of results.jsonl anew.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.cluster.setting import Setting
from driple.runs.measured_run import MeasuredRun
from driple.runs.published_runs import read_published
from driple.runs.validation.splits import parts_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.run import simulated_step_s
from scripts.checks.split_rows import checked, split_setting
from scripts.fits.gpu_fits import left_out_of
from scripts.fits.heldout import PUBLISHED, fits, shipped
from scripts.published.cluster_rows import FILE
from scripts.published.models import definition_of
from scripts.studies.kit.results import Row, add_result, read_results

RESULTS = Path(__file__).parent / "results.jsonl"
MLPERF = "MLPerf"
_PROGRAMS: dict[str, dict[str, bool]] = {  # how MLPerf's programs could be asked for
    "eager": {"compiled": False, "cuda_graphs": False},
    "fused": {"compiled": True, "cuda_graphs": False},
    "replayed": {"compiled": True, "cuda_graphs": True},
}
_STEPS = 5
_LOW = frozenset({"fp8", "fp4"})
_LOW_SOURCES = frozenset({"AMD Primus", "torchtitan"})  # whose rows in few bits are predicted here


def main(argv: Sequence[str] | None = None) -> None:
    """Make the lines of one kind anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=tuple(_KINDS), help="of lines to make")
    kind = parser.parse_args(argv).kind
    new = list(_KINDS[kind]())
    others = [row for row in read_results(RESULTS) if row["kind"] != kind]
    RESULTS.unlink(missing_ok=True)
    for row in [*others, *new]:
        add_result(RESULTS, row)


def series() -> Iterator[Row]:
    """Each row of several devices beside the smallest of its series, families left out."""
    benchmark = shipped(training=True)
    if benchmark.held_out is None:
        raise SystemExit("the published rows have no held-out predictions")
    members: dict[tuple[object, ...], dict[int, list[tuple[MeasuredRun, float]]]] = {}
    for row in benchmark.rows:
        predicted = benchmark.held_out.of(row.id, "family")
        if row.task == "train" and predicted is not None:
            sizes = members.setdefault((row.source, row.device, row.step_key), defaultdict(list))
            sizes[row.num_devices].append((row, predicted.seconds))
    links = _links()
    for sizes in members.values():
        least, *larger = sorted(sizes)
        start = _medians(sizes[least])
        for count in larger:
            row, end = sizes[count][0][0], _medians(sizes[count])
            yield {
                "kind": "series", "source": row.source.partition(" v")[0],
                "program": "PyTorch" if row.library else "others",
                "network": links[row.id], "smallest": least, "devices": count,
                "machines": row.num_machines, "start": round(start[1] / start[0], 3),
                "published": round(end[0] / start[0], 3),
                "predicted": round(end[1] / start[1], 3),
            }  # fmt: skip


def _medians(some: Sequence[tuple[MeasuredRun, float]]) -> tuple[float, float]:
    """Seconds of a step, published and predicted."""
    seconds = np.median([(row.step_s, predicted) for row, predicted in some], axis=0)
    return float(seconds[0]), float(seconds[1])


def _links() -> dict[str, str]:
    """What the devices of each row cross: within one machine, or between machines."""
    rows = read_published(PUBLISHED / "pytorch_rows.csv.gz")
    return {
        row.id: row.link_between or "not stated"
        if row.num_devices > row.per_machine
        else row.link_within.split("-")[0] or "one device"
        for row in rows
    }


def rows() -> Iterator[Row]:
    """Rows of large clusters by the shipped fit, eager and fused; no fit has seen one of them."""
    known = [
        row for row in read_published(PUBLISHED / FILE)
        if row.job.startswith("own:") and "+" not in row.job and row.device and row.batch_size
        and row.step_s > 0 and "split by tensor" not in row.unused_why
        and (row.precision not in _LOW or row.source in _LOW_SOURCES) and row.precision
        and not row.unused_why.startswith(("batch", "duplicate", "throughput"))
    ]  # fmt: skip
    step_s: dict[str, dict[bool, float]] = defaultdict(dict)
    for fused in (False, True):
        some = [row for row in known if fused or not row.compiled]
        for row, seconds in checked([replace(row, compiled=fused) for row in some]):
            step_s[row.id][fused] = seconds
    for row in known:
        both = step_s[row.id]
        if both:
            yield {
                "kind": "rows", "id": row.id, "source": row.source, "model": row.model,
                "setting": split_setting(row), "precision": row.precision,
                "published_s": row.step_s, "fused": row.compiled or definition_of(row.job).compiled,
                "eager_s": both.get(False), "fused_s": both.get(True),
            }  # fmt: skip


def mlperf() -> Iterator[Row]:
    """MLPerf's rows by fits without their families: eager, fused, and replayed as CUDA graphs."""
    benchmark = shipped(training=False)
    for part in parts_of(benchmark.rows, "family", benchmark.folds):
        some = [benchmark.rows[i] for i in part.test if benchmark.rows[i].source.startswith(MLPERF)]
        if not some:
            continue
        model = fits(training=False).without(left_out_of(part))
        calibration = replace(shipped_calibration(), model=model)
        done: dict[tuple[object, ...], float] = {}
        for row in some:
            ratios = {}
            for name, options in _PROGRAMS.items():
                asked = replace(row, **options)  # type: ignore[arg-type]
                key = (asked.step_key, asked.setting)
                if key not in done:
                    done[key] = simulated_step_s(
                        benchmark.steps.prepared(asked), Setting.parse(asked.setting), calibration,
                        num_steps=_STEPS,
                    )  # fmt: skip
                ratios[name] = round(done[key] / row.step_s, 3)
            yield {
                "kind": "mlperf", "id": row.id, "family": row.family, "devices": row.num_devices,
                **ratios,
            }  # fmt: skip


_KINDS = {"series": series, "rows": rows, "mlperf": mlperf}


if __name__ == "__main__":
    main()
