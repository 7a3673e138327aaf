"""Iteration time of synchronous parameter-server training over any number of configurations.

Profile (what a worker computes, needs and sends, segment by segment), Points (configurations)
    -> the pipeline of Zhang et al. (equations 1, 4 and 6), vectorised -> Breakdown

The processes of an iteration are backward communication of the parameters (BC), computing (FP and
BP), forward communication of the gradients (FC) and aggregation (AG). Each is a process of type II:
it waits for itself and for the one before it. When parameters come is a matter of the framework.
`step`: all at the beginning of the next step, as in TensorFlow, and computing waits for those that
it needs. `layer`: as soon as a layer's gradients are added up, as in BytePS and in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.analytic.arrays import as_array
from driple.analytic.zhang import expected_maximum
from driple.checks import check_choice, check_number
from driple.errors import ConfigError

__all__ = [
    "EXCHANGES",
    "Compression",
    "Exchange",
    "JobProfile",
    "Points",
    "StepBreakdown",
    "iteration_seconds",
]

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

Exchange = Literal["step", "layer"]
EXCHANGES: tuple[str, ...] = get_args(Exchange)

# Points of a sweep that are worked on at once: their arrays stay in the cache.
_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProfile:
    """What one worker does in an iteration.

    Attributes:
        segment_s: shape [k], seconds of computing between points at which parameters must have
            come or gradients leave.
        push_bytes: shape [k], gradients that leave at the end of each segment; may be 0.
        pull_bytes: shape [p], parameters in the order in which they come; none if they are
            not to be counted.
        needs: shape [k], how many of those must have come before each segment begins.
    """

    segment_s: FloatArray
    push_bytes: FloatArray
    pull_bytes: FloatArray
    needs: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        count = len(self.segment_s)
        if not count or self.push_bytes.shape != (count,) or self.needs.shape != (count,):
            raise ConfigError(
                "a profile needs one segment or more, each with seconds, bytes and needs; got "
                f"{count}, {len(self.push_bytes)} and {len(self.needs)}"
            )
        if (np.diff(self.needs) < 0).any() or not 0 <= self.needs[-1] <= len(self.pull_bytes):
            raise ConfigError(
                f"segments of a profile need parameters in order, from 0 to {len(self.pull_bytes)}"
            )
        for name in ("segment_s", "push_bytes", "pull_bytes"):
            values = getattr(self, name)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise ConfigError(f"{name} of a profile must be 0 or more and finite")

    @property
    def compute_s(self) -> float:
        """Seconds of the device."""
        return float(self.segment_s.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """What compressing gradients costs (section V-C: inverse square in what is left).

    Attributes:
        s_per_byte: seconds of a worker for each byte at a ratio of 0.5.
    """

    s_per_byte: float = 0.0

    def __post_init__(self) -> None:
        check_number("s_per_byte of compression", self.s_per_byte, least=0)

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
        imbalance: how many times its even share of the parameters the fullest server holds.
        compute_rate: factor on the speed of the workers' devices.
        server_limit_bytes_per_s: what a server's processor passes, each way, however fast its link.
        server_s_per_byte: seconds of a server to add up a byte.
        message_s: seconds from the end of a message until the other side can use it.
        deviation: standard deviation of a worker's computing time, as a share of it.
        compression: share of the gradients' bytes that is not sent, from 0 to below 1.

    Raises:
        ConfigError: a value out of range; the message names the flag.
    """

    workers: Numbers
    servers: Numbers
    worker_bytes_per_s: Numbers
    server_bytes_per_s: Numbers
    imbalance: Numbers = 1.0
    compute_rate: Numbers = 1.0
    server_limit_bytes_per_s: Numbers = np.inf
    server_s_per_byte: Numbers = 0.0
    message_s: Numbers = 0.0
    deviation: Numbers = 0.0
    compression: Numbers = 0.0

    def __post_init__(self) -> None:
        for name, flag in (
            ("workers", "workers"),
            ("servers", "servers"),
            ("worker_bytes_per_s", "bandwidth"),
            ("server_bytes_per_s", "bandwidth"),
            ("imbalance", "imbalance"),
            ("compute_rate", "compute_rate"),
        ):
            self._check(name, flag, least=None)
        for name, flag in (
            ("server_s_per_byte", "server_s_per_byte"),
            ("message_s", "message_s"),
            ("deviation", "deviation"),
            ("compression", "compression"),
        ):
            self._check(name, flag, least=0.0)
        if not (np.asarray(self.server_limit_bytes_per_s) > 0).all():
            raise ConfigError("server_limit_bytes_per_s must be above 0")
        if (np.asarray(self.compression) >= 1).any():
            raise ConfigError("compression must be below 1: something has to be sent")
        try:
            _ = self.shape
        except ValueError as error:
            shapes = {field.name: np.shape(getattr(self, field.name)) for field in fields(self)}
            unlike = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
            raise ConfigError(f"points of shapes that do not fit together: {unlike}") from error

    def _check(self, name: str, flag: str, *, least: float | None) -> None:
        values = as_array(getattr(self, name))
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

    def at(self, rows: npt.NDArray[np.int64]) -> Points:
        """Some of the points, by their positions among all, flat."""
        return Points(**{name: values[rows] for name, values in self.arrays().items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all fields together."""
        return np.broadcast_shapes(*(np.shape(getattr(self, f.name)) for f in fields(self)))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBreakdown:
    """Seconds of an iteration of each point, and how long each resource is busy in it.

    Attributes:
        total_s: the iteration; compute, push, aggregate, pull and wait sum to it.
        compute_s: of the mean worker's device.
        push_s: FC that computing does not hide, compression included.
        aggregate_s: AG after the last push.
        pull_s: BC that nothing hides: what computing waits for parameters, or what comes after AG.
        straggler_s: what the slowest worker adds to an iteration of mean workers.
        worker_nic_s: a worker's link is busy: both directions one after the other where
            parameters come at the step's beginning, else the longer one.
        server_nic_s: the same of a server's link.
        server_cpu_s: a server's processor passes and adds up.
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
    profile: JobProfile,
    points: Points,
    compression: Compression | None = None,
    exchange: Exchange = "step",
) -> StepBreakdown:
    """Seconds of an iteration at each point.

    Args:
        profile: of one worker's step.
        points: configurations.
        compression: what compressing costs.
        exchange: when parameters come: at the next step's beginning, or layer by layer.

    Raises:
        ConfigError: no such exchange.
    """
    check_choice("exchange", exchange, EXCHANGES)
    flat = points.arrays()
    count = len(next(iter(flat.values())))
    cost = compression or Compression()
    parts: dict[str, list[FloatArray]] = {field.name: [] for field in fields(StepBreakdown)}
    for begin in range(0, count, _AT_ONCE):
        some = {name: values[begin : begin + _AT_ONCE] for name, values in flat.items()}
        for name, values in _evaluate(profile, some, cost, exchange).items():
            parts[name].append(values)
    return StepBreakdown(
        **{name: np.concatenate(some).reshape(points.shape) for name, some in parts.items()}
    )


def _evaluate(
    profile: JobProfile, at: Mapping[str, FloatArray], cost: Compression, exchange: Exchange
) -> dict[str, FloatArray]:
    """The breakdown of flat arrays of points."""
    share = _share(at)
    squeezed = cost.seconds(at["compression"], float(profile.push_bytes.sum()))
    compute_s = profile.compute_s / at["compute_rate"]
    ends = _pipeline(profile, at, squeezed, exchange)
    total_s = ends[3]
    if at["deviation"].any():
        total_s = np.maximum(total_s, _slowest_end(profile, at, squeezed, exchange))
    pushed = float(profile.push_bytes.sum()) * (1 - at["compression"])
    moved = pushed + (float(profile.pull_bytes.sum()) if exchange == "step" else 0.0)
    return {
        "total_s": total_s,
        "compute_s": compute_s,
        "push_s": ends[1] - ends[0],
        "aggregate_s": ends[2] - ends[1],
        "pull_s": (ends[0] - compute_s) + (ends[3] - ends[2]),
        "straggler_s": total_s - ends[3],
        "worker_nic_s": moved / at["worker_bytes_per_s"],
        "server_nic_s": moved * share / at["server_bytes_per_s"],
        "server_cpu_s": share
        * (moved / at["server_limit_bytes_per_s"] + pushed * at["server_s_per_byte"]),
    }


def _pipeline(
    profile: JobProfile,
    at: Mapping[str, FloatArray],
    squeezed: FloatArray,
    exchange: Exchange,
    slowest: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """When computing, FC, AG and the iteration end, segment by segment (equation 4).

    Args:
        profile: of a worker.
        at: points.
        squeezed: seconds to compress all gradients.
        exchange: when parameters come.
        slowest: factor on the time of computing of a worker that pushes when all others have; by
            default all push at the same time.
    """
    slowness = (1.0 if slowest is None else slowest) / at["compute_rate"]
    pushing = 1.0 if slowest is None else 1 / np.maximum(at["workers"], 1)
    share = _share(at)
    server_s = share / np.minimum(at["server_bytes_per_s"], at["server_limit_bytes_per_s"])
    byte_s = np.maximum(1 / at["worker_bytes_per_s"], server_s)
    late_s = at["message_s"]
    kept = 1 - at["compression"]
    kept_s = kept * np.maximum(1 / at["worker_bytes_per_s"], pushing * server_s)
    adding_s = kept * pushing * share * at["server_s_per_byte"]
    squeeze_s = squeezed / max(float(profile.push_bytes.sum()), 1.0)  # for each byte
    come, computed, pushed, added, back = (np.zeros_like(byte_s) for _ in range(5))
    pulled = 0
    for seconds, nbytes, needs in zip(
        profile.segment_s.tolist(), profile.push_bytes.tolist(), profile.needs.tolist(), strict=True
    ):
        if exchange == "step" and needs > pulled:
            come = come + float(profile.pull_bytes[pulled:needs].sum()) * byte_s
            pulled = needs
            computed = np.maximum(computed, come + late_s)
        computed = computed + seconds * slowness
        if nbytes:
            pushed = np.maximum(pushed, computed) + nbytes * (kept_s + squeeze_s)
            added = np.maximum(added, pushed + late_s) + nbytes * adding_s
            if exchange == "layer":
                back = np.maximum(back, added) + nbytes * kept_s
    # What was hidden ends with what hides it.
    pushed = np.maximum(pushed, computed)
    added = np.maximum(added, pushed)
    end = added
    if exchange == "step":
        rest = float(profile.pull_bytes[pulled:].sum())
        end = np.maximum(added, come + rest * byte_s + late_s * bool(rest))
    else:
        end = np.maximum(added, back + late_s)
    return computed, pushed, added, end


def _share(at: Mapping[str, FloatArray]) -> FloatArray:
    """How many workers' gradients come to the fullest server.

    Those for all servers leave through a worker's link, those of all workers come in through a
    server's.
    """
    return at["workers"] / at["servers"] * at["imbalance"]


def _slowest_end(
    profile: JobProfile, at: Mapping[str, FloatArray], squeezed: FloatArray, exchange: Exchange
) -> FloatArray:
    """When the slowest of workers with normal times ends, on average (equations 7 to 9).

    Its gradients come when those of all others are through, so it has the servers to itself.
    """
    count = np.maximum(np.rint(at["workers"]), 1)
    counts, which = np.unique(count, return_inverse=True)
    slowest = np.array([expected_maximum(0.0, 1.0, int(n)) for n in counts])[which]
    return _pipeline(profile, at, squeezed, exchange, 1 + at["deviation"] * slowest)[3]
