"""`driple plan --html`: one page with recommendation, picture and table, complete in itself.

PlanResult -> HTML with its style and its picture (SVG) inside
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from driple.codec import to_json
from driple.planning.ranking import ranked
from driple.plot.page import heading, items, page, paragraphs, picture, table
from driple.plot.svg import plan_svg
from driple.quantities import duration, size
from driple.render.errors_stated import stated_error_sentence
from driple.render.job_facts import facts_words
from driple.render.plan_words import assumptions_sentence, bottleneck_words, change_sentence
from driple.render.remarks import sentence, sentences
from driple.render.remarks.offers import limits_words, price_text
from driple.units import format_range, three_digits

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.planning.offers import Offer
    from driple.planning.ranking import TrainingLimits

__all__ = ["page_text"]

_BEST = "The row in colour is the recommended offer; rows in grey cannot be."
_LEFT = frozenset({"machines", "how", "held back by", "price of"})


def page_text(result: PlanResult) -> str:
    """The page: what to take, the picture, all offers, and what they rest on."""
    name = "measured jobs" if result.job is None else result.job.name
    return page(
        f"Where to train {name}",
        [
            paragraphs(_texts(result)),
            _picture(result),
            *_changes(result),
            heading("All offers"),
            "" if result.choice.best is None else paragraphs([_BEST], "small"),
            _table(result),
            *_refused(result),
            *_sources(result),
        ],
    )


def _texts(result: PlanResult) -> list[str]:
    """The recommendation and what it rests on."""
    job = result.job
    remarks = (result.no_price, result.choice.why, result.remedy, result.scaling)
    return [
        *(sentence(remark) for remark in remarks if remark is not None),
        "" if job is None else f"Job: {facts_words(job)}.",
        "" if result.assumptions is None else f"{assumptions_sentence(result.assumptions)}.",
    ]


def _picture(result: PlanResult) -> str:
    """Cost against time; empty if no offer has a price."""
    plan = cast("dict[str, Any]", to_json(result.to_dict()))
    svg = plan_svg(plan["offers"], plan["pareto"])
    if not svg:
        return ""
    words = "Numbers are rows of the table, of offers that none is both faster and cheaper than."
    return picture(svg) + paragraphs([words], "small")


def _changes(result: PlanResult) -> list[str]:
    if not result.changes:
        return []
    words = [change_sentence(change) for change in result.changes]
    return [heading("What would help most"), items(words, "ol", "")]


def _table(result: PlanResult) -> str:
    """A row for every offer, in order."""
    by_time = {id(one): place for place, one in enumerate(ranked(result.offers, "time"), 1)}
    limits = result.limits
    lines = [
        {"row": str(row), **_cells(offer, by_time[id(offer)], limits)}
        for row, offer in enumerate(result.offers, 1)
    ]
    if not lines:
        return ""
    names = [*lines[0]]
    kinds = {
        number: "best" if offer is result.choice.best else "no"
        for number, offer in enumerate(result.offers)
        if offer is result.choice.best or not offer.may_be_recommended
    }
    return table(
        names,
        [[cells[name] for name in names] for cells in lines],
        left=frozenset(i for i, name in enumerate(names) if name in _LEFT),
        kinds=kinds,
    )


def _cells(offer: Offer, rank_by_time: int, limits: TrainingLimits) -> dict[str, str]:
    """Texts of one row."""
    limited, kept = limits_words(limits.budget, limits.deadline_s).strip(), limits.kept_by(offer)
    variant, ends, error = offer.variant, offer.factors, offer.error
    span = "unknown"
    if ends is not None:
        low, high = (end * offer.training_s for end in ends)
        span = format_range(low, high, duration)
    elif offer.provenance == "measured":
        span = "measured"
    needed = offer.memory_bytes
    known = error is not None and error.median_pct is not None and error.p90_pct is not None
    return {
        "machines": offer.name,
        "how": "" if variant is None else ", ".join([offer.scheme, variant.name]),
        "devices": str(offer.devices),
        "step": duration(offer.iteration_s),
        "samples/s": three_digits(offer.samples_per_s),
        "training": duration(offer.training_s),
        "90 % interval": span,
        "rank by time": str(rank_by_time),
        "$/h": "" if offer.per_hour is None else f"{offer.per_hour:.2f}",
        "cost $": "" if offer.cost is None else price_text(offer.cost),
        "price of": _price_words(offer),
        **({limited: "" if kept is None else "yes" if kept else "no"} if limited else {}),
        "memory": "" if needed is None else size(needed),
        "fits": offer.fits_words or "unknown",
        "held back by": "" if offer.parts is None else bottleneck_words(offer.parts),
        "error: median, p90": f"{error.median_pct:.0f} %, {error.p90_pct:.0f} %"
        if known and error is not None
        else "not checked",
    }


def _price_words(offer: Offer) -> str:
    """Day, kind and region of a price; empty without one."""
    price = offer.price
    if price is None:
        return ""
    day = "your own" if price.date is None else price.date.isoformat()
    return " ".join(filter(None, (day, "spot" if price.spot else "", price.region)))


def _refused(result: PlanResult) -> list[str]:
    """Machines that cannot run the job, by reason."""
    reasons: dict[str, list[str]] = {}
    for refusal in result.refused:
        names = reasons.setdefault(refusal.reason, [])
        if refusal.name not in names:
            names.append(refusal.name)
    if not reasons:
        return []
    words = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return [heading("Refused"), items(words)]


def _sources(result: PlanResult) -> list[str]:
    """Where prices and errors come from."""
    texts: dict[str, None] = {}
    for offer in result.offers:
        if offer.price is not None:
            texts[f"Price: {offer.price.source}"] = None
        if offer.error is not None:
            texts[f"Error: {stated_error_sentence(offer.error)}"] = None
    texts |= dict.fromkeys(sentences(result.remarks))
    return [heading("Sources"), items(texts)] if texts else []
