"""`driple plan --html`: one page with recommendation, picture and table, complete in itself.

PlanResult -> HTML with its style and its picture (SVG) inside
"""

from __future__ import annotations

import re
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from driple.errors import ConfigError
from driple.files import atomic_write
from driple.planning.ranking import ranked
from driple.plot.plans import plan_figure
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

__all__ = ["page_text", "write_page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b2733; margin: 2rem auto; max-width: 80rem;
       padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; white-space: nowrap; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #d9dde2; text-align: right; }
th:first-child, td:first-child, td.left, th.left { text-align: left; }
tr.best { background: #fbeee8; } tr.no { color: #7c8792; }
.small { font-size: 13px; color: #4a5763; }
"""
_LEFT = frozenset({"machines", "how", "held back by", "price of"})


def write_page(result: PlanResult, path: Path) -> None:
    """Write the page.

    Raises:
        ConfigError: it cannot be written.
        MissingExtraError: matplotlib, which draws the picture, is not installed.
    """
    atomic_write(path, page_text(result).encode(), error=ConfigError)


def page_text(result: PlanResult) -> str:
    """The page: what to take, the picture, all offers, and what they rest on."""
    name = "measured jobs" if result.job is None else result.job.name
    parts = [
        f"<h1>Where to train {escape(name)}</h1>",
        *_paragraphs(result),
        _picture(result),
        *_changes(result),
        "<h2>All offers</h2>",
        f'<div class="scroll">{_table(result)}</div>',
        *_refused(result),
        *_sources(result),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Driple: {escape(name)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _paragraphs(result: PlanResult) -> list[str]:
    """The recommendation and what it rests on."""
    job = result.job
    remarks = (result.no_price, result.choice.why, result.remedy, result.scaling)
    texts = [
        *(sentence(remark) for remark in remarks if remark is not None),
        "" if job is None else f"Job: {facts_words(job)}.",
        "" if result.assumptions is None else f"{assumptions_sentence(result.assumptions)}.",
    ]
    return [f"<p>{escape(words)}</p>" for words in texts if words]


def _picture(result: PlanResult) -> str:
    """The picture as SVG that belongs to the page; empty if there is nothing to draw."""
    from matplotlib import pyplot as plt
    from matplotlib import rc_context

    if not result.offers:
        return ""
    figure = plan_figure(result)
    made = StringIO()
    try:
        # A fixed salt gives the same file for the same answer.
        with rc_context({"svg.hashsalt": "driple", "svg.fonttype": "none"}):
            figure.savefig(made, format="svg", metadata={"Date": None, "Creator": None})
    finally:
        plt.close(figure)
    svg = made.getvalue()
    drawn = svg[svg.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)


def _changes(result: PlanResult) -> list[str]:
    if not result.changes:
        return []
    items = "".join(f"<li>{escape(change_sentence(one))}</li>" for one in result.changes)
    return ["<h2>What would help most</h2>", f"<ol>{items}</ol>"]


def _table(result: PlanResult) -> str:
    """A row for every offer, in order."""
    by_time = {id(one): place for place, one in enumerate(ranked(result.offers, "time"), 1)}
    limits = result.limits
    lines = [_cells(offer, by_time[id(offer)], limits) for offer in result.offers]
    if not lines:
        return ""
    names = [*lines[0]]
    head = "".join(f"<th{_class(name)}>{escape(name)}</th>" for name in names)
    body = []
    for offer, cells in zip(result.offers, lines, strict=True):
        kind = "best" if offer is result.choice.best else "" if offer.may_be_recommended else "no"
        row = "".join(f"<td{_class(name)}>{escape(cells[name])}</td>" for name in names)
        body.append(f'<tr class="{kind}">{row}</tr>' if kind else f"<tr>{row}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _class(name: str) -> str:
    return ' class="left"' if name in _LEFT else ""


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
    for one in result.refused:
        names = reasons.setdefault(one.reason, [])
        if one.name not in names:
            names.append(one.name)
    if not reasons:
        return []
    items = "".join(
        f"<li>{escape(', '.join(names))}: {escape(reason)}</li>"
        for reason, names in reasons.items()
    )
    return ["<h2>Refused</h2>", f'<ul class="small">{items}</ul>']


def _sources(result: PlanResult) -> list[str]:
    """Where prices and errors come from."""
    texts: dict[str, None] = {}
    for offer in result.offers:
        if offer.price is not None:
            texts[f"Price: {offer.price.source}"] = None
        if offer.error is not None:
            texts[f"Error: {stated_error_sentence(offer.error)}"] = None
    texts |= dict.fromkeys(sentences(result.remarks))
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return ["<h2>Sources</h2>", f'<ul class="small">{items}</ul>'] if items else []
