"""Iteration time of one job over a grid of bandwidths, workers, servers and compression ratios.

    PreparedJob, Setting, GridOptions --sweep_grid--> GridSweep: a point per cluster

The model is synchronous training with parameter servers, each role with its own link (Zhang et
al.).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from driple.analytic.advice import RESOURCES, bottleneck, gain_of_doubling, rate_from_measured
from driple.analytic.job_profile import points_of, profile_of, slowest_device
from driple.analytic.spread import ServerSpread
from driple.analytic.sweep import (
    EXCHANGES,
    Compression,
    ExchangeGranularity,
    JobProfile,
    Points,
    StepBreakdown,
    iteration_seconds,
)
from driple.checks import check_choice
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError
from driple.graph.placement import STRATEGIES, Strategy
from driple.remarks import Remark, remark
from driple.simulate.calibration import (
    ETHERNET,
    Calibration,
    LinkEfficiency,
    shipped_calibration,
)
from driple.simulate.prepared_job import PreparedJob

__all__ = ["GridOptions", "GridSweep", "sweep_grid"]

FloatArray = npt.NDArray[np.float64]

_MOST_POINTS = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class GridOptions:
    """Axes of the grid; an empty tuple means the setting's own value.

    Attributes:
        bandwidths_bits_per_s: rates of every link.
        workers: numbers of workers.
        servers: numbers of parameter servers.
        compressions: fractions of the gradients that are not sent.
        compression_s_per_byte: time to compress a byte of gradients to a half, seconds.
        placement: how variables are spread over servers.
        deviation: coefficient of variation of a worker's compute time.
        exchange: when parameters arrive: `step` or `layer`.
        copies: whether workers and servers copy what crosses the network in their host's memory.
        measured_s: measured iteration time on the setting, seconds; None without.
    """

    bandwidths_bits_per_s: tuple[float, ...] = ()
    workers: tuple[int, ...] = ()
    servers: tuple[int, ...] = ()
    compressions: tuple[float, ...] = (0.0,)
    compression_s_per_byte: float = 0.0
    placement: Strategy = "round_robin"
    deviation: float = 0.02
    exchange: ExchangeGranularity = "step"
    copies: bool = True
    measured_s: float | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError on unknown choices."""
        check_choice("--set exchange", self.exchange, EXCHANGES)
        check_choice("--set placement", self.placement, STRATEGIES)


@dataclass(frozen=True, kw_only=True, slots=True)
class GridSweep:
    """All points of the grid, and the closed form at each.

    Attributes:
        points: configurations.
        rates: shape [n], bytes/s of each point's links.
        counts: shape [n], workers of each point.
        servers: shape [n], parameter servers of each point.
        compressions: shape [n], fractions of gradients not sent.
        profile: of one worker's step.
        compression: cost of compressing.
        exchange: when parameters arrive.
        parts: parts of each iteration.
        bottlenecks: shape [n], keys of `driple.analytic.advice.BOTTLENECKS`.
        spread: spread of the variables over servers.
        remarks: caveats for the user.
    """

    points: Points
    rates: FloatArray
    counts: FloatArray
    servers: FloatArray
    compressions: FloatArray
    profile: JobProfile
    compression: Compression
    exchange: ExchangeGranularity
    parts: StepBreakdown
    bottlenecks: npt.NDArray[np.str_]
    spread: ServerSpread
    remarks: tuple[Remark, ...] = ()

    def gains(self, at: npt.NDArray[np.int64] | None = None) -> dict[str, FloatArray]:
        """Fraction of the iteration saved by doubling each resource, at all or at some points.

        Args:
            at: indices of points; all if None.
        """
        points = self.points if at is None else self.points.at(at)
        return {
            name: gain_of_doubling(self.profile, points, name, self.compression, self.exchange)
            for name in RESOURCES
        }


