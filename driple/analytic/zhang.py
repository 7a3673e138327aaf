"""Epoch time of synchronous parameter-server training with overlap, stragglers and queues.

processes of an iteration -> pipelines -> explicit times -> slowest of N workers -> epoch

X. Zhang et al., "Performance Modeling and Analysis of Distributed Deep Neural Network Training with
Parameter Server". Each function is one equation of it. The processes are IO (loading), FP and BP
(forward, backward), FC (gradients to the servers), AG (aggregation), BC (parameters back), UP
(update). All take arrays as well as numbers; units are seconds, bytes and packets per second.
"""

from __future__ import annotations

from functools import cache
from math import erf, sqrt

import numpy as np

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "aggregation_delay_seconds",
    "aggregation_seconds",
    "barrier_link_seconds",
    "completed_aggregation_seconds",
    "completion_probability",
    "decoupled_synchronization_seconds",
    "epoch_seconds",
    "expected_maximum",
    "explicit_io_seconds",
    "explicit_seconds",
    "granularity_packets",
    "link_seconds",
    "queue_seconds",
    "shared_link_bytes_per_s",
    "slowest_probability",
    "synchronization_seconds",
    "type_one_completion",
    "type_two_completion",
]

_QUADRATURE_POINTS = 2001
_QUADRATURE_REACH = 10.0  # standard deviations


def synchronization_seconds(
    now: Numbers, aggregation: Numbers, before: Numbers = 0.0
) -> FloatArray:
    """Global synchronization time of each iteration and worker (equation 1).

    Args:
        now: shape [..., processes], seconds of IO, FP, BP and FC of this iteration.
        aggregation: shape [...], seconds of AG.
        before: shape [...], seconds of BC and UP of the iteration before; 0 in the first.
    """
    return as_array(as_array(now).sum(axis=-1) + as_array(aggregation) + as_array(before))


def epoch_seconds(synchronization: Numbers, last: Numbers = 0.0) -> FloatArray:
    """Seconds of an epoch: the slowest worker of each iteration, one after another (equation 2).

    Args:
        synchronization: shape [..., iterations, workers].
        last: shape [..., workers], BC and UP of the last iteration.
    """
    slowest = as_array(synchronization).max(axis=-1).sum(axis=-1)
    end = as_array(last)
    return as_array(slowest + (end.max(axis=-1) if end.ndim else end))


def type_one_completion(seconds: Numbers) -> FloatArray:
    """Ends of a process that waits only for its own previous iteration (equation 3).

    Args:
        seconds: shape [..., iterations].
    """
    return as_array(np.cumsum(as_array(seconds), axis=-1))


def type_two_completion(previous: Numbers, seconds: Numbers) -> FloatArray:
    """Ends of a process that waits for its own previous iteration and for another process (equation
    4).

    With the recurrence unrolled, iteration m ends at the largest, over i up to m, of the end of the
    previous process in i plus all times of this one from i to m.

    Args:
        previous: shape [..., iterations], ends of the process before it.
        seconds: shape [..., iterations], times of this one.
    """
    own = as_array(seconds)
    total = np.cumsum(own, axis=-1)
    slack = np.maximum.accumulate(as_array(previous) - (total - own), axis=-1)
    return as_array(total + slack)


def explicit_io_seconds(io: Numbers, compute_end: Numbers) -> FloatArray:
    """Loading time that computation does not hide (equation 5).

    Args:
        io: shape [..., iterations], seconds of loading.
        compute_end: shape [..., iterations], ends of all else, waiting for loads included.
    """
    seconds, ends = as_array(io), as_array(compute_end)
    done = np.cumsum(seconds, axis=-1)
    late = np.maximum(done[..., 1:] - ends[..., :-1], 0.0)
    return as_array(np.concatenate([seconds[..., :1], late], axis=-1))


def explicit_seconds(end: Numbers, previous_end: Numbers) -> FloatArray:
    """Time that a process adds after the last end of the process before it (equation 6)."""
    return as_array(end) - as_array(previous_end)


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


