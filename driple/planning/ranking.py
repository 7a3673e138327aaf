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
from driple.quantities import duration
from driple.units import format_range

__all__ = [
    "RANKS",
    "Choice",
    "Rank",
    "TrainingLimits",
    "best_by_place",
    "choose",
    "pareto",
    "price_text",
    "ranked",
    "spent",
]  # fmt: skip

Rank = Literal["cost", "time", "memory"]
RANKS: tuple[Rank, ...] = ("cost", "time", "memory")
_SAME = 1.01  # ratio of what is as good as equal
_ALMOST = 1.05  # ratio of ways on the same machines, below which the better known one is taken
_NARROWER = 2.0  # ratio of the widths of their intervals, from which on that is a reason
_TWICE = 2.0
_WHOLE_PRICE = 100.0  # prices from here on are printed without cents


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
        return self.holds(offer) if self.words() and not unknown else None

    def words(self) -> str:
        """Such as ` within $100 and 12 h`; empty without limits."""
        parts = [] if self.budget is None else [f"${price_text(self.budget)}"]
        parts += [] if self.deadline_s is None else [duration(self.deadline_s)]
        return f" within {' and '.join(parts)}" if parts else ""


NO_LIMITS = TrainingLimits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What to take.

    Attributes:
        best: the offer that is recommended; None if none can be.
        runner_up: the best of other machines; None if there is none.
        words: the recommendation, or why there is none, as text for users.
    """

    best: Offer | None = None
    runner_up: Offer | None = None
    words: str = ""


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
        variant.checkpointing, variant.precision, f"{variant.batch_size:09d}",
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
    same time (or memory), the one whose error is smallest: a difference below that error is no
    reason to prefer another.
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
    return _better_known(fitting[0], near, rank)


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

    By the errors of published runs: a slower host makes no answer a guess, and all offers may have
    one.
    """
    if offer.provenance == "measured":
        return 1.0
    ends = offer.error_factors
    return math.inf if ends is None or ends[0] <= 0 else ends[1] / ends[0]


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
        instead = (
            "rank by time (--set rank=time)" if limits.budget is None else "leave out --budget"
        )
        why = (
            f"no offer has a price; give prices with --prices FILE, or {instead}"
            if fitting
            else "nothing fits in memory"
        )
        return Choice(words=f"Nothing can be recommended: {why}.")
    within = [offer for offer in pool if limits.holds(offer)]
    if not within:
        ways = [one for one in offers if one.may_be_recommended]
        priced = [one for one in ways if one.cost is not None or not needs_price]
        return Choice(words=_none_within(priced, limits))
    best = _taken(within, limits, by)
    others = [offer for offer in within if offer is not best]
    runner_up = ranked(others, by)[0] if others else None
    ways = [one for one in offers if one.may_be_recommended and limits.holds(one)]
    is_first = best is ranked(ways, by)[0]
    words = _words(best, runner_up, within, limits, by, is_first=is_first)
    return Choice(best=best, runner_up=runner_up, words=words)


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


def _none_within(pool: Sequence[Offer], limits: TrainingLimits) -> str:
    """What comes nearest to limits that nothing keeps."""
    parts = [f"No setting does it{limits.words()}"]
    fastest = ranked(pool, "time")[0]
    parts.append(f"the fastest is {fastest.words}: {spent(fastest)}")
    cheapest = ranked(pool, "cost")[0]
    if cheapest.cost is not None and cheapest is not fastest:
        parts.append(f"the cheapest is {cheapest.words}: {spent(cheapest)}")
    return f"{'; '.join(parts)}."


