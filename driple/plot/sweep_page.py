"""`driple sweep --html`: the rate over what is varied, all points, and what they rest on.

SweepResult -> HTML, complete in itself
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.plot.page import heading, items, page, paragraphs, picture, table
from driple.plot.svg import lines_svg
from driple.quantities import duration, rounded, size
from driple.render.job_facts import facts_words
from driple.render.remarks import sentences
from driple.units import format_rate

if TYPE_CHECKING:
    from driple.api.results import Cell
    from driple.api.sweeping import SweepResult

__all__ = ["page_text"]

_AXES = {
    "workers": "devices",
    "batch_size": "samples per device",
    "bandwidth_bits_per_s": "bandwidth, bit/s",
    "servers": "servers",
    "compression": "share of gradients left out",
}
_RATES = {"samples_per_s": "samples/s", "examples_per_s": "samples/s"}
_MOST_LINES = 8


def page_text(result: SweepResult) -> str:
    """The page of a sweep."""
    name = "a trace of one worker" if result.job is None else result.job.name
    rows = result.rows()
    columns = [*rows[0]] if rows else []
    sources = [
        *(
            f"{_title(column)}: {estimate.method}, {estimate.source}"
            for column, estimate in result.estimates.items()
        ),
        *sentences(result.assumptions),
        *sentences(result.remarks),
        *(f"{word}: {meaning}" for word, meaning in result.bottleneck_words.items()),
    ]
    words = [
        "" if result.job is None else f"Job: {facts_words(result.job, _samples(result))}.",
        "" if result.setting is None else f"The rest is taken from {result.setting.name}.",
    ]
    return page(
        f"What another cluster brings {name}",
        [
            paragraphs(words),
            picture(_picture(result)),
            heading("All points"),
            table(
                [_title(column) for column in columns],
                [
                    [_text(column, row[column]) + _ends(result, column, i) for column in columns]
                    for i, row in enumerate(rows)
                ],
                left=frozenset(i for i, column in enumerate(columns) if column == "bottleneck"),
            ),
            heading("What it rests on"),
            items(sources),
        ],
    )


def _samples(result: SweepResult) -> str:
    """Batch sizes of all points in words; empty of a single one."""
    known = sorted({int(value) for value in result.clusters.get("batch_size", ()) if value})
    return f"{known[0]} to {known[-1]} samples per device" if len(known) > 1 else ""


def _picture(result: SweepResult) -> str:
    """The rate against the axis with most values, a line for each of the others."""
    rate = next((name for name in _RATES if name in result.estimates), None)
    if rate is None:
        rate = next(iter(result.estimates), None)
    axes = {name: [*result.clusters[name]] for name in _AXES if name in result.clusters}
    if rate is None or not axes:
        return ""
    varied = max(axes, key=lambda name: len({*axes[name]} - {None}))
    others = [name for name in axes if name != varied and len({*axes[name]} - {None}) > 1]
    lines: dict[str, list[tuple[float, float]]] = {}
    for i, value in enumerate(result.estimates[rate].value):
        at = axes[varied][i]
        if at is not None:
            label = ", ".join(_named(name, axes[name][i]) for name in others)
            lines.setdefault(label, []).append((at, value))
    shown = {label: sorted(lines[label]) for label in [*lines][:_MOST_LINES]}
    title = _RATES.get(rate, f"{_title(rate)}, s" if _is_time(rate) else _title(rate))
    return lines_svg(shown, (_AXES[varied], title), f"{title} against {_AXES[varied]}")


def _named(name: str, value: float | None) -> str:
    if value is None:
        return f"no {_AXES[name].partition(',')[0]}"
    if name == "bandwidth_bits_per_s":
        return f"{format_rate(value)}bit/s"
    return f"{rounded(value)} {_AXES[name]}"


def _text(column: str, cell: Cell) -> str:
    """A cell with its unit."""
    if cell is None:
        return "-"
    if not isinstance(cell, int | float):
        return str(cell)
    if column == "bandwidth_bits_per_s":
        return format_rate(cell)
    if column.endswith("_bytes"):
        return size(cell)
    if _is_time(column):
        return duration(cell) if cell else "0"
    return f"{rounded(cell)} %" if column.endswith("_pct") else rounded(cell)


def _is_time(column: str) -> bool:
    return column.endswith("_s") and not column.endswith("_per_s")


def _title(column: str) -> str:
    """A column's name in words; its unit stands in the cells."""
    if column == "bandwidth_bits_per_s":
        return "bandwidth, bit/s"
    for end in ("_bytes", "_pct", "_s"):
        if column.endswith(end) and not column.endswith("_per_s"):
            column = column.removesuffix(end)
    return column.replace("_per_s", "/s").replace("_", " ")


def _ends(result: SweepResult, column: str, place: int) -> str:
    """Interval of a number, in parentheses; empty without one."""
    estimate = result.estimates.get(column)
    if estimate is None or estimate.interval is None:
        return ""
    low, high = estimate.interval[place]
    upper = "no limit" if high is None else _text(column, high)
    return f" ({_text(column, low)} to {upper})"
