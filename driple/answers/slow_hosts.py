"""What a step takes on the slowest host that is known.

    Simulation on a GPU setting -> SlowHost: its step time, and what the host takes for an op

Hosts differ more than GPUs of one kind: the slowest that was measured takes twice as long for
an op of PyTorch as the fastest, and answers assume one between them (decision 0059). Nobody knows a
user's host before a run, so an answer that depends on it says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from driple.answers.timelines import UNKNOWN_HOST
from driple.catalog.fields import HOST_RUNS
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_rates import HostPace, host_factor, tuned_host, with_host
from driple.simulate.run import iteration_time_s, simulate_steps

if TYPE_CHECKING:
    from driple.catalog import Device
    from driple.simulate.place import Place
    from driple.simulate.prepared_job import PreparedJob

__all__ = [
    "SlowHost",
    "host_is_told",
    "interval_with",
    "slow_host",
]

_MATTERS = 1.1  # a step that grows less does not wait for its host
_MOST_GROWTH = 2.0
"""A step with servers grows by no more than this times what is added to its computing: 1.6 times in
1,225 random clusters, where gradients that come later meet others, and 1.1 times by random slowness
of the workers (decision 0042)."""
_STEPS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowHost:
    """A step on a slower host.

    Attributes:
        step_s: seconds of the step.
        usual_us: microseconds that the host of the answer takes for an op.
        slow_us: that the slower one takes.
        is_tuned: whether the device is tuned to runs of the user's own, which tell nothing of his
            host.
        as_measured: whether steps like this one were measured on the slower host; else its pace is
            what it was in PyTorch without a compiler.
    """

    step_s: float
    usual_us: float
    slow_us: float
    is_tuned: bool = False
    as_measured: bool = True


def slow_host(prepared: PreparedJob, place: Place, *, step_s: float) -> SlowHost | None:
    """What a step would take on a slower host; None where that makes no difference.

    Args:
        prepared: the job.
        place: machines and their calibration.
        step_s: of the answer, on a host like those of published runs.

    Returns:
        The step; None on processors, and where the user's own runs tell of all hosts.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    model, runtime = place.calibration.model, prepared.runtime
    if not isinstance(model, GpuModel):
        return None
    slower = {device: _slower(device, model.host) for device in place.topology.kinds}
    changed = [both for both in slower.items() if both[0] != both[1]]
    if not changed:
        return None
    servers = len(place.topology.server_machine)
    added_s = _MOST_GROWTH * _added_s(prepared, place, changed, servers) if servers else inf
    if step_s + added_s < step_s * _MATTERS:
        return None
    topology = replace(place.topology, workers=place.topology.of_each(slower))
    records = simulate_steps(prepared, topology, place.calibration, num_steps=_STEPS)
    slow_s = iteration_time_s(topology, records)
    if slow_s < step_s * _MATTERS:
        return None
    usual_us, slow_us = (
        1e6 * tuned_host(device, model.host).each_s(runtime) for device in changed[0]
    )
    return SlowHost(
        step_s=slow_s,
        usual_us=usual_us,
        slow_us=slow_us,
        is_tuned=any(device.find("tuned_host") is not None for device in slower),
        as_measured=not runtime.compiled and runtime.library == "torch2",
    )


def _added_s(
    prepared: PreparedJob,
    place: Place,
    changed: Sequence[tuple[Device, Device]],
    num_servers: int,
) -> float:
    """Most seconds by which computing a step takes longer on the slower one of both devices."""
    usual, slow = (
        [
            prepared.plan(place.calibration.device(both[way]), num_servers, "round_robin").compute_s
            for both in changed
        ]
        for way in (0, 1)
    )
    return max(after - before for before, after in zip(usual, slow, strict=True))


def host_is_told(device: Device) -> bool:
    """Whether the user's own runs tell of the host of a device."""
    return device.find("tuned_host") is not None and device.find(HOST_RUNS) != 0


def _slower(device: Device, host: HostPace) -> Device:
    """The device with the slowest known host, unless the user's own runs tell of his."""
    if host_is_told(device):
        return device
    return with_host(device, host_factor(device, host) * host.slowest)


def interval_with(
    ends: tuple[float, float] | None, slow_step_s: float | None
) -> tuple[float, float] | None:
    """An interval that holds nine of ten steps on a slower host too; None where there was none."""
    if ends is None or slow_step_s is None:
        return ends
    return ends[0], max(ends[1], UNKNOWN_HOST[1] * slow_step_s)
