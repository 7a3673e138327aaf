"""The question `validate`: how far the simulator is from what others measured.

folder of published runs -> fits without each model and device -> ValidateResult
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from driple.api.arguments import PathLike, path_of, paths_of
from driple.api.benchmarking import (
    OwnRun,
    contest_of_published,
    contest_of_table,
    entry_of_published,
    own_runs_of,
    utilisation_of_published,
)
from driple.api.results import Cell, Result
from driple.codec import Json, to_dict
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.api.json_types.validate import ValidateJson
    from driple.dataset.example import Dataset
    from driple.runs.validation.contest import Contest
    from driple.runs.validation.entry import EntryScore
    from driple.runs.validation.held_out import ErrorRow
    from driple.runs.validation.paper_figures import Fact
    from driple.runs.validation.rankings import RankSummary
    from driple.runs.validation.scores import GroupScore
    from driple.runs.validation.utilisation import UtilisationScore

__all__ = ["ValidateResult", "validate"]

# Places within the folder of published data.
_TABLES, _PAPER_GRAPHS = "runs/published", "graphs/paper"
_FACTS = "driple_paper.csv"
_WHOLE = "settings/V100-P1w2_ho-PCIe"  # the simulated data set of the whole catalogue


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class ValidateResult(Result):
    """Errors of predicted iteration times on published runs.

    Attributes:
        errors: on TensorFlow runs, by kind of cluster, what was held out of the fit, and source;
            percent.
        facts: figures of the Driple paper, and what the simulator gives for them.
        remarks: what is missing.
        scores: of the simulator, the baselines and predictions of another tool on rows of the
            benchmark, by group of rows.
        rankings: how well the simulator ranks configurations of a job, and devices.
        utilisation: simulated against measured mean utilisation of devices, by model.
        runs: of the user's own table, each beside its prediction; empty without one.
        entry: errors of another tool's predictions in each split, and the simulator's on the same
            rows; empty without them.
    """

    errors: tuple[ErrorRow, ...]
    facts: tuple[Fact, ...]
    remarks: tuple[Remark, ...] = ()
    scores: tuple[GroupScore, ...] = ()
    rankings: tuple[RankSummary, ...] = ()
    utilisation: tuple[UtilisationScore, ...] = ()
    runs: tuple[OwnRun, ...] = ()
    entry: tuple[EntryScore, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple validate --json` prints."""
        errors: ValidateJson = {
            "question": "validate",
            "errors": self.errors,
            "facts": self.facts,
            "remarks": self.remarks,
            "scores": self.scores,
            "rankings": self.rankings,
            "utilisation": self.utilisation,
            "runs": [own.to_dict() for own in self.runs],
            "entry": self.entry,
        }
        return to_dict(errors)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per group of rows, split and predictor."""
        own: list[dict[str, Cell]] = [
            {
                "by": "kind",
                "group": f"TensorFlow {one.kind}, {one.source}",
                "mode": "train",
                "split": "family" if one.held_out == "model" else one.held_out,
                "predictor": predictor,
                "rows": one.rows,
                "median_pct": median,
                "p90_pct": p90,
            }
            for one in self.errors
            for predictor, median, p90 in (
                ("simulator", one.median_pct, one.p90_pct),
                ("roofline", one.roofline_median_pct, one.roofline_p90_pct),
            )
        ]
        return [*own, *(cast("dict[str, Cell]", to_dict(one)) for one in self.scores)]


def validate(
    datasets: PathLike = "datasets",
    *,
    rows: PathLike | None = None,
    against: PathLike | None = None,
    forward: bool = False,
    progress: Callable[[str], None] | None = None,
) -> ValidateResult:
    """Score the simulator, and baselines, on published steps that their fits had not seen.

    Args:
        datasets: folder with published measurements and graphs of their models.
        rows: a table of one's own to score on, in place of the published runs.
        against: predictions of another tool for the same rows; published rows are then scored for
            it and the held-out simulator alone, in seconds.
        forward: whether published forward passes take part.
        progress: called with each step of the work.

    Raises:
        DatasetError: the folder lacks published measurements or graphs.
        MissingExtraError: a package is not installed that the comparison or a fit needs.
        ConfigError: a table is missing or not as described; the message names line and column.
    """
    from driple.runs.validation.baselines import require_trees

    advance = progress or (lambda _: None)
    (folder,) = paths_of("--datasets", datasets)
    own, other = path_of("--rows", rows), path_of("--against", against)
    published = folder / _TABLES
    if own is None and other is not None:
        return _result(entry_of_published(published, forward=forward, against=other))
    require_trees()
    if own is not None:
        contest = contest_of_table(own, published, against=other, progress=advance)
        return replace(_result(contest), runs=tuple(own_runs_of(contest)))
    result = _tensorflow(folder)  # first: what it lacks ends it early
    rows_contest = contest_of_published(published, forward=forward, progress=advance)
    if rows_contest is None:
        return result
    return replace(
        result,
        remarks=(*result.remarks, *rows_contest.remarks),
        scores=tuple(rows_contest.scores()),
        rankings=tuple(rows_contest.rankings()),
        utilisation=tuple(utilisation_of_published(published, progress=advance)),
    )


def _result(contest: Contest) -> ValidateResult:
    """Scores of a contest alone."""
    return ValidateResult(
        errors=(),
        facts=(),
        remarks=contest.remarks,
        scores=tuple(contest.scores()),
        rankings=tuple(contest.rankings()),
        entry=tuple(contest.entry()),
    )


def _tensorflow(datasets: Path) -> ValidateResult:
    """Runs of TensorFlow, predicted without each model and each device; and figures of the paper.

    The predictions are committed, as their fits take minutes: `scripts/fits/heldout.py`.
    """
    from driple.dataset.graph_store import GraphStore
    from driple.runs.validation.held_out import error_rows, read_tensorflow
    from driple.runs.validation.paper_figures import check_facts, read_facts, workloads_of
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    rows = read_facts(datasets / _TABLES / _FACTS)
    store = GraphStore.open(datasets / _PAPER_GRAPHS)
    predictions = read_tensorflow(datasets / _TABLES)
    jobs = {
        name: PreparedJob(store.graph(name)) for name in workloads_of(rows) if name in store.places
    }
    whole, missing = _whole_catalogue(datasets)
    facts = check_facts(rows, jobs, shipped_calibration(), whole)
    return ValidateResult(
        errors=tuple(error_rows(predictions)),
        facts=tuple(facts),
        remarks=() if missing is None else (missing,),
    )


def _whole_catalogue(datasets: Path) -> tuple[Dataset | None, Remark | None]:
    """The simulated data set that some figures of the paper need; or a remark."""
    from driple.dataset.store import read_dataset
    from driple.errors import DatasetError, MissingExtraError

    try:
        return read_dataset(datasets / _WHOLE), None
    except (DatasetError, MissingExtraError) as error:
        return None, remark("no_whole_catalogue", reason=str(error))
