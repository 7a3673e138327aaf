"""Write docs/accuracy.md, the CSV files and the pictures of scripts/studies/published.

    python -m scripts.pages.accuracy [--check]

Everything comes from committed tables: rows, held-out predictions, the runs that stated errors are
taken from, results of studies; utilisation is simulated anew. The line on memory is read from what
`python -m scripts.pages.memory` writes. `--check` writes nothing and names what is not up to
date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from driple.answers.checked_runs import CheckedRun, shipped_run_columns
from driple.evaluation.foldfiles import read_fold
from driple.runs.measured_run import MeasuredRun
from driple.runs.published_runs import as_asked, read_published
from driple.runs.step_store import StepStore
from driple.runs.stored_steps import StoredSteps
from driple.runs.validation.held_out import read_tensorflow
from driple.runs.validation.predictions import Predictions, RowPrediction, read_predictions
from driple.runs.validation.rankings import rank_summaries
from driple.runs.validation.scores import scores_of, task_of
from driple.runs.validation.shipped import FOLDS, FORWARD, HELD_OUT, ROWS, STEPS
from driple.runs.validation.speedups import speedup_scores
from driple.runs.validation.splits import read_folds
from driple.runs.validation.utilisation import (
    UTILISATION_FILE,
    MeanUtilisation,
    predict_utilisation,
    read_utilisation,
    utilisation_scores,
)
from driple.simulate.calibration import shipped_calibration
from scripts.fits.coverage import CoveredRun, coverage_of, cross_conformal
from scripts.fits.doubts import doubts_of
from scripts.fits.reached import (
    SPLITS,
    Reached,
    errors_by,
    reached,
    reached_by_tensorflow,
    rows_of_tasks,
)
from scripts.pages.accuracy_lines import (
    Line,
    cpu_lines,
    line_table,
    memory_lines,
    own_lines,
    shown_lines,
    simulated_lines,
    task_lines,
)
from scripts.pages.accuracy_tables import (
    KINDS,
    coverage_table,
    doubt_table,
    misfit_table,
    ranking_table,
    reached_table,
    score_table,
    stated_table,
    sweep_table,
    utilisation_table,
)
from scripts.pages.accuracy_words import sentences
from scripts.pages.scatter import plot_scatter, plot_utilisation
from scripts.pages.sweep_ranks import rank_sweeps
from scripts.studies.kit.page import fill
from scripts.studies.kit.tables import read_rows
from scripts.studies.kit.written import Table, csv_files, options_of, written

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "datasets" / "runs" / "published"
PAGE = ROOT / "docs" / "accuracy.md"
HOME = ROOT / "scripts" / "studies" / "published"
TEMPLATE = HOME / "accuracy.in.md"
PICTURES = ROOT / "docs" / "pictures"
UTILISATION_PICTURE = "accuracy-utilisation.svg"
FOLDS_OF_INSPECTORS = ROOT / "datasets" / "runs" / "evaluation" / "folds"
SPLIT_ROWS, LOW_ROWS = HOME / "split_rows.csv", HOME / "low_precision_rows.csv"
_TASKS = {"train": "", "forward": ", forward pass"}
_LEAST_ROWS = 5
SWEEP_RANK = 0.85  # Spearman's correlation that is wanted of each sweep


@dataclass(frozen=True, slots=True)
class Picture:
    """A scatter plot of step times.

    Attributes:
        kind: of cluster.
        task: `train` or `forward`.
    """

    kind: str
    task: str

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"accuracy-{self.kind}{'' if self.task == 'train' else f'-{self.task}'}.svg"

    @property
    def words(self) -> str:
        """What it shows."""
        return f"{KINDS[self.kind]}{_TASKS[self.task]}"

    def runs(self) -> list[CheckedRun]:
        """Its dots: runs whose model family was left out."""
        return [
            run
            for run in shipped_run_columns().runs()
            if (run.kind, run.task, run.held_out) == (self.kind, self.task, "model")
        ]


PICTURES_OF_TIMES = tuple(Picture(kind, task) for kind in KINDS for task in _TASKS)


@cache
def rows() -> list[MeasuredRun]:
    """All published rows that can be used."""
    published = [
        row
        for name in (ROWS, FORWARD)
        for row in read_published(PUBLISHED / name, usable_only=True)
    ]
    return as_asked(published)


@cache
def held_out() -> Predictions:
    """Held-out predictions of the rows; none if there is no table of them."""
    file = PUBLISHED / HELD_OUT
    return read_predictions(file) if file.exists() else Predictions({})


@cache
def predicted() -> dict[str, list[RowPrediction | None]]:
    """Held-out predictions by split, in the order of the rows."""
    by_split = {split: [held_out().of(row.id, split) for row in rows()] for split in SPLITS}
    return {split: some for split, some in by_split.items() if any(some)}


@cache
def utilisation() -> tuple[MeanUtilisation, ...]:
    """Simulated utilisation of the published runs."""
    runs, _ = read_utilisation(PUBLISHED / UTILISATION_FILE)
    steps = StoredSteps(StepStore.open(PUBLISHED / STEPS))
    return tuple(predict_utilisation(runs, steps, shipped_calibration()))


@cache
def errors_of_tasks() -> tuple[Reached, ...]:
    """Errors of all tasks."""
    folds = read_folds(PUBLISHED / FOLDS)
    return (
        *reached(rows(), held_out(), folds),
        *reached_by_tensorflow(read_tensorflow(PUBLISHED)),
    )


@cache
def covered_runs() -> tuple[CoveredRun, ...]:
    """Runs with intervals that were made without them."""
    return tuple(cross_conformal(shipped_run_columns().runs(), read_folds(PUBLISHED / FOLDS)))


@cache
def lines() -> tuple[Line, ...]:
    """The table of the page."""
    of_tasks = task_lines(errors_of_tasks(), covered_runs(), rows_of_tasks(rows()))
    cut = next(i for i, line in enumerate(of_tasks) if line.kind == "FSDP, ZeRO") + 1
    return (
        *of_tasks[:cut],
        *simulated_lines(SPLIT_ROWS, LOW_ROWS, covered_runs()),
        *of_tasks[cut:],
        *own_lines(),
        *cpu_lines()[0],
        *memory_lines(),
    )


def tables() -> dict[str, Table]:
    """All tables, by name."""
    folds = read_folds(PUBLISHED / FOLDS)
    covered = coverage_of(covered_runs())
    own = {(split, "simulator"): some for split, some in predicted().items()}
    busy = utilisation()
    return {
        "summary": line_table(lines()),
        "tasks": reached_table(errors_of_tasks()),
        "intervals": stated_table(covered),
        "intervals_by_group": coverage_table(covered),
        "doubts": doubt_table(doubts_of(covered_runs())),
        "rankings": ranking_table(rank_summaries(rows(), predicted())),
        "sweeps": sweep_table(rank_sweeps(rows(), predicted()), SWEEP_RANK),
        "utilisation": utilisation_table(
            utilisation_scores(busy), utilisation_scores(busy, of_measured_step=True)
        ),
        "compile_speedups": score_table(speedup_scores(rows(), own, folds)),
        "errors_by_group": score_table(scores_of(rows(), own)),
        "families": _misfits("family", _family_of),
        "sources": _misfits("source", lambda row: f"{row.source}, {task_of(row)}"),
        "degrees": simulated_table(SPLIT_ROWS, ("source", "degrees")),
        "low_precision": simulated_table(LOW_ROWS, ("source", "precision")),
        "cpu_settings": cpu_lines()[1],
        "preset_paper": paper_on_families(),
    }


def _misfits(name: str, key: Callable[[MeasuredRun], str]) -> Table:
    return misfit_table(errors_by(rows(), held_out(), "family", key), name, least_rows=_LEAST_ROWS)


def _family_of(row: MeasuredRun) -> str:
    return f"{row.family}, {row.scheme}{_TASKS[row.task]}"


def simulated_table(file: Path, by: tuple[str, str]) -> Table:
    """Errors of rows that a program simulated, by two of their columns."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in read_rows(file):
        groups[row[by[0]], row[by[1]]].append(float(row["simulated_s"]) / float(row["published_s"]))
    cells = []
    for key, ratios in sorted(groups.items()):
        median, p90 = 100 * np.quantile(np.abs(np.array(ratios) - 1), [0.5, 0.9])
        cells.append([*key, str(len(ratios)), f"{median:.1f}", f"{p90:.1f}",
                      f"{np.median(ratios):.2f}"])  # fmt: skip
    return Table([*by, "rows", "median_pct", "p90_pct", "simulated_over_published"], cells)


