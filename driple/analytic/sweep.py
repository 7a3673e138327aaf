"""Iteration time of synchronous parameter-server training over any number of configurations.

Profile (what a worker computes, needs and sends, segment by segment), Points (configurations)
    -> the pipeline of Zhang et al. (equations 1, 4 and 6), vectorised -> Breakdown

The processes of an iteration are backward communication of the parameters (BC), computing (FP and
BP), forward communication of the gradients (FC) and aggregation (AG). Each is a process of type II:
it waits for its own previous part and for the process before it. The framework decides when
parameters arrive. `step`: all at the beginning of the next step, as in TensorFlow; each segment
waits for those that it needs. `layer`: as soon as a layer's gradients are aggregated, as in BytePS
and in the paper.
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
    "ExchangeGranularity",
    "JobProfile",
    "Points",
    "StepBreakdown",
    "iteration_seconds",
]

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]

ExchangeGranularity = Literal["step", "layer"]
EXCHANGES: tuple[str, ...] = get_args(ExchangeGranularity)

# Points per chunk of a sweep: their arrays fit in the cache.
_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProfile:
    """Work of one worker in an iteration.

    Attributes:
        segment_s: shape [k], compute time between points at which parameters must have arrived or
            gradients leave, seconds.
        push_bytes: shape [k], gradients sent at the end of each segment; may be 0.
        pull_bytes: shape [p], parameters in order of arrival; empty if they are not counted.
        needs: shape [k], number of those that must have arrived before each segment.
    """

    segment_s: FloatArray
    push_bytes: FloatArray
    pull_bytes: FloatArray
    needs: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        """Raise ConfigError on inconsistent shapes or values."""
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
        """Compute time of the device, seconds."""
        return float(self.segment_s.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """Cost of gradient compression (section V-C: inverse square of the remaining fraction).

    Attributes:
        s_per_byte: time of a worker per byte at a ratio of 0.5, seconds.
    """

    s_per_byte: float = 0.0

    def __post_init__(self) -> None:
        check_number("s_per_byte of compression", self.s_per_byte, least=0)

    def seconds(self, ratio: FloatArray, nbytes: float) -> FloatArray:
        """Time to compress `nbytes` bytes, seconds; 0 at ratio 0."""
        left = 1 - ratio
        return np.where(ratio > 0, self.s_per_byte * nbytes * 0.25 / np.square(left), 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Points:
    """Configurations: arrays that broadcast against each other.

    Attributes:
        workers: number of workers.
        servers: number of parameter servers.
        worker_bytes_per_s: rate of a worker's link, each way.
        server_bytes_per_s: rate of a server's link, each way.
        imbalance: parameters on the fullest server, over an even share.
        compute_rate: factor on the speed of the workers' devices.
        worker_copy_s_per_byte: time of a worker to copy a byte between memory and its link, in
            series with the link, seconds.
        server_copy_s_per_byte: the same of a server.
        server_s_per_byte: time of a server to aggregate one byte, seconds.
        message_s: latency from the end of a message until the receiver can use it, seconds.
        deviation: coefficient of variation of a worker's compute time.
        compression: fraction of the gradients' bytes that is not sent, from 0 to below 1.

    Raises:
        ConfigError: a value out of range; the message names the flag.
    """

    workers: Numbers
    servers: Numbers
    worker_bytes_per_s: Numbers
    server_bytes_per_s: Numbers
    imbalance: Numbers = 1.0
    compute_rate: Numbers = 1.0
    worker_copy_s_per_byte: Numbers = 0.0
    server_copy_s_per_byte: Numbers = 0.0
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
            ("worker_copy_s_per_byte", "worker_copy_s_per_byte"),
            ("server_copy_s_per_byte", "server_copy_s_per_byte"),
            ("server_s_per_byte", "server_s_per_byte"),
            ("message_s", "message_s"),
            ("deviation", "deviation"),
            ("compression", "compression"),
        ):
            self._check(name, flag, least=0.0)
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
        """Some of the points, by flat index."""
        return Points(**{name: values[rows] for name, values in self.arrays().items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of all fields."""
        return np.broadcast_shapes(*(np.shape(getattr(self, f.name)) for f in fields(self)))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBreakdown:
    """Iteration time of each point, its parts, and the busy time of each resource, seconds.

    Attributes:
        total_s: iteration time; compute, push, aggregate, pull and straggler time sum to it.
        compute_s: compute time of the mean worker's device.
        push_s: FC that computation does not hide, compression included.
        aggregate_s: AG after the last push.
        pull_s: exposed BC: wait of the computation for parameters, or the part after AG.
        straggler_s: time that the slowest worker adds to an iteration of mean workers.
        worker_nic_s: busy time of a worker's link: the sum of both directions if parameters arrive
            at the start of the step, else the longer one.
        server_nic_s: the same of a server's link.
        server_cpu_s: busy time of a server's processor.
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
    exchange: ExchangeGranularity = "step",
) -> StepBreakdown:
    """Iteration time at each point, seconds.

    Args:
        profile: of one worker's step.
        points: configurations.
        compression: cost of compression.
        exchange: when parameters arrive: at the start of the next step, or layer by layer.

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
    profile: JobProfile,
    at: Mapping[str, FloatArray],
    cost: Compression,
    exchange: ExchangeGranularity,
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
        * (moved * at["server_copy_s_per_byte"] + pushed * at["server_s_per_byte"]),
    }


def _pipeline(
    profile: JobProfile,
    at: Mapping[str, FloatArray],
    squeezed: FloatArray,
    exchange: ExchangeGranularity,
    slowest: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Ends of computing, FC, AG and the iteration, segment by segment (equation 4).

    Args:
        profile: profile of a worker.
        at: points.
        squeezed: time to compress all gradients, seconds.
        exchange: when parameters arrive.
        slowest: factor on the compute time of a worker that pushes after all others; by default
            all push at the same time.
    """
    slowness = (1.0 if slowest is None else slowest) / at["compute_rate"]
    pushing = 1.0 if slowest is None else 1 / np.maximum(at["workers"], 1)
    share = _share(at)
    server_s = share * (1 / at["server_bytes_per_s"] + at["server_copy_s_per_byte"])
    worker_s = 1 / at["worker_bytes_per_s"] + at["worker_copy_s_per_byte"]
    byte_s = np.maximum(worker_s, server_s)
    late_s = at["message_s"]
    kept = 1 - at["compression"]
    kept_s = kept * np.maximum(worker_s, pushing * server_s)
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
    # A hidden part ends with the part that hides it.
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
    """Number of workers' gradients that the fullest server receives.

    A worker's link carries its gradients for all servers, a server's link those of all workers.
    """
    return at["workers"] / at["servers"] * at["imbalance"]


def _slowest_end(
    profile: JobProfile,
    at: Mapping[str, FloatArray],
    squeezed: FloatArray,
    exchange: ExchangeGranularity,
) -> FloatArray:
    """Expected end of the slowest of workers with normal compute times (equations 7 to 9).

    Its gradients arrive after all others, so it does not share the servers.
    """
    count = np.maximum(np.rint(at["workers"]), 1)
    counts, which = np.unique(count, return_inverse=True)
    slowest = np.array([expected_maximum(0.0, 1.0, int(n)) for n in counts])[which]
    return _pipeline(profile, at, squeezed, exchange, 1 + at["deviation"] * slowest)[3]