def link_seconds(
    base_s: Numbers,
    packets: Numbers,
    packet_bytes: Numbers,
    bytes_per_s: Numbers,
    overhead: Numbers = 1.0,
) -> FloatArray:
    """Seconds on a link that is no barrier: a line over the bytes (equation 10).

    Args:
        base_s: start, propagation and processing.
        packets: how many are sent.
        packet_bytes: of each.
        bytes_per_s: rate of the link.
        overhead: factor of the protocol (the paper's alpha).
    """
    nbytes = as_array(packets) * as_array(packet_bytes)
    return as_array(base_s) + as_array(overhead) * nbytes / positive("bytes_per_s", bytes_per_s)


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


def barrier_link_seconds(forward_s: Numbers, hops: Numbers) -> FloatArray:
    """Seconds over several hops of a barrier link (equation 12)."""
    return as_array(forward_s) * as_array(hops)


def granularity_packets(packets: Numbers, num_servers: Numbers) -> FloatArray:
    """Packets that a server aggregates at once (equation 13)."""
    return as_array(packets) / positive("num_servers", num_servers)


def aggregation_seconds(start_s: Numbers, packet_s: Numbers, granularity: Numbers) -> FloatArray:
    """Seconds of one addition: a line over the granularity (equation 14)."""
    return as_array(start_s) + as_array(packet_s) * as_array(granularity)


def aggregation_delay_seconds(
    granularity: Numbers, num_workers: Numbers, packets_per_s: Numbers, pace: Numbers = 1.0
) -> FloatArray:
    """Seconds until a server has a whole granule of every worker (equations 15 and 16).

    Args:
        granularity: packets of a granule.
        num_workers: who send at the same time.
        packets_per_s: of the server's link.
        pace: 0 if one worker is far ahead (equation 15), 1 if all keep the same pace (equation 16);
            the paper leaves it to be tuned.
    """
    size, count = as_array(granularity), positive("num_workers", num_workers)
    share = as_array(pace)
    if ((share < 0) | (share > 1)).any():
        raise ConfigError(f"pace must be from 0 to 1, got {pace!r}")
    return (size + share * (count - 1) * (size - 1)) / positive("packets_per_s", packets_per_s)


def decoupled_synchronization_seconds(
    synchronization: Numbers, aggregation: Numbers, last_aggregation: Numbers
) -> FloatArray:
    """Slowest synchronization with its aggregation put in place of each worker's (equation 17).

    Args:
        synchronization: shape [..., workers], of `synchronization_seconds`.
        aggregation: shape [..., workers], the part of it that is AG.
        last_aggregation: shape [...], when the last is added up, of
            `completed_aggregation_seconds`.
    """
    before = (as_array(synchronization) - as_array(aggregation)).max(axis=-1)
    return as_array(before + as_array(last_aggregation))


def completed_aggregation_seconds(
    delay_s: Numbers,
    *,
    num_workers: Numbers,
    packets: Numbers,
    granularity: Numbers,
    num_servers: Numbers,
    one_s: Numbers,
) -> FloatArray:
    """Seconds until the last granule of the last worker is added up (equation 18).

    Args:
        delay_s: of `aggregation_delay_seconds`.
        num_workers: whose granules are added.
        packets: of a layer.
        granularity: packets of a granule.
        num_servers: that share them.
        one_s: seconds of one addition, of `aggregation_seconds`.
    """
    granules = np.ceil(
        as_array(packets)
        / (positive("granularity", granularity) * positive("num_servers", num_servers))
    )
    return as_array(delay_s) + as_array(num_workers) * granules * as_array(one_s)


@cache
def _largest_of_normals(count: int) -> float:
    """Mean of the largest of n standard normals: integral of x dF(x)^n."""
    points = np.linspace(-_QUADRATURE_REACH, _QUADRATURE_REACH, _QUADRATURE_POINTS)
    below = slowest_probability(points, 0.0, 1.0, count)
    # Integration by parts: the mean is the upper end less the integral of the distribution.
    return float(_QUADRATURE_REACH - np.trapezoid(below, points))


_erf = np.vectorize(erf, otypes=[np.float64])
