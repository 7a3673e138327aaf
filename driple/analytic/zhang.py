"""Order statistics and queues of synchronous parameter-server training.

normal times of a worker -> slowest of N workers;  service and arrivals of a link -> delay in it

X. Zhang et al., "Performance Modeling and Analysis of Distributed Deep Neural Network Training with
Parameter Server". Each function is one equation of it. All take arrays as well as numbers; units
are seconds, bytes and packets per second.
"""

from __future__ import annotations

from functools import cache
from math import erf, sqrt

import numpy as np

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "completion_probability",
    "expected_maximum",
    "queue_seconds",
    "shared_link_bytes_per_s",
    "slowest_probability",
]

_QUADRATURE_POINTS = 2001
_QUADRATURE_REACH = 10.0  # standard deviations


def completion_probability(time_s: Numbers, mean: Numbers, deviation: Numbers) -> FloatArray:
    """Probability that a worker with normal times is done by that time (equation 7)."""
    scaled = (as_array(time_s) - as_array(mean)) / (positive("deviation", deviation) * sqrt(2))
    return as_array(0.5 * (1 + _erf(scaled)))


def slowest_probability(
    time_s: Numbers, mean: Numbers, deviation: Numbers, num_workers: Numbers
) -> FloatArray:
    """Probability that all of N such workers are done by that time (equation 8)."""
    count = positive("num_workers", num_workers)
    return as_array(completion_probability(time_s, mean, deviation) ** count)


def expected_maximum(mean: Numbers, deviation: Numbers, num_workers: int) -> FloatArray:
    """Expected time of the slowest of N workers with normal times (equation 9).

    The mean of the largest of N standard normals by quadrature over equation 8, scaled and shifted.

    Raises:
        ConfigError: no workers, or a negative deviation.
    """
    if num_workers < 1:
        raise ConfigError(f"num_workers must be 1 or more, got {num_workers}")
    spread = as_array(deviation)
    if (spread < 0).any():
        raise ConfigError(f"a standard deviation cannot be negative, got {deviation!r}")
    return as_array(as_array(mean) + spread * _largest_of_normals(num_workers))


def queue_seconds(service_per_s: Numbers, arrivals_per_s: Numbers) -> FloatArray:
    """Seconds that a packet spends at a barrier link, an M/M/1 queue (equation 11).

    The paper takes the arrival rate for one over the bandwidth, which mixes a rate and a time; here
    both are packets per second. The queue is stable only if less arrives than is served.

    Raises:
        ConfigError: a utilisation of 1 or more.
    """
    served, arriving = positive("service_per_s", service_per_s), as_array(arrivals_per_s)
    use = arriving / served
    if (use >= 1).any() or (use < 0).any():
        raise ConfigError(
            f"a queue's utilisation is {float(use.max()):.3f}, it must be from 0 to below 1; lower "
            "the arrivals or raise the service rate"
        )
    return 1 / (served - arriving)


def shared_link_bytes_per_s(
    bytes_per_s: Numbers, packet_bytes: Numbers, background: Numbers
) -> FloatArray:
    """Rate of a barrier link for packets that follow each other, beside other traffic.

    Each packet takes the mean time of equation 11 with the other traffic as arrivals, so a
    utilisation `u` leaves `1 - u` of the rate (docs/decisions/0011).

    Args:
        bytes_per_s: rate of the link.
        packet_bytes: of each packet.
        background: share of the link that other traffic takes, from 0 to below 1.

    Raises:
        ConfigError: a utilisation of 1 or more.
    """
    size = positive("packet_bytes", packet_bytes)
    served = positive("bytes_per_s", bytes_per_s) / size
    return size / queue_seconds(served, served * as_array(background))


@cache
def _largest_of_normals(count: int) -> float:
    """Mean of the largest of n standard normals: integral of x dF(x)^n."""
    points = np.linspace(-_QUADRATURE_REACH, _QUADRATURE_REACH, _QUADRATURE_POINTS)
    below = slowest_probability(points, 0.0, 1.0, count)
    # Integration by parts: the mean is the upper end less the integral of the distribution. NumPy 1
    # has no `trapezoid`.
    integral = (np.diff(points) * (below[1:] + below[:-1]) / 2).sum()
    return float(_QUADRATURE_REACH - integral)


_erf = np.vectorize(erf, otypes=[np.float64])
