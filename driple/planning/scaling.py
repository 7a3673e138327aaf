"""How many machines pay: the same instance in several numbers.

offers of one instance -> remark on what more of it bring
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from driple.planning.offers import Offer
from driple.planning.ranking import best_by_place
from driple.remarks import Remark, remark

__all__ = ["scaling_of"]

_PAYS = 0.5  # of added machines, the share whose work arrives


def scaling_of(offers: Sequence[Offer], best: Offer | None) -> Remark | None:
    """What more machines of the recommended instance bring; None if it is there in one number.

    More machines pay as long as at least half of what they add arrives as samples per second.
    """
    if best is None or best.instance is None:
        return None
    some = [
        offer
        for offer in offers
        if offer.instance is best.instance
        and offer.provenance == "simulated"
        and offer.may_be_recommended
    ]
    rows = sorted(best_by_place(some, "time"), key=lambda offer: offer.machines)
    if len(rows) < 2:
        return None
    paying, stops = rows[0], False
    for fewer, more in pairwise(rows):
        arrived = more.samples_per_s / fewer.samples_per_s - 1
        if arrived < _PAYS * (more.machines / fewer.machines - 1):
            stops = True
            break
        paying = more
    first, last = rows[0], rows[-1]
    return remark(
        "more_machines",
        instance=best.instance.name,
        least_machines=first.machines,
        most_machines=last.machines,
        speed_ratio=last.samples_per_s / first.samples_per_s,
        paying_machines=paying.machines if stops else None,
    )
