"""Types of the JSON of evaluations and learning curves; see `driple.api.json_types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from driple.codec import Json, Names
from driple.evaluation.benchmark import ALL, SplitKind
from driple.evaluation.error_analysis import WorkloadError
from driple.trace.targets import TARGET_NAMES
from driple.training.metrics import ScoresRecord
from driple.training.uncertainty import Coverage

__all__ = [
    "BenchmarkJson",
    "BenchmarkMethodJson",
    "CurveEstimateJson",
    "CurvePointJson",
    "ErrorBreakdownJson",
    "FoldJson",
    "LearningCurveJson",
    "OverFloorJson",
    "OverridesJson",
    "ScoreTableJson",
]


class OverridesJson(TypedDict):
    """Values of a preset that the comparison replaced; null where none."""

    max_epochs: int | None
    patience_epochs: int | None


_ByTarget = Annotated[Mapping[str, float | None], Names(TARGET_NAMES)]


class ScoreTableJson(TypedDict):
    """Numbers of one method, over its seeds; a deviation over a single seed is null."""

    nrmse: float | None
    smape_pct: float | None
    iteration_time_mape_pct: float | None
    iteration_time_median_pct: float | None
    train_seconds: float | None
    nrmse_by_target: _ByTarget
    smape_pct_by_target: _ByTarget


class FoldJson(TypedDict):
    """A method that was trained and tested once.

    Attributes:
        fold: family that was held out, and seed, in words.
    """

    method: str
    fold: str
    test: ScoresRecord
    validation: ScoresRecord | None
    train_seconds: float
    epochs: int
    best_epoch: int
    stopped_by: str


class BenchmarkMethodJson(TypedDict):
    """One method of a comparison.

    Attributes:
        best_in: lines of the table in which it is the best.
        intervals: how often its intervals hold; null for methods without.
        config: its preset; null for methods that are not trained.
    """

    seeds: Sequence[int]
    mean: ScoreTableJson
    std_over_seeds: ScoreTableJson
    best_in: Sequence[str]
    intervals: Coverage | None
    config: Mapping[str, Json] | None
    folds: Sequence[FoldJson]


class BenchmarkJson(TypedDict):
    """A comparison of methods on a data set.

    Attributes:
        fingerprint: hash of the data set.
        common_seeds: seeds that all methods have.
    """

    data_set: str
    setting: str
    fingerprint: str
    split: SplitKind
    seeds: Sequence[int]
    common_seeds: Sequence[int]
    overrides: OverridesJson
    methods: Mapping[str, BenchmarkMethodJson]


class OverFloorJson(TypedDict):
    """Error of one target, and what repeats of one workload differ by."""

    smape_pct: float
    floor_pct: float | None
    ratio: float | None


class ErrorBreakdownJson(TypedDict):
    """Error of one method, broken down.

    Attributes:
        smape_pct_by_family: number of workloads, and SMAPE in percent of each target and of all.
        num_repeated_workloads: workloads that ran more than once.
        over_floor: by target, `all 12` and `iteration_time`.
        worst: the workloads with the largest errors, the worst first.
    """

    method: str
    smape_pct_by_family: Mapping[
        str, Annotated[Mapping[str, float], Names(("num_workloads", *TARGET_NAMES, ALL))]
    ]
    num_repeated_workloads: int
    over_floor: Mapping[str, OverFloorJson]
    worst: Sequence[WorkloadError]


class CurvePointJson(TypedDict):
    """Errors of a transfer that learned from some of the labels."""

    workloads: int
    nrmse: float
    smape_pct: float
    iteration_time_mape_pct: float
    seconds: float


class CurveEstimateJson(TypedDict):
    """Error that is expected with more labels."""

    workloads: int
    nrmse: float
    nrmse_range: tuple[float, float]


class LearningCurveJson(TypedDict):
    """Error of a transfer by number of measured workloads.

    Attributes:
        gain_of_doubling: share by which the error is expected to fall with twice the labels.
        gain_of_doubling_range: range expected to contain four of five gains.
    """

    points: Sequence[CurvePointJson]
    estimates: Sequence[CurveEstimateJson]
    gain_of_doubling: float
    gain_of_doubling_range: tuple[float, float]
    worth_measuring_more: bool
    advice: str