def paper_on_families(folder: Path = FOLDS_OF_INSPECTORS) -> Table:
    """Errors of preset paper on families left out of a simulated setting: of each kept fold."""
    kept = [read_fold(file) for file in sorted(folder.glob("paper-*.json.gz"))]
    folds = [fold for fold in kept if fold is not None and ", " in fold.fold]  # others: random
    return Table(
        ["left_out", "workloads", "smape_pct", "step_mean_error_pct"],
        [
            [fold.fold.partition(", ")[0], str(fold.test.num_workloads),
             f"{fold.test.smape_pct:.0f}", f"{fold.test.iteration_time_mape_pct:.0f}"]
            for fold in sorted(folds, key=lambda fold: (-fold.test.num_workloads, fold.fold))
        ],
    )  # fmt: skip


def page_text(tables: Mapping[str, Table]) -> str:
    """The page, its numbers from the tables."""
    parts = {
        "table": shown_lines(lines()).markdown(),
        **sentences(tables, lines(), coverage_of(covered_runs()), LOW_ROWS),
    }
    return fill(TEMPLATE.read_text(encoding="utf-8"), parts)


def files() -> dict[Path, str]:
    """Text of the page and of all CSV files."""
    by_name = tables()
    return {PAGE: page_text(by_name), **csv_files(HOME, by_name)}


def draw() -> None:
    """Write the pictures."""
    for picture in PICTURES_OF_TIMES:
        if shown := picture.runs():
            plot_scatter(
                [(run.log_ratio, run.distance, run.family) for run in shown],
                PICTURES / picture.name,
                title=f"{picture.words}: {len(shown)} runs, without their model family in the fit",
            )
    points = [
        (one.run.utilisation_pct, one.util_pct, one.run.job.partition(":")[2])
        for one in utilisation()
    ]
    plot_utilisation(
        points, PICTURES / UTILISATION_PICTURE, title=f"mean utilisation of {len(points)} runs"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, the CSV files and the pictures, or check the page and the CSV files."""
    given = options_of(__doc__).parse_args(argv)
    status = written(files(), check=given.check, program="python -m scripts.pages.accuracy")
    if not given.check:
        draw()
    return status


if __name__ == "__main__":
    raise SystemExit(main())
