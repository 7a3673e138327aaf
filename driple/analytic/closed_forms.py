"""Iteration time of a job on a cluster by the closed forms, part by part.

    Job, Topology, Calibration -> Zeng's model as published and repaired, Zhang's -> ClosedForm

The forms cover synchronous training with parameter servers. An asynchronous job is treated as
synchronous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from driple.analytic import repaired, zeng
from driple.analytic.advice import bottleneck, communication_ratio, rate_from_measured
from driple.analytic.job_profile import (
    imbalance,
    link_loads,
    points_of,
    profile_of,
    slowest_device,
)
from driple.analytic.repaired import TransferCosts, repaired_transfer_s
from driple.analytic.sweep import ExchangeGranularity, iteration_seconds
from driple.analytic.zhang import shared_link_bytes_per_s
from driple.cluster.topology import Topology
from driple.codec import Json
from driple.graph.cost import GraphCost
from driple.schemes.fair_shares import SharedLink
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.versioned import from_versioned_json

__all__ = [
    "PARTS",
    "ClosedForm",
    "ClosedForms",
    "MethodError",
    "Work",
    "shipped_closed_forms",
    "work_of",
    "zeng_published",
    "zeng_repaired",
    "zhang_pipeline",
]

FORMAT = 1
_ADVICE = "make it again: scripts/fits/closed_forms.py"
PARTS = ("compute", "push", "pull", "wait", "aggregation")
_BITS, _PACKET_BYTES = 8, 1500


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedForm:
    """One iteration by one model.

    Attributes:
        method: `zeng`, `zeng-repaired` or `zhang`.
        iteration_time_s: iteration time, seconds.
        parts_s: seconds of each of `PARTS`; they sum to the iteration time.
        bottleneck: a key of `driple.analytic.advice.BOTTLENECKS`; empty if the model has none.
        communication_ratio: busy time of the busiest link over compute time; None if the model
            has none.
    """

    method: str
    iteration_time_s: float
    parts_s: Mapping[str, float]
    bottleneck: str = ""
    communication_ratio: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Work of a training step, in the terms of Zeng's model.

    Attributes:
        forward_flops: FLOPs of the forward pass of the whole batch.
        weights: number of elements of all parameters.
        nbytes: bytes of all parameters.
        num_pushes: number of gradient tensors.
        is_forward: shape [num_nodes], the ops of the forward pass.
        unknown: number of ops of each type without a FLOP formula.
        unknown_share: fraction of all bytes that those ops move.
    """

    forward_flops: float
    weights: float
    nbytes: float
    num_pushes: int
    is_forward: npt.NDArray[np.bool_]
    unknown: Mapping[str, int]
    unknown_share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodError:
    """Errors of one method on measured iterations outside its fit, percent.

    Attributes:
        rows: number of iterations.
        median_pct: median of the errors.
        mean_pct: their mean.
        p90_pct: their 90th percentile.
    """

    rows: int
    median_pct: float
    mean_pct: float
    p90_pct: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedForms:
    """Fitted constants of the closed forms, and the errors of each method outside the fit.

    Attributes:
        exchange: constants of the repaired model.
        errors: errors by kind of cluster (`servers`, `CPU`), then by method.
        about: sources and date.
    """

    exchange: TransferCosts
    errors: Mapping[str, Mapping[str, MethodError]]
    about: Mapping[str, Json]

    @classmethod
    def from_json(cls, text: str) -> ClosedForms:
        """Parse the text of `closed_forms.json`.

        Raises:
            ConfigError: the text is not such a fit.
        """
        # `fit` is for the report; predictions use the exchange alone.
        return from_versioned_json(
            cls,
            text,
            version=FORMAT,
            what="closed forms",
            advice=_ADVICE,
            ignored=("fit",),
        )

    def error_of(self, topology: Topology, method: str) -> MethodError | None:
        """Error of a method on such clusters; None without measurements, as on one machine."""
        on_cpu = topology.workers[0].is_cpu
        if topology.num_machines == 1 and not on_cpu:
            return None
        return self.errors.get("CPU" if on_cpu else "servers", {}).get(method)


@cache
def shipped_closed_forms() -> ClosedForms:
    """The fit that ships with Driple."""
    return ClosedForms.from_json((files("driple.analytic") / "closed_forms.json").read_text())


def work_of(job: PreparedJob) -> Work:
    """Compute and communication work of a job's step.

    The backward pass begins with the first op of a gradient kind, in execution order.

    Raises:
        GraphError: the graph lacks the input shapes of its ops.
    """
    graph, cost = job.graph, job.cost
    is_gradient = [op.kind.endswith("_gradient") for op in graph.signatures]
    backward = [i for i in job.order.tolist() if is_gradient[graph.signature_of[i]]]
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[job.order] = np.arange(len(job.order))
    is_forward = place < (place[backward[0]] if backward else graph.num_nodes)
    nbytes = float(graph.received_bytes)
    return Work(
        forward_flops=float((cost.flops * job.executions)[is_forward].sum()),
        weights=nbytes / 4,
        nbytes=nbytes,
        num_pushes=max(len(graph.traffic.sent_bytes), 1),
        is_forward=is_forward,
        unknown=cost.unknown,
        unknown_share=_share_of_unknown(job, cost),
    )


def _share_of_unknown(job: PreparedJob, cost: GraphCost) -> float:
    """Fraction of all bytes that ops without a FLOP formula read and write."""
    moved = (cost.bytes_read + cost.bytes_written) * job.executions
    odd = np.array([op_type in cost.unknown for op_type in job.graph.op_types], dtype=bool)
    return float(moved[odd].sum() / moved.sum()) if moved.any() else 0.0


