"""How well the settings of each published sweep are ranked, by Spearman's correlation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.metrics import rank_correlation
from driple.runs.validation.predictions import RowPrediction

__all__ = ["LEAST_SETTINGS", "SweepRank", "rank_sweeps"]

LEAST_SETTINGS = 5  # of a sweep


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRank:
    """How well the settings of one published sweep are ranked.

    Attributes:
        split: what the fits had not seen.
        source: who measured them.
        job: as on the command line.
        place: devices, scheme and precision that the sweep keeps.
        settings: how many there are: batch sizes, numbers of devices, options.
        rank: Spearman's correlation of predicted and measured tokens, or samples, a second.
    """

    split: str
    source: str
    job: str
    place: str
    settings: int
    rank: float


def rank_sweeps(
    rows: Sequence[MeasuredRun], predicted: Mapping[str, Sequence[RowPrediction | None]]
) -> list[SweepRank]:
    """Sweeps of a source: a job on one kind of device by one library, `LEAST_SETTINGS` or more.

    Args:
        rows: with measured times.
        predicted: by split, the predictions of one predictor for each row or None.
    """
    ranks = []
    for split, predictions in predicted.items():
        groups: dict[tuple[str, str, str], dict[Hashable, list[tuple[float, float]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row, prediction in zip(rows, predictions, strict=True):
            if prediction is None:
                continue
            place = f"{row.device}, {row.scheme}, {row.task}, {row.precision}, {row.library}"
            choices = groups[row.source, row.job, place]
            work = row.samples * (row.seq_len or 1)
            choices[row.setting, row.step_key].append(
                (work / prediction.seconds, work / row.step_s)
            )
        for (source, job, place), choices in sorted(groups.items()):
            if len(choices) < LEAST_SETTINGS:
                continue
            guessed, measured = (
                np.array([median(pair[i] for pair in pairs) for pairs in choices.values()])
                for i in (0, 1)
            )
            rank = rank_correlation(guessed, measured)
            if rank is not None:
                ranks.append(
                    SweepRank(
                        split=split,
                        source=source,
                        job=job,
                        place=place,
                        settings=len(choices),
                        rank=rank,
                    )
                )
    return ranks
