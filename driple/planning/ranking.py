"""Which of many offers to take: by time, by cost, or by memory, within a budget and a deadline.

    offers, TrainingLimits -> order, Pareto front, Choice (best, runner-up, why)

Equal offers keep one order: by cost, time, name, scheme and variant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from driple.checks import check_number
from driple.estimate import GUESS_FACTOR
from driple.planning.offers import Offer
from driple.remarks import Remark, remark

__all__ = [
    "RANKS",
    "Choice",
    "Rank",
    "TrainingLimits",
    "best_by_place",
    "choose",
    "pareto",
    "ranked",
    "spent",
]  # fmt: skip

Rank = Literal["cost", "time", "memory"]
RANKS: tuple[Rank, ...] = ("cost", "time", "memory")
_ALMOST = 1.05  # ratio of ways on the same machines, below which the better known one is taken
_MUCH = 0.8  # ratio of time or cost, from which a difference below `_ALMOST` is worth saying
_NARROWER = 2.0  # ratio of the widths of their intervals, from which on that is a reason


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingLimits:
    """What the training may cost and take.

    Attributes:
        budget: most that it may cost; None without a limit.
        deadline_s: longest time, seconds; None without a limit.

    Raises:
        ConfigError: a limit that is not above 0.
    """

    budget: float | None = None
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        for flag, name in (("--budget", "budget"), ("--deadline", "deadline_s")):
            value = getattr(self, name)
            if value is not None:
                check_number(flag, value, above=0)
                object.__setattr__(self, name, float(value))  # 2 and 2.0 are written alike

    def holds(self, offer: Offer) -> bool:
        """Whether an offer keeps both limits; one without a price keeps no budget."""
        in_budget = self.budget is None or (offer.cost is not None and offer.cost <= self.budget)
        return in_budget and (self.deadline_s is None or offer.training_s <= self.deadline_s)

    def kept_by(self, offer: Offer) -> bool | None:
        """The same; None without limits, or if there is a budget and no price."""
        unknown = self.budget is not None and offer.cost is None
        return self.holds(offer) if self.are_given and not unknown else None

    @property
    def are_given(self) -> bool:
        """Whether there is any."""
        return self.budget is not None or self.deadline_s is not None


NO_LIMITS = TrainingLimits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What to take.

    Attributes:
        best: the offer that is recommended; None if none can be.
        runner_up: the best of other machines; None if there is none.
        why: the recommendation, or why there is none; None if nothing was to be chosen.
    """

    best: Offer | None = None
    runner_up: Offer | None = None
    why: Remark | None = None


def _cost(offer: Offer) -> float:
    return math.inf if offer.cost is None else offer.cost


def _memory(offer: Offer) -> float:
    needed = offer.memory_bytes
    return math.inf if needed is None else needed


def _key(rank: Rank, offer: Offer) -> tuple[object, ...]:
    """What offers are sorted by: never by luck."""
    first = {
        "cost": (_cost(offer), offer.training_s),
        "time": (offer.training_s, _cost(offer)),
        "memory": (_memory(offer), offer.training_s),
    }[rank]
    variant = offer.variant
    way = ("",) if variant is None else (
        variant.activation_checkpointing, variant.precision, f"{variant.batch_size:09d}",
    )  # fmt: skip
    return (*first, offer.devices, offer.name, offer.scheme, *way)


def ranked(offers: Sequence[Offer], rank: Rank = "cost") -> list[Offer]:
    """Offers in order: those without a price come last by cost, then by time."""
    return sorted(offers, key=lambda offer: _key(rank, offer))


def best_by_place(
    offers: Sequence[Offer], rank: Rank = "cost", limits: TrainingLimits = NO_LIMITS
) -> list[Offer]:
    """The best way to use every kind and number of machines, in order.

    One that fits, if any does, and of these one that keeps the limits. Of ways that take almost the
    same time (or memory), one that fits by the upper end of its interval too: what a larger batch
    saves must be worth a run that may end for lack of memory. Of these, the one whose error is
    smallest: a difference below that error is no reason to prefer another.
    """
    some: dict[str, list[Offer]] = {}
    for offer in ranked(offers, rank):
        some.setdefault(offer.name, []).append(offer)
    return ranked([_best_way(ways, rank, limits) for ways in some.values()], rank)


