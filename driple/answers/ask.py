"""One way to ask a method, and all of them: who agrees, and which to trust.

ReadyJob, Place, method --ask--> MethodAnswer
ReadyJob, Place --ask_all--> AllAnswers (answers, why others are silent, which to trust)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from driple.answers.by_closed_forms import FORMS, ask_closed_form
from driple.answers.by_inspector import ask_inspector
from driple.answers.by_measurement import ask_measured
from driple.answers.by_simulator import ask_simulator
from driple.answers.method_answer import MethodAnswer
from driple.answers.options import USUAL, MethodOptions
from driple.answers.ready_job import ReadyJob
from driple.errors import MissingExtraError, PredictionError
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.inspector.checkpoint import Checkpoint
    from driple.simulate.place import Place

__all__ = [
    "METHODS",
    "AllAnswers",
    "Disagreement",
    "ask",
    "ask_all",
    "disagreements",
    "trust_of",
]

METHODS: tuple[str, ...] = ("measured", "inspector", "simulator", *FORMS)
"""Names of the methods, in the order in which they are shown."""


def ask(
    ready: ReadyJob,
    place: Place,
    method: str,
    options: MethodOptions = USUAL,
    *,
    checkpoint: Checkpoint | None = None,
) -> MethodAnswer:
    """What one method answers for a job on a setting.

    Args:
        ready: the job.
        place: setting, machines and calibration.
        method: one of `METHODS`.
        options: of the methods.
        checkpoint: the inspector; that of setting and preset by default.

    Raises:
        PredictionError: the method has no answer; the error says why.
        GraphError: the graph does not tell what its ops compute on.
    """
    if method == "measured":
        return ask_measured(ready, place.setting, options.datasets)
    if method == "inspector":
        return ask_inspector(ready, place.setting, options, checkpoint)
    if method == "simulator":
        return ask_simulator(ready, place, options)
    return ask_closed_form(ready, place, method)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two answers whose intervals have nothing in common."""

    first: MethodAnswer
    other: MethodAnswer

    @property
    def factor(self) -> float:
        """The longer time over the shorter one."""
        times = sorted((self.first.step_s, self.other.step_s))
        return times[1] / times[0]


def disagreements(answers: Sequence[MethodAnswer]) -> list[Disagreement]:
    """All pairs of answers that differ by more than their known errors, the furthest first."""
    pairs = [
        Disagreement(one, other)
        for one, other in combinations(answers, 2)
        if _is_below(one, other) or _is_below(other, one)
    ]
    return sorted(pairs, key=lambda pair: -pair.factor)


def _is_below(answer: MethodAnswer, other: MethodAnswer) -> bool:
    """Whether the whole interval of one answer lies below that of another."""
    high, low = _ends(answer)[1], _ends(other)[0]
    return high is not None and low is not None and high < low


def _ends(answer: MethodAnswer) -> tuple[float | None, float | None]:
    """Both ends of an interval; a measured time is its own, without an error there is none."""
    interval = answer.step_time.interval
    if answer.method == "measured":
        return answer.step_s, answer.step_s
    return (None, None) if interval is None else (interval.low, interval.high)


@dataclass(frozen=True, kw_only=True, slots=True)
class AllAnswers:
    """What the methods answer for one setting, and why others are silent.

    Attributes:
        answers: of each method that has one, in the order of `METHODS`.
        silent: reason of each method without an answer.
        usual: the method that answers where none is asked for.
    """

    answers: tuple[MethodAnswer, ...]
    silent: Mapping[str, str]
    usual: str = ""

    @property
    def trusted(self) -> MethodAnswer:
        """The measured time, else the usual answer, else that with the narrowest known interval.

        Where no error is known, the simulator's: it answers for every setting.
        """
        return min(
            self.answers,
            key=lambda answer: (
                answer.method != "measured",
                answer.method != self.usual,
                answer.width,
                answer.method != "simulator",
            ),
        )


def trust_of(compared: AllAnswers) -> Remark:
    """Which method to trust on a setting, and why."""
    best = compared.trusted
    interval = best.step_time.interval
    is_known = interval is not None and interval.level is not None
    return remark(
        "trusted_method",
        setting=best.setting.name,
        method=best.method,
        is_usual=best.method == compared.usual,
        step_s=best.step_s,
        is_known=is_known,
        low_s=interval.low if interval is not None and is_known else None,
        high_s=interval.high if interval is not None and is_known else None,
    )


def ask_all(ready: ReadyJob, place: Place, options: MethodOptions = USUAL) -> AllAnswers:
    """Everything that one setting can be asked.

    Args:
        ready: the job.
        place: the setting.
        options: of the methods.

    Raises:
        GraphError: the graph does not tell what its ops compute on.
    """
    answers, silent = [], {}
    for method in METHODS:
        try:
            answers.append(ask(ready, place, method, options))
        except (PredictionError, MissingExtraError) as error:
            silent[method] = str(error)
    return AllAnswers(answers=tuple(answers), silent=silent)
