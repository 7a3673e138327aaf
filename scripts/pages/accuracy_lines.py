"""Lines of the table of docs/accuracy.md: errors and intervals of each kind of job.

Reached, CoveredRun, ...; CSV files of programs and studies -> Line, ... -> Table

Rows count alike, so that a source with many rows weighs much. Runs with an interval are those that
answers take their errors from, repeats of a job on like machines being one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driple.answers.checked_runs import CheckedRun
from driple.runs.measured_run import ALL_REDUCE, MeasuredRun
from scripts.fits.coverage import CoveredRun
from scripts.fits.reached import CONSTANT_TASK, SPEEDUP_TASK, Reached
from scripts.pages.accuracy_tables import SPLIT_WORDS
from scripts.studies.kit.results import pick, read_results
from scripts.studies.kit.tables import read_rows
from scripts.studies.kit.written import Table

__all__ = [
    "NO_FIT",
    "Line",
    "Stated",
    "cpu_lines",
    "line_table",
    "memory_lines",
    "own_lines",
    "shown_lines",
    "simulated_lines",
    "stated_of",
    "task_lines",
]

STUDIES = Path(__file__).resolve().parents[1] / "studies"
NO_FIT = "all"  # rows that no fit has seen
_VISION = "one GPU, vision, training in PyTorch (family left out: RTX 3090)"
_SHOWN = (  # task and what is left out -> words
    (_VISION, "family", "training, vision"),
    (_VISION, "device", "training, vision"),
    ("one GPU, transformers of language, training", "family", "training, transformers"),
    ("one GPU, transformers of language, training", "device", "training, transformers"),
    ("one GPU, speech, recommenders, recurrent translation, training", "family",
     "speech, recommenders, recurrent"),
    ("one GPU, vision, forward pass (three GPUs)", "family", "forward, vision"),
    ("one GPU, vision, forward pass (three GPUs)", "device", "forward, vision"),
    ("DDP, 2 to 320 GPUs", "family", "DDP"),
    ("DDP, MLPerf, 8 to 3,456 GPUs", "family", "MLPerf"),
    ("FSDP and ZeRO, 1 to 512 GPUs", "family", "FSDP, ZeRO"),
    (SPEEDUP_TASK, "family", "`torch.compile`'s speed-up"),
    (CONSTANT_TASK, "family", "a constant instead"),
    ("one GPU, TensorFlow", "family", "TensorFlow"),
    ("all-reduce, TensorFlow", "family", "TensorFlow, all-reduce"),
    ("parameter servers, TensorFlow, source zeng", "family", "TensorFlow, servers"),
)  # fmt: skip
_TENSORFLOW_KINDS = {
    "one GPU, TensorFlow": "single",
    "all-reduce, TensorFlow": "ring",
    "parameter servers, TensorFlow, source zeng": "servers",
}
_HELD_OUT = {"family": "model", "device": "device"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """How 90 % intervals hold.

    Attributes:
        runs: with an interval.
        inside_pct: share of them whose measured value is inside.
        width: median of upper over lower end; None if it was not kept.
    """

    runs: int
    inside_pct: float
    width: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One kind of job.

    Attributes:
        kind: in words.
        left_out: of the fits, in words.
        rows: measured.
        median_pct: of |predicted - measured| / measured.
        p90_pct: 90th percentile; None if it was not kept.
        aims_pct: median and 90th percentile that are aimed at; None without an aim.
        stated: intervals; None if none is stated.
    """

    kind: str
    left_out: str
    rows: int
    median_pct: float
    p90_pct: float | None
    aims_pct: tuple[float, float] | None = None
    stated: Stated | None = None

    @property
    def misses(self) -> tuple[bool, bool]:
        """Whether median and 90th percentile are above their aims."""
        if self.aims_pct is None:
            return False, False
        return (
            round(self.median_pct, 1) > self.aims_pct[0],
            self.p90_pct is not None and round(self.p90_pct) > self.aims_pct[1],
        )


def stated_of(runs: Sequence[CoveredRun]) -> Stated | None:
    """How intervals of some runs hold, each run alike; None without a run."""
    known = [run for run in runs if run.stated.num_runs]
    if not known:
        return None
    return Stated(
        runs=len(known),
        inside_pct=100 * float(np.mean([run.is_inside for run in known])),
        width=float(np.median([run.width for run in known])),
    )


