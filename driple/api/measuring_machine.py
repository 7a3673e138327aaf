"""The question `measure --machine`: what this machine's host, GPUs and links reach.

parts, seconds that `driple.measure.machine` finds, what the simulator predicts -> MachineFile
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any

from driple.api.measured_gpu import (
    LEAST_KERNELS,
    kernel_times,
    slower_pct,
    step_of_module,
    tuned_row,
)
from driple.api.measured_processor import ProcessorStep, processor_of
from driple.catalog.machine_file import KernelTime, MachineFacts, MachineFile, MachineHost
from driple.catalog.rows import Row
from driple.errors import ConfigError, MeasureError, MissingExtraError
from driple.extras import require_torch
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.measure.machine.clock import Effort
    from driple.measure.machine.gpu import MeasuredKernel
    from driple.measure.machine.links import LinkEffort, Ranks
    from driple.measure.machine.processor import ProcessorProgram
    from driple.measure.machine.programs import HostProgram
    from driple.runs.tuning import TunedStep
    from driple.simulate.calibration import CalibratedDevice

__all__ = [
    "PARTS",
    "QUIET_WAIT_S",
    "MachineAsked",
    "host_of",
    "measure_machine",
]

PARTS = ("host", "processor", "gpu", "copies", "links")
LAUNCH_US = 20.0
"""Microseconds of the host for a launch and all else that only a GPU asks of it, where none is
there: the usual host takes 25 us an op, and programs on tensors of the host 5 us on the machine of
this project (decision 0060). Nothing shows how far a user's host is from that."""
_ANY_GPU = "H100"  # whose host is predicted where there is no GPU: no host's pace depends on it
QUIET_WAIT_S = 10.0
"""Seconds that a quiet machine is waited for."""
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineAsked:
    """What is measured.

    Attributes:
        parts: of `PARTS`; all that there are here if None.
        data: `FILE.py:FUNCTION` of the user's data loader; None without.
        quiet_wait_s: how long a quiet machine is waited for.
        effort: how long each program runs; the usual if None.
        link_effort: the same of collectives.
    """

    parts: tuple[str, ...] | None = None
    data: str | None = None
    quiet_wait_s: float = QUIET_WAIT_S
    effort: Effort | None = None
    link_effort: LinkEffort | None = None

    def __post_init__(self) -> None:
        odd = [name for name in self.parts or () if name not in PARTS]
        if odd or self.parts == ():
            raise ConfigError(
                f"--set parts must be some of {','.join(PARTS)}, got {odd[0] if odd else 'none'!r}"
            )


@dataclass(slots=True)
class _Draft:
    """A file in the making."""

    values: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)


def measure_machine(
    asked: MachineAsked, progress: Progress = lambda _: None
) -> tuple[MachineFile | None, tuple[Remark, ...]]:
    """Measure this machine, or this process's part of several.

    Args:
        asked: parts and effort.
        progress: called with each step of the work.

    Returns:
        What was found, and what was left out and why; no file in processes of `torchrun` but the
        first.

    Raises:
        ConfigError: parts that there are not, or a data loader that fails.
        MeasureError: a part that was asked for cannot be measured here.
        MissingExtraError: PyTorch is not installed.
    """
    require_torch("measuring a machine")
    from driple.measure.machine.links import ranks_of_environment
    from driple.measure.machine.load import DISTURBING_CORES, OtherLoad
    from driple.measure.machine.loader import loader_rates, made_data

    ranks = ranks_of_environment()
    wanted = PARTS if asked.parts is None else asked.parts
    draft = _Draft()
    if ranks is not None and ranks.rank > 0:
        if "processor" in wanted and not _gpus(MachineAsked(), wanted, []):
            _timed_programs(asked, lambda _: None)  # all workers are busy at once, as in training
        if "links" in wanted:
            _measure_links(draft, asked, ranks, lambda _: None)  # the first one shows progress
        return None, ()
    data = None if asked.data is None else made_data(asked.data)
    draft.gpus = _gpus(asked, wanted, draft.remarks)
    if asked.parts is not None and "links" in wanted and ranks is None and len(draft.gpus) < 2:
        raise MeasureError(
            "links join several GPUs or machines, and one process with at most one GPU was "
            "started; start it on each by torchrun -m driple measure --machine, or leave links out"
        )
    progress("waiting for a quiet machine")
    load = OtherLoad(asked.quiet_wait_s)
    if data is not None:  # the user's code, which may fail: before what takes a minute
        draft.values["loader"] = tuple(loader_rates(data, progress=progress))
    if "host" in wanted:
        _measure_host(draft, asked, progress)
        load.look()
    if "processor" in wanted and not draft.gpus:
        _measure_processor(draft, asked, progress)
        load.look()
    if "gpu" in wanted and draft.gpus:
        _measure_gpus(draft, asked, progress)
    if "copies" in wanted and draft.gpus:
        _measure_copies(draft, asked, progress)
    if "links" in wanted:
        _measure_links(draft, asked, ranks, progress)
    in_use = any(one.code == "gpu_in_use" for one in draft.remarks)
    is_disturbed = load.most_cores > DISTURBING_CORES or in_use
    file = MachineFile(
        file="this machine",
        rows=tuple(draft.rows),
        machine=_facts(draft, load.most_cores, disturbed=is_disturbed),
        **draft.values,
    )
    measured = (file.rows, file.host, file.processor, file.collectives)
    if not any(measured):
        raise MeasureError("nothing was measured: no part that was asked for is here")
    return file, tuple(draft.remarks)


