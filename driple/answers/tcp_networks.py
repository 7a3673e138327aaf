"""What a step takes where a network by TCP reaches as much, or as little, as published ones.

PreparedJob, Place over a network by TCP -> seconds of the step over the fastest and the slowest
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from driple.catalog.model import ETHERNET, TCP
from driple.remarks import Remark, remark
from driple.schemes.links import TCP_EFFICIENCY, TCP_SHARES
from driple.simulate.calibration import link_kind
from driple.simulate.run import simulated_step_s

if TYPE_CHECKING:
    from driple.simulate.place import Place
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["steps_by_tcp", "taken_as_rdma"]

_OFTEN_TCP = 12.5e9  # bytes/s, 100 Gbit/s: up to there


def steps_by_tcp(prepared: PreparedJob, place: Place) -> tuple[float, float] | None:
    """Seconds of the step over the fastest and the slowest network by TCP that was published.

    Args:
        prepared: the job.
        place: machines and their calibration.

    Returns:
        The two times; None where machines are not joined by TCP, or it is stated what that reaches.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    link = place.topology.between
    if link is None or link.kind != TCP or link.efficiency is not None:
        return None
    fastest, slowest = (
        simulated_step_s(
            prepared,
            place.setting,
            place.calibration,
            topology=replace(place.topology, between=replace(link, efficiency=share)),
        )
        for share in (max(TCP_SHARES), min(TCP_SHARES))
    )
    return fastest, slowest


def taken_as_rdma(place: Place) -> tuple[Remark, ...]:
    """A remark where machines are joined by Ethernet that may well be crossed by TCP.

    Faster networks between machines with GPUs are made for RDMA.
    """
    topology = place.topology
    link = topology.between
    if (
        link is None
        or topology.server_machine
        or place.setting.on_cpu
        or link.efficiency is not None
    ):
        return ()
    if link_kind(link) != ETHERNET or link.bytes_per_s > _OFTEN_TCP:
        return ()
    share = place.calibration.link(link).effective_share(2)
    return (remark("taken_as_rdma", link=link.name, share=share, tcp_share=TCP_EFFICIENCY.share),)
