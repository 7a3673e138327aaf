"""What the kernels of steps that we measured took, by groups of ops: labels of the fit of kernels.

    datasets/runs/measured-h100: kernels.csv.gz, kernels.steps.xz -> OpKinds of a group, StepRow

A whole step tells only of the sum of its kernels. Its parts tell convolutions from normalisations,
which published steps leave open. No host delays a part: PyTorch's profiler timed its kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driple.catalog import device_named
from driple.checks import check_choice, check_number
from driple.graph.step_facts import OptimizerUpdate
from driple.runs.step_key import StepKey
from driple.runs.step_store import LEAST_BATCH, StepStore
from driple.runs.tables import read_records
from driple.simulate.op_facts import GROUPS
from driple.simulate.prepared_job import OpKinds, PreparedJob
from scripts.fits.family_sizes import work_of_sample
from scripts.fits.fit_table import StepRow
from scripts.fits.measured_gpu import MEASURED_FILE, ProfiledRun, read_profiled_runs
from scripts.fits.writing import write_records

__all__ = ["KERNELS_FILE", "MEASURED_DEVICE", "PARTS", "REST", "UPDATE", "KernelTime",
           "kernel_steps", "key_of", "kinds_of_parts", "read_kernel_times",
           "seconds_of_parts", "stored_job", "write_kernel_times"]  # fmt: skip

KERNELS_FILE = "kernels.csv.gz"
MEASURED_DEVICE, SOURCE = "H100", "measured"
REST, UPDATE = "rest", "update"
_ALIKE = {"pooling_gradient": "pooling"}
_OWN_PART = ("convolution", "grouped_convolution", "depthwise_convolution", "matmul", "attention",
             "recurrent", "norm", "norm_gradient", "pooling", "softmax")  # fmt: skip
PARTS = (*_OWN_PART, REST, UPDATE)
"""Groups of ops whose kernels are timed together; `rest` has all groups without a part."""
_SHORTEST_S = 3e-5  # shorter parts measure how kernels are launched
_MOST_UNKNOWN = 0.08  # of a step's kernels, that the profiler could not give to an op


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelTime:
    """Kernels of one part of a step.

    Attributes:
        key: of the step's row.
        part: one of `PARTS`; empty of kernels that the profiler could not give to an op.
        kernels: in a step.
        seconds: of all of them.
    """

    key: str
    part: str
    kernels: int
    seconds: float

    def __post_init__(self) -> None:
        check_choice("part", self.part, (*PARTS, ""))
        check_number("seconds", self.seconds, least=0)


_FACTS = ("key", "part", "kernels", "seconds")


def read_kernel_times(file: Path) -> list[KernelTime]:
    """Read the table.

    Raises:
        ConfigError: it cannot be read, or has wrong cells.
    """
    return read_records(file, KernelTime, _FACTS)


def write_kernel_times(file: Path, times: Iterable[KernelTime]) -> None:
    """Write a table that `read_kernel_times` reads; the same times give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_records(file, _FACTS, times)


def key_of(row: ProfiledRun) -> StepKey:
    """Name of a row's step in the store, which has each at its own batch size."""
    return StepKey(
        job=f"{row.job}@{row.batch_size}",
        size=row.size,
        task=row.task,
        precision=row.precision,
        channels_last=row.channels_last,
        activation_checkpointing=row.activation_checkpointing,
    )


def stored_job(row: ProfiledRun, store: StepStore) -> PreparedJob | None:
    """A row's step as the simulator takes it; None if the store lacks it.

    Raises:
        DatasetError: the store is damaged.
    """
    return store.step(key_of(row)).job(row.batch_size) if _has_step(row, store) else None


def _has_step(row: ProfiledRun, store: StepStore) -> bool:
    return row.batch_size >= LEAST_BATCH and key_of(row) in store


def seconds_of_parts(folder: Path) -> dict[str, dict[str, float]]:
    """Seconds of each part of each step, by the key of its row.

    Raises:
        ConfigError: the table is missing or damaged.
    """
    times: dict[str, dict[str, float]] = {}
    for kernel in read_kernel_times(folder / KERNELS_FILE):
        times.setdefault(kernel.key, {})[kernel.part] = kernel.seconds
    return times


def kernel_steps(folder: Path, weight: float) -> Iterator[tuple[str, float, OpKinds, StepRow]]:
    """Parts of steps, with the family of each step's model and the work of a sample of the step.

    Args:
        folder: of the tables.
        weight: of all together; families count by the root of their steps, the parts of a step by
            the root of their shares.

    Raises:
        ConfigError: a table is missing or damaged.
        DatasetError: the store of steps is damaged.
    """
    times = seconds_of_parts(folder)
    store = StepStore.open(folder)
    rows = [
        row for row in read_profiled_runs(folder / MEASURED_FILE)
        if _has_step(row, store) and _is_known(times.get(row.key, {}))
    ]  # fmt: skip
    sizes = Counter(row.family for row in rows)
    total = sum(_root_shares(times[row.key]) * sizes[row.family] ** -0.5 for row in rows)
    for row in rows:
        each = weight / total * sizes[row.family] ** -0.5
        job = store.step(key_of(row)).job(row.batch_size)
        work = work_of_sample(job.kinds, samples=row.batch_size, task=row.task)
        for kinds, step in _parts_of(job, times[row.key]):
            yield row.family, work, kinds, replace(step, weight=step.weight * each)


def _is_known(parts: Mapping[str, float]) -> bool:
    total = sum(parts.values())
    return total > 0 and parts.get("", 0.0) <= _MOST_UNKNOWN * total


def _root_shares(parts: Mapping[str, float]) -> float:
    total = sum(parts.values())
    return float(sum((seconds / total) ** 0.5 for seconds in parts.values()))


def kinds_of_parts(job: PreparedJob) -> Iterator[tuple[str, OpKinds]]:
    """The ops of each part of a step that has any."""
    kinds = job.kinds
    groups = np.array([_part_of(GROUPS[one]) for one in kinds.table.facts.groups])
    for part in (*_OWN_PART, REST):
        runs = np.where((groups == part)[kinds.kind_of], kinds.executions, 0)
        if runs.any():
            yield part, replace(kinds, executions=runs)


def _parts_of(job: PreparedJob, parts: Mapping[str, float]) -> Iterator[tuple[OpKinds, StepRow]]:
    """Each part with the ops that it times, weighing the root of its share."""
    total = sum(parts.values())
    for part, kinds in kinds_of_parts(job):
        seconds = parts.get(part, 0.0)
        update = OptimizerUpdate()
        if part == REST and parts.get(UPDATE):  # its kernels are those of additions and copies
            seconds, update = seconds + parts[UPDATE], job.graph.update
        if seconds < _SHORTEST_S:
            continue
        step = StepRow(
            device=device_named(MEASURED_DEVICE),
            runtime=job.runtime,
            update=update,
            source=SOURCE,
            seconds=seconds,
            weight=(seconds / total) ** 0.5,
            alone=True,
        )
        yield kinds, step


def _part_of(group: str) -> str:
    part = _ALIKE.get(group, group)
    return part if part in _OWN_PART else REST
