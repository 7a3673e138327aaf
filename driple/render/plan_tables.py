"""Tables of `driple plan`: the best way of each kind of machines, and the recommendation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from driple.estimate import GUESS_FACTOR, Interval
from driple.jobs.training_config import undecided_remarks
from driple.quantities import duration, duration_range, rounded, size
from driple.render.errors_stated import slow_host_sentence, stated_error_sentence
from driple.render.job_facts import facts_words
from driple.render.memory_lines import largest_batches_words
from driple.render.plan_words import assumptions_sentence, change_sentence
from driple.render.remarks import sentence, sentences
from driple.render.remarks.offers import limits_words, price_text
from driple.render.show import note, print_table, table_lines
from driple.units import format_range

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.planning.offers import Offer
    from driple.planning.ranking import TrainingLimits

__all__ = ["print_plan"]

_WIDTH = 100  # columns
_LEAST_PCT = 0.05  # of a step: shorter parts are not shown
_MOST_NAMES = 6  # in one line
_MOST_REASONS = 8
_KEPT = {True: "yes", False: "no", None: "-"}  # whether an offer keeps the limits


def print_plan(result: PlanResult, most: int, *, explain: bool, would_help: bool) -> None:
    """The answer as text: recommendation, table, and what was asked besides.

    Args:
        result: the answer.
        most: rows of the table.
        explain: whether to print where a step's time goes, prices, errors and refused machines.
        would_help: whether to print the changes that help.
    """
    from driple.planning.ranking import best_by_place

    undecided = () if result.job is None else undecided_remarks(result.job.undecided)
    for words in sentences(undecided):
        _print_wrapped(f"left open: {words}")
    for remark in (result.no_price, result.choice.why, result.remedy, result.scaling):
        if remark is not None:
            _print_wrapped(sentence(remark))
    if result.job is not None:
        _print_wrapped(f"job: {_job_words(result)}")
    alone = len({offer.name for offer in result.offers}) == 1
    # The ways to use the only machines; else the best way to use each.
    shown = [*result.offers] if alone else best_by_place(result.offers, result.rank, result.limits)
    shown, more = _first(shown, most, (result.choice.best, result.choice.runner_up))
    if shown:
        print()
        _print_offers(shown, result.limits)
        print()
    if would_help:
        _print_changes(result)
    if not explain:
        _print_counts(result, more, "ways" if alone else "machines")
        return
    if more > 0:
        note(f"{more} more; --set rows=N, --json, --output or --html show them")
    _print_parts(result)
    if result.assumptions is not None:
        print(assumptions_sentence(result.assumptions))
    _print_prices(shown)
    _print_errors(result)
    _print_refused(result)


def _job_words(result: PlanResult) -> str:
    """What is trained, and what of it nobody stated."""
    job, assumed = result.job, result.assumptions
    if job is None:
        return ""
    parts = [f"{job.name}: {facts_words(job)}"]
    if assumed is not None:
        epochs = "" if assumed.epochs == 1 else f", {assumed.epochs:g} epochs"
        samples = (
            f"{assumed.samples_per_epoch:,} samples an epoch ({sentence(assumed.samples_from)})"
        )
        parts.append(f"{samples}{epochs}")
    return "; ".join([*parts, *(f"assumed: {words}" for words in sentences(job.assumptions))])


def _print_wrapped(words: str) -> None:
    """Words in lines of at most 100 columns; nothing of none."""
    for line in wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False):
        print(line)


def _print_counts(result: PlanResult, more: int, what: str) -> None:
    """How much is not shown, and where it is."""
    refused = len({one.name for one in result.refused})
    parts = [f"{more} more {what} (--set rows=N)"] if more > 0 else []
    parts += [f"{refused} refused"] if refused else []
    days = {offer.price.date for offer in result.offers if offer.price and offer.price.date}
    if days:
        first, last = min(days), max(days)
        parts.append(f"prices of {first}" + (f" to {last}" if last > first else ""))
    print("; ".join([*parts, "why: --explain"]))


def _first(
    offers: Sequence[Offer], most: int, chosen: Sequence[Offer | None]
) -> tuple[list[Offer], int]:
    """The first of many offers and those that are chosen, and how many are left out."""
    names = {id(one) for one in chosen}
    shown = [offer for number, offer in enumerate(offers) if number < most or id(offer) in names]
    return shown, len(offers) - len(shown)


def _print_offers(offers: Sequence[Offer], limits: TrainingLimits) -> None:
    """The table; with limits, it says of each way whether it keeps them."""
    limited = limits_words(limits.budget, limits.deadline_s).strip()
    common = _common([offer for offer in offers if offer.variant is not None])
    rows = [
        [
            offer.name,
            _way(offer, common),
            _samples_per_s(offer),
            _training(offer),
            "-" if offer.cost is None else _cost(offer),
            _memory(offer),
            *([_KEPT[limits.kept_by(offer)]] if limited else []),
        ]
        for offer in offers
    ]
    fits = "memory" if all(offer.fits in (None, "yes") for offer in offers) else "memory, fits"
    if common:
        print(f"all with {common}:")
    header = ["machines", "how", "samples/s", "training",
              "cost $", fits, *(["in limits"] if limited else [])]  # fmt: skip
    largest = [_largest(offer) for offer in offers]
    lines = table_lines(header, rows)
    wider = table_lines(
        [*header, "largest batch"],
        [[*row, words or "-"] for row, words in zip(rows, largest, strict=True)],
    )
    has_room = max(map(len, wider)) <= _WIDTH
    if any(largest) and has_room:
        lines = wider
    if max(map(len, lines)) > _WIDTH:
        lines = _two_lines_each(header, rows)
    print("\n".join(lines))
    if any(largest) and not has_room:
        _print_largest([(row[0], row[1]) for row in rows], largest)


def _print_largest(ways: Sequence[tuple[str, str]], largest: Sequence[str]) -> None:
    """The largest batches below a table without room for them, alike ones together.

    Args:
        ways: machines and how they are used, of each row.
        largest: batches of each row in words; empty if they are not known.
    """
    several = len({name for name, _ in ways}) < len(ways)
    names: dict[str, list[str]] = {}
    for (name, way), words in zip(ways, largest, strict=True):
        if words:
            names.setdefault(words, []).append(f"{name} ({way})" if several else name)
    each = [f"{words}: {', '.join(dict.fromkeys(those))}" for words, those in names.items()]
    _print_wrapped(f"largest batch that fits: {'; '.join(each)}")


def _two_lines_each(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table that is too wide: machines and how to use them stand above their numbers."""
    numbers = table_lines(["", *header[2:]], [["", *row[2:]] for row in rows])
    return [
        line
        for row, below in zip((header, *rows), numbers, strict=True)
        for line in (f"{row[0]}: {row[1]}", below)
    ]


