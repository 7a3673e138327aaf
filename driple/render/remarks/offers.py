"""Sentences on prices and on offers: which to take, and what would make a job fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from driple.estimate import GUESS_FACTOR
from driple.quantities import duration, size
from driple.units import counted, format_count, format_range

__all__ = ["SENTENCES", "limits_words", "price_text"]

_SAME = 1.01  # ratio of what is as good as equal
_TWICE = 2.0
_WHOLE_PRICE = 100.0  # prices from here on are printed without cents
_SUPERLATIVES = {"cost": "the cheapest", "time": "the fastest", "memory": "the least memory"}
_NARROWS = "a few runs of yours narrow it (driple transfer --from gpu)"
_GUESSES = {
    "no_run": "A guess: no published run is like this one, so its error is unknown.",
    "errors": f"A guess, as such jobs are this far off; {_NARROWS}.",
    "network": "A guess, as it is not known what its network reaches by TCP (from a tenth of its "
    "rate to nearly all of it).",
    "slow_host": f"A guess, as a slower host may take this much longer; {_NARROWS}.",
}


def price_text(price: float) -> str:
    """Dollars without the sign: two decimals, or the first two significant digits if smaller."""
    if price >= _WHOLE_PRICE:
        return f"{price:,.0f}"
    digits = 2 if price >= 1 or price <= 0 else 1 - math.floor(math.log10(price))
    return f"{price:.{max(digits, 2)}f}"


def limits_words(budget: float | None, deadline_s: float | None) -> str:
    """Such as ` within $100 and 12 h`; empty without limits."""
    parts = [] if budget is None else [f"${price_text(budget)}"]
    parts += [] if deadline_s is None else [duration(deadline_s)]
    return f" within {' and '.join(parts)}" if parts else ""


def _prices_not_used(file: str, names: Sequence[str], num_names: int) -> str:
    some = ", ".join(repr(name) for name in names)
    some += f" and {num_names - len(names)} more" if num_names > len(names) else ""
    return (
        f"--prices {file}: no instance or setting is called {some}; that price is not used (driple "
        "list instances has the names)"
    )


def _not_known(is_spot: bool, region: str | None, date: str | None) -> str:
    where = "" if region is None else f" of {region}"
    when = "" if date is None else f" up to {date}"
    kind = "spot price" if is_spot else "price"
    return f"no {kind}{where}{when} is known; give one with --prices FILE"


def _no_price(unknown: str, options: str) -> str:
    advice = f"; set them with {options}" if options else ""
    return f"no price and no recommendation: {unknown}, so times are too short{advice}"


def _spent(
    offer: str,
    training_s: float,
    cost: float | None,
    low_factor: float | None,
    high_factor: float | None,
) -> str:
    """An offer, and its time and cost with their intervals.

    Where the interval is wide, its ends stand alone: a single number would mislead.
    """
    price = "" if cost is None else f" for ${price_text(cost)}"
    if low_factor is None:
        return f"{offer}: {duration(training_s)}{price}"
    high = math.inf if high_factor is None else high_factor
    span = format_range(low_factor * training_s, high * training_s, duration)
    if cost is not None:
        ends = format_range(cost * low_factor, cost * high, lambda end: f"${price_text(end)}")
        span += f", {ends}"
    if high > GUESS_FACTOR * low_factor:
        return f"{offer}: a guess: {span}"
    return f"{offer}: {duration(training_s)}{price} ({span})"


def _recommended(
    *,
    offer: str,
    is_rented: bool,
    rank: str,
    is_first: bool,
    is_surer: bool,
    budget: float | None,
    deadline_s: float | None,
    guess: str | None,
    over_budget: bool,
    over_cost: float | None,
    over_deadline: bool,
    over_s: float | None,
    is_fit_unknown: bool,
    upper_bytes: float | None,
    sure_batch: int | None,
    runner_up: str | None,
    time_ratio: float | None,
    cost_ratio: float | None,
    other: str | None,
    bargain: str | None,
    bargain_is_runner_up: bool,
) -> str:
    superlative = _SUPERLATIVES[rank]
    if not is_first:
        reason = "and surely fits" if is_surer else "and the best known of these"
        superlative = f"almost {superlative}, {reason}"
    verb, limits = "Rent" if is_rented else "Take", limits_words(budget, deadline_s)
    parts = [f"{verb} {offer}, {superlative}{limits}."]
    if bargain is not None:
        parts.append(bargain)
    if guess is not None:
        parts.append(_GUESSES[guess])
    beyond = []
    if over_budget:
        beyond.append("the budget" + ("" if over_cost is None else f" (${price_text(over_cost)})"))
    if over_deadline:
        beyond.append("the deadline" + ("" if over_s is None else f" ({duration(over_s)})"))
    if beyond:
        parts.append(f"The upper end of its interval is beyond {' and '.join(beyond)}.")
    if is_fit_unknown:
        parts.append("Whether it fits in memory is not known.")
    if upper_bytes is not None:
        sure = f"; a batch of {sure_batch} surely fits" if sure_batch else ""
        parts.append(f"Its memory may reach {size(upper_bytes)}, more than there is{sure}.")
    if runner_up is not None and time_ratio is not None:
        lost = [] if cost_ratio is None else [_compared("costs", cost_ratio, "more", "less")]
        lost.append(_compared("takes", time_ratio, "longer", "less time"))
        words = "" if bargain_is_runner_up else f"; it {' and '.join(lost)}"
        parts.append(f"Runner-up: {runner_up}{words}.")
    if other is not None:
        parts.append(f"The {'fastest' if rank == 'cost' else 'cheapest'} is {other}.")
    return " ".join(parts)


def _much_for_little(offer: str, rank: str, time_ratio: float, cost_ratio: float) -> str:
    """What the first by rank gives away: `8xH100 takes 40 % less time and costs 1 % more`."""
    words = [
        _compared("takes", time_ratio, "longer", "less time"),
        _compared("costs", cost_ratio, "more", "less"),
    ]
    return f"{offer} {' and '.join(words if rank == 'cost' else reversed(words))}."


def _compared(verb: str, ratio: float, more: str, less: str) -> str:
    """Why an offer lost against another: `costs 12 % more`."""
    if 1 / _SAME < ratio < _SAME:
        return f"{verb} the same" if verb == "costs" else f"{verb} as long"
    if ratio >= _TWICE:
        factor = f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"
        return f"{verb} {factor} times as {'much' if verb == 'costs' else 'long'}"
    if ratio > 1:
        return f"{verb} {100 * (ratio - 1):.0f} % {more}"
    return f"{verb} {100 * (1 - ratio):.0f} % {less}"


def _none_within(
    budget: float | None, deadline_s: float | None, fastest: str, cheapest: str | None
) -> str:
    words = f"No setting does it{limits_words(budget, deadline_s)}; the fastest is {fastest}"
    return f"{words}." if cheapest is None else f"{words}; the cheapest is {cheapest}."


def _more_machines(
    *,
    instance: str,
    least_machines: int,
    most_machines: int,
    speed_ratio: float,
    paying_machines: int | None,
) -> str:
    span = f"{most_machines} of {instance} are {speed_ratio:.3g} times as fast as {least_machines}"
    if paying_machines is None:
        return (
            f"More machines pay up to {most_machines} of {instance}, the most that was tried "
            f"({span})."
        )
    return (
        f"More machines stop paying at {paying_machines} of {instance}: of what is added beyond, "
        f"less than half arrives ({span})."
    )


def _on(place: str, device: str, has_least: bool, room_bytes: float) -> str:
    least = " has least memory" if has_least else ""
    return f"On {place} ({device}{least}, {size(room_bytes)} each)"


def _would_fit(
    *,
    place: str,
    device: str,
    has_least: bool,
    room_bytes: float,
    batch_size: int | None = None,
    checkpointed_batch_size: int | None = None,
    keeps_batch: bool = False,
    scheme: str | None = None,
    num_devices: int = 0,
    shard_place: str = "",
    optimizer: str | None = None,
) -> str:
    """Every way that makes a job fit, each with its option."""
    ways = []
    if batch_size is not None:
        ways.append(f"with a batch of at most {batch_size} per device (--batch-size {batch_size})")
    if checkpointed_batch_size is not None:
        batch = "as it is" if keeps_batch else f"and a batch of at most {checkpointed_batch_size}"
        ways.append(f"with full checkpointing {batch} (--activation-checkpointing full)")
    if scheme is not None:
        where = f"the {num_devices} devices of {shard_place}"
        ways.append(f"with {scheme} over {where} (--scheme {scheme})")
    if optimizer is not None:
        ways.append(f"with states of the optimizer in 8 bits (--optimizer {optimizer})")
    return f"{_on(place, device, has_least, room_bytes)} it would fit {'; or '.join(ways)}."


def _nothing_fits(place: str, device: str, has_least: bool, room_bytes: float, scheme: str) -> str:
    return (
        f"{_on(place, device, has_least, room_bytes)} not even a batch of 1 fits, with full "
        f"checkpointing and with {scheme}."
    )


def _as_it_is(place: str, device: str, has_least: bool, room_bytes: float) -> str:
    return (
        f"{_on(place, device, has_least, room_bytes)} too; the graph is as it is: make it with a "
        "smaller batch."
    )


def _no_offer_priced(has_budget: bool) -> str:
    instead = "leave out --budget" if has_budget else "rank by time (--set rank=time)"
    return (
        "Nothing can be recommended: no offer has a price; give prices with --prices FILE, or "
        f"{instead}."
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "scheme_refused": "--scheme {scheme} runs on none of these machines: {reason}",
    "in_place": "{new} in place of {old}",
    "compiles": "torch.compile",
    "replays_graphs": "CUDA graphs, torch.compile(mode='reduce-overhead')",
    "checkpoints_nothing": "no checkpointing",
    "batch_of_device": "a batch of {batch_size} per device",
    "network_at_same_price": "a network of {name} at the same price",
    "joined_by": "devices joined by {name} at the same price",
    "twice_the_machines": "twice the machines ({name}, {scheme})",
    "samples_by_option": "--samples",
    "samples_by_tokens": lambda tokens, seq_len: (
        f"--tokens {format_count(tokens)} in samples of {counted(seq_len, 'token')}"
    ),
    "samples_of_data_set": "its data set",
    "samples_of_imagenet": "ImageNet, since --samples is not given",
    "offer_spent": _spent,
    "recommended": _recommended,
    "much_for_little": _much_for_little,
    "nothing_within_limits": _none_within,
    "nothing_fits": "Nothing can be recommended: nothing fits in memory.",
    "no_offer_priced": _no_offer_priced,
    "more_machines": _more_machines,
    "would_fit": _would_fit,
    "nothing_makes_it_fit": _nothing_fits,
    "graph_is_as_it_is": _as_it_is,
    "no_price": _no_price,
    "no_price_of_own": "no price is known of your own {name}; give one with --prices FILE",
    "price_not_known": _not_known,
    "price_refused": "{file} states {reason}",
    "prices_not_used": _prices_not_used,
}
