"""Fast step-time estimate that cross-checks an inspector's prediction (milliseconds of CPU time).

    Job, Setting -> compute time of a worker, load of the servers' links -> step time, seconds

Synchronous training uses Zhang's pipeline. Asynchronous training takes the longer of one worker's
pipeline and the time in which the servers serve all workers once. Rings simulate two steps.
"""

from __future__ import annotations

from dataclasses import replace

from driple.analytic.job_profile import points_of, profile_of, slowest_device
from driple.analytic.sweep import JobProfile, Points, iteration_seconds
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import iteration_time_s, simulate_steps

__all__ = ["quick_step_s"]

_RING_STEPS = 2  # the first is left out of the mean


def quick_step_s(
    job: PreparedJob,
    setting: Setting,
    calibration: Calibration | None = None,
    *,
    topology: Topology | None = None,
) -> float:
    """Step time, seconds.

    Args:
        job: the training job.
        setting: cluster and scheme.
        calibration: efficiency of devices and links; the shipped calibration by default.
        topology: topology of the setting; built from it by default.

    Raises:
        GraphError: the job sends no gradients, or lacks the input shapes of its ops.
        SettingError: an unknown device, or an undescribed set of workers.
    """
    topology = topology_of(setting) if topology is None else topology
    reached = calibration or shipped_calibration(setting)
    if not scheme_named(topology.scheme).uses_servers:
        still = replace(reached, jitter=0.0)
        return iteration_time_s(
            topology, simulate_steps(job, topology, still, num_steps=_RING_STEPS)
        )
    points = points_of(job, topology, reached)
    if job.is_synchronous:
        profile = profile_of(job, slowest_device(job, topology, reached))
        return float(iteration_seconds(profile, points).total_s)
    # Workers do not wait for each other; the answer is for a worker with the setting's own device.
    own = topology.workers[next(iter(topology.labelled_workers()))]
    profile = profile_of(job, reached.device(own))
    alone = iteration_seconds(profile, replace(points, workers=1, deviation=0.0))
    return max(float(alone.total_s), _served_s(profile, points))


def _served_s(profile: JobProfile, points: Points) -> float:
    """Time of the fullest server to serve each worker once, both directions at once, seconds."""
    pushed, pulled = float(profile.push_bytes.sum()), float(profile.pull_bytes.sum())
    at = {name: float(values[0]) for name, values in points.arrays().items()}
    workers = at["workers"] / at["servers"] * at["imbalance"]
    byte_s = 1 / at["server_bytes_per_s"] + at["server_copy_s_per_byte"]
    return workers * max(max(pushed, pulled) * byte_s, pushed * at["server_s_per_byte"])