def task_lines(
    reached: Sequence[Reached],
    covered: Sequence[CoveredRun],
    rows_of: Mapping[tuple[str, str], Sequence[MeasuredRun]],
) -> list[Line]:
    """Lines of published rows, which some fit predicted without their family or device.

    Args:
        reached: errors of all tasks.
        covered: runs with their intervals.
        rows_of: rows of each task in PyTorch, by task and by what is left out.
    """
    known = {(line.task, line.split): line for line in reached}
    lines = []
    for task, split, words in _SHOWN:
        line = known[task, split]
        if line.errors is None:
            continue
        is_of = _test_of(task, rows_of.get((task, split), ()))
        runs = [run for run in covered if run.run.held_out == _HELD_OUT[split] and is_of(run.run)]
        lines.append(
            Line(
                kind=words,
                left_out=SPLIT_WORDS[split].removeprefix("model "),
                rows=line.errors.rows,
                median_pct=line.errors.median_pct,
                p90_pct=line.errors.p90_pct,
                aims_pct=_aims(line),
                stated=stated_of(runs),
            )
        )
    return lines


def _aims(line: Reached) -> tuple[float, float] | None:
    if line.wanted_median_pct is None or line.wanted_p90_pct is None:
        return None
    return line.wanted_median_pct, line.wanted_p90_pct


def _test_of(task: str, rows: Sequence[MeasuredRun]) -> Callable[[CheckedRun], bool]:
    """Whether a run is of a task: of its kind in TensorFlow, else like one of the task's rows."""
    if task in _TENSORFLOW_KINDS:
        kind = _TENSORFLOW_KINDS[task]
        return lambda run: (run.framework, run.kind) == ("tensorflow", kind)
    keys = {
        (_kind_of(row), row.task, row.family, row.device, row.num_devices)
        for row in rows
        if row.library  # others state no error
    }

    def is_of(run: CheckedRun) -> bool:
        key = (run.kind, run.task, run.family, "+".join(run.devices), run.num_devices)
        return run.framework == "pytorch" and key in keys

    return is_of


def _kind_of(row: MeasuredRun) -> str:
    return "ring" if row.scheme == ALL_REDUCE else row.scheme


def simulated_lines(split_rows: Path, low_rows: Path, covered: Sequence[CoveredRun]) -> list[Line]:
    """Rows whose devices share a model, and rows in 8 and 4 bits: no fit has seen either."""
    split = [row for row in read_rows(split_rows) if row["degrees"] != "single"]
    runs = [run for run in covered if run.run.kind == "split"]
    return [
        _line_of(
            "tensor, pipeline, context, expert parallel", split, (12.0, 35.0), stated_of(runs)
        ),
        _line_of("FP8, FP4", read_rows(low_rows), (15.0, 40.0), None),
    ]


def _line_of(
    kind: str,
    rows: Sequence[Mapping[str, str]],
    aims_pct: tuple[float, float],
    stated: Stated | None,
) -> Line:
    ratios = [float(row["simulated_s"]) / float(row["published_s"]) for row in rows]
    median, p90 = _errors(ratios)
    return Line(
        kind=kind, left_out=NO_FIT, rows=len(rows), median_pct=median, p90_pct=p90,
        aims_pct=aims_pct, stated=stated,
    )  # fmt: skip


def _errors(ratios: Sequence[float]) -> tuple[float, float]:
    median, p90 = 100 * np.quantile(np.abs(np.array(ratios) - 1), [0.5, 0.9])
    return float(median), float(p90)


def own_lines(results: Path = STUDIES / "own_jobs" / "results.jsonl") -> list[Line]:
    """Jobs as people write them, on a machine of which nothing was known."""
    jobs = pick(read_results(results), kind="job")
    median, p90 = _errors([job["predicted_s"] / job["step_s"] for job in jobs])
    ends = [(*job["ends_s"], job["step_s"]) for job in jobs]
    stated = Stated(
        runs=len(jobs),
        inside_pct=100 * float(np.mean([low <= step <= high for low, high, step in ends])),
        width=float(np.median([high / low for low, high, _ in ends])),
    )
    return [
        Line(kind="own jobs, H200", left_out=NO_FIT, rows=len(jobs), median_pct=median,
             p90_pct=p90, stated=stated)
    ]  # fmt: skip