def _words(
    best: Offer,
    runner_up: Offer | None,
    within: Sequence[Offer],
    limits: TrainingLimits,
    by: Rank,
    *,
    is_first: bool,
) -> str:
    """The recommendation as text for users; only the first of all ways has a superlative."""
    superlative = {"cost": "the cheapest", "time": "the fastest", "memory": "the least memory"}[by]
    if not is_first:
        superlative = f"almost {superlative}, and the best known of these"
    verb = "Rent" if best.instance is not None else "Take"
    sentences = [f"{verb} {best.words}: {spent(best)}, {superlative}{limits.words()}."]
    if best.factors is None and best.provenance == "simulated":
        sentences.append("A guess: no published run is like this one, so its error is unknown.")
    elif _width(best) > GUESS_FACTOR:
        sentences.append(
            "A guess, as such jobs are this far off; a few runs of yours narrow it (driple "
            "transfer --from gpu)."
        )
    elif best.factors is not None and best.factors[1] > GUESS_FACTOR * best.factors[0]:
        sentences.append(
            "A guess, as a slower host may take this much longer; a few runs of yours narrow it "
            "(driple transfer --from gpu)."
        )
    over = _over(best, limits)
    sentences += [over] if over else []
    if best.fits is None and best.provenance == "simulated":
        sentences.append("Whether it fits in memory is not known.")
    if runner_up is not None:
        sentences.append(
            f"Runner-up: {runner_up.words}: {spent(runner_up)}; it {_lost(runner_up, best)}."
        )
    other = _other_end(best, within, by)
    if other is not None and other is not runner_up:
        name = "fastest" if by == "cost" else "cheapest"
        sentences.append(f"The {name} is {other.words}: {spent(other)}.")
    return " ".join(sentences)


def _other_end(best: Offer, within: Sequence[Offer], by: Rank) -> Offer | None:
    """The fastest where the cheapest is taken, and the other way round."""
    other = ranked(within, "time" if by == "cost" else "cost")[0]
    if other.name == best.name or other.cost is None or best.cost is None:
        return None
    return other


def _over(best: Offer, limits: TrainingLimits) -> str:
    """Which limit the upper end of the interval goes beyond; empty if none."""
    if best.factors is None:
        return ""
    high = best.factors[1]
    beyond = []
    if limits.budget is not None and best.cost is not None and best.cost * high > limits.budget:
        beyond.append(f"the budget (${price_text(best.cost * high)})")
    if limits.deadline_s is not None and best.training_s * high > limits.deadline_s:
        beyond.append(f"the deadline ({duration(best.training_s * high)})")
    return f"The upper end of its interval is beyond {' and '.join(beyond)}." if beyond else ""


def _lost(one: Offer, best: Offer) -> str:
    """Why an offer lost against another: `costs 12 % more and takes 3 % longer`."""
    parts = []
    if one.cost is not None and best.cost is not None:
        parts.append(("costs", one.cost / best.cost, "more", "less"))
    parts.append(("takes", one.training_s / best.training_s, "longer", "less time"))
    return " and ".join(_compared(*part) for part in parts)


def _compared(verb: str, ratio: float, more: str, less: str) -> str:
    if 1 / _SAME < ratio < _SAME:
        return f"{verb} the same" if verb == "costs" else f"{verb} as long"
    if ratio >= _TWICE:
        factor = f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"
        return f"{verb} {factor} times as {'much' if verb == 'costs' else 'long'}"
    if ratio > 1:
        return f"{verb} {100 * (ratio - 1):.0f} % {more}"
    return f"{verb} {100 * (1 - ratio):.0f} % {less}"


def spent(offer: Offer) -> str:
    """Time and cost of an offer with their intervals, as text for users.

    Where the interval is wide, its ends stand alone: a single number would mislead.
    """
    ends, cost = offer.factors, offer.cost
    price = "" if cost is None else f" for ${price_text(cost)}"
    if ends is None:
        return f"{duration(offer.training_s)}{price}"
    low, high = ends
    span = format_range(low * offer.training_s, high * offer.training_s, duration)
    if cost is not None:
        span += f", {format_range(cost * low, cost * high, lambda end: f'${price_text(end)}')}"
    if high > GUESS_FACTOR * low:
        return f"a guess: {span}"
    return f"{duration(offer.training_s)}{price} ({span})"


def price_text(price: float) -> str:
    """Dollars without the sign: two decimals, or the first two significant digits if smaller."""
    if price >= _WHOLE_PRICE:
        return f"{price:,.0f}"
    digits = 2 if price >= 1 or price <= 0 else 1 - math.floor(math.log10(price))
    return f"{price:.{max(digits, 2)}f}"