def _best_way(ways: Sequence[Offer], rank: Rank, limits: TrainingLimits) -> Offer:
    """The way to take on some machines, of all ways in order."""
    fitting = [offer for offer in ways if offer.may_be_recommended] or [*ways]
    fitting = [offer for offer in fitting if limits.holds(offer)] or fitting
    value = _memory if rank == "memory" else _seconds
    least = value(fitting[0])
    near = [offer for offer in fitting if value(offer) <= _ALMOST * least]
    near = [offer for offer in near if not offer.may_not_fit] or near
    return _better_known(near[0], near, rank)


def _better_known(first: Offer, near: Sequence[Offer], rank: Rank) -> Offer:
    """The first offer, or one that is almost as good and whose interval is much narrower."""
    narrow = [offer for offer in near if _NARROWER * _width(offer) <= _width(first)]
    if not narrow or (math.isinf(_width(first)) and math.isinf(min(map(_width, narrow)))):
        return first
    return min(narrow, key=lambda offer: (_width(offer), *_key(rank, offer)))


def _seconds(offer: Offer) -> float:
    return offer.training_s


def _width(offer: Offer) -> float:
    """Upper over lower end of the interval; infinite if the error is unknown, 1 if measured.

    By the errors of published runs where those are narrower: a slower host makes no answer a guess,
    and all offers may have one.
    """
    if offer.provenance == "measured":
        return 1.0
    both = (offer.error_factors, offer.factors)
    return min(math.inf if ends is None or ends[0] <= 0 else ends[1] / ends[0] for ends in both)


def pareto(offers: Sequence[Offer]) -> list[Offer]:
    """Offers with a price that no other beats in both time and cost, the cheapest first."""
    front: list[Offer] = []
    for offer in ranked([one for one in offers if one.cost is not None], "cost"):
        if not front or offer.training_s < front[-1].training_s:
            front.append(offer)
    return front


def choose(offers: Sequence[Offer], limits: TrainingLimits, rank: Rank = "cost") -> Choice:
    """The offer to take, and the runner-up.

    With a budget alone it is the fastest offer within it; otherwise the first by `rank` within the
    limits. An offer that does not fit is never taken, nor one without a price by cost.

    Args:
        offers: all that can run.
        limits: what may be spent.
        rank: by what offers are compared.
    """
    by: Rank = "time" if limits.budget is not None and limits.deadline_s is None else rank
    fitting = [offer for offer in best_by_place(offers, by, limits) if offer.may_be_recommended]
    needs_price = by == "cost" or limits.budget is not None
    pool = [offer for offer in fitting if offer.cost is not None or not needs_price]
    if not pool:
        if not fitting:
            return Choice(why=remark("nothing_fits"))
        return Choice(why=remark("no_offer_priced", has_budget=limits.budget is not None))
    within = [offer for offer in pool if limits.holds(offer)]
    if not within:
        ways = [one for one in offers if one.may_be_recommended]
        priced = [one for one in ways if one.cost is not None or not needs_price]
        return Choice(why=_none_within(priced, limits))
    best = _taken(within, limits, by)
    others = [offer for offer in within if offer is not best]
    runner_up = ranked(others, by)[0] if others else None
    ways = [one for one in offers if one.may_be_recommended and limits.holds(one)]
    why = _recommended(best, runner_up, within, limits, by, first=ranked(ways, by)[0])
    return Choice(best=best, runner_up=runner_up, why=why)


def _taken(within: Sequence[Offer], limits: TrainingLimits, by: Rank) -> Offer:
    """The first offer by rank, or one that is almost as good and whose error is smaller.

    With a budget it is the first one, so that a smaller budget never costs more.
    """
    first = ranked(within, by)[0]
    if limits.budget is not None:
        return first
    value = {"cost": _cost, "time": _seconds, "memory": _memory}[by]
    near = [offer for offer in within if value(offer) <= _ALMOST * value(first)]
    return _better_known(first, near, by)


def _none_within(pool: Sequence[Offer], limits: TrainingLimits) -> Remark:
    """What comes nearest to limits that nothing keeps."""
    fastest, cheapest = ranked(pool, "time")[0], ranked(pool, "cost")[0]
    has_both = cheapest.cost is not None and cheapest is not fastest
    return remark(
        "nothing_within_limits",
        budget=limits.budget,
        deadline_s=limits.deadline_s,
        fastest=spent(fastest),
        cheapest=spent(cheapest) if has_both else None,
    )