def grid_of(setting: Setting, options: GridOptions) -> list[FloatArray]:
    """Rates (bytes/s; 0 for the setting's own), workers, servers and shares not sent of all points.

    Raises:
        ConfigError: more points than fit in memory.
    """
    rates = [rate / 8 for rate in options.bandwidths_bits_per_s]
    values: list[Sequence[float]] = [
        rates or [0.0],
        options.workers or (setting.num_workers,),
        options.servers or (max(setting.num_servers, 1),),
        options.compressions,
    ]
    num_points = prod(len(some) for some in values)
    if num_points > _MOST_POINTS:
        raise ConfigError(
            f"{num_points} points are more than {_MOST_POINTS}; give fewer values, or narrower "
            "ranges"
        )
    return [grid.ravel() for grid in np.meshgrid(*values, indexing="ij")]


def sweep_grid(job: PreparedJob, setting: Setting, options: GridOptions) -> GridSweep:
    """The closed form at every point.

    Args:
        job: the training job.
        setting: cluster that gives all other values.
        options: axes of the grid.

    Raises:
        ConfigError: too many points.
        SettingError: an unknown device, or a setting without parameter servers.
        GraphError: the job sends no gradients.
    """
    rates, counts, servers, ratios = grid_of(setting, options)
    topology, calibration = topology_of(setting), shipped_calibration(setting)
    own = points_of(job, topology, calibration, deviation=options.deviation, copied=options.copies)
    profile = profile_of(job, slowest_device(job, topology, calibration))
    if options.measured_s is not None:
        rate = rate_from_measured(profile, own, options.measured_s, options.exchange)
        own = replace(own, compute_rate=rate)
    slow_copies: Remark | None = None
    if options.bandwidths_bits_per_s:
        own, slow_copies = _on_ethernet(own, rates, counts, calibration, copies=options.copies)
    else:
        own = _shared_by(own, counts, calibration.link(topology.joined_by or topology.link))
        rates = np.full(len(rates), float(np.asarray(own.worker_bytes_per_s)))
    known, which = np.unique(servers, return_inverse=True)
    spread = ServerSpread.of(job, known.tolist(), options.placement)
    uneven = np.array(spread.imbalances)[which]
    points = replace(own, workers=counts, servers=servers, imbalance=uneven, compression=ratios)
    cost = Compression(s_per_byte=options.compression_s_per_byte)
    parts = iteration_seconds(profile, points, cost, options.exchange)
    return GridSweep(
        points=points,
        rates=rates,
        counts=counts,
        servers=servers,
        compressions=ratios,
        profile=profile,
        compression=cost,
        exchange=options.exchange,
        parts=parts,
        bottlenecks=bottleneck(parts),
        spread=spread,
        remarks=() if slow_copies is None else (slow_copies,),
    )


def _shared_by(own: Points, counts: FloatArray, link: LinkEfficiency) -> Points:
    """The points with servers' links shared by other numbers of workers."""
    before = link.effective_share(int(np.asarray(own.workers)))
    shares = _shares(counts, link) / before
    return replace(own, server_bytes_per_s=np.asarray(own.server_bytes_per_s) * shares)


def _shares(counts: FloatArray, link: LinkEfficiency) -> FloatArray:
    """Fraction of a link's rate that each number of workers reaches."""
    known, which = np.unique(counts, return_inverse=True)
    return np.array([link.effective_share(int(count)) for count in known.tolist()])[which]


def _on_ethernet(
    own: Points, rates: FloatArray, counts: FloatArray, calibration: Calibration, *, copies: bool
) -> tuple[Points, Remark | None]:
    """A topology with one machine per role and Ethernet of these rates; and a remark."""
    link = calibration.links[ETHERNET]
    most = calibration.role_copy_bytes_per_s if copies else np.inf
    reached = rates * link.effective_share(1)
    slow_copies: Remark | None = None
    if (reached > most).any():
        slow_copies = remark("slow_copies", copy_bytes_per_s=most)
    points = replace(
        own,
        worker_bytes_per_s=reached,
        server_bytes_per_s=rates * _shares(counts, link),
        worker_copy_s_per_byte=1 / most,
        server_copy_s_per_byte=1 / most,
        message_s=link.latency_s,
    )
    return points, slow_copies
