"""Stalls with intervals and warnings, from the iteration times of the steps.

iteration times by step and repetition -> differences within a repetition -> mean, interval

The steps of one repetition run one after another, so a slow drift of the machine's speed affects
both terms of a difference and cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from driple.errors import MissingExtraError, install_hint
from driple.estimate import Estimate, estimate
from driple.profiler.steps import DIFFERENCES, Difference
from driple.remarks import Remark, remark

__all__ = ["Stall", "StallJson", "Times", "stalls_of", "warnings_of"]

# Iteration times in seconds, by step number, then by repetition.
Times = Mapping[int, Mapping[int, float]]

_CONFIDENCE = 0.95


class StallJson(TypedDict):
    """A stall per iteration and per epoch.

    Attributes:
        stall_pct: percent of the time of the base step.
        of_step: number of the base step.
        repeats: repetitions in which both steps were measured.
        in_noise: whether the interval contains zero.
        epoch_s: null if the script's loader has no length.
    """

    stall_s: Estimate
    stall_pct: Estimate
    of_step: int
    repeats: int
    in_noise: bool
    epoch_s: Estimate | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stall:
    """One stall: the time per iteration spent waiting for one resource.

    Attributes:
        name: interconnect, network, prep or fetch.
        seconds: stall per iteration, mean over repetitions; may be negative through noise.
        interval_s: 95 % interval of the mean (Student's t); None with one repetition.
        pct: stall in percent of the base step's time, as in the paper.
        base_step: number of that step.
        repeats: number of repetitions in which both steps were measured.
    """

    name: str
    seconds: float
    interval_s: tuple[float, float] | None
    pct: float
    base_step: int
    repeats: int

    @property
    def in_noise(self) -> bool:
        """Whether the interval contains zero."""
        return self.interval_s is not None and self.interval_s[0] <= 0 <= self.interval_s[1]

    def to_dict(self, batches_per_epoch: int | None) -> StallJson:
        """The stall as plain values for JSON."""
        return {
            "stall_s": measured(self.seconds, self.interval_s),
            "stall_pct": measured(self.pct),
            "of_step": self.base_step,
            "repeats": self.repeats,
            "in_noise": self.in_noise,
            "epoch_s": None
            if batches_per_epoch is None
            else measured(self.seconds * batches_per_epoch),
        }


def measured(value: float, ends: Sequence[float] | None = None) -> Estimate:
    """A measured number as every JSON holds it, with its 95 % interval if it has one."""
    return estimate(value, "measured", "measured", ends=ends, level=_CONFIDENCE)


def stalls_of(times: Times) -> dict[str, Stall]:
    """Every stall whose two steps were measured in at least one repetition, by name.

    Raises:
        MissingExtraError: scipy, which intervals need, is not installed.
    """
    stalls = {difference.name: _stall(difference, times) for difference in DIFFERENCES}
    return {name: stall for name, stall in stalls.items() if stall is not None}


def _stall(difference: Difference, times: Times) -> Stall | None:
    slower, faster = times.get(difference.slower, {}), times.get(difference.faster, {})
    both = sorted(set(slower) & set(faster))
    base = next((step for step in difference.bases if times.get(step)), None)
    if not both or base is None:
        return None
    values = np.array([slower[repeat] - faster[repeat] for repeat in both])
    mean = float(values.mean())
    return Stall(
        name=difference.name,
        seconds=mean,
        interval_s=_interval(values),
        pct=100 * mean / float(np.mean(list(times[base].values()))),
        base_step=base,
        repeats=len(both),
    )


def _interval(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float] | None:
    """95 % interval of the mean of a few values (Student's t)."""
    if len(values) < 2:
        return None
    try:
        from scipy.stats import t
    except ImportError as error:
        raise MissingExtraError(
            f"intervals need scipy, which is not installed; {install_hint('profiler')}"
        ) from error
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    reach = float(t.ppf(0.5 + _CONFIDENCE / 2, len(values) - 1)) * deviation / len(values) ** 0.5
    return mean - reach, mean + reach


def warnings_of(stalls: Mapping[str, Stall]) -> list[Remark]:
    """Warnings about the reliability of the figures."""
    remarks = []
    for name, stall in stalls.items():
        if stall.interval_s is None:
            remarks.append(remark("stall_without_interval", stall=name))
        elif stall.in_noise:
            low_s, high_s = stall.interval_s
            remarks.append(remark("stall_in_noise", stall=name, low_s=low_s, high_s=high_s))
        elif stall.seconds < 0:
            remarks.append(remark("negative_stall", stall=name))
    return remarks
