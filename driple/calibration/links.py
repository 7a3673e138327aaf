"""What links reach of their rates: fitted to published iterations of rings and servers.

PublishedRun + efficiency of its devices -> Prepared (steps of all workers) -> seconds on a link
Prepared, Prepared, ... of one link -> LinkEfficiency, what its servers take for a byte

A ring without differences between steps is one step, and that is a sum: thousands of trials of a
fit cost no simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.calibration.batched import BatchedGraph
from driple.calibration.published import PublishedRun
from driple.calibration.solver import least_squares
from driple.catalog import device_named, link_named
from driple.cluster.schemes import DDP, PS
from driple.cluster.topology import Topology, copy_s_per_byte
from driple.comm.ps import ClusterSpec, simulate_cluster
from driple.comm.ring import RingSpec, passing
from driple.simulate.calibration import CalibratedDevice, LinkEfficiency, link_kind
from driple.simulate.kernels import Efficiency
from driple.simulate.prepared_job import Program
from driple.step.plan import StepPlan

__all__ = [
    "PreparedRun",
    "by_link",
    "fit_link_efficiency",
    "prepare_run",
    "program_of",
    "seconds_on",
    "topology_of_run",
]

FloatArray = npt.NDArray[np.float64]

# tf_cnn_benchmarks sends the gradients of half-precision runs round in half precision
# (compact_gradient_transfer, its default).
_COMPACT = 0.5
_STEPS = 3
# Where fits begin: share of the rate, seconds of a tensor or message, what sharing costs, and
# seconds of a server for a byte of a gradient.
_START = LinkEfficiency(share=0.6, tensor_s=2e-5, sharing=0.1)
_APPLY_START = 1e-10
_PRIOR = np.array([1.0, 2.0, 1.0, 2.0])  # deviations of the logarithms from the start
# None passes more than its nominal rate; more sharing than this leaves many no rate at all.
_MOST = np.log([1.0, np.inf, 2.0, np.inf])
_NOISE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedRun:
    """A published run, ready to be put on any link.

    Attributes:
        run: the measurement.
        plans: step of each worker.
        update_s: seconds of each worker to apply gradients, where there are no servers.
        sizes: shape [num_messages], bytes of each message of gradients.
        tensors: shape [num_messages], tensors of each.
        ready_s: shape [num_messages], when the last worker has computed each.
        compute_s: when the last worker has computed all.
    """

    run: PublishedRun
    plans: tuple[StepPlan, ...]
    update_s: tuple[float, ...]
    sizes: FloatArray
    tensors: npt.NDArray[np.int64]
    ready_s: FloatArray
    compute_s: float


def prepare_run(
    run: PublishedRun,
    graph: BatchedGraph,
    efficiency_of: Callable[[str], Efficiency],
) -> PreparedRun:
    """The steps of a run's workers."""
    job = graph.job(run.batch_size, program_of(run))
    devices = {
        name: CalibratedDevice(device_named(name), efficiency_of(name), name)
        for name in set(run.devices)
    }
    plans = {
        name: job.plan(device, run.num_servers, "round_robin") for name, device in devices.items()
    }
    messages = [one for segment in plans[run.device].segments for one in segment.sends]
    ready_s = np.max([_ready(plan) for plan in plans.values()], axis=0)
    compute_s = max(plan.compute_s for plan in plans.values())
    return PreparedRun(
        run=run,
        plans=tuple(plans[name] for name in run.devices),
        update_s=tuple(job.update_seconds(devices[name]) for name in run.devices),
        sizes=np.array([one.nbytes for one in messages]) * job.program.ring_share,
        tensors=np.array([one.tensors for one in messages], dtype=np.int64),
        ready_s=ready_s if run.overlapped else np.full(len(ready_s), compute_s),
        compute_s=compute_s,
    )


def program_of(run: PublishedRun) -> Program:
    """What the program of a run did that its graph does not tell."""
    return Program(
        synchronous=True,
        overlapped=run.overlapped,
        fused=run.fused,
        ring_share=_COMPACT if run.half and not run.num_servers else 1.0,
    )


