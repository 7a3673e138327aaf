"""What `torch.compile` saves in training, as PyTorch's CI expects it on an A100 and as Driple says.

    python -m scripts.studies.compiled_training

compiled_training.csv has models of torchbench by benchmarks/dynamo/expected_ci_perf_inductor_\
torchbench.csv: speed-ups of forward and backward passes over eager ones, and peak memory of the
eager step over that of the compiled one. pytorch/pytorch has it at 33c040b5; rows of `hf_` and
`timm_` stand in ROCm/pytorch at 40756461. That it is training in autocast without CUDA graphs is
from the CI's script, not from the table. No fit has seen them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from driple.catalog import device_named
from driple.graph.step_facts import OptimizerUpdate
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from scripts.studies.cuda_graphs import DEVICE, job_of

ROWS = Path(__file__).with_suffix(".csv")


def main() -> None:
    """Print all rows, then the errors beside those of the others' median."""
    declare_torchvision_ops()  # torchvision's own may be of another build
    with ROWS.open(encoding="utf-8", newline="") as file, TemporaryDirectory() as folder:
        rows = list(csv.DictReader(file))
        predicted = np.array([_speedup(row, Path(folder)) for row in rows])
    published = np.array([float(row["speedup"]) for row in rows])
    constant = np.array([
        np.median(np.delete(published, place)) for place in range(len(rows))
    ])  # fmt: skip
    for row, ours, theirs in zip(rows, predicted, published, strict=True):
        print(f"{row['model']:28} published {theirs:.2f}, predicted {ours:.2f}")
    for name, estimated in (("Driple", predicted), ("median of the others", constant)):
        errors = estimated / published - 1
        median, p90 = 100 * np.quantile(abs(errors), [0.5, 0.9])
        print(f"{name}: {median:.0f} % off in the median, {p90:.0f} % at the 90th percentile, bias "
              f"{100 * np.median(errors):+.0f} %, rank correlation "
              f"{_rank_correlation(estimated, published):.2f}")  # fmt: skip


def _rank_correlation(values: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(values.argsort().argsort(), other.argsort().argsort())[0, 1])


def _speedup(row: Mapping[str, str], folder: Path) -> float:
    """Seconds of the eager passes over those of the compiled ones."""
    known = shipped_calibration().device(device_named(DEVICE))
    seconds = []
    for compiled in (False, True):
        job = job_of({**row, "precision": "amp-fp16"}, folder, compiled=compiled)
        graph = replace(job.graph, update=OptimizerUpdate())
        prepared = PreparedJob(graph, cost=job.cost, program=Program(library=job.library))
        seconds.append(float(prepared.times(known).duration_s.sum()))
    return seconds[0] / seconds[1]


if __name__ == "__main__":
    main()
