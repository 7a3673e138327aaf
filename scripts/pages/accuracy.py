"""Write the generated part of docs/accuracy.md: tables and pictures of errors on published rows.

    python -m scripts.pages.accuracy [--check]

Everything comes from committed tables: rows, held-out predictions and the runs that stated errors
are taken from; utilisation is simulated anew. `--check` writes nothing and fails if the page is not
up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from driple.answers.checked_runs import CheckedRun, shipped_checked_runs
from driple.errors import DripleError
from driple.evaluation.foldfiles import read_fold
from driple.files import atomic_write
from driple.runs.measured_run import MeasuredRun
from driple.runs.published_runs import as_asked, read_published
from driple.runs.step_store import StepStore
from driple.runs.stored_steps import StoredSteps
from driple.runs.validation.held_out import read_tensorflow
from driple.runs.validation.predictions import Predictions, RowPrediction, read_predictions
from driple.runs.validation.rankings import rank_summaries
from driple.runs.validation.scores import scores_of, task_of
from driple.runs.validation.shipped import FOLDS, FORWARD, HELD_OUT, ROWS, STEPS
from driple.runs.validation.speedups import SPEEDUP, speedup_scores
from driple.runs.validation.splits import read_folds
from driple.runs.validation.utilisation import (
    UTILISATION_FILE,
    MeanUtilisation,
    predict_utilisation,
    read_utilisation,
    utilisation_scores,
)
from driple.simulate.calibration import shipped_calibration
from scripts.fits.coverage import (
    Coverage,
    CoveredRun,
    coverage_of,
    cross_conformal,
)
from scripts.fits.doubts import doubts_of
from scripts.fits.reached import (
    SPLITS,
    errors_by,
    reached,
    reached_by_tensorflow,
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
from scripts.pages.scatter import plot_scatter, plot_utilisation
from scripts.pages.sweep_ranks import rank_sweeps
from scripts.studies.kit.tables import markdown

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "datasets" / "runs" / "published"
PAGE = ROOT / "docs" / "accuracy.md"
PICTURES = ROOT / "docs" / "pictures"
UTILISATION_PICTURE = "accuracy-utilisation.svg"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
PAPER = ("<!-- preset paper: begin -->", "<!-- preset paper: end -->")
FOLDS_OF_INSPECTORS = ROOT / "datasets" / "runs" / "evaluation" / "folds"
_TASKS = {"train": "", "forward": ", forward pass"}
_LEAST_ROWS, _MOST_FAMILIES = 5, 20
SWEEP_RANK = 0.85  # that is wanted of each sweep


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
            for run in shipped_checked_runs()
            if (run.kind, run.task, run.held_out) == (self.kind, self.task, "model")
        ]


PICTURES_OF_TIMES = tuple(Picture(kind, task) for kind in KINDS for task in _TASKS)


@cache
def rows() -> list[MeasuredRun]:
    """All published rows that can be used."""
    found = [
        row
        for name in (ROWS, FORWARD)
        for row in read_published(PUBLISHED / name, usable_only=True)
    ]
    return as_asked(found)


@cache
def held_out() -> Predictions:
    """Held-out predictions of the rows; none if there is no table of them."""
    file = PUBLISHED / HELD_OUT
    return read_predictions(file) if file.exists() else Predictions({})


@cache
def predicted() -> dict[str, list[RowPrediction | None]]:
    """Held-out predictions by split, in the order of the rows."""
    found = {split: [held_out().of(row.id, split) for row in rows()] for split in SPLITS}
    return {split: some for split, some in found.items() if any(some)}


@cache
def utilisation() -> tuple[MeanUtilisation, ...]:
    """Simulated utilisation of the published runs."""
    runs, _ = read_utilisation(PUBLISHED / UTILISATION_FILE)
    steps = StoredSteps(StepStore.open(PUBLISHED / STEPS))
    return tuple(predict_utilisation(runs, steps, shipped_calibration()))


def part_of_page() -> str:
    """The generated text."""
    folds = read_folds(PUBLISHED / FOLDS)
    runs = cross_conformal(shipped_checked_runs(), folds)
    covered = coverage_of(runs)
    parts = [
        *_what_was_reached(runs, covered),
        *_rankings(),
        *_utilisation(),
        *_scores(),
        *_misfits(),
        "### Stated errors, group by group\n\nEach fold of families and each device was left out "
        "of the runs that the intervals come from; of a size of a known family, so were all runs "
        "of the family, whose other sizes the fit has seen. The width is upper over lower end.",
        coverage_table(covered, "kind"),
        coverage_table([one for one in covered if one.held_out == "size"], "network"),
        coverage_table(covered, "device"),
    ]
    parts += ["### Pictures", "A dot is a published run whose model family no fit had seen."]
    parts += [
        f"![simulated against published, {one.words}](pictures/{one.name})"
        for one in PICTURES_OF_TIMES
        if one.runs()
    ]
    return "\n\n".join(parts)


def _what_was_reached(runs: Sequence[CoveredRun], covered: Sequence[Coverage]) -> list[str]:
    lines = [*reached(rows(), held_out()), *reached_by_tensorflow(read_tensorflow(PUBLISHED))]
    return [
        "### Errors by task\n\nErrors are |simulated - published| / published of the step time. "
        "Columns without a remark count every row alike, so that a source with many rows of one "
        "model weighs much; those by family weigh each model family alike, and each type of "
        "machine in it. The last column is what this version aims at.",
        reached_table(lines),
        "Whether published times lie in their 90 % intervals, which were made without their family "
        "or their device. The last column names each scheme and each device with 20 "
        "runs or more whose share chance does not allow a true 90 % (binomial, two-sided, 1 % for "
        "all groups of one kind together). Each run counts alike:",
        stated_table(covered),
        "Whether a stated error separates answers that are far off: the area under the curve of "
        '"over 25 % off" against the stated 90th percentile (1 if all of them state more than the '
        "others, 0.5 by chance; 0.75 is wanted). Beside it the answers that state no error, those "
        "that are called a guess, and the others, each family weighted alike:",
        doubt_table(doubts_of(runs)),
    ]


def _rankings() -> list[str]:
    summaries = rank_summaries(rows(), predicted())
    if not summaries:
        return []
    return [
        "### Ranking\n\nConfigurations are batch, precision, length, recomputation and ZeRO or "
        "FSDP of one model on the same devices; devices are those that ran one job alone. Both are "
        "ranked by the time of a token, or of a sample. Kendall's tau is 1 for the same order and "
        "0 for one by chance. The last column is how much slower than the best the choice is that "
        "the simulator takes for the best (median over jobs).",
        ranking_table(summaries),
        "Sweeps are at least five settings of one model on one kind of device by one source: batch "
        "sizes, numbers of devices, options. Spearman's correlation of predicted and published "
        f"samples (or tokens) a second in each sweep; {SWEEP_RANK:g} is wanted:",
        sweep_table(rank_sweeps(rows(), predicted()), SWEEP_RANK),
    ]


def _utilisation() -> list[str]:
    found = utilisation()
    scores = utilisation_scores(found)
    return [
        "### Utilisation\n\nMean utilisation by NVML in real training runs against the simulated "
        "mean. No fit has seen these numbers. The last column spreads the simulated busy time over "
        "the measured time of a step, where that is known.",
        utilisation_table(scores, utilisation_scores(found, of_measured_step=True)),
        f"![simulated against measured utilisation](pictures/{UTILISATION_PICTURE})",
    ]


def _scores() -> list[str]:
    if not predicted():
        return []
    folds = read_folds(PUBLISHED / FOLDS)
    own = {(split, "simulator"): some for split, some in predicted().items()}
    speedups = speedup_scores(rows(), own, folds)
    scores = scores_of(rows(), own)
    return [
        "### Speed-up by torch.compile\n\nThe same model with and without `torch.compile`, forward "
        "passes at equal batch and size. The constant is the median speed-up of other families.",
        score_table(speedups, SPEEDUP),
        "### Errors by scheme, device, source and precision",
        *(score_table(scores, by) for by in ("task", "device", "source", "precision")),
    ]


def _misfits() -> list[str]:
    if "family" not in predicted():
        return []
    families = errors_by(rows(), held_out(), "family", _family_of)
    sources = errors_by(rows(), held_out(), "family", lambda row: f"{row.source}, {task_of(row)}")
    return [
        "### What does not fit\n\nThe families, and the sources, whose signed median is the "
        "farthest from 0 when the family is left out:",
        misfit_table(families, "family", least_rows=_LEAST_ROWS, count=_MOST_FAMILIES),
        misfit_table(sources, "source", least_rows=_LEAST_ROWS, count=_MOST_FAMILIES),
    ]


def _family_of(row: MeasuredRun) -> str:
    return f"{row.family}, {row.scheme}{_TASKS[row.task]}"


def paper_on_families(folder: Path = FOLDS_OF_INSPECTORS) -> str:
    """Errors of preset paper on families left out of a simulated setting: of each kept fold."""
    kept = [read_fold(file) for file in sorted(folder.glob("paper-*.json.gz"))]
    folds = [fold for fold in kept if fold is not None and ", " in fold.fold]  # others: random
    rows = [
        [
            f"`{fold.fold.partition(', ')[0]}`",
            str(fold.test.num_workloads),
            f"{fold.test.smape_pct:.0f} %",
            f"{fold.test.iteration_time_mape_pct:,.0f} %",
        ]
        for fold in sorted(folds, key=lambda one: (-one.test.num_workloads, one.fold))
    ]
    header = ["left out", "workloads", "SMAPE of the twelve targets", "step time, mean error"]
    workloads = sum(fold.test.num_workloads for fold in folds)
    words = f"{len(folds)} families, {workloads} workloads, have been left out so far:"
    return "\n".join([words, "", *markdown(header, rows)])


def with_part(page: str, part: str, markers: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the text between its markers replaced.

    Raises:
        SystemExit: a marker is missing.
    """
    first, last = markers
    head, begin, rest = page.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the line {first if not begin else last}")
    return f"{head}{first}\n\n{part}\n\n{last}{tail}"


def whole_page(page: str) -> str:
    """The page with all that is generated anew."""
    return with_part(with_part(page, part_of_page()), paper_on_families(), PAPER)


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
    """Write the page and the pictures, or check the page."""
    parser = argparse.ArgumentParser(description="write the generated part of docs/accuracy.md")
    parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")
    given = parser.parse_args(argv)
    page = PAGE.read_text(encoding="utf-8")
    wanted = whole_page(page)
    if given.check:
        if wanted != page:
            print(f"{PAGE} is not up to date: run scripts/pages/accuracy.py", file=sys.stderr)
        return int(wanted != page)
    atomic_write(PAGE, wanted.encode(), error=DripleError)
    draw()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
