"""Published runs that the simulator was checked against, each with its error when held out.

    CheckedRun, ... <-> checked_runs.json, which is installed

`stated_error` takes from them the error that belongs to one answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib.resources import files

from driple.errors import ConfigError

__all__ = ["CheckedRun", "runs_from_json", "runs_to_json", "shipped_checked_runs"]

FORMAT = 1
FILE = "checked_runs.json"


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """One published run, predicted by a fit that had not seen its model, or its device.

    Attributes:
        kind: `single`, `ring` or `servers`, as of a `PublishedRun`.
        held_out: `model` or `device`.
        devices: of the workers, each name once, sorted.
        num_workers: all of them.
        num_servers: parameter servers; 0 if there are none.
        several_machines: whether workers are on more than one machine.
        link: name of what joins workers, or machines.
        half: half precision.
        error_pct: |simulated - published| / published of the iteration time, percent.
    """

    kind: str
    held_out: str
    devices: tuple[str, ...]
    num_workers: int
    num_servers: int
    several_machines: bool
    link: str
    half: bool
    error_pct: float


def runs_to_json(runs: Sequence[CheckedRun]) -> str:
    """Text of checked_runs.json, a row per run."""
    names = json.dumps([field.name for field in fields(CheckedRun)])
    rows = ",\n".join(json.dumps(astuple(run)) for run in runs)
    return f'{{"format": {FORMAT}, "columns": {names}, "runs": [\n{rows}\n]}}\n'


def runs_from_json(text: str) -> tuple[CheckedRun, ...]:
    """The inverse of `runs_to_json`.

    Raises:
        ConfigError: not such a text.
    """
    try:
        values = json.loads(text)
        if values["format"] != FORMAT:
            raise ConfigError(f"{FILE} has format {values['format']}, not {FORMAT}")
        rows = [dict(zip(values["columns"], row, strict=True)) for row in values["runs"]]
        return tuple(CheckedRun(**{**row, "devices": tuple(row["devices"])}) for row in rows)
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{FILE} is damaged ({error}); make it again: scripts/calibrate.py"
        ) from error


@cache
def shipped_checked_runs() -> tuple[CheckedRun, ...]:
    """The checked runs that are installed with Driple."""
    return runs_from_json((files("driple.estimation") / FILE).read_text(encoding="utf-8"))
