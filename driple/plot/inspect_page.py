"""`driple inspect --html`: where the work of a step is, its memory, and a trace beside it.

InspectResult -> HTML, complete in itself
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driple.plot.answer_view import memory_picture
from driple.plot.page import facts, heading, items, page, paragraphs, picture, table
from driple.quantities import duration, rounded, size
from driple.render.job_facts import facts_words
from driple.render.remarks import sentences
from driple.render.traced_tables import GAP_WORDS, step_words

if TYPE_CHECKING:
    from driple.api.breakdown import Share
    from driple.api.inspecting import InspectResult
    from driple.api.inspecting_memory import InspectedMemory
    from driple.api.module_tree import ModuleNode
    from driple.api.traced_beside import TracedRow, TracedStep

__all__ = ["page_text"]

_MOST_ROWS = 500
_INDENT = "\u2003"  # a space as wide as a letter


def page_text(result: InspectResult) -> str:
    """The page of one job."""
    job, parts = result.job, result.breakdown
    step = "a training step" if job.graph.is_training else "a forward pass"
    sections = [paragraphs([f"Job: {facts_words(job)}."])]
    if result.traced is not None:
        sections += _traced(result, result.traced)
    if result.memory is not None:
        sections += _memory(result, result.memory)
    sections += [
        heading("Work of the step"),
        facts(_facts(result)),
        heading("By phase", 3) if parts.phases else "",
        _shares("phase", parts.phases),
        heading("By module", 3) if parts.modules is not None else "",
        "" if parts.modules is None else _modules(result, parts.modules),
        heading("By kind of op", 3),
        _shares("kind of op", parts.kinds),
        heading("What it rests on"),
        items([
            "Times are the simulator's, of computing alone on one device.",
            *sentences(result.assumptions),
            *(f"Not known: {words}" for words in sentences(result.unknown)),
        ]),
    ]  # fmt: skip
    return page(f"{job.name}: {step} on one {parts.device}", sections)


def _facts(result: InspectResult) -> list[tuple[str, str]]:
    cost, parts, parameters = result.job.cost, result.breakdown, result.parameters
    amount = size(parameters.nbytes)
    if parameters.elements is not None:
        amount = f"{parameters.elements:,}, {amount}"
    rows = [
        ("setting", result.setting.name),
        ("computing", "unknown" if parts.total_s is None else duration(parts.total_s)),
        ("work", f"{rounded(cost.total_flops / 1e9)} GFLOP"),
        ("memory traffic", size(cost.total_bytes)),
        ("ops", f"{result.job.graph.num_nodes:,}"),
        ("parameters", amount),
    ]
    if parameters.optimizer:
        rows.append(("optimizer", f"{parameters.optimizer}, {size(parameters.state_bytes)} states"))
    return rows


def _shares(title: str, shares: Sequence[Share]) -> str:
    return table(
        [title, "ops", "GFLOP", "memory traffic", "time", "of time, %"],
        [
            [
                share.name.replace("_", " "),
                f"{share.ops:,}",
                rounded(share.flops / 1e9),
                size(share.moved_bytes),
                "-" if share.time_s is None else duration(share.time_s),
                "-" if share.time_pct is None else f"{share.time_pct:.1f}",
            ]
            for share in shares
        ],
    )


def _modules(result: InspectResult, root: ModuleNode) -> str:
    total = result.breakdown.total_s
    rows: list[list[str]] = []
    waiting = [(root, 0)]
    while waiting and len(rows) < _MOST_ROWS:
        node, level = waiting.pop()
        share = "-" if node.time_s is None or not total else f"{100 * node.time_s / total:.1f}"
        rows.append(
            [
                _INDENT * level + (node.name or "whole model"),
                f"{node.parameters:,}" if node.parameters else "-",
                rounded(node.flops / 1e9),
                "-" if node.time_s is None else duration(node.time_s),
                share,
            ]
        )
        if level < result.depth:
            waiting += [(child, level + 1) for child in reversed(node.children)]
    return table(["module", "parameters", "GFLOP", "time", "of time, %"], rows)


def _memory(result: InspectResult, memory: InspectedMemory) -> list[str]:
    held = memory.beside.estimate if memory.beside is not None else None
    rows = []
    if held is not None and held.device_total is not None:
        rows.append(("device", size(held.device_total.value)))
    if held is not None and held.capacity_bytes:
        rows.append(("device has", size(held.capacity_bytes)))
    return [heading("Memory over a step"), facts(rows), picture(memory_picture(result))]


def _traced(result: InspectResult, step: TracedStep) -> list[str]:
    counted = "kernels" if step.use.on_gpu else "ops"
    shown = [row for row in step.modules if row.name.count(".") < result.depth]
    gaps = [
        [
            GAP_WORDS[gap.cause],
            gap.place,
            rounded(gap.count),
            duration(gap.seconds),
            duration(gap.longest_s),
            gap.before,
        ]
        for gap in step.gaps
        if gap.seconds > 0
    ]
    return [
        heading("Predicted beside measured"),
        facts(step_words(result, step)),
        items(sentences(step.remarks)),
        heading("By phase", 3),
        _rows("phase", step.phases),
        heading("By kind of op", 3),
        _rows("kind of op", step.kinds, counted),
        heading("By module", 3) if shown else "",
        _rows("module", shown[:_MOST_ROWS]),
        heading("Gaps", 3) if gaps else "",
        table(
            ["cause", "at", "gaps", "time", "longest", "which ends with"],
            gaps,
            left=frozenset({0, 1, 5}),
        ),
    ]


def _rows(title: str, rows: Sequence[TracedRow], counted: str = "") -> str:
    return table(
        [title, "predicted", "measured", "measured / predicted", *([counted] if counted else [])],
        [
            [
                row.name.replace("_", " ") if counted else row.name,
                duration(row.predicted_s) if row.predicted_s else "-",
                duration(row.measured_s) if row.measured_s else "-",
                rounded(row.measured_s / row.predicted_s)
                if row.measured_s and row.predicted_s
                else "-",
                *([rounded(row.count) if row.count else "-"] if counted else []),
            ]
            for row in rows
        ],
    )
