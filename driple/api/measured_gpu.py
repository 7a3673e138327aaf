"""A measured GPU as a row of the catalogue: factors that bring predicted kernels to their times.

kernels with their seconds -> TunedStep of each -> the best factors (`driple.runs.tuning`) -> Row
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from driple.catalog.machine_file import KernelTime
from driple.catalog.rows import Row
from driple.errors import MeasureError

if TYPE_CHECKING:
    from driple.catalog import Device
    from driple.catalog.catalog import Catalog
    from driple.catalog.rows import Value
    from driple.measure.machine.gpu import MeasuredKernel
    from driple.runs.tuning import TunedStep
    from driple.simulate.calibration import CalibratedDevice

__all__ = [
    "LEAST_KERNELS",
    "kernel_steps",
    "kernel_times",
    "slower_pct",
    "step_of_module",
    "tuned_row",
]

LEAST_KERNELS = 5
"""Fewer do not show what a GPU reaches."""
_SLOW_PCT = 10
_PIPES = ("half", "tf32", "plain", "memory")


def slower_pct(timed: Sequence[MeasuredKernel], first: Sequence[MeasuredKernel]) -> float | None:
    """Percent by which a GPU is slower than the first of its kind; None if it is not by much."""
    known = {one.kernel.name + one.kernel.precision: one.seconds for one in first}
    ratios = [one.seconds / known[one.kernel.name + one.kernel.precision] for one in timed]
    slower = 100 * (median(ratios) - 1) if ratios else 0.0
    return slower if slower > _SLOW_PCT else None


def kernel_times(
    number: int, timed: Sequence[MeasuredKernel], steps: Sequence[float] | None
) -> list[KernelTime]:
    """Rows of the file for the kernels of a GPU, with what was predicted where that is known."""
    predicted: Sequence[float | None] = [None] * len(timed) if steps is None else steps
    return [
        KernelTime(
            device=number,
            name=one.kernel.name,
            precision=one.kernel.precision,
            seconds=one.seconds,
            predicted_s=seconds,
            tflops=2 * one.kernel.multiply_adds / one.seconds / 1e12 or None,
            gb_per_s=one.nbytes / one.seconds / 1e9,
        )
        for one, seconds in zip(timed, predicted, strict=True)
    ]


def tuned_row(
    timed: Sequence[MeasuredKernel], name: str, describe: Callable[[], dict[str, Value]]
) -> tuple[Row, list[float]]:
    """The catalogue's row of a measured GPU, and what is predicted for each kernel without it.

    Args:
        timed: its kernels.
        name: of the GPU as its driver has it.
        describe: facts of one that no catalogue has.

    Raises:
        MeasureError: too few kernels could be timed.
        MissingExtraError: scipy is not installed.
    """
    import numpy as np

    from driple.catalog import read_catalog
    from driple.catalog.fields import TUNED, TUNING_FACTS, check_field
    from driple.catalog.machine_file import MachineFile
    from driple.runs.tuning import factors_of

    if len(timed) < LEAST_KERNELS:
        raise MeasureError(
            f"{len(timed)} kernels could be timed on {name}, and {LEAST_KERNELS} are needed: the "
            "host is too slow or busy, or the memory is taken; end other programs and run again"
        )
    catalog = read_catalog()
    known = catalog.find_device(name)
    values: dict[str, Value] = {} if known is not None else describe()
    if known is None:
        bare = name.removeprefix("NVIDIA ").replace(" ", "-")
        new_row = Row(name=bare, values=values, file="this machine", own=True)
        catalog = read_catalog((), MachineFile(file="this machine", rows=(new_row,)))
        known = catalog.device(bare)
    steps = kernel_steps(timed, known, catalog)
    ones = np.ones(len(TUNED))
    factors = dict(zip(TUNED, factors_of(steps).tolist(), strict=True))
    for pipe in _PIPES:
        check_field(TUNING_FACTS[f"tuned_{pipe}"], f"the factor of {pipe}", factors[pipe], name)
        values[f"tuned_{pipe}"] = factors[pipe]
    values |= {
        "tuned_kernels": len(timed),
        "source": f"{len(timed)} kernels measured on this machine",
        "date": datetime.datetime.now(tz=datetime.UTC).date(),
    }
    row = Row(name=known.name, values=values, file="this machine", own=True)
    return row, [step.predicted_s(ones) for step in steps]


def kernel_steps(
    timed: Sequence[MeasuredKernel], known: Device, catalog: Catalog
) -> list[TunedStep]:
    """Kernels as the simulator takes them, on a device of a catalogue."""
    from driple.cluster.setting import Setting
    from driple.simulate.calibration import shipped_calibration

    there = Setting.parse(f"1x{known.name}", catalog=catalog)
    device = shipped_calibration().device(known)
    return [replace(_kernel_step(one, device, there), seconds=one.seconds) for one in timed]


def _kernel_step(measured: MeasuredKernel, device: CalibratedDevice, there: Any) -> TunedStep:
    """A kernel as the simulator takes it, of which the host takes no time."""
    kernel = measured.kernel
    inputs = kernel.inputs("meta")
    step = step_of_module(
        kernel.module(),
        inputs if len(inputs) > 1 else inputs[0],
        device,
        precision=kernel.precision,
        task="forward",
        setting=there,
        name=kernel.name,
    )
    return replace(step, host_s=1e-9)


def step_of_module(module: Any, batch: Any, device: CalibratedDevice, **options: Any) -> TunedStep:
    """A module as the simulator takes it, on a device."""
    from driple.jobs.pytorch.modules import job_of_module
    from driple.runs.tuning import tuned_step
    from driple.simulate.prepared_job import PreparedJob

    job = job_of_module(module, batch, **options)
    return tuned_step(PreparedJob.of_job(job), device, name=job.name, group=job.name, seconds=1.0)
