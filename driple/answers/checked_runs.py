"""Published runs that the simulator was checked against, each with its error when held out.

    checked_runs.json, which is installed -> RunColumns -> CheckedRun, ...

`stated_error` takes from them the error that belongs to one answer; `scripts.fits.checked_files`
writes them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import compress
from typing import Any

from driple.answers.op_mix import MIX_KINDS
from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun

__all__ = [
    "CheckedRun",
    "RunColumns",
    "shipped_run_columns",
    "size_class",
]

FORMAT = 4
FILE = "checked_runs.json"
PER_MILLE = 1000  # how finely shares are stored
_SIZES = ((1, "one device"), (8, "2 to 8 devices"), (64, "9 to 64 devices"))
_LARGEST = "more than 64 devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedRun:
    """One published run, predicted by a fit that had not seen its family, size or device.

    Attributes:
        run: of which the table keeps framework, task, family, compiler and weight.
        kind: of cluster, one of `RUN_KINDS`.
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


FIELDS = (  # in the order of the columns
    "kind", "held_out", "framework", "task", "family", "devices", "num_devices", "num_servers",
    "several_machines", "link", "half", "compiled", "log_ratio", "weight", "distance", "end", "mix",
)  # fmt: skip
_LATER = "end"  # that a file of before lacks
_OF_RUN = ("framework", "task", "family", "compiled", "weight")
_OWN = tuple(name for name in FIELDS if name not in _OF_RUN)
FLAGS = frozenset({"half", "compiled", "several_machines"})
_TEXTS = frozenset({"kind", "held_out", "framework", "task", "family", "link", "end"})


def size_class(num_devices: int) -> str:
    """Group of clusters by their number of devices, in words."""
    return next((words for most, words in _SIZES if num_devices <= most), _LARGEST)


@dataclass(frozen=True, slots=True)
class RunColumns:
    """Checked runs as they are stored, field by field; a run is made when it is asked for.

    Attributes:
        columns: values of each field of `CheckedRun`, of all runs.
    """

    columns: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, runs: Sequence[CheckedRun]) -> RunColumns:
        """Of runs."""
        return cls({name: [getattr(run, name) for run in runs] for name in FIELDS})

    @classmethod
    def from_json(cls, text: str) -> RunColumns:
        """Runs of the text of checked_runs.json.

        Raises:
            ConfigError: not such a text.
        """
        try:
            return cls(_decoded(json.loads(text)))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"{FILE} is damaged ({error}); make it again: scripts/fits/heldout.py"
            ) from error

    def runs(
        self, task: str | None = None, mixes: Container[tuple[float, ...]] | None = None
    ) -> tuple[CheckedRun, ...]:
        """Runs, in their order: those of a task and with one of some mixes; all if None."""
        rows: Iterable[tuple[Any, ...]] = zip(*self.columns.values(), strict=True)
        if task is not None:
            pairs = zip(self.columns["task"], self.columns["mix"], strict=True)
            rows = compress(
                rows, [of == task and (mixes is None or mix in mixes) for of, mix in pairs]
            )
        names, known = tuple(self.columns), cache(_run_of)
        return tuple(_checked(dict(zip(names, row, strict=True)), known) for row in rows)

    def mixes(self, task: str) -> set[tuple[float, ...]]:
        """The mixes of the runs of a task."""
        return set(compress(self.columns["mix"], [value == task for value in self.columns["task"]]))

    def devices_seen(self) -> Counter[tuple[str, bool]]:
        """How often fits saw a device in one precision: runs of any task without their family.

        Runs whose devices split a model are in no fit.
        """
        names = ("held_out", "kind", "devices", "half")
        columns = zip(*(self.columns[name] for name in names), strict=True)
        return Counter(
            (device, half)
            for held_out, kind, devices, half in columns
            if held_out == "model" and kind != "split"
            for device in devices
        )


def _run_of(*facts: Any) -> MeasuredRun:
    """What the table keeps of a run; runs that share it share one record."""
    return MeasuredRun(**dict(zip(_OF_RUN, facts, strict=True)))


def _checked(values: dict[str, Any], run_of: Callable[..., MeasuredRun]) -> CheckedRun:
    """The run of a row of the table."""
    run = run_of(*[values[name] for name in _OF_RUN])
    return CheckedRun(run=run, **{name: values[name] for name in _OWN if name in values})


def _decoded(values: dict[str, Any]) -> dict[str, Sequence[Any]]:
    """The columns of a file as values of `CheckedRun`."""
    if values["format"] != FORMAT or tuple(values["mix_kinds"]) != MIX_KINDS:
        raise ConfigError(
            f"{FILE} has format {values['format']}, not {FORMAT} with {len(MIX_KINDS)} kinds; "
            "make it again: scripts/fits/heldout.py"
        )
    columns: dict[str, Sequence[Any]] = dict(values["columns"])
    if not set(FIELDS) - {_LATER} <= set(columns) <= set(FIELDS):
        raise ConfigError(
            f"{FILE} has the columns {', '.join(columns)}; make it again: scripts/fits/heldout.py"
        )
    words, mixes = values["words"], values["mixes"]
    shares = [tuple(share / PER_MILLE for share in mix) for mix in mixes]
    devices = [tuple(word.split("+")) for word in words]
    lists: dict[str, Sequence[Any]] = {
        "mix": shares,
        "devices": devices,
        **dict.fromkeys(FLAGS, (False, True)),
    }
    lists |= dict.fromkeys(_TEXTS & columns.keys(), words)
    columns |= {
        name: list(map(values.__getitem__, columns[name]))
        for name, values in lists.items()
        if name in columns
    }
    if len({len(column) for column in columns.values()}) != 1:
        raise ConfigError(f"{FILE} is cut short; make it again: scripts/fits/heldout.py")
    return columns


@cache
def shipped_run_columns() -> RunColumns:
    """The file that is installed with Driple."""
    return RunColumns.from_json((files("driple.answers") / FILE).read_text(encoding="utf-8"))