def zeng_published(
    job: PreparedJob, topology: Topology, *, fma: bool = True, work: Work | None = None
) -> ClosedForm:
    """Zeng's model as published: peaks, nominal rates, one server (algorithms 1 and 2).

    Args:
        job: the training job.
        topology: its cluster.
        fma: whether a core does a multiply-add per cycle, as data-sheet peaks count.
        work: result of `work_of`; computed by default.

    Raises:
        SettingError: a ring, or an unknown device.
    """
    work = work_of(job) if work is None else work
    link_loads(topology, SharedLink(1.0), 1.0)  # refuses rings
    backward = zeng.backward_flops(work.weights)
    push_s = float(zeng.transfer_s(work.nbytes, _BITS * topology.link_bytes_per_s))
    first = []
    for device in topology.workers:
        peak = device.fp32_flops * (1.0 if fma else 0.5)
        # A CPU computes, then sends; a GPU overlaps the two.
        pieces = 1 if device.is_cpu else work.num_pushes
        first.append(
            float(zeng.first_gradient_seconds(1, work.forward_flops, backward, pieces, peak))
        )
    total_s = float(zeng.distributed_gpu_seconds(first, push_s, push_s))
    count = len(first)
    parts = {
        "compute": min(first),
        "push": count * push_s,
        "pull": count * push_s,
        "wait": total_s - min(first) - 2 * count * push_s,
        "aggregation": 0.0,
    }
    return ClosedForm(method="zeng", iteration_time_s=total_s, parts_s=parts)


def zeng_repaired(
    job: PreparedJob,
    topology: Topology,
    calibration: Calibration,
    exchange: TransferCosts,
    *,
    work: Work | None = None,
) -> ClosedForm:
    """The repaired model: measured device efficiency, several servers.

    Args:
        job: the training job.
        topology: its cluster.
        calibration: efficiency of devices.
        exchange: cost of transfers between machines; roles of one machine communicate over its
            bridge, whose end-to-end rate was measured.
        work: result of `work_of`; computed by default.

    Raises:
        SettingError: a ring, or an unknown device.
    """
    work = work_of(job) if work is None else work
    one_machine = topology.num_machines == 1
    link = SharedLink(topology.link_bytes_per_s)
    _, load = link_loads(topology, link, calibration.bridge_bytes_per_s)
    num_servers, count = len(topology.server_machine), len(topology.devices)
    # Rate of a server with its own link at the same utilisation.
    rate = count / num_servers / (load * imbalance(job, num_servers))
    how = TransferCosts(push_s=exchange.push_s) if one_machine else exchange
    link_s, server_s = repaired_transfer_s(work.nbytes, rate, work.num_pushes, how)
    forward, backward, copies = [], [], []
    for device in topology.workers:
        seconds = job.times(calibration.device(device), updates=False).duration_s
        copied = 0.0 if device.is_cpu else work.nbytes * exchange.copy_s_per_byte
        forward.append(float(seconds[work.is_forward].sum()) + copied)
        backward.append(float(seconds[~work.is_forward].sum()))
        copies.append(copied)
    parts = repaired.iteration_parts(
        forward,
        backward,
        link_s,
        server_s,
        num_pushes=work.num_pushes,
        num_servers=num_servers,
        copy_s=copies,
        exposed=exchange.exposed,
    )
    return ClosedForm(
        method="zeng-repaired",
        iteration_time_s=float(parts.total_s),
        parts_s={
            "compute": float(parts.compute_s),
            "push": float(parts.push_s),
            "pull": float(parts.pull_s),
            "wait": float(parts.wait_s),
            "aggregation": float(parts.aggregate_s),
        },
    )


def zhang_pipeline(
    job: PreparedJob,
    topology: Topology,
    calibration: Calibration,
    *,
    exchange: ExchangeGranularity = "step",
    background: float = 0.0,
    measured_s: float | None = None,
) -> ClosedForm:
    """Zhang's pipeline of layers, with stragglers (equations 1 to 12).

    Args:
        job: the training job.
        topology: its cluster.
        calibration: efficiency of devices and links.
        exchange: when parameters arrive: `step` or `layer`.
        background: fraction of the servers' links that other traffic uses.
        measured_s: measured iteration time on this cluster, to which device speed is fitted.

    Raises:
        ConfigError: a background of 1 or more, or a measurement that no device speed fits.
        GraphError: the job sends no gradients.
        SettingError: a ring, or an unknown device.
    """
    profile = profile_of(job, slowest_device(job, topology, calibration))
    points = points_of(job, topology, calibration)
    left = shared_link_bytes_per_s(points.server_bytes_per_s, _PACKET_BYTES, background)
    points = replace(points, server_bytes_per_s=left)
    if measured_s is not None:
        rate = rate_from_measured(profile, points, measured_s, exchange)
        points = replace(points, compute_rate=rate)
    seconds = iteration_seconds(profile, points, exchange=exchange)
    return ClosedForm(
        method="zhang",
        iteration_time_s=float(seconds.total_s),
        parts_s={
            "compute": float(seconds.compute_s),
            "push": float(seconds.push_s),
            "pull": float(seconds.pull_s),
            "wait": float(seconds.straggler_s),
            "aggregation": float(seconds.aggregate_s),
        },
        bottleneck=str(bottleneck(seconds)),
        communication_ratio=float(communication_ratio(seconds)),
    )
