"""Published runs that the simulator was checked against, each with its error when held out.

    CheckedRun, ... <-> checked_runs.json, which is installed

`stated_error` takes from them the error that belongs to one answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from driple.answers.op_mix import MIX_KINDS
from driple.errors import ConfigError

__all__ = [
    "KINDS",
    "CheckedRun",
    "runs_from_json",
    "runs_to_json",
    "shipped_checked_runs",
    "size_class",
]

FORMAT = 2
FILE = "checked_runs.json"
KINDS = ("single", "ring", "sharded", "servers")
_PER_MILLE = 1000  # how finely shares are stored
_SIZES = ((1, "one device"), (8, "2 to 8 devices"), (64, "9 to 64 devices"))
_LARGEST = "more than 64 devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedRun:
    """One published run, predicted by a fit that had not seen its family, size or device.

    Attributes:
        kind: of cluster, one of `KINDS`.
        held_out: `model` (its family), `size` (all sizes of its family at the same end), or
            `device`.
        framework: `tensorflow` or `pytorch`.
        task: `train` or `forward`.
        family: of models that were held out together.
        devices: of the workers, each name once, sorted.
        num_workers: all of them.
        num_servers: parameter servers; 0 if there are none.
        several_machines: whether workers are on more than one machine.
        link: name of what joins workers, or machines; empty of a device alone.
        half: whether most multiply-adds are in half precision.
        compiled: whether a compiler fused the ops.
        log_ratio: ln(simulated / published) of the iteration time.
        weight: of the run; runs on machines of one type share a weight.
        distance: of the run's mix from the nearest that its fit had seen, of another family (of
            another size too, where the size was held out; on another device, where that was).
        end: `largest` or `smallest`, where the job is of that size of its family; else empty.
        mix: share of the time by kind of op, see `op_mix`.
    """

    kind: str
    held_out: str
    framework: str = "tensorflow"
    task: str = "train"
    family: str
    devices: tuple[str, ...]
    num_workers: int
    num_servers: int
    several_machines: bool
    link: str
    half: bool
    compiled: bool = False
    log_ratio: float
    weight: float = 1.0
    distance: float = 0.0
    end: str = ""
    mix: tuple[float, ...]


def size_class(num_workers: int) -> str:
    """Group of clusters by their number of devices, in words."""
    return next((words for most, words in _SIZES if num_workers <= most), _LARGEST)


def runs_to_json(runs: Sequence[CheckedRun]) -> str:
    """Text of checked_runs.json: the mixes once each, then a row per run."""
    mixes = sorted({_rounded(run.mix) for run in runs})
    at = {mix: number for number, mix in enumerate(mixes)}
    names = [field.name for field in fields(CheckedRun)]
    rows = ",\n".join(_line(run, at, names) for run in runs)
    stored = ",\n".join(json.dumps(mix, separators=(",", ":")) for mix in mixes)
    head = f'"format": {FORMAT}, "mix_kinds": {json.dumps(MIX_KINDS)}'
    columns = f'"columns": {json.dumps(names)}'
    return f'{{{head}, "mixes": [\n{stored}\n], {columns}, "runs": [\n{rows}\n]}}\n'


def _rounded(mix: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(_PER_MILLE * share) for share in mix)


def _line(run: CheckedRun, at: dict[tuple[int, ...], int], names: Sequence[str]) -> str:
    values: dict[str, object] = {name: getattr(run, name) for name in names}
    values |= {
        "mix": at[_rounded(run.mix)],
        "log_ratio": round(run.log_ratio, 4),
        "distance": round(run.distance, 3),
        "weight": float(f"{run.weight:.3g}"),
        "half": int(run.half),
        "compiled": int(run.compiled),
        "several_machines": int(run.several_machines),
        "devices": "+".join(run.devices),
    }
    return json.dumps([values[name] for name in names], separators=(",", ":"))


def runs_from_json(text: str) -> tuple[CheckedRun, ...]:
    """The inverse of `runs_to_json`.

    Raises:
        ConfigError: not such a text.
    """
    try:
        values = json.loads(text)
        if values["format"] != FORMAT or tuple(values["mix_kinds"]) != MIX_KINDS:
            raise ConfigError(
                f"{FILE} has format {values['format']}, not {FORMAT} with {len(MIX_KINDS)} kinds; "
                "make it again: scripts/make_heldout.py"
            )
        mixes = [tuple(share / _PER_MILLE for share in mix) for mix in values["mixes"]]
        rows = [dict(zip(values["columns"], row, strict=True)) for row in values["runs"]]
        return tuple(
            CheckedRun(
                **{
                    **row,
                    "mix": mixes[row["mix"]],
                    "devices": tuple(row["devices"].split("+")),
                    "half": bool(row["half"]),
                    "compiled": bool(row["compiled"]),
                    "several_machines": bool(row["several_machines"]),
                }
            )
            for row in rows
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{FILE} is damaged ({error}); make it again: scripts/make_heldout.py"
        ) from error


@cache
def shipped_checked_runs() -> tuple[CheckedRun, ...]:
    """The checked runs that are installed with Driple."""
    return runs_from_json((files("driple.answers") / FILE).read_text(encoding="utf-8"))
