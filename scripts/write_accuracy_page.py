"""Write the generated part of docs/accuracy.md: tables and pictures of errors on published rows.

    python scripts/write_accuracy_page.py [--check]

Everything comes from committed tables: rows, held-out predictions and the runs that stated errors
are taken from. `--check` writes nothing and fails if the page is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.calibration.benchmark.coverage import Coverage, coverage_of, cross_conformal
from driple.calibration.benchmark.from_published import benchmark_rows
from driple.calibration.benchmark.predictions import Prediction, Predictions, read_predictions
from driple.calibration.benchmark.rows import BenchmarkRow
from driple.calibration.benchmark.scores import GroupScore, scores_of
from driple.calibration.benchmark.shipped import FOLDS, FORWARD, HELD_OUT, ROWS
from driple.calibration.benchmark.splits import read_folds
from driple.calibration.published_rows import read_published_rows
from driple.errors import DripleError
from driple.estimation.checked_runs import CheckedRun, shipped_checked_runs
from driple.files import atomic_write
from driple.plot.scatter import plot_scatter

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "datasets" / "published"
PAGE = ROOT / "docs" / "accuracy.md"
PICTURES = ROOT / "docs" / "pictures"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
_SPLITS = {"model": "model family", "device": "device", "family": "model family"}
_KINDS = {
    "single": "one device",
    "ring": "all-reduce",
    "sharded": "sharded",
    "servers": "parameter servers",
}


def coverage_table(found: Sequence[Coverage], by: str) -> str:
    """How well stated intervals hold, by one property of the runs."""
    lines = [
        f"| {by} | task | held out | runs | in the 90 % interval | below the stated 90th "
        "percentile | width |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {_KINDS.get(one.group, one.group)} | {one.task} | {_SPLITS[one.held_out]} | {one.runs} "
        f"| {one.coverage_pct:.0f} % | {one.below_p90_pct:.0f} % | {one.width:.2f} |"
        for one in found
        if one.by == by
    ]
    return "\n".join(lines)


def score_table(scores: Sequence[GroupScore], by: str) -> str:
    """Errors of the simulator by one property of the rows."""
    lines = [
        f"| {by} | mode | held out | rows | families | median | 90th percentile | signed median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.group} | {one.mode} | {one.split} | {one.rows} | {one.families} | "
        f"{one.median_pct:.1f} % | {one.p90_pct:.1f} % | {one.signed_pct:+.1f} % |"
        for one in scores
        if one.by == by
    ]
    return "\n".join(lines)


def scores() -> list[GroupScore]:
    """Errors of held-out predictions of the published rows; none if there are no predictions."""
    if not (PUBLISHED / HELD_OUT).exists():
        return []
    predictions = read_predictions(PUBLISHED / HELD_OUT)
    rows = benchmark_rows(
        [
            row
            for name in (ROWS, FORWARD)
            for row in read_published_rows(PUBLISHED / name, usable_only=True)
        ]
    )
    return scores_of(rows, _predicted(rows, predictions))


def _predicted(
    rows: Sequence[BenchmarkRow], predictions: Predictions
) -> Mapping[tuple[str, str], Sequence[Prediction | None]]:
    found = {
        (split, "simulator"): [predictions.of(row.row_id, split) for row in rows]
        for split in ("family", "device", "source")
    }
    return {key: row for key, row in found.items() if any(row)}


def part_of_page() -> tuple[str, tuple[CheckedRun, ...]]:
    """The generated text, and the runs that its pictures show."""
    runs = shipped_checked_runs()
    folds = read_folds(PUBLISHED / FOLDS)
    covered = coverage_of(cross_conformal(runs, folds))
    found = scores()
    parts = []
    if found:
        parts += ["Errors of the step time by task:", score_table(found, "task")]
        parts += ["By device:", score_table(found, "device")]
        parts += ["By source:", score_table(found, "source")]
    parts += [
        "How well the stated intervals hold on runs that they were not made from, with each fold "
        "of families and each device left out in turn. The width is upper over lower end:",
        coverage_table(covered, "kind"),
        coverage_table(covered, "device"),
    ]
    parts += [
        f"![simulated against published, {words}](pictures/accuracy-{kind}.svg)"
        for kind, words in _KINDS.items()
        if any(run.kind == kind for run in runs)
    ]
    return "\n\n".join(parts), runs


def with_part(page: str, part: str) -> str:
    """The page with the text between its markers replaced.

    Raises:
        SystemExit: a marker is missing.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the line {BEGIN if not begin else END}")
    return f"{head}{BEGIN}\n\n{part}\n\n{END}{tail}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page and the pictures, or check the page."""
    parser = argparse.ArgumentParser(description="write the generated part of docs/accuracy.md")
    parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")
    given = parser.parse_args(argv)
    page = PAGE.read_text(encoding="utf-8")
    part, runs = part_of_page()
    wanted = with_part(page, part)
    if given.check:
        if wanted != page:
            print(f"{PAGE} is not up to date: run scripts/write_accuracy_page.py", file=sys.stderr)
        return int(wanted != page)
    atomic_write(PAGE, wanted.encode(), error=DripleError)
    for kind, words in _KINDS.items():
        shown = [run for run in runs if run.kind == kind and run.held_out == "model"]
        if shown:
            plot_scatter(
                [(run.log_ratio, run.distance, run.family) for run in shown],
                PICTURES / f"accuracy-{kind}.svg",
                title=f"{words}: {len(shown)} runs, without their model family in the fit",
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
