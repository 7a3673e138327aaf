"""The figures of the Driple paper, each beside what the simulation says.

driple_paper.csv, jobs, a simulated data set -> Fact, Fact, ... (paper, simulated)

Values, ratios and idle to burst are of single workloads; pattern shares and ranges are over the
whole catalogue.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.errors import ConfigError
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import Simulation, simulate
from driple.trace.targets import FIGURES, RESOURCES, TARGET_NAMES

__all__ = ["Fact", "check_facts", "read_facts", "workloads_of"]

Row = Mapping[str, str]
_COLUMNS = ("section", "kind", "workload", "setting", "against_workload", "against_setting",
            "quantity", "value", "unit", "note")  # fmt: skip
_CYCLE = ("idle", "burst")
_WHOLE = "all"  # stands for the whole catalogue


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One figure of the paper.

    Attributes:
        section: of the paper.
        what: kind of figure, workload, settings and quantity, in words.
        unit: of both figures; empty for a ratio.
        paper: its figure.
        simulated: ours; None where there is nothing to take it from.
        note: what the paper leaves open.
    """

    section: str
    what: str
    unit: str
    paper: float
    simulated: float | None
    note: str


def read_facts(file: Path) -> list[Row]:
    """The rows of driple_paper.csv.

    Raises:
        ConfigError: it is missing or damaged.
    """
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != _COLUMNS:
                raise ConfigError(f"{file} needs the columns {', '.join(_COLUMNS)}")
            return list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"cannot read {file}: {error}; the figures of the paper come with a checkout of Driple"
        ) from error


def workloads_of(rows: Sequence[Row]) -> list[str]:
    """Names of the single workloads that the rows speak of, each once."""
    named = [row[column] for row in rows for column in ("workload", "against_workload")]
    return sorted({name for name in named if name and name != _WHOLE})


def check_facts(
    rows: Sequence[Row],
    jobs: Mapping[str, PreparedJob],
    calibration: Calibration,
    whole: Dataset | None = None,
    *,
    num_steps: int = 100,
) -> list[Fact]:
    """Simulate what each row speaks of.

    Args:
        rows: as `read_facts` gives them.
        jobs: by the name of the workload.
        calibration: what devices and links reach of their peaks.
        whole: the simulated data set of the whole catalogue, if there is one.
        num_steps: steps of the fastest worker.

    Raises:
        ConfigError: a row of an unknown kind or quantity.
    """
    known: dict[tuple[str, str], Simulation] = {}

    def on(workload: str, setting: str) -> Simulation:
        key = (workload, setting)
        if key not in known:
            job = jobs[workload]
            known[key] = simulate(job, Setting.parse(setting), calibration, num_steps=num_steps)
        return known[key]

    return [_fact(row, partial(_simulated, row, jobs, on, whole)) for row in rows]


def _fact(row: Row, simulated: Callable[[], float | None]) -> Fact:
    against = " ".join(filter(None, (row["against_workload"], row["against_setting"])))
    parts = [row["kind"], row["workload"], row["setting"], f"against {against}" if against else "",
             row["quantity"]]  # fmt: skip
    return Fact(
        section=row["section"],
        what=", ".join(filter(None, parts)),
        unit=row["unit"],
        paper=_number(row["value"]),
        simulated=simulated(),
        note=row["note"],
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"figures of the paper: '{text}' is no number") from error


def _simulated(
    row: Row,
    jobs: Mapping[str, PreparedJob],
    on: Callable[[str, str], Simulation],
    whole: Dataset | None,
) -> float | None:
    """Our figure of a row."""
    kind, quantity = row["kind"], row["quantity"]
    if row["workload"] == _WHOLE:
        return None if whole is None else _of_whole(kind, quantity, whole)
    other = row["against_workload"] or row["workload"]
    if row["workload"] not in jobs or other not in jobs:
        return None
    simulation = on(row["workload"], row["setting"])
    if kind == "idle to burst":
        return _over(*(_quantity(simulation, f"{quantity}.{name}_duration") for name in _CYCLE))
    value = _quantity(simulation, quantity)
    if kind == "value":
        return value
    others = [
        _quantity(on(other, setting), quantity)
        for setting in row["against_setting"].split() or [row["setting"]]
    ]
    if kind == "ratio":
        return _over(value, others[0])
    if kind == "largest ratio":
        return _over(max(value, *others), min(value, *others))
    raise ConfigError(f"figures of the paper: '{kind}' is no kind of row")


def _over(above: float, below: float) -> float | None:
    """Their ratio, if there is one."""
    return above / below if below else None


def _quantity(simulation: Simulation, name: str) -> float:
    if name == "iteration_time":
        return simulation.iteration_time_s
    resource, _, figure = name.partition(".")
    try:
        return simulation.targets.to_dict()[resource][figure]
    except KeyError as error:
        raise ConfigError(f"figures of the paper: '{name}' is no quantity") from error


def _of_whole(kind: str, quantity: str, whole: Dataset) -> float:
    """A figure over a whole data set."""
    resource, _, figure = quantity.partition(".")
    if kind == "pattern share" and resource in RESOURCES:
        patterns = [str(item.details.get(f"pattern_{resource}")) for item in whole.examples]
        return 100 * patterns.count(figure) / len(patterns)
    if kind == "range" and resource in RESOURCES and figure in FIGURES:
        column = whole.targets()[:, TARGET_NAMES.index(quantity)]
        return float(column.max() - column.min())
    raise ConfigError(f"figures of the paper: no '{kind}' of '{quantity}'")
