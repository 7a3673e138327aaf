"""From seconds of the steps to stalls, with their intervals and what to think of them.

seconds of an iteration, by step and repetition -> differences of a repetition -> mean, interval

Steps of one repetition run one after another, so a slow drift of the machine's speed is in both of
a difference, and cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driple.codec import Json
from driple.errors import MissingExtraError, install_hint
from driple.profiler.steps import DIFFERENCES, Difference

__all__ = ["Stall", "Times", "stalls_of", "warnings_of"]

# Seconds of an iteration by number of the step, then by repetition.
Times = Mapping[int, Mapping[int, float]]

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Stall:
    """Time that an iteration waits for one thing.

    Attributes:
        name: interconnect, network, prep or fetch.
        seconds: of an iteration, mean over repetitions; below zero if the steps came out so.
        interval_s: 95 % interval of the mean (Student's t); None with one repetition.
        pct: of the base step's time, as the paper relates it.
        base_step: number of that step.
        repeats: repetitions in which both steps were measured.
    """

    name: str
    seconds: float
    interval_s: tuple[float, float] | None
    pct: float
    base_step: int
    repeats: int

    @property
    def in_noise(self) -> bool:
        """Whether it may as well be zero."""
        return self.interval_s is not None and self.interval_s[0] <= 0 <= self.interval_s[1]

    def to_dict(self, batches_per_epoch: int | None) -> dict[str, Json]:
        """As JSON holds it."""
        return {
            "seconds": self.seconds,
            "interval_s": None if self.interval_s is None else list(self.interval_s),
            "pct": self.pct,
            "of_step": self.base_step,
            "repeats": self.repeats,
            "in_noise": self.in_noise,
            "epoch_s": None if batches_per_epoch is None else self.seconds * batches_per_epoch,
        }


def stalls_of(times: Times) -> dict[str, Stall]:
    """Every stall whose two steps were measured together at least once, by its name.

    Raises:
        MissingExtraError: scipy, which intervals need, is not installed.
    """
    found = {difference.name: _stall(difference, times) for difference in DIFFERENCES}
    return {name: stall for name, stall in found.items() if stall is not None}


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
    """95 % interval of the mean of a few values with an unknown deviation."""
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


def warnings_of(stalls: Mapping[str, Stall]) -> list[str]:
    """What a reader must know before believing the figures, one line each."""
    lines = []
    for name, stall in stalls.items():
        if stall.interval_s is None:
            lines.append(
                f"{name} stall comes from one repetition and has no interval; measure it again "
                "with driple profile run --set repeats=3"
            )
        elif stall.in_noise:
            low, high = (1e3 * value for value in stall.interval_s)
            lines.append(
                f"{name} stall is within the noise (95 % interval {low:.1f} to {high:.1f} ms of an "
                "iteration): it may be zero; measure longer with driple profile run "
                "--set repeats=5 --set iterations=30, and keep the machine quiet"
            )
        elif stall.seconds < 0:
            lines.append(
                f"{name} stall is negative beyond the noise: something else changed between the "
                "steps, such as other load on the machine; measure again"
            )
    return lines
