"""Peaks of allocated memory of devices that share a model, beside published ones.

    datasets/runs/published/pytorch_rows.csv.gz -> rows of Megatron-LM with a peak and degrees above
    1 own:NAME (scripts/published/models) -> traced step -> tensors of the device with most

    python -m scripts.checks.split_memory

These runs share out the optimizer's states among replicas (`--use-distributed-optimizer`).
Megatron-LM's bf16 is `bf16-mixed`. Of rows that differ by the number of micro-batches alone, the
first is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from driple.catalog import device_named
from driple.cluster.setting import Setting
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.memory.device_tensors import device_tensors
from driple.memory.events import bytes_by_kind
from driple.memory.split_model import device_steps
from driple.runs.published_runs import PublishedRun, read_published
from driple.runs.step_key import capability_of
from driple.schemes.split import SplitScheme
from scripts.checks.split_rows import ROWS, chosen, is_split, split_setting
from scripts.published.models import definition_of, traced_job

_GIB = 2.0**30


def main() -> int:
    """Print each row and the median error."""
    errors_pct = []
    for row in with_peaks(chosen(read_published(ROWS))):
        peak_gib = estimated_bytes(row) / _GIB
        published_gib = row.peak_mem_gib or 0.0
        off_pct = 100 * (peak_gib / published_gib - 1)
        errors_pct.append(abs(off_pct))
        print(
            f"{row.id} {row.job:18} {row.size} {split_setting(row):40} published "
            f"{published_gib:6.2f}  estimated {peak_gib:6.2f} GiB  {off_pct:+.0f} %",
            flush=True,
        )
    print(
        f"{len(errors_pct)} rows, {np.median(errors_pct):.0f} % off in the median, "
        f"{max(errors_pct):.0f} % at most"
    )
    return 0


def with_peaks(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Rows with allocated peaks and degrees above 1, one for each number of micro-batches."""
    first: dict[tuple[object, ...], PublishedRun] = {}
    for row in rows:
        if is_split(row) and row.peak_mem_gib and row.peak_mem_kind == "allocated":
            first.setdefault((row.job, split_setting(row), row.batch_size, row.size), row)
    return list(first.values())


def estimated_bytes(row: PublishedRun) -> int:
    """Most bytes of tensors on a device of the stage that needs most."""
    replicas = row.num_devices // (row.tp * row.pp)
    degrees = Setting.parse(split_setting(row)).scheme.degrees
    sharding = SplitScheme().sharding_of(degrees)
    if sharding is None:
        raise TypeError("the scheme states no sharding")
    peaks = [
        bytes_by_kind(device_tensors(step, sharding, replicas, replicas)).sum(axis=1).max()
        for step in device_steps(_traced(row), degrees)
    ]
    return int(max(peaks))


def _traced(row: PublishedRun) -> OpGraph:
    generation = device_named(row.device).architecture.name
    options = StepOptions(
        precision="bf16-mixed",
        optimizer=row.job_optimizer or definition_of(row.job).optimizer,
        grad_accumulation=row.grad_accumulation,
        activation_checkpointing=row.activation_checkpointing,  # type: ignore[arg-type]
        clip_gradients=definition_of(row.job).clip_gradients,
        compute_capability=divmod(capability_of(generation), 10),
    )
    return traced_job(row.job, batch_size=row.batch_size or 1, size=row.size or 0, options=options)


if __name__ == "__main__":
    sys.exit(main())
