"""The question `evaluate --dataset published-gpu`: corrections of the simulator on published steps.

datasets/runs/published -> score_corrections -> PublishedResult (a score per split, task and method)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.api.results import Cell, Result
from driple.codec import Json, to_dict
from driple.errors import ConfigError, DatasetError
from driple.extras import require_torch

if TYPE_CHECKING:
    from driple.api.json_types.validate import PublishedJson
    from driple.runs.validation.corrections import CorrectionScore

__all__ = ["PublishedResult", "evaluate_published"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PublishedResult(Result):
    """Errors on published steps on one GPU.

    Attributes:
        scores: by split, task and method.
    """

    scores: tuple[CorrectionScore, ...]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple evaluate --dataset published-gpu --json` prints."""
        scores: PublishedJson = {"question": "evaluate-published", "scores": self.scores}
        return to_dict(scores)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per split, task and method."""
        return [asdict(score) for score in self.scores]


def evaluate_published(
    published: Path,
    *,
    splits: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> PublishedResult:
    """Errors of the simulator, and of corrections learned on top of it, on what they had not seen.

    Args:
        published: folder of published measurements.
        splits: `family`, `device`; empty for both.
        methods: of `driple.runs.validation.corrections.METHODS`; empty for all.
        seeds: of a method that depends on one; its errors are means over them.
        progress: called with each step of the work.

    Raises:
        ConfigError: a split or method of another name.
        DatasetError: the folder holds no published steps.
        MissingExtraError: a package is not installed that a method needs.
    """
    from driple.runs.validation.baselines import require_trees
    from driple.runs.validation.corrections import METHODS, SPLITS, score_corrections
    from driple.runs.validation.shipped import read_shipped
    from driple.simulate.calibration import shipped_calibration

    _check("--split", splits, SPLITS)
    _check("--against", methods, tuple(METHODS))
    if not methods or "trees" in methods:
        require_trees()
    if not methods or "network" in methods:
        require_torch("a network that corrects the simulator", extra="calibration")
    shipped = read_shipped(published, forward=True)
    if shipped is None:
        raise DatasetError(
            f"{published} holds no published steps; run the command in a checkout of Driple"
        )
    scores = score_corrections(
        shipped,
        shipped_calibration(),
        splits=splits or SPLITS,
        methods=methods,
        seeds=seeds,
        progress=progress,
    )
    return PublishedResult(scores=tuple(scores))


def _check(flag: str, given: Sequence[str], known: Sequence[str]) -> None:
    odd = [name for name in given if name not in known]
    if odd:
        raise ConfigError(
            f"{flag} {odd[0][:40]}: with --dataset published-gpu give {', '.join(known)}; all if "
            "it is left out"
        )
