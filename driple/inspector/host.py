"""How a user's machine differs from the one whose measured labels an inspector learned from.

    a few known workloads, predicted and measured here --host_tuning--> HostTuning (host.json)
    Prediction --HostTuning.applied--> Prediction for this machine
    Prediction --on_any_host--> Prediction whose intervals hold what machines of one kind differ by

Machines of one kind differ in how fast they compute, and the network carries what it carries: the
seconds in which a worker's device is busy take a factor, and those in which it waits do not
(decision 0066). Amounts of bursts change little, so they stay.
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
from driple.inspector.predict import TIMES, Prediction
from driple.storedfiles import read_json
from driple.trace.targets import FIGURES, NETWORK, NUM_TARGETS, RESOURCES, Targets

__all__ = ["ANY_HOST_LOG", "HOSTS_DIFFER", "LEAST_WORKLOADS", "HostTuning", "check_count",
           "host_tuning", "on_any_host", "read_host", "step_factor", "write_host"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

LEAST_WORKLOADS = 4
HOSTS_DIFFER = 0.35
"""RMS of ln(step time on another host / on the measured one): datasets/runs/other-hosts."""
_Z90 = 1.645  # of the normal distribution, for 90 % in the middle
ANY_HOST_LOG = _Z90 * HOSTS_DIFFER
"""Half-width of the logarithm within which nine of ten hosts are."""
_LEAST_SPREAD = 0.02
_MOST_BYTES = 2**20
_FACTORS = (0.01, 100.0)
_TRIED = np.exp(np.linspace(np.log(0.05), np.log(20.0), 1201))  # a half per cent apart; 1 is one
_LEAST_LEFT = 0.05  # of a gap in the network's use, on a host that computes faster
_BURST, _IDLE = FIGURES.index("burst_duration"), FIGURES.index("idle_duration")
_MOST_SPREAD, _MOST_PCT = 3.0, 1e4


@dataclass(frozen=True, kw_only=True, slots=True)
class HostTuning:
    """How a machine differs, by a few known workloads.

    Attributes:
        setting: that was measured, such as `CPU-P1w2/ho-200M`.
        workloads: names of those that were measured.
        computing_factor: seconds in which a worker computes, here over those that the inspector
            predicts; seconds of waiting stay.
        log_spread: standard deviation of the logarithm of a step time that remains, of workloads
            that are left out.
        before_pct: median error of the step time without the factor.
        after_pct: with the factor of the other workloads.

    Raises:
        ConfigError: numbers that no machine has, or too few workloads.
    """

    setting: str
    workloads: tuple[str, ...]
    computing_factor: float
    log_spread: float
    before_pct: float
    after_pct: float

    def __post_init__(self) -> None:
        check_count(len(self.workloads))
        check_number("computing_factor", self.computing_factor, least=_FACTORS[0], most=_FACTORS[1])
        if len(set(self.workloads)) < len(self.workloads):
            raise ConfigError("a host is known by different workloads; some stand there twice")
        check_number("log_spread", self.log_spread, least=0, most=_MOST_SPREAD)
        for name in ("before_pct", "after_pct"):
            check_number(name, getattr(self, name), least=0, most=_MOST_PCT)

    def applied(self, prediction: Prediction) -> Prediction:
        """The prediction for this machine.

        Raises:
            ConfigError: it is of another setting, whose machines were not measured.
        """
        if prediction.provenance != "measured":
            raise ConfigError(
                "the host is for settings that were measured, and the labels of "
                f"{prediction.setting} are {prediction.provenance}; leave it out"
            )
        if prediction.setting != self.setting:
            raise ConfigError(
                f"the host was measured on {self.setting}, and the answer is for "
                f"{prediction.setting}; measure again: driple measure --calibrate --setting "
                f"{prediction.setting}"
            )
        values, ends = prediction.numbers, prediction.ends
        by = self._factors(prediction)
        if ends is not None:
            wide = np.exp(_Z90 * self.log_spread)
            ends = by[:, None] * ends
            value = by[-1] * values[-1]
            ends[-1] = min(ends[-1, 0], value / wide), max(ends[-1, 1], value * wide)
        values = by * values
        closed = prediction.closed_form_s
        return replace(
            prediction,
            targets=Targets(values[:NUM_TARGETS].reshape(len(RESOURCES), len(FIGURES))),
            iteration_time_s=float(values[-1]),
            ends=ends,
            closed_form_s=None if closed is None else closed * float(by[-1]),
        )

    def _factors(self, prediction: Prediction) -> FloatArray:
        """Factors on the twelve targets and the step time, [13].

        A burst of the device is computing. The network's bursts are as long as before, and what
        the step takes longer lies between them.
        """
        step = step_factor(prediction, self.computing_factor)
        factors = np.ones((len(RESOURCES), len(FIGURES)))
        factors[RESOURCES.index("device_util"), _BURST] = self.computing_factor
        for name in NETWORK:
            row = RESOURCES.index(name)
            burst_s, idle_s = prediction.targets.values[row, [_BURST, _IDLE]]
            if idle_s > 0:
                longer_s = (step - 1) * (burst_s + idle_s)
                factors[row, _IDLE] = max((idle_s + longer_s) / idle_s, _LEAST_LEFT)
        return np.append(factors.ravel(), step)


def step_factor(prediction: Prediction, computing_factor: float) -> float:
    """Step time with another pace of computing, over the predicted one."""
    device = prediction.targets.values[RESOURCES.index("device_util")]
    burst_s, idle_s = device[_BURST], device[_IDLE]
    share = burst_s / (burst_s + idle_s) if burst_s + idle_s > 0 else 1.0
    return float(1 + (computing_factor - 1) * share)


def check_count(workloads: int) -> None:
    """Raise ConfigError unless there are enough workloads for a factor."""
    if workloads < LEAST_WORKLOADS:
        raise ConfigError(
            f"a host is known by {LEAST_WORKLOADS} workloads or more, got {workloads}; name more, "
            "or none for the six that are usual"
        )


def host_tuning(
    setting: str, workloads: Sequence[str], predicted: Sequence[Prediction], measured_s: FloatArray
) -> HostTuning:
    """How this machine differs, by the step times of known workloads.

    Args:
        setting: that was measured.
        workloads: names, n.
        predicted: by the inspector, n.
        measured_s: shape [n], their step times on this machine.

    Raises:
        ConfigError: fewer than four workloads, or a time that is not above 0.
    """
    predicted_s = np.array([one.iteration_time_s for one in predicted])
    if not (np.all(predicted_s > 0) and np.all(measured_s > 0)):
        raise ConfigError("step times of a host must be above 0; measure the workloads again")
    check_count(len(workloads))
    logs = np.array([_logs(*pair) for pair in zip(predicted, measured_s.tolist(), strict=True)])
    others = ~np.eye(len(logs), dtype=np.bool_)
    left = np.array([logs[i, _best(logs[mask])] for i, mask in enumerate(others)])
    before = logs[:, np.argmin(np.abs(_TRIED - 1))]
    return HostTuning(
        setting=setting,
        workloads=tuple(workloads),
        computing_factor=float(_TRIED[_best(logs)]),
        log_spread=max(float(np.sqrt(np.mean(left**2))), _LEAST_SPREAD),
        before_pct=float(100 * np.median(np.abs(np.expm1(-before)))),
        after_pct=float(100 * np.median(np.abs(np.expm1(-left)))),
    )


def _logs(prediction: Prediction, measured_s: float) -> FloatArray:
    """ln(measured / predicted step time) with each factor of `_TRIED`."""
    steps = np.array([step_factor(prediction, factor) for factor in _TRIED])
    logs: FloatArray = np.log(measured_s / (prediction.iteration_time_s * steps))
    return logs


def _best(logs: FloatArray) -> int:
    """Position in `_TRIED` of the factor that leaves least; shape [workloads, tried]."""
    return int(np.argmin(np.abs(logs).sum(axis=0)))


def on_any_host(prediction: Prediction) -> Prediction:
    """The prediction with intervals of times that hold what machines of one kind differ by."""
    if prediction.ends is None:
        return prediction
    values, ends = prediction.numbers, prediction.ends.copy()
    is_time = np.isin(np.arange(len(values)), TIMES)
    some = is_time & (values > 0) & (ends[:, 0] > 0) & np.isfinite(ends).all(axis=1)
    logs = np.log(ends[some] / values[some, None])
    logs = np.sign(logs) * np.hypot(logs, ANY_HOST_LOG)
    low = np.minimum(logs[:, 0], -ANY_HOST_LOG)
    high = np.maximum(logs[:, 1], ANY_HOST_LOG)
    ends[some] = values[some, None] * np.exp(np.stack([low, high], axis=1))
    return replace(prediction, ends=ends)


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
