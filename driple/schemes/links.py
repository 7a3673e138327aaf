"""Efficiency of links: the rate that transfers reach.

Link (catalogue) + LinkEfficiency (calibration) -> ReachedLink -> bytes/s with n users, Hop
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from driple.catalog import Link
from driple.checks import check_number
from driple.codec import json_field
from driple.schemes.collectives import Hop

__all__ = ["TCP_EFFICIENCY", "TCP_SHARES", "LinkEfficiency", "ReachedLink"]

_IN_ORDER = "NVLink"  # kind of links that keep 128 bytes together


@dataclass(frozen=True, slots=True)
class LinkEfficiency:
    """Efficiency of one kind of link.

    Attributes:
        share: fraction of the nominal rate that a transfer between two devices reaches.
        latency_s: time of a step of a collective without data (NCCL's Simple protocol), or between
            the end of a message to or from a parameter server and its use, seconds.
        sharing: with n users, each gets (2 / n) ** sharing of the rate of two users: 0 for a
            switch, 1 for a single shared bottleneck.
        start: factor on the time in which NCCL starts a collective.
        own_part: share of its own part of a tensor that a device copies, beside what it sends; half
            of it in an all-reduce.
        switch_share: fraction of the nominal rate at which a switch sums (NVLink SHARP), in bytes
            of the tensor; 0 without.
    """

    share: float
    latency_s: float
    sharing: float
    start: float = field(default=1.0, metadata=json_field(optional=True))
    own_part: float = field(default=0.0, metadata=json_field(optional=True))
    switch_share: float = field(default=0.0, metadata=json_field(optional=True))

    def __post_init__(self) -> None:
        check_number("share of a link's rate", self.share, above=0)
        check_number("latency_s of a link", self.latency_s, least=0)
        check_number("sharing of a link", self.sharing, least=0)
        check_number("start of a link", self.start, above=0)
        check_number("own_part of a link", self.own_part, least=0)
        check_number("switch_share of a link", self.switch_share, least=0)

    def effective_share(self, count: int) -> float:
        """Fraction of the nominal rate that each of `count` users gets."""
        return self.share * float((2 / max(count, 2)) ** self.sharing)


TCP_SHARES = (0.11, 0.35, 0.38, 0.46, 0.70, 0.96, 0.97)
"""Bus bandwidth of large all-reduces by TCP over the rate of the network, published: Azure,
40 Gbit/s (assumed; Horovod, fitted to training); 8 machines of 8 V100, 100 Gbit/s (bytedance/byteps
issue 237); AWS p3dn, 100 Gbit/s (NVIDIA/nccl issue 398); Google Cloud, 32 Gbit/s, 2 and 4 machines
of 8 V100, 4 and 2 machines of one (NVIDIA/nccl issue 209)."""
# The latency is that of every network: NCCL's src/graph/tuning.cc.
TCP_EFFICIENCY = LinkEfficiency(share=median(TCP_SHARES), latency_s=14e-6, sharing=0.0)


@dataclass(frozen=True, slots=True)
class ReachedLink:
    """A link with its efficiency."""

    link: Link
    efficiency: LinkEfficiency

    def bytes_per_s(self, count: int) -> float:
        """Rate of one direction with `count` users, bytes/s."""
        return self.link.bytes_per_s * self.efficiency.effective_share(count)

    def hop(self, count: int) -> Hop:
        """A step of a collective over this link with `count` users."""
        return Hop(
            bytes_per_s=self.bytes_per_s(count),
            latency_s=self.efficiency.latency_s,
            in_order=self.link.kind == _IN_ORDER,
            start=self.efficiency.start,
            own_part=self.efficiency.own_part,
            switch_bytes_per_s=self.efficiency.switch_share * self.link.bytes_per_s,
        )
