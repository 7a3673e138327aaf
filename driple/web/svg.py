"""Pictures of the page, as SVG made on the server: no script, no style attribute, colours by class.

StepProfile -> four resources over a step;  curve -> memory over a step;  offers -> time and cost
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from driple.quantities import duration, rounded, size
from driple.step.phases import PHASE_WORDS
from driple.step.profile import StepProfile
from driple.trace.targets import RESOURCES, UNITS

__all__ = ["memory_svg", "plan_svg", "step_svg"]

_WIDTH, _LEFT, _RIGHT = 400, 52, 8  # of pictures and their margins, in units of the view box
_ROW, _GAP, _TOP = 44, 26, 18
_LINE = 14
_TITLES = {
    "device_util": "GPU busy",
    "device_mem_util": "GPU memory active",
    "net_tx": "network sent",
    "net_rx": "network received",
}
_LEAST_SHOWN = 1e-3  # of a step


def step_svg(step: StepProfile) -> str:
    """One row for each resource over one step: what happens, and its bursts as lines over it.

    Args:
        step: of one device.
    """
    plot = _WIDTH - _LEFT - _RIGHT
    pieces: list[str] = []
    used: dict[str, None] = {}
    for row, name in enumerate(RESOURCES):
        usage = step.usage()[name]
        top = _TOP + row * (_ROW + _GAP)
        spans = list(_spans(step, name))
        largest = max((amount for *_, amount in spans), default=0.0)
        most = 100.0 if UNITS[name] == "%" else max(largest, 1e-9)
        count = "idle" if not usage.num_bursts else (
            f"{usage.num_bursts} {'burst' if usage.num_bursts == 1 else 'bursts'} of "
            f"{duration(usage.burst_s)}, idle {duration(usage.idle_s)}, mean "
            f"{rounded(usage.mean)} {UNITS[name]}"
        )  # fmt: skip
        pieces.append(_text(0, top - 5, f"{_TITLES[name]}: {count}", "title"))
        pieces.append(f'<rect class="frame" x="{_LEFT}" y="{top}" width="{plot}" height="{_ROW}"/>')
        label = "100 %" if UNITS[name] == "%" else f"{rounded(most)}" if largest else "0"
        pieces.append(_text(_LEFT - 4, top + 9, label, "tick end"))
        if UNITS[name] != "%":
            pieces.append(_text(_LEFT - 4, top + 21, UNITS[name], "tick end"))
        for kind, start_s, end_s, amount in spans:
            if (end_s - start_s) < _LEAST_SHOWN * step.step_s or amount <= 0:
                continue
            used[kind] = None
            pieces.append(_bar((kind, start_s, end_s, amount), most, top, step.step_s))
        for burst in usage.bursts:
            height = top + _ROW * (1 - min(burst.amount / most, 1.0))
            ends = [(burst.start_s, min(burst.end_s, step.step_s))]
            if burst.end_s > step.step_s:
                ends.append((0.0, burst.end_s - step.step_s))
            for start_s, end_s in ends:
                pieces.append(
                    f'<line class="burst" x1="{_at(start_s, step.step_s):.2f}" '
                    f'x2="{_at(end_s, step.step_s):.2f}" y1="{height:.2f}" y2="{height:.2f}"/>'
                )
    bottom = _TOP + 4 * (_ROW + _GAP) - _GAP
    for share in (0.0, 0.5, 1.0):
        anchor = "" if not share else " middle" if share < 1 else " end"
        x = _LEFT + share * plot
        pieces.append(
            _text(x, bottom + 13, duration(share * step.step_s) if share else "0", f"tick{anchor}")
        )
    legend = [(f"fill-{kind}", _kind_words(kind)) for kind in used] + [("burst-key", "burst")]
    return _picture(
        pieces, bottom + 22, legend, f"Use of four resources over a step of {duration(step.step_s)}"
    )


def _spans(step: StepProfile, name: str) -> Iterator[tuple[str, float, float, float]]:
    """Kind, start, end and amount of what happens on a resource."""
    if name == "device_util":
        for span in step.device:
            yield span.phase, span.start_s, span.end_s, 100 * span.busy_share
    elif name == "device_mem_util":
        for span in step.device:
            yield "memory", span.start_s, span.end_s, 100 * span.memory_share
    else:
        for link in step.tx if name == "net_tx" else step.rx:
            yield "network", link.start_s, link.end_s, link.bytes_per_s / 1e6


def _kind_words(kind: str) -> str:
    own = {"memory": "memory read or written", "network": "sent or received"}
    return own.get(kind) or PHASE_WORDS[kind]


def _at(second: float, step_s: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * second / step_s


def _bar(span: tuple[str, float, float, float], most: float, top: float, step_s: float) -> str:
    """A span as a bar, as high as its share of the most."""
    kind, start_s, end_s, amount = span
    height = _ROW * min(amount / most, 1.0)
    x = _at(start_s, step_s)
    width = max(_at(end_s, step_s) - x, 0.2)
    words = f"{_kind_words(kind)}: {duration(start_s)} to {duration(end_s)}"
    return (
        f'<rect class="fill-{kind}" x="{x:.2f}" y="{top + _ROW - height:.2f}" '
        f'width="{width:.2f}" height="{height:.2f}"><title>{escape(words)}</title></rect>'
    )


def memory_svg(curve: Mapping[str, Any], num_nodes: int, capacity: float | None) -> str:
    """Bytes by kind over the ops of a step, one above the other.

    Args:
        curve: `node` and `bytes` by kind, as `inspect --memory --json` has them.
        num_nodes: ops of the step.
        capacity: of the device, bytes; None if it is not known.
    """
    nodes, kinds = curve["node"], curve["bytes"]
    shown = [kind for kind in kinds if any(kinds[kind])]
    totals = [sum(kinds[kind][i] for kind in shown) for i in range(len(nodes))]
    most = max(max(totals, default=0), 1)
    limit = capacity if capacity is not None and capacity < 2 * most else None
    scale = max(most, limit or 0) * 1.05
    height, plot = 180, _WIDTH - _LEFT - _RIGHT

    def x(node: int) -> float:
        return _LEFT + plot * node / max(num_nodes, 1)

    def y(nbytes: float) -> float:
        return _TOP + height * (1 - nbytes / scale)

    below = [0] * len(nodes)
    pieces = [f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{plot}" height="{height}"/>']
    for number, kind in enumerate(shown):
        above = [low + value for low, value in zip(below, kinds[kind], strict=True)]
        outline = [(x(node), y(value)) for node, value in zip(nodes, above, strict=True)]
        outline += [
            (x(node), y(value))
            for node, value in zip(reversed(nodes), reversed(below), strict=True)
        ]
        points = " ".join(f"{left:.1f},{up:.1f}" for left, up in outline)
        pieces.append(
            f'<polygon class="kind-{number % 8}" points="{points}">'
            f"<title>{escape(kind.replace('_', ' '))}</title></polygon>"
        )
        below = above
    if limit is not None:
        pieces.append(
            f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(limit):.1f}" '
            f'y2="{y(limit):.1f}"/>'
        )
        pieces.append(_text(_LEFT + 4, y(limit) + 11, f"device {size(limit)}", "tick"))
    for value in (0.0, most / 2, most):
        pieces.append(_text(_LEFT - 4, y(value) + 4, size(value) if value else "0", "tick end"))
    pieces.append(_text(_LEFT, _TOP + height + 13, "first op", "tick"))
    pieces.append(_text(_WIDTH - _RIGHT, _TOP + height + 13, "last op, update", "tick end"))
    legend = [(f"kind-{number % 8}", kind.replace("_", " ")) for number, kind in enumerate(shown)]
    return _picture(pieces, _TOP + height + 22, legend, f"Memory over a step, at most {size(most)}")


def plan_svg(offers: Sequence[Mapping[str, Any]], front: Sequence[int]) -> str:
    """Cost against time of offers with a price, and the line of those that none beats in both.

    Args:
        offers: as `plan --json` has them.
        front: places of the offers on the Pareto front.

    Returns:
        The picture; empty if no offer has a price.
    """
    points = [
        (place, offer["training_time_s"]["value"], offer["cost"]["value"], offer["name"])
        for place, offer in enumerate(offers)
        if offer["cost"] is not None
    ]
    if not points:
        return ""
    height, plot = 220, _WIDTH - _LEFT - _RIGHT
    times, costs = [point[1] for point in points], [point[2] for point in points]

    def along(value: float, values: Sequence[float]) -> float:
        low, high = math.log(min(values)), math.log(max(values))
        return 0.05 + 0.9 * ((math.log(value) - low) / (high - low) if high > low else 0.5)

    def place_of(seconds: float, cost: float) -> tuple[float, float]:
        return (
            _LEFT + plot * along(seconds, times),
            _TOP + height * (1 - along(cost, costs)),
        )

    pieces = [f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{plot}" height="{height}"/>']
    line = " ".join(
        "{:.1f},{:.1f}".format(*place_of(seconds, cost))
        for place, seconds, cost, _ in sorted(points, key=lambda point: point[1])
        if place in front
    )
    pieces.append(f'<polyline class="front" points="{line}"/>')
    for place, seconds, cost, name in points:
        left, up = place_of(seconds, cost)
        kind = "on-front" if place in front else "offer"
        words = f"{name}: {duration(seconds)}, ${rounded(cost)}"
        pieces.append(
            f'<circle class="{kind}" cx="{left:.1f}" cy="{up:.1f}" r="4">'
            f"<title>{escape(words)}</title></circle>"
        )
    for value, anchor in ((min(times), ""), (max(times), " end")):
        left = place_of(value, costs[0])[0]
        pieces.append(_text(left, _TOP + height + 13, duration(value), f"tick{anchor}"))
    for value in dict.fromkeys((min(costs), max(costs))):
        pieces.append(
            _text(_LEFT - 4, place_of(times[0], value)[1] + 4, f"${rounded(value)}", "tick end")
        )
    pieces.append(_text(0, _TOP - 5, "cost (up) against time (right) of the training", "title"))
    legend = [("on-front", "none is both faster and cheaper"), ("offer", "other ways")]
    return _picture(pieces, _TOP + height + 22, legend, "Cost against time of the training")


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _picture(
    pieces: Sequence[str], height: float, legend: Sequence[tuple[str, str]], title: str
) -> str:
    """The picture with its legend, two entries in a line."""
    keys = []
    for number, (kind, words) in enumerate(legend):
        x, y = (_LEFT + 170 * (number % 2)), height + 6 + _LINE * (number // 2)
        keys.append(f'<rect class="{kind} key" x="{x}" y="{y:.1f}" width="9" height="9"/>')
        keys.append(_text(x + 13, y + 8.5, words, "tick"))
    whole = height + 10 + _LINE * math.ceil(len(legend) / 2)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {whole:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(pieces)}{''.join(keys)}</svg>"
    )
