"""Published runs that the simulator was checked against, each with its error when held out.

    CheckedRun, ... <-> checked_runs.json, which is installed

`stated_error` takes from them the error that belongs to one answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from driple.answers.op_mix import MIX_KINDS
from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun

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
_FACTS = (  # in the order of the columns
    "kind", "held_out", "framework", "task", "family", "devices", "num_devices", "num_servers",
    "several_machines", "link", "half", "compiled", "log_ratio", "weight", "distance", "end", "mix",
)  # fmt: skip
_OF_RUN = ("framework", "task", "family", "compiled", "weight")
_FACT_OF = {"num_workers": "num_devices"}  # by the column, where its name is another
KINDS = ("single", "ring", "sharded", "servers")
_PER_MILLE = 1000  # how finely shares are stored
_SIZES = ((1, "one device"), (8, "2 to 8 devices"), (64, "9 to 64 devices"))
_LARGEST = "more than 64 devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedRun:
    """One published run, predicted by a fit that had not seen its family, size or device.

    Attributes:
        run: of which the table keeps framework, task, family, compiler and weight.
        kind: of cluster, one of `KINDS`.
        held_out: `model` (its family), `size` (all sizes of its family at the same end), or
            `device`.
        devices: of the workers, each name once, sorted.
        num_devices: all workers.
        num_servers: parameter servers; 0 if there are none.
        several_machines: whether workers are on more than one machine.
        link: name of what joins workers, or machines; empty of a device alone.
        half: whether most multiply-adds are in half precision.
        log_ratio: ln(simulated / published) of the iteration time.
        distance: of the run's mix from the nearest that its fit had seen, of another family (of
            another size too, where the size was held out; on another device, where that was).
        end: `largest` or `smallest`, where the job is of that size of its family; else empty.
        mix: share of the time by kind of op, see `op_mix`.
    """

    run: MeasuredRun
    kind: str
    held_out: str
    devices: tuple[str, ...]
    num_devices: int
    num_servers: int
    several_machines: bool
    link: str
    half: bool
    log_ratio: float
    distance: float = 0.0
    end: str = ""
    mix: tuple[float, ...]

    @property
    def framework(self) -> str:
        """`tensorflow` or `pytorch`."""
        return self.run.framework

    @property
    def task(self) -> str:
        """`train` or `forward`."""
        return self.run.task

    @property
    def family(self) -> str:
        """Of models that were held out together."""
        return self.run.family

    @property
    def compiled(self) -> bool:
        """Whether a compiler fused the ops."""
        return self.run.compiled

    @property
    def weight(self) -> float:
        """Of the run; runs on machines of one type share a weight."""
        return self.run.weight


def size_class(num_devices: int) -> str:
    """Group of clusters by their number of devices, in words."""
    return next((words for most, words in _SIZES if num_devices <= most), _LARGEST)


def runs_to_json(runs: Sequence[CheckedRun]) -> str:
    """Text of checked_runs.json: the mixes once each, then a row per run."""
    mixes = sorted({_rounded(run.mix) for run in runs})
    at = {mix: number for number, mix in enumerate(mixes)}
    rows = ",\n".join(_line(run, at) for run in runs)
    stored = ",\n".join(json.dumps(mix, separators=(",", ":")) for mix in mixes)
    head = f'"format": {FORMAT}, "mix_kinds": {json.dumps(MIX_KINDS)}'
    column_of = {fact: column for column, fact in _FACT_OF.items()}
    columns = f'"columns": {json.dumps([column_of.get(fact, fact) for fact in _FACTS])}'
    return f'{{{head}, "mixes": [\n{stored}\n], {columns}, "runs": [\n{rows}\n]}}\n'


def _rounded(mix: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(_PER_MILLE * share) for share in mix)


def _line(run: CheckedRun, at: dict[tuple[int, ...], int]) -> str:
    values: dict[str, object] = {name: getattr(run, name) for name in _FACTS}
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
    return json.dumps([values[name] for name in _FACTS], separators=(",", ":"))


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
        facts = [_FACT_OF.get(column, column) for column in values["columns"]]
        known = _Known(mixes)
        return tuple(known.checked(dict(zip(facts, row, strict=True))) for row in values["runs"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{FILE} is damaged ({error}); make it again: scripts/make_heldout.py"
        ) from error


class _Known:
    """Runs that share what the table keeps of them share one record.

    Args:
        mixes: by their number in the table.
    """

    def __init__(self, mixes: Sequence[tuple[float, ...]]) -> None:
        self._mixes = mixes
        self._runs: dict[tuple[object, ...], MeasuredRun] = {}

    def checked(self, cells: dict[str, Any]) -> CheckedRun:
        """The run of a row of the table."""
        kept = tuple([cells.pop(fact) for fact in _OF_RUN])
        run = self._runs.get(kept)
        if run is None:
            facts = dict(zip(_OF_RUN, kept, strict=True))
            run = self._runs[kept] = MeasuredRun(**{**facts, "compiled": bool(facts["compiled"])})
        cells["mix"] = self._mixes[cells["mix"]]
        cells["devices"] = tuple(cells["devices"].split("+"))
        cells["half"] = bool(cells["half"])
        cells["several_machines"] = bool(cells["several_machines"])
        return CheckedRun(run=run, **cells)


@cache
def shipped_checked_runs() -> tuple[CheckedRun, ...]:
    """The checked runs that are installed with Driple."""
    return runs_from_json((files("driple.answers") / FILE).read_text(encoding="utf-8"))