def _gpus(asked: MachineAsked, wanted: Collection[str], remarks: list[Remark]) -> list[str]:
    """Names of the GPUs; none, with the reason, where they were not asked for by name."""
    from driple.measure.machine.gpu import check_gpus, others_bytes

    try:
        names = check_gpus()
    except MeasureError as error:
        if asked.parts is not None and {"gpu", "copies"} & set(wanted):
            raise
        if {"gpu", "copies"} & set(wanted):
            remarks.append(remark("no_gpu_measured", reason=str(error)))
        return []
    for number in range(len(names)):
        held = others_bytes(number)
        if held is not None:
            remarks.append(remark("gpu_in_use", number=number, held_gib=held / 2**30))
    return names


def _facts(draft: _Draft, busy_cores: float, *, disturbed: bool) -> MachineFacts:
    from driple.measure.counters.machine import host_facts

    host = host_facts()
    return MachineFacts(
        cpu=host.cpu,
        cores=host.cores or 1,
        torch=version("torch"),
        date=datetime.datetime.now(tz=datetime.UTC).date(),
        device=draft.rows[0].name if draft.rows else None,
        num_devices=len(draft.gpus) or None,
        busy_cores=round(busy_cores, 2),
        disturbed=disturbed,
    )


def _measure_host(draft: _Draft, asked: MachineAsked, progress: Progress) -> None:
    from driple.measure.machine.clock import Clock
    from driple.measure.machine.host import measure_host

    times = measure_host(Clock.of("cuda:0" if draft.gpus else "cpu", asked.effort), progress)
    draft.values["ops"] = times.ops
    draft.values["host"] = host_of(
        times.programs,
        times.tensor_s,
        launch_us=None if draft.gpus else LAUNCH_US,
        progress=progress,
    )


def host_of(
    timed: Sequence[tuple[HostProgram, float]],
    per_tensor_s: float,
    *,
    launch_us: float | None,
    progress: Progress = lambda _: None,
) -> MachineHost:
    """The host's pace, by what the simulator predicts for the same programs.

    Args:
        timed: programs and their measured seconds.
        per_tensor_s: of each trained tensor.
        launch_us: of each launch, added to times without a GPU; None where launches count already.
        progress: called before each prediction.
    """
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.device_models import GpuModel

    calibration = shipped_calibration()
    if not isinstance(calibration.model, GpuModel):
        raise TypeError("the shipped calibration of GPUs is of another form")
    usual, device = calibration.model.host, calibration.device(_ANY_GPU)
    paces_us = []
    for program, seconds in timed:
        progress(f"host: {program.name}, predicted")
        step = _predicted(program, device)
        launches = float(step.starts.sum()) + step.update_starts
        whole_s = seconds + launches * (launch_us or 0.0) / 1e6
        paces_us.append(1e6 * usual.op_s * whole_s / step.host_s)
    return MachineHost(
        us_per_op=median(paces_us),
        low_us=min(paces_us),
        high_us=max(paces_us),
        us_per_tensor=1e6 * per_tensor_s,
        programs=len(paces_us),
        launch_us=launch_us,
    )


