"""Tables of `driple plan`: the best way of each kind of machines, and the recommendation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from driple.cli.show import note, print_table
from driple.units import format_duration, format_range, format_size, three_digits

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.planning.offers import Offer
    from driple.planning.ranking import Limits

__all__ = ["print_plan"]

_MOST_NAMES = 6  # in one line
_MOST_REASONS = 8
_KEPT = {True: "yes", False: "no", None: "-"}  # whether an offer keeps the limits


def print_plan(result: PlanResult, most: int, *, explain: bool, would_help: bool) -> None:
    """The answer as text: table, recommendation, and what was asked besides.

    Args:
        result: the answer.
        most: rows of the table.
        explain: whether to print where a step's time goes.
        would_help: whether to print the changes that help.
    """
    from driple.planning.ranking import best_by_place

    if result.no_price:
        print(f"{result.no_price}\n")
    alone = len({offer.name for offer in result.offers}) == 1
    # The ways to use the only machines; else the best way to use each.
    shown = [*result.offers] if alone else best_by_place(result.offers, result.rank, result.limits)
    shown, more = _first(shown, most, (result.choice.best, result.choice.runner_up))
    if shown:
        _print_offers(shown, result.limits)
        print()
        if more > 0:
            what = "ways" if alone else "machines"
            note(f"{more} more {what}; --set rows=N, --json, --csv or --html show them")
    if result.assumptions is not None:
        print(result.assumptions.sentence())
    if result.choice.words:
        print(result.choice.words)
    for words in (result.remedy, result.scaling):
        if words:
            print(words)
    if explain:
        _print_parts(result)
    if would_help:
        _print_changes(result)
    _print_prices(shown)
    _print_errors(result)
    _print_refused(result)


def _first(
    offers: Sequence[Offer], most: int, chosen: Sequence[Offer | None]
) -> tuple[list[Offer], int]:
    """The first of many offers and those that are chosen, and how many are left out."""
    names = {id(one) for one in chosen}
    shown = [offer for number, offer in enumerate(offers) if number < most or id(offer) in names]
    return shown, len(offers) - len(shown)


def _print_offers(offers: Sequence[Offer], limits: Limits) -> None:
    """The table; with limits, it says of each way whether it keeps them."""
    from driple.planning.ranking import price_text

    limited = limits.words().strip()

    rows = [
        [
            offer.name,
            str(offer.devices),
            _way(offer),
            format_duration(offer.iteration_s),
            three_digits(offer.samples_per_s),
            format_duration(offer.training_s),
            _interval(offer),
            "-" if offer.per_hour is None else f"{offer.per_hour:.2f}",
            "-" if offer.cost is None else price_text(offer.cost),
            _memory(offer),
            offer.fits_words or "-",
            "-" if offer.parts is None else offer.parts.bottleneck,
            "measured" if offer.provenance == "measured" else _error_text(offer),
            *([_KEPT[limits.kept_by(offer)]] if limited else []),
        ]
        for offer in offers
    ]
    header = ["machines", "devices", "how", "step", "samples/s", "training", "90 % interval",
              "$/h", "cost $", "memory", "fits", "held back by", "error: median, p90",
              *([limited] if limited else [])]  # fmt: skip
    print_table(header, rows)


def _way(offer: Offer) -> str:
    """Scheme and variant."""
    if offer.variant is None:
        return "-"
    scheme = f"{offer.scheme}, " if offer.devices > 1 else ""
    return f"{scheme}{offer.variant.words()}"


def _interval(offer: Offer) -> str:
    return _spread(offer, offer.training_s) or "-"


def _spread(offer: Offer, seconds: float) -> str | None:
    """The 90 % interval of a time of an offer; None if its error is not known."""
    if offer.factors is None:
        return None
    low, high = (end * seconds for end in offer.factors)
    return format_range(low, high, format_duration)


def _memory(offer: Offer) -> str:
    needed = offer.memory_bytes
    if needed is None or offer.memory is None:
        return "-"
    least = "at least " if offer.memory.is_lower_bound else ""
    return f"{least}{format_size(needed)}"


def _error_text(offer: Offer) -> str:
    if offer.error is None or offer.error.median_pct is None or offer.error.p90_pct is None:
        return "not checked"
    return f"{offer.error.median_pct:.0f} %, {offer.error.p90_pct:.0f} %"


def _print_parts(result: PlanResult) -> None:
    """Where the time of a step of the recommended offer goes, or of the first one."""
    offers = [result.choice.best, *result.offers]
    offer = next((one for one in offers if one is not None and one.parts is not None), None)
    if offer is None or offer.parts is None:
        return
    step = _spread(offer, offer.iteration_s)
    nine = "" if step is None else f" ({step} in nine of ten)"
    print(f"\nA step of {offer.words}: {format_duration(offer.iteration_s)}{nine}")
    print_table(
        ["part", "time", "share"],
        [
            [name, format_duration(seconds), f"{pct:.1f} %"]
            for name, seconds, pct in offer.parts.rows()
        ],
    )
    print()


def _print_changes(result: PlanResult) -> None:
    best = result.choice.best
    if best is None:
        print("What would help is worked out for a recommended offer, and there is none.")
        return
    if not result.changes:
        print(f"Nothing that was tried makes {best.words} faster by more than 1 %.")
        return
    print(f"What would help {best.words} most, one change at a time:")
    for number, change in enumerate(result.changes, 1):
        print(f"  {number}. {change.sentence()}")


def _print_prices(offers: Sequence[Offer]) -> None:
    """Date and source of the prices that are shown."""
    sources: dict[str, list[str]] = defaultdict(list)
    for offer in offers:
        price = offer.price
        if price is None:
            if offer.no_price:
                sources[f"no price: {offer.no_price}"].append(offer.name)
            continue
        kind = "spot" if price.spot else "on demand"
        region = "" if price.region is None else f", {price.region}"
        day = "your own" if price.date is None else f"{price.date}"
        sources[f"price {kind}{region}, {day} ({price.source})"].append(offer.name)
    for words, names in sources.items():
        print(f"{_listed(list(dict.fromkeys(names)))}: {words}")


def _print_errors(result: PlanResult) -> None:
    """What the errors of the recommended offer and of the runner-up rest on."""
    choice = result.choice
    chosen = [one for one in (choice.best, choice.runner_up) if one is not None]
    stated: dict[str, list[str]] = defaultdict(list)
    for offer in chosen or result.offers[:1]:
        if offer.error is not None:
            stated[offer.error.sentence()].append(offer.name)
        if offer.slow_host is not None:
            stated[offer.slow_host.sentence].append(offer.name)
    for words, names in stated.items():
        print(f"{_listed(names)}: {words}")


def _print_refused(result: PlanResult) -> None:
    reasons: dict[str, list[str]] = defaultdict(list)
    for refused in result.refused:
        if refused.name not in reasons[refused.reason]:
            reasons[refused.reason].append(refused.name)
    for words, names in [*reasons.items()][:_MOST_REASONS]:
        many = "is" if len(names) == 1 else "are"
        print(f"{_listed(names)} {many} refused: {words}")
    if len(reasons) > _MOST_REASONS:
        print(f"{len(reasons) - _MOST_REASONS} more reasons; --json lists all that is refused")


def _listed(names: Sequence[str]) -> str:
    """Names, the first of many."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"
