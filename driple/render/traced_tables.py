"""How `driple inspect --measured` shows a trace beside a job: tables, gaps, then remarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driple.quantities import duration, rounded
from driple.render.inspect_tables import print_fact, short_name
from driple.render.remarks import sentences
from driple.render.show import print_table
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.traced_beside import TracedRow, TracedStep

__all__ = ["GAP_WORDS", "print_traced", "step_words"]

GAP_WORDS = {
    "host": "not launched yet: waits for the host",
    "launched": "launched: latency, or another stream",
    "no_op": "no op on the host",
}
_LEAST_SHARE = 0.001  # of a step, from which on a gap is shown


def print_traced(result: InspectResult, step: TracedStep, top: int) -> None:
    """Facts and tables of a trace.

    Args:
        result: the job.
        step: the trace beside it.
        top: most rows of a table.
    """
    use, parts = step.use, result.breakdown
    print(f"{result.job.name}: one step, predicted for one {parts.device} and measured")
    for label, words in step_words(result, step):
        print_fact(label, words)
    for words in sentences(step.remarks):
        print_fact("note", words)
    print()
    _print_rows("phase", step.phases)
    print()
    _print_rows("kind of op", step.kinds[:top], counts="kernels" if use.on_gpu else "ops")
    if len(step.kinds) > top:
        print(f"and {len(step.kinds) - top} more with less time (--top)")
    shown = [row for row in step.modules if row.name.count(".") < result.depth]
    if shown:
        print()
        _print_rows("module", shown[: max(top, 30)])
        if len(shown) > max(top, 30):
            print(f"and {len(shown) - max(top, 30)} more (--top)")
    gaps = [gap for gap in step.gaps if gap.seconds >= _LEAST_SHARE * use.step_s][:top]
    if gaps:
        print()
        what = "no kernel runs" if use.on_gpu else "no op runs"
        print_table(
            [what, "at", "gaps", "time", "longest"],
            [
                [
                    GAP_WORDS[gap.cause],
                    short_name(gap.place),
                    rounded(gap.count),
                    duration(gap.seconds),
                    duration(gap.longest_s),
                ]
                for gap in gaps
            ],
        )


def step_words(result: InspectResult, step: TracedStep) -> list[tuple[str, str]]:
    """Labels and sentences on the whole trace and step."""
    use, total_s = step.use, result.breakdown.total_s
    where = (use.device or "a GPU") if use.on_gpu else "the host"
    steps = f"median of {counted(use.num_steps, 'step')}" if use.marked else "no step is marked"
    busy = "a kernel runs" if use.on_gpu else "an op runs"
    share = 100 * use.busy_s / use.step_s
    idle_s = max(use.step_s - use.busy_s, 0.0)
    return [
        ("trace", f"{counted(use.num_events, 'event')} on {where}; {steps}"),
        (
            "measured",
            f"{duration(use.step_s)} a step: {busy} {duration(use.busy_s)} ({share:.0f} %), none "
            f"{duration(idle_s)}",
        ),
        (
            "predicted",
            "unknown"
            if total_s is None
            else f"{duration(total_s)} of computing, without "
            "communication and waiting for the host",
        ),
    ]


def _print_rows(title: str, rows: Sequence[TracedRow], counts: str = "") -> None:
    print_table(
        [title, "predicted", "measured", "ratio", *([counts] if counts else [])],
        [
            [
                short_name(row.name.replace("_", " ") if counts else row.name),
                _seconds(row.predicted_s),
                _seconds(row.measured_s),
                rounded(row.measured_s / row.predicted_s)
                if row.measured_s and row.predicted_s
                else "-",
                *([rounded(row.count) if row.count else "-"] if counts else []),
            ]
            for row in rows
        ],
    )


def _seconds(value: float | None) -> str:
    return "-" if not value else duration(value)
