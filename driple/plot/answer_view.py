"""What pages show of an answer: its lines, timeline, numbers with their sources, modules, memory.

    Answer -> answer_view: texts and a picture;  InspectResult -> memory_picture, module_rows

The page of `driple serve` and that of `--html` show the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from driple.codec import to_json
from driple.errors import DripleError
from driple.plot.svg import memory_svg, step_svg
from driple.quantities import duration, rounded, size, timed
from driple.render.answer_lines import LABEL_WIDTH, answer_lines
from driple.render.remarks import sentence, sentences, with_sentences

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.module_tree import ModuleNode
    from driple.api.predicting import Answer

__all__ = ["answer_view", "memory_picture", "module_rows"]

_MOST_MODULES = 12


def answer_view(answer: Answer) -> dict[str, Any]:
    """Name, lines, timeline (SVG or empty), numbers, assumptions and stated error of an answer."""
    try:
        step = answer.step() if answer.best is not None else None
    except DripleError:  # no graph that can be simulated: the lines say why
        step = None
    as_json = cast("dict[str, Any]", with_sentences(to_json(answer.to_dict())))
    return {
        "name": answer.setting.name,
        "lines": _labelled(answer_lines(answer)),
        "timeline": "" if step is None else step_svg(step),
        "numbers": _numbers(answer, as_json),
        "assumed": [*sentences(answer.job.assumptions), *sentences(answer.assumptions)],
        "error": (as_json["stated_error"] or {}),
    }


def _labelled(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Labels and words of the lines of the command line; continued lines are joined."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        label, words = line[:LABEL_WIDTH].strip(), line[LABEL_WIDTH:].strip()
        if not label and rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {words}")
        else:
            rows.append((label, words))
    return [
        (label, words.replace("(all: --explain)", "(all of it below)")) for label, words in rows
    ]


def _numbers(answer: Answer, as_json: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, method and source of each number."""
    rows: list[tuple[str, str, str, str]] = []
    if answer.best is not None:
        time = answer.best.step_time
        rows.append(("step time", timed(time), time.method, time.source))
        quantiles = as_json["iteration_time_quantiles_s"]
        if quantiles:
            words = " / ".join(
                "no limit" if quantiles[name] is None else duration(quantiles[name])
                for name in ("p10", "p50", "p90")
            )
            rows.append(("step time p10 / p50 / p90", words, time.method, "from its interval"))
    rate = (as_json["throughput"] or {}).get("samples_per_s")
    if rate:
        rows.append(_row("samples per second", rate, ""))
    memory = None if answer.memory is None else answer.memory.estimate
    if memory is not None:
        sizes = {"allocated": memory.allocated, "reserved": memory.reserved}
        for name, number in sizes.items():
            if number is not None:
                ends = "" if number.lower is None else f" ({size(number.lower)} to "
                ends += "" if not ends else f"{size(number.upper or number.value)})"
                told_from = sentence(memory.source) if memory.source else "the graph's tensors"
                rows.append((f"memory {name}", size(number.value) + ends, "simulator", told_from))
    for resource, figures in (as_json["targets"] or {}).items():
        unit = as_json["units"][resource]
        for figure, number in figures.items():
            own = unit if figure == "burst_amount" else "s"
            rows.append(_row(f"{resource}: {figure.replace('_', ' ')}", number, own))
    return rows


def _row(name: str, number: Mapping[str, Any], unit: str) -> tuple[str, str, str, str]:
    words = f"{rounded(number['value'])} {unit}".strip()
    ends = number["interval"]
    if ends is not None:
        high = "no limit" if ends["high"] is None else rounded(ends["high"])
        words += f" ({rounded(ends['low'])} to {high})"
    return name, words, number["method"], number["source"]


def memory_picture(inspected: InspectResult) -> str:
    """The picture of memory over a step; empty where it is unknown."""
    if inspected.memory is None:
        return ""
    memory = cast("dict[str, Any]", to_json(inspected.memory.to_dict(1)))
    beside = inspected.memory.beside
    estimate = None if beside is None else beside.estimate
    capacity = None if estimate is None else estimate.capacity_bytes
    return memory_svg(memory["curve"], inspected.job.graph.num_nodes, capacity)


def module_rows(inspected: InspectResult) -> list[dict[str, Any]]:
    """Modules of the first levels with their share of the computing time, the largest first."""
    tree, total = inspected.breakdown.modules, inspected.breakdown.total_s
    if tree is None or not total:
        return []
    rows = []
    nodes: Sequence[ModuleNode] = tree.children or [tree]
    for node in sorted(nodes, key=lambda one: -(one.time_s or 0.0))[:_MOST_MODULES]:
        seconds = node.time_s or 0.0
        rows.append(
            {
                "path": node.path or node.name or "the model",
                "time": duration(seconds),
                "pct": round(100 * seconds / total, 1),
                "ops": node.ops,
                "parameters": f"{node.parameters:,}",
            }
        )
    return rows
