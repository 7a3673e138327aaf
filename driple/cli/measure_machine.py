"""`driple measure --machine`: what this machine's host, GPUs and links reach, in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from driple.cli.outputs import check_output_file
from driple.cli.progress import named_steps
from driple.cli.stopping import ending_on_sigterm
from driple.errors import ConfigError
from driple.render.remarks import sentences
from driple.render.show import note, print_json

__all__ = ["MACHINE_FILE", "measure_this_machine"]

MACHINE_FILE = "machine.toml"


def measure_this_machine(
    output: Path | None,
    *,
    parts: str,
    data: str | None,
    quiet_wait_s: float | None,
    unused: Sequence[str],
    json: bool,
) -> None:
    """Measure, write the file and print what was found.

    Args:
        output: the file; machine.toml if None.
        parts: names with commas; all that there are here if empty.
        data: `FILE.py:FUNCTION` of a data loader.
        quiet_wait_s: how long a quiet machine is waited for; the usual if None.
        unused: options that were given and are of campaigns alone.
        json: whether one JSON object is printed.

    Raises:
        ConfigError: options that do not belong here, or a file that cannot be written.
        MeasureError: a part that was asked for cannot be measured here.
    """
    from driple.api.measuring_machine import QUIET_WAIT_S, MachineAsked, measure_machine
    from driple.catalog.machine_file import machine_text
    from driple.files import atomic_write

    if unused:
        raise ConfigError(
            f"{' and '.join(unused)}: for workloads that are trained, and --machine measures the "
            f"machine; leave {'it' if len(unused) == 1 else 'them'} out"
        )
    file = output or Path(MACHINE_FILE)
    check_output_file("--output", file)
    _check_replaceable(file)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # host names that nobody can look up
    asked = MachineAsked(
        parts=tuple(name.strip() for name in parts.split(",")) if parts else None,
        data=data,
        quiet_wait_s=QUIET_WAIT_S if quiet_wait_s is None else quiet_wait_s,
    )
    with ending_on_sigterm(), named_steps() as advance:
        machine, remarks = measure_machine(asked, advance)
    if machine is None:  # the first process of torchrun writes
        return
    for words in sentences(remarks):
        note(words)
    text = machine_text(
        machine, ["Written by driple measure --machine; driple predict --machine FILE"]
    )
    try:
        atomic_write(file, text.encode(), error=ConfigError)
    except ConfigError:
        print(text, end="")  # a full disk does not cost the minute
        raise
    if json:
        print_json({**machine.to_dict(), "written": str(file)}, "measure_machine")
        return
    from driple.render.machine_lines import machine_lines

    for line in machine_lines(machine):
        print(line)
    note(f"wrote {file}; driple predict JOB --machine {file}")


def _check_replaceable(file: Path) -> None:
    """Raise ConfigError if a file that no machine was measured into would be lost."""
    from driple.catalog.machine_file import read_machine

    if not file.exists() or file.stat().st_size == 0:
        return
    try:
        read_machine(file)
    except ConfigError as error:
        raise ConfigError(
            f"--output {file}: it is there and is no machine file, which would be lost; give "
            "another name, or remove it"
        ) from error
