"""Step time of a job on a setting in milliseconds of work: the check of an inspector's answer.

    Job, Setting -> what a worker computes, what servers' links carry -> seconds of a step

Synchronous training: Zhang's pipeline. Asynchronous: the pipeline of one worker alone, or the time
in which the servers serve all workers once, whichever is longer. Rings: two simulated steps.
"""

from __future__ import annotations

from dataclasses import replace

from driple.analytic.job_profile import points_of, profile_of, slowest_device
from driple.analytic.sweep import JobProfile, Points, iteration_seconds
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.comm.registry import scheme_named
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
    scene: Topology | None = None,
) -> float:
    """Seconds of a training step.

    Args:
        job: the training job.
        setting: where it runs.
        calibration: what devices and links reach; by default as installed.
        scene: machines of the setting, where they are known already.

    Raises:
        GraphError: the job sends no gradients, or does not tell what its ops compute on.
        SettingError: an unknown device, or workers that nobody described.
    """
    scene = topology_of(setting) if scene is None else scene
    reached = calibration or shipped_calibration(setting)
    if not scheme_named(scene.scheme).uses_servers:
        still = replace(reached, jitter=0.0)
        return iteration_time_s(scene, simulate_steps(job, scene, still, num_steps=_RING_STEPS))
    points = points_of(job, scene, reached)
    if job.is_synchronous:
        profile = profile_of(job, slowest_device(job, scene, reached))
        return float(iteration_seconds(profile, points).total_s)
    # Nobody waits for the others, and what is asked for is a worker with the setting's own device.
    own = scene.workers[next(iter(scene.labelled_workers()))]
    profile = profile_of(job, reached.device(own))
    alone = iteration_seconds(profile, replace(points, workers=1, deviation=0.0))
    return max(float(alone.total_s), _served_s(profile, points))


def _served_s(profile: JobProfile, points: Points) -> float:
    """Seconds in which the fullest server serves each worker once, both ways at the same time."""
    pushed, pulled = float(profile.push_bytes.sum()), float(profile.pull_bytes.sum())
    at = {name: float(values[0]) for name, values in points.arrays().items()}
    workers = at["workers"] / at["servers"] * at["imbalance"]
    rate = min(at["server_bytes_per_s"], at["server_limit_bytes_per_s"])
    return workers * max(max(pushed, pulled) / rate, pushed * at["server_s_per_byte"])
