"""Convert a job and a cluster into the inputs of the closed forms.

Job, device -> step plan -> Profile            Job, Topology, Calibration -> Points
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.analytic.sweep import JobProfile, Points
from driple.cluster.topology import Topology
from driple.errors import GraphError, SettingError
from driple.graph.placement import Strategy, server_bytes
from driple.schemes.fair_shares import SharedLink
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import CalibratedDevice, Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.step.plan import StepPlan

__all__ = [
    "imbalance",
    "link_loads",
    "points_of",
    "profile_of",
    "profile_of_plan",
    "slowest_device",
]


def profile_of(job: PreparedJob, device: CalibratedDevice) -> JobProfile:
    """Profile of a worker with this device, with all parameters on one server.

    Raises:
        GraphError: the job sends no gradients.
    """
    return profile_of_plan(job.plan(device, 1, "round_robin"))


def profile_of_plan(plan: StepPlan) -> JobProfile:
    """Profile of a step plan.

    Raises:
        GraphError: the plan sends no gradients.
    """
    profile = JobProfile(
        segment_s=np.array([segment.duration_s for segment in plan.segments]),
        push_bytes=np.array(
            [float(sum(one.nbytes for one in segment.sends)) for segment in plan.segments]
        ),
        pull_bytes=np.array([message.nbytes for message in plan.pulls], dtype=np.float64),
        needs=np.array([segment.needs for segment in plan.segments], dtype=np.int64),
    )
    if not profile.push_bytes.any():
        raise GraphError(
            "the graph sends no gradients to a parameter server; give the graph of a worker of "
            "distributed training"
        )
    return profile


def imbalance(job: PreparedJob, num_servers: int, placement: Strategy = "round_robin") -> float:
    """Parameters on the fullest server, over an even share."""
    loads = server_bytes(job.graph.traffic.received_bytes, num_servers, placement)
    return float(loads.max() / loads.mean()) if loads.any() else 1.0


def slowest_device(
    job: PreparedJob, topology: Topology, calibration: Calibration
) -> CalibratedDevice:
    """The slowest device, which synchronous workers wait for.

    Raises:
        SettingError: an unknown device.
    """
    devices = [calibration.device(one) for one in topology.kinds]
    return max(devices, key=lambda device: job.plan(device, 1, "round_robin").compute_s)


def points_of(
    job: PreparedJob,
    topology: Topology,
    calibration: Calibration,
    *,
    deviation: float | None = None,
    copied: bool = True,
) -> Points:
    """A cluster as a point: effective link rates, shared as its machines share them.

    Args:
        job: the job whose parameters are spread over the servers.
        topology: topology with parameter servers.
        calibration: efficiency of links.
        deviation: coefficient of variation of a worker's compute time; the simulator's by default.
        copied: whether roles copy what crosses the network in their host's memory.

    Raises:
        SettingError: no parameter servers.
    """
    link_loads(topology, SharedLink(1.0), 1.0)  # refuses rings
    num_servers, num_workers = len(topology.server_machine), len(topology.worker_machine)
    link = calibration.link(topology.joined_by or topology.link)
    alone = SharedLink(topology.link_bytes_per_s * link.effective_share(1), link.sharing)
    bridge = calibration.bridge_bytes_per_s
    copy_s = 1 / calibration.role_copy_bytes_per_s if copied else 0.0
    worker_load, server_load = link_loads(topology, alone, bridge)
    worker_all, server_all = link_loads(topology, replace(alone, copy_s_per_byte=copy_s), bridge)
    each = num_workers / num_servers  # workers of a server
    return Points(
        workers=num_workers,
        servers=num_servers,
        worker_bytes_per_s=1 / worker_load,
        server_bytes_per_s=each / server_load,
        worker_copy_s_per_byte=worker_all - worker_load,
        server_copy_s_per_byte=(server_all - server_load) / each,
        imbalance=imbalance(job, num_servers),
        server_s_per_byte=calibration.apply_s_per_byte,
        message_s=link.latency_s,
        deviation=calibration.jitter if deviation is None else deviation,
    )


def link_loads(topology: Topology, link: SharedLink, bridge: float) -> tuple[float, float]:
    """Seconds per byte of all workers' gradients, spread evenly: at workers, at servers.

    Roles of one machine communicate over ports of its bridge; others share the machines' links.

    Args:
        topology: topology with parameter servers.
        link: of a machine, each way; its copies are those of each role.
        bridge: bytes/s of a port of a machine's bridge, each way.

    Raises:
        SettingError: no parameter servers.
    """
    loads = scheme_named(topology.scheme).link_loads(topology, link, bridge)
    if loads is None:
        raise SettingError(
            "this setting is a ring, and the closed forms are of parameter servers; give a setting "
            "such as V100-P1w2, or use driple predict JOB --method simulator"
        )
    return loads
