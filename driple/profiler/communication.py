"""Communication stall of a step: T = L (tau + G / (L B)) (section VI-A).

gradients with their ready times   -> buckets of DistributedDataParallel
buckets, Channel (tau, B), workers -> sequential transfers, overlapped or not -> stall

L gradients with a total of G bytes cross a link of latency tau and rate B. Without buckets and
overlap the stall is the paper's T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.catalog import Link
from driple.checks import check_choice, check_number
from driple.errors import ConfigError
from driple.profiler.profile_records import SeenGradients
from driple.schemes.ring import RingSpec, passing
from driple.simulate.calibration import CalibratedDevice, Calibration
from driple.simulate.prepared_job import PreparedJob

__all__ = ["Buckets", "Channel", "Gradients", "bucketed", "calibrated_channel",
           "communication_stall", "gradients_of_job"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]
LatencyPer = Literal["gradient", "bucket"]
LATENCIES: tuple[str, ...] = get_args(LatencyPer)

MIB = 2.0**20
# PyTorch's DistributedDataParallel keeps the first bucket small, so that sending starts early.
FIRST_BUCKET_MIB, BUCKET_MIB = 1.0, 25.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradients:
    """The gradients of a training step on one device.

    Attributes:
        nbytes: shape [n], bytes of each, in order of readiness.
        ready_s: shape [n], seconds since the start of the step.
        end_s: end of the backward pass, seconds since the start of the step.
    """

    nbytes: FloatArray
    ready_s: FloatArray
    end_s: float

    @classmethod
    def measured(cls, seen: SeenGradients, iteration_s: float) -> Gradients:
        """Gradients of a profile: one iteration with hooks, scaled to the mean iteration time.

        Args:
            seen: as `Profile.gradients` gives it.
            iteration_s: mean iteration time of step 1, seconds.

        Raises:
            ConfigError: the profile has no gradients.
        """
        if not seen.nbytes:
            raise ConfigError("the profile saw no gradients in step 1; run step 1 again")
        ready = np.array(seen.ready_s) * iteration_s / seen.step_s
        return cls(
            nbytes=np.array(seen.nbytes, dtype=np.float64),
            ready_s=np.maximum.accumulate(ready),
            end_s=float(ready.max()),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """Buckets of gradients.

    Attributes:
        nbytes: shape [k], bytes of each bucket.
        count: shape [k], number of gradients in each.
        ready_s: shape [k], time at which the last gradient of each is ready, seconds.
    """

    nbytes: FloatArray
    count: npt.NDArray[np.int64]
    ready_s: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Channel:
    """Latency and rate of a link in an exchange.

    Attributes:
        name: name of the link, as in the catalogue or chosen by the user.
        latency_s: tau, seconds.
        bytes_per_s: B, rate of one direction.
        latency_per: unit that pays the latency: each gradient, as in the paper, or each bucket.
        overlap: whether the exchange overlaps the computation. On CPU devices the same cores do
            both.
    """

    name: str
    latency_s: float
    bytes_per_s: float
    latency_per: LatencyPer = "gradient"
    overlap: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("name", str), ("overlap", bool)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ConfigError(f"{name} of a channel must be of type {kind.__name__}: {value!r}")
        check_number("latency_s of a channel", self.latency_s, least=0)
        check_number("bytes_per_s of a channel", self.bytes_per_s, above=0)
        check_choice("latency_per of a channel", self.latency_per, LATENCIES)


def bucketed(
    gradients: Gradients, *, first_mib: float = FIRST_BUCKET_MIB, most_mib: float = BUCKET_MIB
) -> Buckets:
    """Put gradients into buckets in order of readiness.

    The gradient that fills a bucket belongs to it, so a bucket may exceed its limit.
    """
    limits = (first_mib * MIB, most_mib * MIB)
    ends: list[int] = []
    filled = 0.0
    for i, nbytes in enumerate(gradients.nbytes.tolist()):
        filled += nbytes
        if filled >= limits[min(len(ends), 1)]:
            ends.append(i)
            filled = 0.0
    last = len(gradients.nbytes) - 1
    if not ends or ends[-1] != last:
        ends.append(last)
    starts = np.array([0, *(end + 1 for end in ends[:-1])])
    return Buckets(
        nbytes=np.add.reduceat(gradients.nbytes, starts),
        count=np.diff([*starts.tolist(), last + 1]),
        ready_s=gradients.ready_s[ends],
    )


def communication_stall(
    gradients: Gradients, buckets: Buckets, channel: Channel, workers: int
) -> float:
    """Communication stall: time that the exchange adds to a step, seconds.

    Every byte crosses a worker's link 2 (workers - 1) / workers times, as in a ring; with two
    workers that is the paper's G / B.
    """
    if workers < 2:
        return 0.0
    per_gradient = channel.latency_per == "gradient"
    counts = buckets.count if per_gradient else np.ones_like(buckets.count)
    ready_s = buckets.ready_s if channel.overlap else np.full_like(buckets.ready_s, gradients.end_s)
    ring = RingSpec(
        bytes_per_s=channel.bytes_per_s, tensor_s=channel.latency_s, update_s=(0.0,) * workers
    )
    _, ends = passing(ring, buckets.nbytes, counts, ready_s)
    return max(float(ends[-1]) - gradients.end_s, 0.0)


def gradients_of_job(job: PreparedJob, device: CalibratedDevice) -> Gradients:
    """Gradients of a TensorFlow graph, with ready times from the simulated op times.

    Raises:
        ConfigError: the graph sends no gradients.
    """
    traffic = job.graph.traffic.without_states()
    if not len(traffic.sent_bytes):
        raise ConfigError(
            "the graph sends no gradients; give the graph of a worker that trains with others, as "
            "driple jobs build writes it"
        )
    order = job.order
    ends = np.empty(len(order))
    ends[order] = np.cumsum(job.times(device).duration_s[order])
    ready = ends[traffic.senders]
    first = np.argsort(ready, kind="stable")
    return Gradients(
        nbytes=traffic.sent_bytes[first].astype(np.float64),
        ready_s=ready[first],
        end_s=float(ends.max()),
    )


def calibrated_channel(link: Link, workers: int, calibration: Calibration) -> Channel:
    """Channel of a link without a fit: the efficiency of published rings (study simulation)."""
    reached = calibration.link(link)
    return Channel(
        name=link.name,
        latency_s=reached.latency_s,
        bytes_per_s=link.bytes_per_s * reached.effective_share(workers),
    )
