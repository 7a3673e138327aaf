"""Load imbalance of variables over parameter servers, and a better placement.

Job, numbers of servers, placement --Spread.of--> imbalances, remarks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.graph.placement import Strategy
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["ServerSpread"]

_UNEVEN = 1.1  # load over an even share from which on there is a remark
_MOST_NAMED = 4  # numbers of servers in one remark


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSpread:
    """Load of the fullest server, for each number of servers.

    Attributes:
        placement: name of the placement of variables.
        servers: numbers of servers.
        imbalances: load of the fullest server over an even share.
        greedy: the same if each variable goes to the emptiest server.
        largest_share: fraction of all bytes in the largest variable.
    """

    placement: Strategy
    servers: tuple[int, ...]
    imbalances: tuple[float, ...]
    greedy: tuple[float, ...]
    largest_share: float

    @classmethod
    def of(cls, job: PreparedJob, servers: Sequence[int], placement: Strategy) -> ServerSpread:
        """Spread the variables of a job."""
        from driple.analytic.job_profile import imbalance

        imbalances = tuple(imbalance(job, count, placement) for count in servers)
        greedy = tuple(imbalance(job, count, "greedy") for count in servers)
        nbytes = job.graph.traffic.received_bytes
        return cls(
            placement=placement,
            servers=tuple(servers),
            imbalances=imbalances,
            greedy=greedy,
            largest_share=float(nbytes.max() / nbytes.sum()) if nbytes.any() else 0.0,
        )

    def remarks(self) -> list[Remark]:
        """One where a better placement helps, one where none does."""
        remarks = []
        improvable = [
            (count, now, best)
            for count, now, best in zip(self.servers, self.imbalances, self.greedy, strict=True)
            if now > _UNEVEN * best
        ]
        if improvable:
            some = improvable[:_MOST_NAMED]
            remarks.append(
                remark(
                    "uneven_placement",
                    placement=self.placement,
                    num_servers=tuple(count for count, _, _ in some),
                    shares_pct=tuple(100 * now / count for count, now, _ in some),
                    greedy_pct=tuple(100 * best / count for count, _, best in some),
                )
            )
        stuck = [count for count in self.servers if self.largest_share * count > _UNEVEN]
        if stuck:
            remarks.append(
                remark(
                    "largest_variable",
                    share_pct=100 * self.largest_share,
                    num_servers=stuck[0],
                )
            )
        return remarks
