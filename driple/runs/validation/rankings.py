"""Whether a predictor ranks the ways to run a model as the measurements do.

rows, predicted seconds --rank_configurations--> RankScore: sharded configurations of one model on
                                                 one number of devices
                        --rank_devices--------->            devices that ran one job
rows, predictions of each split --rank_summaries--> RankSummary by source (Kendall's tau)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.metrics import kendall_tau
from driple.runs.validation.predictions import RowPrediction

__all__ = [
    "LEAST_CHOICES",
    "RankScore",
    "RankSummary",
    "rank_configurations",
    "rank_devices",
    "rank_summaries",
]

ALL_SOURCES = "all sources"
LEAST_CHOICES = 3  # of one job; two are one comparison


@dataclass(frozen=True, kw_only=True, slots=True)
class RankScore:
    """How well the choices of one job are ranked.

    Attributes:
        source: who measured them.
        job: as on the command line.
        place: number and name of the devices, or the options of the job.
        choices: how many there are.
        tau: Kendall's tau-b between predicted and measured seconds of a token, or of a sample where
            tokens are not counted.
        best_pct: how much slower than the best the choice is that the predictor takes for the best,
            percent.
    """

    source: str
    job: str
    place: str
    choices: int
    tau: float
    best_pct: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RankSummary:
    """How well the choices of several jobs are ranked.

    Attributes:
        what: `configurations` of sharded training, or `devices`.
        split: what the fits had not seen.
        source: who measured, or `all sources`.
        jobs: how many.
        choices: of all jobs together.
        tau: mean of their taus.
        best_pct: median of how much slower than the best the predicted best is, percent.
    """

    what: str
    split: str
    source: str
    jobs: int
    choices: int
    tau: float
    best_pct: float


def rank_configurations(
    rows: Sequence[MeasuredRun], predictions: Sequence[RowPrediction | None]
) -> list[RankScore]:
    """Sharded configurations (scheme, batch, precision, recomputation, ...) on the same devices.

    Args:
        rows: with measured times; those of a sharded scheme count.
        predictions: of each row, or None.
    """
    return _ranked(
        rows,
        predictions,
        is_of=lambda row: row.scheme == "sharded",
        group=lambda row: (row.source, row.job, f"{row.num_devices} {row.device}"),
        choice=lambda row: (row.setting, row.step_key),
    )


def rank_devices(
    rows: Sequence[MeasuredRun], predictions: Sequence[RowPrediction | None]
) -> list[RankScore]:
    """Devices that ran one model alone, in one precision and by one release of the library.

    The batch size is that of each device: most sources use what fits its memory.

    Args:
        rows: with measured times; those of one device count.
        predictions: of each row, or None.
    """
    return _ranked(
        rows,
        predictions,
        is_of=lambda row: row.scheme == "single",
        group=lambda row: (
            row.source,
            row.job,
            ", ".join(
                filter(
                    None,
                    (
                        row.task,
                        row.precision,
                        row.library,
                        "channels_last" if row.channels_last else "nchw",
                        "compiled" if row.compiled else "",
                        "x".join(map(str, row.input_shape or ())),
                        str(row.seq_len or ""),
                    ),
                )
            ),
        ),
        choice=lambda row: row.device,
    )


def rank_summaries(
    rows: Sequence[MeasuredRun], predicted: Mapping[str, Sequence[RowPrediction | None]]
) -> list[RankSummary]:
    """Means over the jobs of each source and of all, for every split.

    Args:
        rows: with measured times.
        predicted: by split, the predictions of one predictor for each row or None.
    """
    summaries = []
    for what, rank in (("configurations", rank_configurations), ("devices", rank_devices)):
        for split, predictions in predicted.items():
            scores = rank(rows, predictions)
            sources = sorted({one.source for one in scores})
            groups = [(ALL_SOURCES, scores)] if len(sources) > 1 else []
            groups += [(name, [one for one in scores if one.source == name]) for name in sources]
            summaries += [_summary(what, split, name, some) for name, some in groups]
    return summaries


def _summary(what: str, split: str, source: str, scores: Sequence[RankScore]) -> RankSummary:
    return RankSummary(
        what=what,
        split=split,
        source=source,
        jobs=len(scores),
        choices=sum(one.choices for one in scores),
        tau=float(np.mean([one.tau for one in scores])),
        best_pct=float(np.median([one.best_pct for one in scores])),
    )


def _ranked(
    rows: Sequence[MeasuredRun],
    predictions: Sequence[RowPrediction | None],
    *,
    is_of: Callable[[MeasuredRun], bool],
    group: Callable[[MeasuredRun], tuple[str, str, str]],
    choice: Callable[[MeasuredRun], Hashable],
) -> list[RankScore]:
    """Rows by group and choice; several rows of one choice count as their median."""
    groups: dict[tuple[str, str, str], dict[Hashable, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row, prediction in zip(rows, predictions, strict=True):
        if prediction is not None and is_of(row):
            each = row.samples * (row.seq_len or 1)
            groups[group(row)][choice(row)].append((prediction.seconds / each, row.step_s / each))
    scores = []
    for (source, job, place), choices in sorted(groups.items()):
        if len(choices) < LEAST_CHOICES:
            continue
        predicted, measured = (
            np.array([median(pair[i] for pair in pairs) for pairs in choices.values()])
            for i in (0, 1)
        )
        tau = kendall_tau(predicted, measured)
        if tau is not None:
            slower = measured[int(predicted.argmin())] / measured.min() - 1
            scores.append(
                RankScore(
                    source=source,
                    job=job,
                    place=place,
                    choices=len(choices),
                    tau=tau,
                    best_pct=100 * float(slower),
                )
            )
    return scores
