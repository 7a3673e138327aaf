"""Iteration time of synchronous parameter-server training over any number of configurations.

Profile (what a worker computes and sends, bucket by bucket), Points (arrays of configurations)
    -> the layer pipeline of Zhang et al. (equations 4 and 6), vectorised -> Breakdown, bottleneck

Backward pass, forward communication (FC), aggregation (AG) and backward communication (BC) form a
pipeline over buckets of gradients; the forward pass comes before it. A bucket's time on the network
is that of its barrier link: the worker's, or the servers' where many workers share few of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.perfmodel.zhang import expected_maximum, type_two_completion

__all__ = [
    "BOTTLENECKS",
    "RESOURCES",
    "Breakdown",
    "Compression",
    "Points",
    "Profile",
    "bottleneck",
    "gain_of_doubling",
    "iteration_seconds",
]

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

# Points of a sweep that are worked on at once: their arrays stay in the cache.
_AT_ONCE = 8192

# What an iteration can be bound by, in the order in which ties are told.
BOTTLENECKS: Mapping[str, str] = MappingProxyType(
    {
        "compute": "the workers' devices",
        "worker_nic": "the network link of a worker",
        "server_nic": "the network links of the parameter servers",
        "server_cpu": "adding up gradients on the parameter servers",
        "stragglers": "waiting for the slowest worker",
    }
)
# What can be doubled.
RESOURCES = ("compute_rate", "worker_bytes_per_s", "server_bytes_per_s", "servers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What one worker does in an iteration.

    Attributes:
        forward_s: seconds before the first gradient is being computed.
        backward_s: shape [b], seconds of the backward pass up to each bucket.
        bucket_bytes: shape [b], bytes of the gradients that are sent then.
        update_s: seconds after the parameters have come back.
    """

    forward_s: float
    backward_s: FloatArray
    bucket_bytes: FloatArray
    update_s: float = 0.0

    def __post_init__(self) -> None:
        if self.backward_s.shape != self.bucket_bytes.shape or not len(self.backward_s):
            raise ConfigError("a profile needs one bucket or more, each with seconds and bytes")

    @property
    def compute_s(self) -> float:
        """Seconds of the device."""
        return self.forward_s + float(self.backward_s.sum()) + self.update_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """What compressing gradients costs (section V-C: inverse square in what is left).

    Attributes:
        s_per_byte: seconds of a worker for each byte at a ratio of 0.5.
    """

    s_per_byte: float = 0.0

    def seconds(self, ratio: FloatArray, nbytes: float) -> FloatArray:
        """Seconds to compress so many bytes; none at ratio 0."""
        left = 1 - ratio
        return np.where(ratio > 0, self.s_per_byte * nbytes * 0.25 / np.square(left), 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Points:
    """Configurations, as arrays that follow NumPy's broadcasting.

    Attributes:
        workers: number of workers.
        servers: number of parameter servers.
        worker_bytes_per_s: rate of a worker's link, each way.
        server_bytes_per_s: rate of a server's link, each way.
        compute_rate: factor on the speed of the workers' devices.
        server_s_per_byte: seconds of a server to add up a byte.
        message_s: seconds of a bucket besides its bytes.
        deviation: standard deviation of a worker's computing time, as a share of it.
        compression: share of the gradients' bytes that is not sent, from 0 to below 1.

    Raises:
        ConfigError: a value out of range; the message names the flag.
    """

    workers: Numbers
    servers: Numbers
    worker_bytes_per_s: Numbers
    server_bytes_per_s: Numbers
    compute_rate: Numbers = 1.0
    server_s_per_byte: Numbers = 0.0
    message_s: Numbers = 0.0
    deviation: Numbers = 0.0
    compression: Numbers = 0.0

    def __post_init__(self) -> None:
        for name, flag in (
            ("workers", "--workers"),
            ("servers", "--ps"),
            ("worker_bytes_per_s", "--bandwidth"),
            ("server_bytes_per_s", "--bandwidth"),
            ("compute_rate", "--compute-rate"),
        ):
            self._check(name, flag, least=None)
        for name, flag in (
            ("server_s_per_byte", "server_s_per_byte"),
            ("message_s", "message_s"),
            ("deviation", "--deviation"),
            ("compression", "--compress"),
        ):
            self._check(name, flag, least=0.0)
        if (np.asarray(self.compression) >= 1).any():
            raise ConfigError("--compress must be below 1: something has to be sent")

    def _check(self, name: str, flag: str, *, least: float | None) -> None:
        values = np.asarray(getattr(self, name), dtype=np.float64)
        good = np.isfinite(values) & ((values > 0) if least is None else (values >= least))
        if not good.all():
            raise ConfigError(
                f"{flag} must be {'above 0' if least is None else f'{least:g} or more'} and "
                f"finite, got {float(values[~good].flat[0]):g}"
            )

    def arrays(self) -> dict[str, FloatArray]:
        """Every field, broadcast to one shape and flat."""
        names = [field.name for field in fields(self)]
        values = np.broadcast_arrays(*(np.asarray(getattr(self, n), np.float64) for n in names))
        return {name: value.ravel() for name, value in zip(names, values, strict=True)}

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all fields together."""
        return np.broadcast_shapes(*(np.shape(getattr(self, f.name)) for f in fields(self)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """Seconds of an iteration of each point, and how long each resource is busy in it.

    Attributes:
        total_s: the iteration; compute, push, aggregate, pull and wait sum to it.
        compute_s: of the mean worker's device.
        push_s: FC that the backward pass does not hide.
        aggregate_s: AG after the last push.
        pull_s: BC after that.
        straggler_s: what the slowest worker takes longer than the mean one.
        worker_nic_s: a worker's link is busy, the longer direction.
        server_nic_s: a server's link is busy, the longer direction.
        server_cpu_s: a server adds up.
    """

    total_s: FloatArray
    compute_s: FloatArray
    push_s: FloatArray
    aggregate_s: FloatArray
    pull_s: FloatArray
    straggler_s: FloatArray
    worker_nic_s: FloatArray
    server_nic_s: FloatArray
    server_cpu_s: FloatArray


def iteration_seconds(
    profile: Profile, points: Points, compression: Compression | None = None
) -> Breakdown:
    """Seconds of an iteration at each point.

    Args:
        profile: of one worker's step.
        points: configurations.
        compression: what compressing costs.
    """
    flat = points.arrays()
    count = len(next(iter(flat.values())))
    cost = compression or Compression()
    parts: dict[str, list[FloatArray]] = {field.name: [] for field in fields(Breakdown)}
    for begin in range(0, count, _AT_ONCE):
        some = {name: values[begin : begin + _AT_ONCE] for name, values in flat.items()}
        for name, values in _evaluate(profile, some, cost).items():
            parts[name].append(values)
    return Breakdown(
        **{name: np.concatenate(some).reshape(points.shape) for name, some in parts.items()}
    )


def bottleneck(found: Breakdown) -> npt.NDArray[np.str_]:
    """Which resource each point is bound by: the one that is busy, or waited for, longest."""
    busy = np.stack(
        [
            found.compute_s,
            found.worker_nic_s,
            found.server_nic_s,
            found.server_cpu_s,
            found.straggler_s,
        ]
    )
    names: npt.NDArray[np.str_] = np.array(list(BOTTLENECKS))[busy.argmax(axis=0)]
    return names


def gain_of_doubling(
    profile: Profile, points: Points, resource: str, compression: Compression | None = None
) -> FloatArray:
    """Share of the iteration that is saved if there is twice as much of a resource.

    Raises:
        ConfigError: no such resource.
    """
    if resource not in RESOURCES:
        raise ConfigError(f"'{resource}' cannot be doubled; choose of {', '.join(RESOURCES)}")
    twice = replace(points, **{resource: 2 * np.asarray(getattr(points, resource))})
    before, after = (iteration_seconds(profile, one, compression) for one in (points, twice))
    return 1 - after.total_s / before.total_s


def _evaluate(
    profile: Profile, at: Mapping[str, FloatArray], cost: Compression
) -> dict[str, FloatArray]:
    """The breakdown of flat arrays of points."""
    kept = (1 - at["compression"])[:, None]
    sizes = profile.bucket_bytes[None, :] * kept
    share = (at["workers"] / at["servers"])[:, None]  # workers' gradients at each server
    # Gradients of all servers leave through the worker's link, those of all workers come in
    # through the server's.
    at_worker = sizes / at["worker_bytes_per_s"][:, None]
    at_server = share * sizes / at["server_bytes_per_s"][:, None]
    moving = at["message_s"][:, None] + np.maximum(at_worker, at_server)
    adding = share * sizes * at["server_s_per_byte"][:, None]
    squeeze = cost.seconds(at["compression"], float(profile.bucket_bytes.sum()))
    speed = at["compute_rate"]
    compute_s = profile.compute_s / speed + squeeze
    ready = (profile.forward_s + np.cumsum(profile.backward_s)[None, :]) / speed[:, None]
    ready = ready + squeeze[:, None] * np.linspace(0, 1, ready.shape[1] + 1)[None, 1:]
    pushed = type_two_completion(ready, moving)
    added = type_two_completion(pushed, adding)
    pulled = type_two_completion(added, moving)
    ends = [values[:, -1] for values in (ready, pushed, added, pulled)]
    slowest = np.zeros_like(compute_s)
    spread = at["deviation"] * compute_s
    if spread.any():
        for count in np.unique(at["workers"]):
            rows = at["workers"] == count
            slowest[rows] = expected_maximum(0.0, spread[rows], max(round(float(count)), 1))
    return {
        "total_s": ends[3] + profile.update_s / speed + slowest,
        "compute_s": compute_s,
        "push_s": ends[1] - ends[0],
        "aggregate_s": ends[2] - ends[1],
        "pull_s": ends[3] - ends[2],
        "straggler_s": slowest,
        "worker_nic_s": at_worker.sum(axis=1),
        "server_nic_s": at_server.sum(axis=1),
        "server_cpu_s": adding.sum(axis=1),
    }
