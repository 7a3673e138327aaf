"""`driple record`: run a command, or watch a process, and record how it uses its machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.numbers import whole_number
from driple.cli.outputs import output_folder
from driple.cli.overrides import number, override, set_option, switch, text
from driple.errors import ConfigError, TraceError
from driple.estimate import estimate
from driple.render.show import note, print_json

if TYPE_CHECKING:
    from driple.api.json_types.commands import RecordJson
    from driple.measure.record.recorder import LiveView
    from driple.measure.record.steps import StepTimes
    from driple.measure.record.store import HostRecord

__all__ = ["record"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a record."""

    period_ms: float = number(10.0, "milliseconds between two samples", least=1, most=60_000)
    interfaces: str | None = text(
        None, "network interfaces to count, such as eth0,eth1; those that carry the host's traffic"
    )
    allocations: bool = switch(
        True, "without a GPU, count the bytes that the command allocates (LD_PRELOAD)"
    )


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="the command to run, after --"),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(
            help="a running process to watch, in place of a command",
            callback=whole_number(1, 2**31 - 1),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="folder to write; default: runs/record-DATE-TIME",
            callback=output_folder,
        ),
    ] = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: Annotated[
        bool, typer.Option("--json", help="one JSON object, after what the command prints")
    ] = False,
) -> None:
    """Record how a job uses CPU, GPUs, memory, disk and network, a sample every 10 ms.

    The command's exit status is passed on. Call driple.mark_step() at the end of each step of the
    script; without marks, steps are the period of the traces. On several machines, record on each.

    Examples:

      driple record -o runs/a -- python train.py

      driple record --pid 4711 -o runs/b

      torchrun --nnodes 2 ... is recorded on each machine: driple record -o runs/c -- torchrun ...
    """
    from driple.extras import driple_version
    from driple.measure.record.recorder import RecordPlan, record_command, record_process

    values = override(_Values, set_)
    if bool(command) == (pid is not None):
        raise ConfigError(
            "driple record needs a command after -- or --pid PID, and not both; such as driple "
            "record -- python train.py"
        )
    folder = output or Path("runs") / time.strftime("record-%Y%m%d-%H%M%S")
    plan = RecordPlan(
        folder=folder,
        period_s=values.period_ms / 1000,
        interfaces=tuple((values.interfaces or "").replace(",", " ").split()),
        allocations=values.allocations,
        version=driple_version(),
    )
    status = 0
    if command:
        status = record_command(command, plan, show=_live_line(), say=note)
    elif pid is not None:
        record_process(pid, plan, show=_live_line(), say=note)
    _summarize(folder, json=json)
    raise SystemExit(status)


def _live_line() -> Callable[[LiveView], None]:
    """Shows the last second in one line of a terminal; elsewhere nothing."""
    from rich.console import Console

    from driple.render.record_lines import live_text
    from driple.render.terminal import unescaped

    console = Console(file=unescaped(sys.stderr), highlight=False)

    def show(view: LiveView) -> None:
        if console.is_terminal:
            room = console.width - 1
            console.print(live_text(view)[:room].ljust(room), end="\r", overflow="crop")

    return show


def _summarize(folder: Path, *, json: bool) -> None:
    """What was recorded: on stderr, as stdout is the job's; with --json a last line of stdout."""
    from driple.measure.record.steps import steps_of
    from driple.measure.record.store import read_record
    from driple.render.record_lines import record_lines

    try:
        record = read_record(folder)
    except TraceError as error:
        note(str(error))
        return
    steps: StepTimes | TraceError
    try:
        steps = steps_of(record)
    except TraceError as error:
        steps = error
    if json:
        print_json(_json(record, None if isinstance(steps, TraceError) else steps), "record")
        return
    for line in record_lines(record, steps):
        note(line)


def _json(record: HostRecord, steps: StepTimes | None) -> RecordJson:
    samples, about = record.samples, record.about
    return {
        "folder": str(record.folder),
        "status": None if about.end is None else about.end.status,
        "seconds": float(samples.before_ns[-1] - samples.before_ns[0]) / 1e9,
        "samples": len(samples.before_ns),
        "sampler_pct": None
        if about.end is None
        else 100 * about.end.sampler_cpu_s / about.end.seconds,
        "steps": None
        if steps is None
        else {
            "source": steps.source,
            "iteration_time_s": estimate(steps.step_s, "measured", "measured"),
            "low_s": steps.low_s,
            "high_s": steps.high_s,
            "num_steps": steps.num_steps,
            "ambiguous_s": steps.ambiguous_s,
        },
        "missing": about.missing,
        "log": about.log,
    }