def _predicted(program: HostProgram, device: CalibratedDevice) -> TunedStep:
    task = {"optimizer": program.optimizer} if program.trains else {"task": "forward"}
    return step_of_module(
        program.module(), program.batch(), device, precision=program.precision, **task
    )


def _measure_processor(draft: _Draft, asked: MachineAsked, progress: Progress) -> None:
    """The three numbers of the cores; without what fits them, that is said."""
    from driple.measure.machine.processor import threads

    try:
        steps = [
            ProcessorStep.of(program.module(), program.batch(), seconds)
            for program, seconds in _timed_programs(asked, progress)
        ]
        draft.values["processor"] = processor_of(steps, threads())
    except MissingExtraError as error:
        if asked.parts is not None:
            raise
        draft.remarks.append(remark("processor_not_measured", reason=str(error)))


def _timed_programs(
    asked: MachineAsked, progress: Progress
) -> list[tuple[ProcessorProgram, float]]:
    """Programs that the processor trains, with the seconds of a step."""
    from driple.measure.machine.clock import Clock
    from driple.measure.machine.processor import step_seconds

    return step_seconds(Clock.of("cpu", asked.effort), progress)


def _measure_gpus(draft: _Draft, asked: MachineAsked, progress: Progress) -> None:
    """Each kind of GPU by its first one; of the others a few kernels, to see a slow one."""
    from driple.measure.machine.clock import Clock
    from driple.measure.machine.gpu import KERNELS, gpu_facts, kernel_seconds, memory_bytes_per_s
    from driple.measure.machine.new_device import device_values

    first: dict[str, list[MeasuredKernel]] = {}
    times: list[KernelTime] = []
    for number, name in enumerate(draft.gpus):
        clock = Clock.of(f"cuda:{number}", asked.effort)
        if name in first:
            few = [one.kernel for one in first[name]][:LEAST_KERNELS]
            timed = kernel_seconds(clock, few, progress)
            slow = slower_pct(timed, first[name])
            if slow is not None:
                draft.remarks.append(remark("slow_gpu", number=number, name=name, pct=slow))
            times += kernel_times(number, timed, None)
            continue
        first[name] = kernel_seconds(clock, KERNELS, progress)
        facts, rate = gpu_facts(number), memory_bytes_per_s(clock)
        row, steps = tuned_row(first[name], name, lambda: device_values(facts, first[name], rate))  # noqa: B023
        draft.rows.append(row)
        times += kernel_times(number, first[name], steps)
        if facts.clock_mhz is not None:
            draft.remarks.append(remark("gpu_clock", number=number, mhz=facts.clock_mhz))
    draft.values["kernels"] = tuple(times)


def _measure_copies(draft: _Draft, asked: MachineAsked, progress: Progress) -> None:
    from driple.measure.machine.clock import Clock
    from driple.measure.machine.copies import copy_rates

    rates = []
    for number in range(len(draft.gpus)):
        progress(f"cuda:{number}: copies to and from the host")
        rates += copy_rates(Clock.of(f"cuda:{number}", asked.effort))
    draft.values["copies"] = tuple(rates)


def _measure_links(
    draft: _Draft, asked: MachineAsked, ranks: Ranks | None, progress: Progress
) -> None:
    from driple.measure.machine.link_process import local_links
    from driple.measure.machine.links import LinkEffort, measure_links

    if ranks is not None:
        effort = asked.link_effort or LinkEffort()
        draft.values["collectives"] = tuple(measure_links(ranks, effort=effort, progress=progress))
    elif len(draft.gpus) > 1:
        progress(f"links: {len(draft.gpus)} GPUs of this machine")
        draft.values["collectives"] = tuple(local_links(len(draft.gpus)))
    else:
        draft.remarks.append(remark("no_links_measured"))
