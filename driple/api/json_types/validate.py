"""The JSON of questions about errors: `validate`, `evaluate` and `transfer --from gpu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from driple.catalog.fields import TUNED
from driple.codec import Names
from driple.evaluation.json_types import BenchmarkJson, ErrorBreakdownJson
from driple.remarks import Remark
from driple.runs.validation.baselines import BASELINES
from driple.runs.validation.contest import HELD_OUT
from driple.runs.validation.entry import GIVEN, SIMULATOR, EntryScore
from driple.runs.validation.held_out import ErrorRow
from driple.runs.validation.paper_figures import Fact
from driple.runs.validation.rankings import RankSummary
from driple.runs.validation.scores import BY, GroupScore
from driple.runs.validation.speedups import SPEEDUP
from driple.runs.validation.utilisation import UtilisationScore

__all__ = [
    "EvaluateJson",
    "OwnRunJson",
    "TunedStepJson",
    "TuningJson",
    "ValidateJson",
]

_SPLIT = Annotated[str, Names(("nothing", *HELD_OUT))]
_SCORE = {
    "by": Annotated[str, Names((*BY, SPEEDUP))],
    "mode": Literal["train", "forward"],
    "split": _SPLIT,
    "predictor": Annotated[str, Names((SIMULATOR, *BASELINES, GIVEN))],
}
_ENTRY = {"split": _SPLIT, "predictor": Annotated[str, Names((GIVEN, SIMULATOR))]}
_RANKING = {"what": Literal["configurations", "devices"], "split": _SPLIT}


class OwnRunJson(TypedDict):
    """One run of a user's own table beside its prediction.

    Attributes:
        run: id, else the number of the line.
        low_s: lower end of the 90 % interval; null if the answer states none.
        high_s: upper end.
    """

    run: str
    job: str
    setting: str
    measured_s: float
    predicted_s: float
    low_s: float | None
    high_s: float | None


class ValidateJson(TypedDict):
    """Errors of predicted iteration times on published runs, which fits had not seen.

    Attributes:
        errors: on TensorFlow runs.
        facts: figures of the Driple paper beside the simulator's.
        scores: weighted median and 90th percentile of |p - t| / t, signed median, Kendall's tau of
            a model's configurations, share of measured times within 90 % intervals, and median
            upper over lower end.
        rankings: of sharded configurations of a model on the same devices, or of devices for a job.
        utilisation: simulated against measured mean utilisation of devices.
        runs: of a table of one's own (--rows), beside the simulated seconds of a step.
        entry: errors of another tool's predictions (--against) in each split, rows alike, and the
            simulator's on the same rows.
    """

    question: Literal["validate"]
    errors: Sequence[ErrorRow]
    facts: Sequence[Fact]
    remarks: Sequence[Remark]
    scores: Sequence[Annotated[GroupScore, _SCORE]]
    rankings: Sequence[Annotated[RankSummary, _RANKING]]
    utilisation: Sequence[UtilisationScore]
    runs: Sequence[OwnRunJson]
    entry: Sequence[Annotated[EntryScore, _ENTRY]]


class EvaluateJson(BenchmarkJson):
    """A comparison of methods on a data set.

    Attributes:
        left_out: why methods were left out.
        where: the error of a method that was evaluated alone, broken down.
    """

    left_out: Mapping[str, str]
    where: ErrorBreakdownJson | None


class TunedStepJson(TypedDict):
    """A run that the device was tuned to.

    Attributes:
        before_s: predicted without tuning.
        left_out_s: predicted by a tuning to the other runs.
    """

    run: str
    job: str
    measured_s: float
    before_s: float
    left_out_s: float


class TuningJson(TypedDict):
    """A device as a user's own runs have it.

    Attributes:
        factors: on what the simulator knows of the device.
        helps: whether runs that were left out are predicted better.
        written: file of the tuned device; null if it does not help.
    """

    question: Literal["tune"]
    device: str
    dataset: str
    runs: int
    factors: Annotated[Mapping[str, float], Names(TUNED)]
    median_pct: float
    p90_pct: float
    before_median_pct: float
    before_p90_pct: float
    helps: bool
    host_runs: int
    steps: Sequence[TunedStepJson]
    written: NotRequired[str | None]
