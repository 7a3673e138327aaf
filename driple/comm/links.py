"""What links reach of their nominal rate.

Link of the catalogue + LinkEfficiency of a calibration -> ReachedLink -> bytes/s with n on it
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.catalog import Link
from driple.checks import check_number

__all__ = ["LinkEfficiency", "ReachedLink"]


@dataclass(frozen=True, slots=True)
class LinkEfficiency:
    """What a kind of link reaches.

    Attributes:
        share: of its nominal rate, between two.
        tensor_s: seconds of each tensor that goes round a ring, besides its bytes, or between the
            end of a message and its use.
        sharing: with n on it, each gets (2 / n) to this power of what two get: 0 for a switch, 1
            where all go through one bottleneck.
    """

    share: float
    tensor_s: float
    sharing: float

    def __post_init__(self) -> None:
        check_number("share of a link's rate", self.share, above=0)
        check_number("tensor_s of a link", self.tensor_s, least=0)
        check_number("sharing of a link", self.sharing, least=0)

    def effective_share(self, count: int) -> float:
        """Share of the nominal rate with so many on the link."""
        return self.share * float((2 / max(count, 2)) ** self.sharing)


@dataclass(frozen=True, slots=True)
class ReachedLink:
    """A link, and what it reaches."""

    link: Link
    efficiency: LinkEfficiency

    def bytes_per_s(self, count: int) -> float:
        """Rate of one direction with so many on the link, bytes/s."""
        return self.link.bytes_per_s * self.efficiency.effective_share(count)