def cpu_lines(folder: Path = STUDIES / "accuracy") -> tuple[list[Line], Table]:
    """The inspectors of measured CPU settings on families left out: a line, and each setting.

    The line has the median over settings; a share of all workloads is inside.
    """
    errors = json.loads((folder / "unseen-families.json").read_bytes())
    inside = {
        row["setting"]: (int(row["predictions"]), float(row["time_pct"]), row["targets_pct"])
        for row in read_rows(folder / "coverage.csv")
        if (row["split"], row["part"]) == ("family", "all") and row["setting"] in errors
    }
    medians = [own["shipped"]["iteration_time_median_pct"] for own in errors.values()]
    workloads = sum(count for count, _, _ in inside.values())
    stated = Stated(
        runs=workloads,
        inside_pct=sum(count * pct for count, pct, _ in inside.values()) / workloads,
        width=None,
    )
    table = Table(
        ["setting", "workloads", "step_median_pct", "step_median_of_trees_pct", "smape_pct",
         "smape_of_trees_pct", "steps_inside_pct", "targets_inside_pct"],
        [
            [setting, str(inside[setting][0]),
             f"{own['shipped']['iteration_time_median_pct']:.1f}",
             f"{own['trees']['iteration_time_median_pct']:.1f}",
             f"{own['shipped']['smape_pct']:.1f}", f"{own['trees']['smape_pct']:.1f}",
             f"{inside[setting][1]:g}", inside[setting][2]]
            for setting, own in errors.items()
        ],
    )  # fmt: skip
    line = Line(
        kind=f"CPU settings ({len(medians)})", left_out="family", rows=workloads,
        median_pct=float(np.median(medians)), p90_pct=None, stated=stated,
    )  # fmt: skip
    return [line], table


def memory_lines(summary: Path = STUDIES / "memory" / "published" / "summary.csv") -> list[Line]:
    """Memory of a device on published runs, by the table that write_memory_page writes."""
    (row,) = (
        row
        for row in read_rows(summary)
        if (row["where"], row["number"]) == ("published", "device")
    )
    stated = Stated(
        runs=int(row["interval_runs"]),
        inside_pct=float(row["inside_pct"]),
        width=float(row["width"]),
    )
    return [
        Line(kind="[memory of a device](memory.md)", left_out="family", rows=int(row["runs"]),
             median_pct=float(row["median_pct"]), p90_pct=float(row["p90_pct"]), stated=stated)
    ]  # fmt: skip


def line_table(lines: Sequence[Line]) -> Table:
    """All that is known of each line."""
    return Table(
        ["kind", "left_out", "rows", "median_pct", "p90_pct", "aim_median_pct", "aim_p90_pct",
         "interval_runs", "inside_pct", "median_width"],
        [
            [line.kind, line.left_out, str(line.rows), f"{line.median_pct:.1f}",
             _number(line.p90_pct, 1),
             *(("", "") if line.aims_pct is None else (f"{aim:g}" for aim in line.aims_pct)),
             *(("", "", "") if line.stated is None else (
                 str(line.stated.runs), f"{line.stated.inside_pct:.1f}",
                 _number(line.stated.width, 2)))]
            for line in lines
        ],
    )  # fmt: skip


def shown_lines(lines: Sequence[Line]) -> Table:
    """The table of the page; a figure that misses its aim is bold."""
    return Table(
        ["kind of job", "left out", "rows", "median, %", "90th, %", "aims", "inside, %", "width"],
        [
            [line.kind, line.left_out, f"{line.rows:,}",
             _bold(f"{line.median_pct:.1f}", line.misses[0]),
             _bold(_number(line.p90_pct, 0), line.misses[1]),
             "" if line.aims_pct is None else "{:g}/{:g}".format(*line.aims_pct),
             "" if line.stated is None else f"{line.stated.inside_pct:.0f}",
             "" if line.stated is None else _number(line.stated.width, 1)]
            for line in lines
        ],
    )  # fmt: skip


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