def _recommended(
    best: Offer,
    runner_up: Offer | None,
    within: Sequence[Offer],
    limits: TrainingLimits,
    by: Rank,
    *,
    first: Offer,
) -> Remark:
    """The recommendation; only the first of all ways has a superlative."""
    bargain = _bargain(best, within, by)
    other = _other_end(best, within, by)
    named = None if other is None or other is runner_up else spent(other)
    high = math.inf if best.factors is None else best.factors[1]
    over_s, over_cost = best.training_s * high, math.inf if best.cost is None else best.cost * high
    is_known = best.factors is not None
    in_budget = limits.budget is None or best.cost is None or over_cost <= limits.budget
    in_time = limits.deadline_s is None or over_s <= limits.deadline_s
    lost = runner_up if runner_up is not None and runner_up.cost is not None else None
    return remark(
        "recommended",
        offer=spent(best),
        is_rented=best.instance is not None,
        rank=by,
        is_first=best is first,
        is_surer=first.may_not_fit and not best.may_not_fit,
        budget=limits.budget,
        deadline_s=limits.deadline_s,
        guess=_why_guess(best),
        over_budget=is_known and not in_budget,
        over_cost=_finite(over_cost),
        over_deadline=is_known and not in_time,
        over_s=_finite(over_s),
        is_fit_unknown=best.fits is None and best.provenance == "simulated",
        upper_bytes=_upper_bytes(best),
        sure_batch=None if best.largest is None else best.largest.sure,
        runner_up=None if runner_up is None else spent(runner_up),
        time_ratio=None if runner_up is None else runner_up.training_s / best.training_s,
        cost_ratio=None
        if lost is None or lost.cost is None or best.cost is None
        else lost.cost / best.cost,
        other=named,
        bargain=None if bargain is None else _much_for_little(best, bargain, by),
        bargain_is_runner_up=bargain is not None and bargain is runner_up,
    )


def _bargain(best: Offer, within: Sequence[Offer], by: Rank) -> Offer | None:
    """An offer that is much faster for little more money, or much cheaper for little more time.

    None if there is none, or offers are compared by memory.
    """
    if by == "memory" or best.cost is None:
        return None
    paid, gained = (_cost, _seconds) if by == "cost" else (_seconds, _cost)
    some = [
        offer
        for offer in within
        if offer is not best
        and paid(offer) <= _ALMOST * paid(best)
        and gained(offer) <= _MUCH * gained(best)
        and (best.may_not_fit or not offer.may_not_fit)
    ]
    return min(some, key=gained, default=None)


def _much_for_little(best: Offer, bargain: Offer, by: Rank) -> Remark:
    return remark(
        "much_for_little",
        offer=bargain.full_name,
        rank=by,
        time_ratio=bargain.training_s / best.training_s,
        cost_ratio=_cost(bargain) / _cost(best),
    )


def _why_guess(best: Offer) -> str | None:
    """Why a recommended offer is but a guess; None if it is none."""
    ends = best.factors
    if ends is None and best.provenance == "simulated":
        return "no_run"
    if _width(best) > GUESS_FACTOR:
        return "errors"
    if ends is None or ends[1] <= GUESS_FACTOR * ends[0]:
        return None
    over_tcp = best.answer is not None and best.answer.by_network is not None
    return "network" if over_tcp else "slow_host"


def _upper_bytes(best: Offer) -> float | None:
    """The upper end of the interval of its memory, where that is more than its devices have."""
    if not best.may_not_fit or best.memory is None or best.memory.needed is None:
        return None
    return best.memory.needed.upper


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _other_end(best: Offer, within: Sequence[Offer], by: Rank) -> Offer | None:
    """The fastest where the cheapest is taken, and the other way round."""
    other = ranked(within, "time" if by == "cost" else "cost")[0]
    if other.name == best.name or other.cost is None or best.cost is None:
        return None
    return other


def spent(offer: Offer) -> Remark:
    """Time and cost of an offer with the factors to the ends of their interval."""
    ends = offer.factors
    return remark(
        "offer_spent",
        offer=offer.full_name,
        training_s=offer.training_s,
        cost=offer.cost,
        low_factor=None if ends is None else ends[0],
        high_factor=None if ends is None else _finite(ends[1]),
    )
