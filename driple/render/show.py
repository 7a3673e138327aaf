"""How results are shown: aligned tables and JSON on stdout, notes on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from driple.codec import Json, to_json
from driple.remarks import Remark
from driple.render.remarks import sentences, with_sentences
from driple.render.terminal import escaped, one_line, unescaped
from driple.trace.targets import UNITS
from driple.units import format_range, three_digits

if TYPE_CHECKING:
    from driple.estimate import Interval
    from driple.trace.targets import Targets

__all__ = [
    "json_text",
    "note",
    "note_unknown_costs",
    "print_assumptions",
    "print_json",
    "print_table",
    "print_target_rows",
    "print_targets",
    "table_lines",
]

_LONG_BURST_ITERATIONS = 2  # a burst and its gap in device or memory; more are told of


def note(message: str) -> None:
    """One line on stderr."""
    print(f"driple: {one_line(message)}", file=sys.stderr)


def note_unknown_costs(unknown: Mapping[str, int], without_formula: Container[str]) -> None:
    """Which ops have no formula or lack its shapes, and how many; nothing if there are none.

    Args:
        unknown: number of ops of each op type whose cost is unknown.
        without_formula: those of them that have no formula.
    """
    for shapes, words in ((False, "ops without a formula"), (True, "ops whose shapes are unknown")):
        named = [
            f"{op} ({n})" for op, n in unknown.items() if (op not in without_formula) is shapes
        ]
        if named:
            note(f"{words}, counted without FLOPs: {', '.join(named)}")


def print_assumptions(assumed: Iterable[Remark]) -> None:
    """A line on stdout for each, before the numbers that rest on them."""
    for words in sentences(assumed):
        print(f"assumed: {words}")


def print_json(value: Mapping[str, object], question: str = "") -> None:
    """One JSON object on one line of stdout, as driple/api/schema.json describes it.

    Args:
        value: the object; its values may be dataclasses.
        question: which part of the schema it is; empty if the object states it.
    """
    print(json_text(to_json({"question": question, **value} if question else value)))


def json_text(value: Json) -> str:
    """What `print_json` prints of a JSON value, without the end of the line."""
    return json.dumps(with_sentences(value), allow_nan=False)


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    bold: Container[tuple[int, int]] = (),
) -> None:
    """Columns under a header; the first to the left, the others to the right.

    Args:
        header: names of the columns.
        rows: a text for each column.
        bold: (row, column) of cells that a terminal shows bold; files and pipes get them plain.
    """
    lines = [[escaped(cell.replace("\n", " ")) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    colours = sys.stdout.isatty()
    for number, row in enumerate(lines, start=-1):
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            text = cell.ljust(width) if i == 0 else cell.rjust(width)
            cells.append(f"\x1b[1m{text}\x1b[0m" if colours and (number, i) in bold else text)
        print("  ".join(cells).rstrip(), file=unescaped(sys.stdout))


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The same columns as lines of text, the header first.

    Args:
        header: names of the columns.
        rows: a text for each column.
    """
    lines = [[escaped(cell.replace("\n", " ")) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    ]


def print_targets(
    targets: Targets,
    iteration_time_s: float,
    ends: Sequence[Sequence[float]] | None = None,
    bursts: Mapping[str, int] | None = None,
    interval: Interval | None = None,
) -> None:
    """The twelve targets, a row per resource, and the iteration time.

    Args:
        targets: to print.
        iteration_time_s: seconds of an iteration.
        ends: shape [12 or more, 2], lower and upper end of each target; None leaves them out.
        bursts: bursts of a step by resource; None leaves them out.
        interval: of the iteration time; None leaves it out.
    """
    print_target_rows(targets, ends, bursts)
    words = f"{three_digits(iteration_time_s)} s"
    if interval is not None:
        words += f" ({format_range(interval.low, interval.high)})"
    print(f"iteration time {words}")
    if bursts is None:
        _print_long_bursts(targets, iteration_time_s)


def print_target_rows(
    targets: Targets,
    ends: Sequence[Sequence[float]] | None = None,
    bursts: Mapping[str, int] | None = None,
) -> None:
    """The twelve targets, a row per resource; see `print_targets`."""
    pairs = iter(ends) if ends is not None else None

    def cell(value: float, unit: str) -> str:
        def text(number: float) -> str:
            return three_digits(number) if unit == "s" else f"{number:.1f}"

        words = f"{text(value)} {unit}"
        if pairs is None:
            return words
        low, high = next(pairs)
        return f"{words} ({format_range(low, high, text)})"

    rows = [
        [
            resource,
            cell(figures["burst_amount"], UNITS[resource]),
            cell(figures["burst_duration"], "s"),
            cell(figures["idle_duration"], "s"),
            *([] if bursts is None else [str(bursts[resource])]),
        ]
        for resource, figures in targets.to_dict().items()
    ]
    more = [] if bursts is None else ["bursts per step"]
    print_table(["", "burst amount", "burst duration", "idle duration", *more], rows)


def _print_long_bursts(targets: Targets, iteration_time_s: float) -> None:
    """Why some bursts are so much longer than an iteration; nothing if none is."""
    iterations = {
        resource: (figures["burst_duration"] + figures["idle_duration"]) / iteration_time_s
        for resource, figures in targets.to_dict().items()
        if UNITS[resource] == "%" and iteration_time_s > 0
    }
    long = {name: number for name, number in iterations.items() if number > _LONG_BURST_ITERATIONS}
    if long:
        numbers = " and ".join(f"{number:.0f}" for number in long.values())
        print(
            f"a burst and a gap of {' and '.join(long)} span {numbers} iterations: utilisation is "
            "counted in windows (NVML: 1/6 s), where shorter gaps do not show"
        )