def _common(offers: Sequence[Offer]) -> str:
    """What all ways have in common: a batch, a precision."""
    ways = [offer.variant.parts for offer in offers if offer.variant is not None]
    if not ways:
        return ""
    return ", ".join(part for part in ways[0] if all(part in way for way in ways))


def _is_guess(offer: Offer) -> bool:
    return offer.factors is not None and offer.factors[1] > GUESS_FACTOR * offer.factors[0]


def _samples_per_s(offer: Offer) -> str:
    """The rate; of a guess both ends, without a single number."""
    rate, ends = offer.samples_per_s, offer.factors
    if ends is None or not _is_guess(offer):
        return rounded(rate)
    return format_range(rate / ends[1], rate / ends[0], lambda end: rounded(end, 2))


def _training(offer: Offer) -> str:
    """The time with its interval; a guess has no single number."""
    interval = None
    if offer.factors is not None:
        low, high = (end * offer.training_s for end in offer.factors)
        interval = Interval.of((low, high), None)
    if interval is not None and _is_guess(offer):
        return f"guess: {duration_range(interval)}"
    return duration(offer.training_s, interval)


def _cost(offer: Offer) -> str:
    cost, ends = offer.cost or 0.0, offer.factors
    if ends is not None and _is_guess(offer):
        return format_range(cost * ends[0], cost * ends[1], price_text)
    return price_text(cost)


def _way(offer: Offer, common: str) -> str:
    """Scheme and variant, without what all have in common."""
    if offer.variant is None:
        return "measured"
    same = common.split(", ")
    parts = [part for part in offer.variant.parts if part not in same]
    return ", ".join([*([offer.scheme] if offer.devices > 1 else []), *parts]) or "-"


def _memory(offer: Offer) -> str:
    needed = offer.memory_bytes
    if needed is None or offer.memory is None:
        return "-"
    least = "at least " if offer.memory.is_lower_bound else ""
    fits = "" if offer.fits == "yes" else f" {offer.fits_words}".rstrip()
    return f"{least}{size(needed)}{fits}"


def _largest(offer: Offer) -> str:
    """The largest batch that fits, and the largest that surely does; empty if not known."""
    return "" if offer.largest is None else largest_batches_words(offer.largest)


def _spread(offer: Offer, seconds: float) -> str | None:
    """The 90 % interval of a time of an offer; None if its error is not known."""
    if offer.factors is None:
        return None
    low, high = (end * seconds for end in offer.factors)
    return format_range(low, high, duration)


def _print_parts(result: PlanResult) -> None:
    """Where the time of a step of the recommended offer goes, or of the first one."""
    offers = [result.choice.best, *result.offers]
    offer = next((one for one in offers if one is not None and one.parts is not None), None)
    if offer is None or offer.parts is None:
        return
    step = _spread(offer, offer.iteration_s)
    nine = "" if step is None else f" ({step} in nine of ten)"
    print(f"\nA step of {offer.full_name}: {duration(offer.iteration_s)}{nine}")
    print_table(
        ["part", "time", "share"],
        [
            [name, duration(seconds), f"{pct:.1f} %"]
            for name, seconds, pct in offer.parts.rows()
            if pct >= _LEAST_PCT
        ],
    )
    print()


def _print_changes(result: PlanResult) -> None:
    best = result.choice.best
    if best is None:
        print("What would help is worked out for a recommended offer, and there is none.")
        return
    if not result.changes:
        print(f"Nothing that was tried makes {best.full_name} faster by more than 1 %.")
        return
    print(f"What would help {best.full_name} most, one change at a time:")
    for number, change in enumerate(result.changes, 1):
        print(f"  {number}. {change_sentence(change)}")
    is_host = any(change.what.code == "replays_graphs" for change in result.changes)
    if is_host and best.slow_host is not None:
        print(
            "  how much CUDA graphs save depends on your host: driple measure --machine measures it"
        )
    from driple.planning.changes import MOST_CHANGES

    if len(result.changes) < MOST_CHANGES:
        print("  nothing else that was tried saves 1 % or more of the time")


def _print_prices(offers: Sequence[Offer]) -> None:
    """Date and source of the prices that are shown."""
    sources: dict[str, list[str]] = defaultdict(list)
    for offer in offers:
        price = offer.price
        if price is None:
            if offer.no_price is not None:
                sources[f"no price: {sentence(offer.no_price)}"].append(offer.name)
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
            stated[stated_error_sentence(offer.error)].append(offer.name)
        if offer.slow_host is not None:
            stated[slow_host_sentence(offer.slow_host)].append(offer.name)
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
