"""How long a step waits for what joins its devices, and how fast that must be to wait little.

ReadyJob, Place, seconds of a step -> share of it;  ReadyJob, Place -> rate of the link
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

from driple.answers.step_parts import parts_of
from driple.simulate.run import simulated_step_s

if TYPE_CHECKING:
    from driple.answers.ready_job import ReadyJob
    from driple.cluster.topology import Topology
    from driple.simulate.place import Place

__all__ = ["LITTLE", "enough_bytes_per_s", "waiting_share"]

LITTLE = 0.1
"""Share of a step below which it waits little."""
_LEAST, _MOST = 1e6, 1e13  # bytes/s
_HALVINGS = 24


def waiting_share(ready: ReadyJob, place: Place, step_s: float) -> float | None:
    """Share of a step in which a device waits for exchanges; None where it is not known.

    Args:
        ready: the job.
        place: machines and their calibration.
        step_s: seconds of a step there.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    parts = parts_of(ready, place, step_s)
    return None if parts is None else parts.exchange_s / step_s


def enough_bytes_per_s(ready: ReadyJob, place: Place) -> float | None:
    """The least rate of what joins the devices with which a step waits little for it.

    That is the network between machines, where there are several, else the link within the machine;
    it goes on to reach the same share of its rate.

    Args:
        ready: the job.
        place: machines and their calibration.

    Returns:
        Nominal rate of one direction; None if no rate is enough, or nothing joins devices.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    topology = place.topology
    link = topology.joined_by
    if len(topology.workers) < 2 or link is None:
        return None
    one_rate = _at_rate(topology, 1.0, name="")
    key = (one_rate, place.calibration.link(link), id(place.calibration))
    if key not in ready.enough:
        ready.enough[key] = _enough(ready, place)
    return ready.enough[key]


def _enough(ready: ReadyJob, place: Place) -> float | None:
    """The same, by halving; what a link reaches of its rate, and its latency, are its own."""
    if not _waits_little(ready, place, _MOST):
        return None
    low, high = _LEAST, _MOST
    for _ in range(_HALVINGS):
        middle = sqrt(low * high)
        if _waits_little(ready, place, middle):
            high = middle
        else:
            low = middle
    return high


def _waits_little(ready: ReadyJob, place: Place, bytes_per_s: float) -> bool:
    """Whether a step waits little with another rate."""
    topology = _at_rate(place.topology, bytes_per_s)
    there = replace(place, topology=topology)
    step_s = simulated_step_s(ready.prepared, place.setting, place.calibration, topology=topology)
    share = waiting_share(ready, there, step_s)
    return share is not None and share < LITTLE


def _at_rate(topology: Topology, bytes_per_s: float, *, name: str | None = None) -> Topology:
    """The machines with another rate, and name, of what joins them, or their devices."""
    link = topology.joined_by
    if link is None:
        return topology
    other = replace(link, bytes_per_s=bytes_per_s, name=link.name if name is None else name)
    if topology.between is not None:
        return replace(topology, between=other)
    return replace(topology, within=other)
