"""How many machines pay: the same instance in several numbers.

offers of one instance -> sentence on what more of it bring
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from driple.planning.offers import Offer
from driple.planning.ranking import best_by_place

__all__ = ["scaling_words"]

_PAYS = 0.5  # of added machines, the share whose work arrives


def scaling_words(offers: Sequence[Offer], best: Offer | None) -> str:
    """What more machines of the recommended instance bring; empty if it is there in one number.

    More machines pay as long as at least half of what they add arrives as samples per second.
    """
    if best is None or best.instance is None:
        return ""
    some = [
        offer
        for offer in offers
        if offer.instance is best.instance
        and offer.provenance == "simulated"
        and offer.may_be_recommended
    ]
    rows = sorted(best_by_place(some, "time"), key=lambda offer: offer.machines)
    if len(rows) < 2:
        return ""
    paying, stops = rows[0], False
    for fewer, more in pairwise(rows):
        arrived = more.samples_per_s / fewer.samples_per_s - 1
        if arrived < _PAYS * (more.machines / fewer.machines - 1):
            stops = True
            break
        paying = more
    first, last = rows[0], rows[-1]
    name = best.instance.name
    span = (
        f"{last.machines} of {name} are {last.samples_per_s / first.samples_per_s:.3g} times as "
        f"fast as {first.machines}"
    )
    if stops:
        return (
            f"More machines stop paying at {paying.machines} of {name}: of what is added beyond, "
            f"less than half arrives ({span})."
        )
    return f"More machines pay up to {last.machines} of {name}, the most that was tried ({span})."
