"""How far steps are off on a device that is tuned to runs of its owner, as our own steps show.

    published StatedError, device of a user's file --with_tuning--> StatedError

`scripts.fits.tuned_errors` writes the file: steps on an H100 and an H200, each by ten others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from driple.answers.error_statement import StatedError
from driple.answers.job_kind import JobKind
from driple.catalog import Device
from driple.codec import from_json
from driple.remarks import remark

__all__ = ["FILE", "TunedSteps", "tuned_steps", "with_tuning"]

FILE = Path(__file__).with_name("tuned_steps.json")
_NETWORKS = ("convolutional", "transformer")  # that these steps are of
_WIDEST = 20.0  # upper end over the time, where the runs of a tuning were that far off


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedSteps:
    """What the steps show.

    Attributes:
        date: of the file.
        devices: that ran them.
        num_steps: how many.
        num_runs: how many others a device was tuned to.
        median_pct: error of a step, percent.
        p90_pct: 90th percentile.
        device_ends: of nine of ten steps that keep the device busy, measured over predicted.
        host_ends: of nine of ten steps that wait for their host.
    """

    date: str
    devices: tuple[str, ...]
    num_steps: int
    num_runs: int
    median_pct: float
    p90_pct: float
    device_ends: tuple[float, float]
    host_ends: tuple[float, float]


@cache
def tuned_steps() -> TunedSteps:
    """The shipped ones."""
    return from_json(TunedSteps, json.loads(FILE.read_text(encoding="utf-8")), where=FILE.name)


def with_tuning(
    error: StatedError, kind: JobKind, device: Device, *, is_alone: bool
) -> StatedError:
    """The stated error on a device, where a catalogue file says what its owner's runs reach.

    Args:
        error: of published runs.
        kind: of the job.
        device: that runs it.
        is_alone: whether it is the only one.
    """
    if is_alone and _tuned_like_ours(kind, device):
        error = _of_tuned_steps()
    return _no_surer_than_own(error, device)


def _tuned_like_ours(kind: JobKind, device: Device) -> bool:
    """Whether steps of ours tell how far such a job is off on a device tuned to so many runs."""
    runs = device.find("tuned_runs")
    if runs is None or int(runs) < tuned_steps().num_runs:
        return False
    return kind.network in _NETWORKS and kind.framework != "tensorflow" and not kind.compiled


def _of_tuned_steps() -> StatedError:
    """The error of our own steps on a tuned device."""
    known = tuned_steps()
    low, high = known.device_ends
    names, runs = known.devices, known.num_runs
    return StatedError(
        num_runs=known.num_steps,
        runs=remark("steps_of_tuned_devices", devices=names, num_runs=runs),
        short=remark("steps_of_tuned_devices_short", devices=names, num_runs=runs),
        median_pct=known.median_pct,
        p90_pct=known.p90_pct,
        runs_median_pct=known.median_pct,
        runs_p90_pct=known.p90_pct,
        low_factor=low,
        high_factor=high,
    )


def _no_surer_than_own(error: StatedError, device: Device) -> StatedError:
    """An error no smaller than that of the runs that the device was tuned to, each left out."""
    median, fact = device.find("tuned_median_pct"), device.find("tuned_p90_pct")
    if median is not None and error.median_pct is not None and float(median) > error.median_pct:
        error = replace(error, median_pct=float(median), tuned=("median_pct",))
    if fact is None or error.p90_pct is None or float(fact) <= error.p90_pct:
        return error
    share = float(fact) / 100
    low, high = error.low_factor, error.high_factor
    return replace(
        error,
        p90_pct=100 * share,
        tuned=(*error.tuned, "p90_pct"),
        low_factor=None if low is None else min(low, 1 / (1 + share)),
        high_factor=None if high is None else max(high, 1 / max(1 - share, 1 / _WIDEST)),
    )
