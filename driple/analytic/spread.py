"""Load imbalance of variables over parameter servers, and a better placement.

Job, numbers of servers, placement --Spread.of--> imbalances, messages
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.graph.placement import Strategy
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["ServerSpread"]

_UNEVEN = 1.1  # load over an even share from which a message is printed
_MOST_NAMED = 4  # numbers of servers in one message


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

        found = tuple(imbalance(job, count, placement) for count in servers)
        greedy = tuple(imbalance(job, count, "greedy") for count in servers)
        nbytes = job.graph.traffic.received_bytes
        return cls(
            placement=placement,
            servers=tuple(servers),
            imbalances=found,
            greedy=greedy,
            largest_share=float(nbytes.max() / nbytes.sum()) if nbytes.any() else 0.0,
        )

    def messages(self) -> list[str]:
        """One sentence where a better placement helps, one where none does."""
        found = []
        improvable = [
            (count, now, best)
            for count, now, best in zip(self.servers, self.imbalances, self.greedy, strict=True)
            if now > _UNEVEN * best
        ]
        if improvable:
            shares = ", ".join(
                f"{100 * now / count:.0f} % of the parameters with {count} servers "
                f"({100 * best / count:.0f} % with greedy)"
                for count, now, best in improvable[:_MOST_NAMED]
            )
            found.append(
                f"placement {self.placement} takes variables in turn, whatever their size: one "
                f"server holds {shares}; --set placement=greedy spreads them, "
                "as tf_cnn_benchmarks does"
            )
        stuck = [count for count in self.servers if self.largest_share * count > _UNEVEN]
        if stuck:
            found.append(
                f"the largest variable is {100 * self.largest_share:.0f} % of the parameters and "
                f"stays on one server, so {stuck[0]} or more servers cannot share them evenly"
            )
        return found
