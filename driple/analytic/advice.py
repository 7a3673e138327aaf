"""Bottleneck of a job, and the gain of each upgrade, from the closed form at many points.

Profile, Points -> bottleneck, gain of doubling each resource

Use cases of Zhang et al., section V-C, and its figures 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.analytic.sweep import (
    Compression,
    ExchangeGranularity,
    JobProfile,
    Points,
    StepBreakdown,
    iteration_seconds,
)
from driple.errors import ConfigError

__all__ = [
    "BOTTLENECKS",
    "RESOURCES",
    "bottleneck",
    "communication_ratio",
    "gain_of_doubling",
    "rate_from_measured",
]

FloatArray = npt.NDArray[np.float64]

# Possible bottlenecks of an iteration; the first wins a tie.
BOTTLENECKS: Mapping[str, str] = MappingProxyType(
    {
        "compute": "the workers' devices",
        "worker_nic": "the network link of a worker",
        "server_nic": "the network links of the parameter servers",
        "server_cpu": "the processors of the parameter servers",
        "stragglers": "waiting for the slowest worker",
    }
)
# Resources that can be doubled.
RESOURCES = ("compute_rate", "worker_bytes_per_s", "server_bytes_per_s", "servers")

# Range of the factor on device speed that is fitted to a measurement.
_LEAST_RATE, _MOST_RATE, _HALVINGS = 1e-4, 1e4, 60


def bottleneck(breakdown: StepBreakdown) -> npt.NDArray[np.str_]:
    """Bottleneck of each point: the resource that is busy, or waited for, longest."""
    busy = np.stack(
        [
            breakdown.compute_s,
            breakdown.worker_nic_s,
            breakdown.server_nic_s,
            breakdown.server_cpu_s,
            breakdown.straggler_s,
        ]
    )
    names: npt.NDArray[np.str_] = np.array(list(BOTTLENECKS))[busy.argmax(axis=0)]
    return names


def gain_of_doubling(
    profile: JobProfile,
    points: Points,
    resource: str,
    compression: Compression | None = None,
    exchange: ExchangeGranularity = "step",
) -> FloatArray:
    """Fraction of the iteration saved by doubling a resource.

    Raises:
        ConfigError: no such resource.
    """
    if resource not in RESOURCES:
        raise ConfigError(f"'{resource}' cannot be doubled; choose of {', '.join(RESOURCES)}")
    twice = replace(points, **{resource: 2 * np.asarray(getattr(points, resource))})
    before, after = (
        iteration_seconds(profile, one, compression, exchange) for one in (points, twice)
    )
    return 1 - after.total_s / before.total_s


def communication_ratio(breakdown: StepBreakdown) -> FloatArray:
    """Seconds in which the barrier link is busy over seconds of computing (section V-C)."""
    return np.maximum(breakdown.worker_nic_s, breakdown.server_nic_s) / breakdown.compute_s


def rate_from_measured(
    profile: JobProfile, point: Points, measured_s: float, exchange: ExchangeGranularity = "step"
) -> float:
    """The factor on device speed with which one point matches the measured iteration time.

    Raises:
        ConfigError: no factor in the range fits: the network alone takes longer, or the devices
            would have to be implausibly slow.
    """
    if not (np.isfinite(measured_s) and measured_s > 0):
        raise ConfigError(f"--set measured must be seconds above 0, got {measured_s:g}")

    def seconds(rate: float) -> float:
        changed = replace(point, compute_rate=rate)
        return float(iteration_seconds(profile, changed, exchange=exchange).total_s)

    low, high = _LEAST_RATE, _MOST_RATE
    if not seconds(high) < measured_s < seconds(low):
        raise ConfigError(
            f"--set measured={measured_s:g} s does not fit this setting: parameters and gradients "
            f"alone take {seconds(high):.4g} s on its network; check the setting, or whether "
            "workers wait for each other"
        )
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if seconds(middle) > measured_s else (low, middle)
    return float(np.sqrt(low * high))