def topology_of_run(run: PublishedRun) -> Topology:
    """The machines of a run: each role on a machine of its own, or all of a ring on one."""
    count = len(run.devices)
    return Topology(
        workers=tuple(device_named(name) for name in run.devices),
        worker_machine=tuple(range(count)) if run.num_servers else (0,) * count,
        server_machine=tuple(range(count, count + run.num_servers)),
        within=None if run.num_servers else link_named(run.link),
        between=link_named(run.link) if run.num_servers else None,
        scheme=PS if run.num_servers else DDP,
    )


def _ready(plan: StepPlan) -> FloatArray:
    """When each message of gradients leaves, if the worker waits for nothing."""
    ends = np.cumsum([segment.duration_s for segment in plan.segments])
    return np.repeat(ends, [len(segment.sends) for segment in plan.segments])


def seconds_on(
    prepared: PreparedRun,
    link: LinkEfficiency,
    *,
    apply_s_per_byte: float,
    role_bytes_per_s: float = float("inf"),
) -> float:
    """Simulated seconds of an iteration, differences between steps left out: for fits.

    Args:
        prepared: the run.
        link: what its link reaches.
        apply_s_per_byte: seconds of a server for a byte of a gradient.
        role_bytes_per_s: most that one worker or server passes, each way, where there are servers.
    """
    run = prepared.run
    count = len(run.devices)
    rate = link_named(run.link).bytes_per_s * link.effective_share(count)
    if not run.num_servers:
        ring = RingSpec(bytes_per_s=rate, tensor_s=link.tensor_s, update_s=prepared.update_s)
        _, ends = passing(ring, prepared.sizes, prepared.tensors, prepared.ready_s)
        return max(prepared.compute_s, float(ends[-1])) + max(prepared.update_s)
    topology = topology_of_run(run)
    spec = ClusterSpec(
        worker_machine=topology.worker_machine,
        server_machine=topology.server_machine,
        link_bytes_per_s=rate,
        bridge_bytes_per_s=rate,
        role_bytes_per_s=role_bytes_per_s,
        message_s=link.tensor_s,
        copy_s_per_byte=tuple(copy_s_per_byte(device_named(name)) for name in run.devices),
        apply_s_per_byte=apply_s_per_byte,
        synchronous=True,
    )
    return simulate_cluster(spec, prepared.plans, _STEPS)[0].iteration_time_s


def fit_link_efficiency(
    runs: Sequence[PreparedRun], start: LinkEfficiency = _START
) -> tuple[LinkEfficiency, float]:
    """The efficiency of the link that these runs share, and what a server takes for a byte.

    Returns:
        The efficiency, and seconds of a server for a byte of a gradient; 0 without servers.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    measured = np.array([item.run.seconds for item in runs])
    served = any(item.run.num_servers for item in runs)
    begin = np.log([start.share, start.tensor_s, start.sharing, *([_APPLY_START] * served)])
    count = len(begin)

    def meaning(logs: FloatArray) -> tuple[LinkEfficiency, float]:
        values = np.exp(logs).tolist()
        return LinkEfficiency(*values[:3]), values[3] if served else 0.0

    def residuals(logs: FloatArray) -> FloatArray:
        link, apply_s = meaning(logs)
        found = np.array([seconds_on(item, link, apply_s_per_byte=apply_s) for item in runs])
        away = (logs - begin) / _PRIOR[:count]
        return np.concatenate([np.log(found / measured) / _NOISE, away])

    found = least_squares(
        residuals, begin, bounds=(-np.inf, _MOST[:count]), loss="soft_l1", diff_step=0.03,
        max_nfev=40,
    )  # fmt: skip
    return meaning(found.x)


def by_link(runs: Sequence[PreparedRun]) -> Mapping[str, list[PreparedRun]]:
    """Runs by the kind of their link."""
    found: dict[str, list[PreparedRun]] = {}
    for item in runs:
        found.setdefault(link_kind(item.run.link), []).append(item)
    return found
