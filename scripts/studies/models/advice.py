"""Speed-up and best compression by the closed form, for figures 5 and 6 of Zhang et al."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.analytic.sweep import (
    Compression,
    ExchangeGranularity,
    JobProfile,
    Points,
    iteration_seconds,
)
from driple.errors import ConfigError

__all__ = ["BestCompression", "best_compression", "speed_up"]

FloatArray = npt.NDArray[np.float64]

_RATIOS = np.linspace(0.0, 0.99, 100)


def speed_up(
    profile: JobProfile, points: Points, exchange: ExchangeGranularity = "step"
) -> FloatArray:
    """Examples per second of all workers over those of one device alone (section V-C)."""
    total_s = iteration_seconds(profile, points, exchange=exchange).total_s
    alone_s = profile.compute_s / np.asarray(points.compute_rate, dtype=np.float64)
    return np.asarray(points.workers, dtype=np.float64) * alone_s / total_s


@dataclass(frozen=True, slots=True)
class BestCompression:
    """The compression ratio with the shortest iteration.

    Attributes:
        ratio: fraction of the gradients that is not sent.
        total_s: iteration time with it, seconds.
        saved: fraction of the uncompressed iteration time that it saves.
    """

    ratio: float
    total_s: float
    saved: float


def best_compression(
    profile: JobProfile,
    point: Points,
    compression: Compression,
    exchange: ExchangeGranularity = "step",
) -> BestCompression:
    """The compression with the shortest iteration, to a hundredth (section V-C, figure 6).

    Raises:
        ConfigError: several points.
    """
    if point.shape:
        raise ConfigError(f"the best compression is sought for one point, got shape {point.shape}")
    tried = replace(point, compression=_RATIOS)
    total_s = iteration_seconds(profile, tried, compression, exchange).total_s
    best = int(total_s.argmin())
    return BestCompression(
        float(_RATIOS[best]), float(total_s[best]), float(1 - total_s[best] / total_s[0])
    )
