"""How a user's machine differs from the one whose measured labels an inspector learned from.

    a few known workloads, predicted and measured here --host_tuning--> HostTuning (host.json)
    Prediction --HostTuning.applied--> Prediction for this machine
    Prediction --on_any_host--> Prediction whose intervals hold what machines of one kind differ by

Machines of the same kind differ in how fast they compute: all durations by one factor, to begin
with. How much of a core or of the link a burst uses changes little, so amounts stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.checks import check_number
from driple.codec import from_json, to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.inspector.intervals import NUM_NUMBERS
from driple.inspector.predict import TIMES, Prediction
from driple.storedfiles import read_json
from driple.trace.targets import FIGURES, NUM_TARGETS, RESOURCES, Targets

__all__ = ["HOSTS_DIFFER", "LEAST_WORKLOADS", "HostTuning", "check_count", "host_tuning",
           "on_any_host", "read_host", "write_host"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

LEAST_WORKLOADS = 4
HOSTS_DIFFER = 0.35
"""Root mean square of ln(step time on another host / on the measured one): datasets/other-hosts."""
_Z90 = 1.645  # of the normal distribution, for 90 % in the middle
_LEAST_SPREAD = 0.02
_MOST_BYTES = 2**20
_FACTORS = (0.01, 100.0)
_MOST_SPREAD, _MOST_PCT = 3.0, 1e4


@dataclass(frozen=True, kw_only=True, slots=True)
class HostTuning:
    """How a machine differs, by a few known workloads.

    Attributes:
        setting: that was measured, such as `CPU-P1w2/ho-200M`.
        workloads: names of those that were measured.
        time_factor: all durations here, over those that the inspector predicts.
        log_spread: standard deviation of the logarithm of a step time that remains, of workloads
            that are left out.
        before_pct: median error of the step time without the factor.
        after_pct: with the factor of the other workloads.

    Raises:
        ConfigError: numbers that no machine has, or too few workloads.
    """

    setting: str
    workloads: tuple[str, ...]
    time_factor: float
    log_spread: float
    before_pct: float
    after_pct: float

    def __post_init__(self) -> None:
        check_count(len(self.workloads))
        check_number("time_factor", self.time_factor, least=_FACTORS[0], most=_FACTORS[1])
        if len(set(self.workloads)) < len(self.workloads):
            raise ConfigError("a host is known by different workloads; some stand there twice")
        check_number("log_spread", self.log_spread, least=0, most=_MOST_SPREAD)
        for name in ("before_pct", "after_pct"):
            check_number(name, getattr(self, name), least=0, most=_MOST_PCT)

    def applied(self, made: Prediction) -> Prediction:
        """The prediction for this machine.

        Raises:
            ConfigError: it is of another setting, whose machines were not measured.
        """
        if made.provenance != "measured":
            raise ConfigError(
                f"the host is for settings that were measured, and the labels of {made.setting} "
                f"are {made.provenance}; leave it out"
            )
        if made.setting != self.setting:
            raise ConfigError(
                f"the host was measured on {self.setting}, and the answer is for {made.setting}; "
                f"measure again: driple measure --calibrate --setting {made.setting}"
            )
        factors = np.ones(NUM_NUMBERS)
        factors[TIMES] = self.time_factor
        values = factors * made.numbers
        ends = None if made.ends is None else factors[:, None] * made.ends
        if ends is not None:
            wide = np.exp(_Z90 * self.log_spread)
            ends[-1] = min(ends[-1, 0], values[-1] / wide), max(ends[-1, 1], values[-1] * wide)
        closed = made.closed_form_s
        return replace(
            made,
            targets=Targets(values[:NUM_TARGETS].reshape(len(RESOURCES), len(FIGURES))),
            iteration_time_s=float(values[-1]),
            ends=ends,
            closed_form_s=None if closed is None else closed * self.time_factor,
        )


def check_count(workloads: int) -> None:
    """Raise ConfigError unless there are enough workloads for a factor."""
    if workloads < LEAST_WORKLOADS:
        raise ConfigError(
            f"a host is known by {LEAST_WORKLOADS} workloads or more, got {workloads}; name more, "
            "or none for the six that are usual"
        )


def host_tuning(
    setting: str, workloads: Sequence[str], predicted_s: FloatArray, measured_s: FloatArray
) -> HostTuning:
    """How this machine differs, by the step times of known workloads.

    Args:
        setting: that was measured.
        workloads: names, n.
        predicted_s: shape [n], step times that the inspector predicts.
        measured_s: shape [n], on this machine.

    Raises:
        ConfigError: fewer than four workloads, or a time that is not above 0.
    """
    if not (np.all(predicted_s > 0) and np.all(measured_s > 0)):
        raise ConfigError("step times of a host must be above 0; measure the workloads again")
    logs = np.log(measured_s / predicted_s)
    others = ~np.eye(len(logs), dtype=np.bool_)
    left = np.array([one - np.median(logs[mask]) for one, mask in zip(logs, others, strict=True)])
    return HostTuning(
        setting=setting,
        workloads=tuple(workloads),
        time_factor=float(np.exp(np.median(logs))),
        log_spread=max(float(np.sqrt(np.mean(left**2))), _LEAST_SPREAD),
        before_pct=float(100 * np.median(np.abs(np.expm1(-logs)))),
        after_pct=float(100 * np.median(np.abs(np.expm1(-left)))),
    )


def on_any_host(made: Prediction) -> Prediction:
    """The prediction with intervals of times that hold what machines of one kind differ by."""
    if made.ends is None:
        return made
    values, ends = made.numbers, made.ends.copy()
    is_time = np.isin(np.arange(NUM_NUMBERS), TIMES)
    some = is_time & (values > 0) & (ends[:, 0] > 0) & np.isfinite(ends).all(axis=1)
    logs = np.log(ends[some] / values[some, None])
    logs = np.sign(logs) * np.hypot(logs, _Z90 * HOSTS_DIFFER)
    low = np.minimum(logs[:, 0], -_Z90 * HOSTS_DIFFER)
    high = np.maximum(logs[:, 1], _Z90 * HOSTS_DIFFER)
    ends[some] = values[some, None] * np.exp(np.stack([low, high], axis=1))
    return replace(made, ends=ends)


def write_host(host: HostTuning, file: Path) -> None:
    """Write a file that `read_host` reads.

    Raises:
        ConfigError: it cannot be written.
    """
    text = json.dumps(to_dict(host, where=file.name), indent=1) + "\n"
    atomic_write(file, text.encode(), error=ConfigError)


def read_host(file: Path) -> HostTuning:
    """What `driple measure --calibrate` wrote.

    Raises:
        ConfigError: it cannot be read, or is no such file.
    """
    advice = "give the host.json of driple measure --calibrate"
    try:
        value = read_json(file, _MOST_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the host of {file}: {error}; {advice}") from error
    return from_json(HostTuning, value, where=str(file), advice=advice)
