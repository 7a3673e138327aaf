"""Write the generated part of docs/memory.md: tables and pictures of memory on published runs.

    python -m scripts.pages.memory [--check]

Everything comes from committed tables: rows, the tensors of their steps, and the calibration that
ships. `--check` writes nothing and fails if the page is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from driple.errors import DripleError
from driple.files import atomic_write
from driple.memory.calibration import MemoryCalibration, shipped_memory_calibration
from scripts.fits.calibration_memory import JUDGED, OLD, interval_of, level_of
from scripts.fits.memory_check import (
    CheckedMemory,
    Pair,
    checked_rows,
    coverage_of,
    fit_score,
    pairs_of,
    quantile,
    weights_of,
)
from scripts.fits.memory_rows import MEMORY_FILE, read_memory_runs
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore
from scripts.pages.memory_measured import measured_part
from scripts.pages.memory_scatter import plot_memory, plot_need

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED, PAGE = ROOT / "datasets" / "runs" / "published", ROOT / "docs" / "memory.md"
PICTURES = ROOT / "docs" / "pictures"
BEGIN, END = "<!-- memory: begin -->", "<!-- memory: end -->"
_GIB = 2.0**30
_WORDS = {
    "allocated": "allocated (`max_memory_allocated`)",
    "reserved": "reserved (`max_memory_reserved`)",
    "device_total": "the device (NVML)",
}
_LEAST = 30  # runs of a kind


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page and the pictures, or check the page."""
    parser = argparse.ArgumentParser(description="write the generated part of docs/memory.md")
    parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")
    given = parser.parse_args(argv)
    known = shipped_memory_calibration()
    checked = checked_rows(
        read_memory_runs(PUBLISHED / MEMORY_FILE),
        MemoryStore.open(PUBLISHED / MEMORY_STEPS_FILE),
        known,
    )
    page = PAGE.read_text(encoding="utf-8")
    wanted = with_part(page, part_of_page(checked, known))
    if given.check:
        if wanted != page:
            print(f"{PAGE} is not up to date: run scripts/pages/memory.py", file=sys.stderr)
        return int(wanted != page)
    atomic_write(PAGE, wanted.encode(), error=DripleError)
    draw(checked, known)
    return 0


def with_part(page: str, part: str) -> str:
    """The page with the text between its markers replaced.

    Raises:
        SystemExit: a marker is missing.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the line {BEGIN if not begin else END}")
    return f"{head}{BEGIN}\n\n{part}\n\n{END}{tail}"


def part_of_page(checked: Sequence[CheckedMemory], known: MemoryCalibration) -> str:
    """All tables."""
    held = [one for one in checked if one.row.is_held_out]
    return "\n\n".join(
        [
            "### Errors by source\n\nModel families of odd folds, which no constant was fitted on; "
            "every family weighs the same. In brackets: all runs, those to fit included.",
            source_table(held, checked),
            "### Errors by model family",
            family_table(checked),
            "### Intervals\n\nEach family's interval is made from the other families' runs, at the "
            "level of quantiles that ships.",
            coverage_table(checked),
            "### Fits or not\n\nRight: the mean of both classes' shares, so that a constant answer "
            "gets 50 %. Wrong: of the answers `yes`, both classes being as frequent.",
            fits_table(checked),
            measured_part(known),
            "### Constants",
            constant_table(known),
            "![estimated and measured memory of devices](pictures/memory-device.svg)\n\n"
            "![estimated and measured allocated memory](pictures/memory-allocated.svg)\n\n"
            "![need of runs that ran and that ran out of memory](pictures/memory-fits.svg)",
        ]
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _stated(pairs: Sequence[Pair]) -> tuple[str, str, str]:
    """Median and 90th percentile of the error, and the signed median, in percent."""
    errors = np.array([pair.error for pair in pairs])
    weights = weights_of([pair.row for pair in pairs])
    sizes = np.abs(errors)
    return (
        f"{100 * quantile(sizes, weights, 0.5):.1f}",
        f"{100 * quantile(sizes, weights, 0.9):.1f}",
        f"{100 * quantile(errors, weights, 0.5):+.1f}",
    )


def source_table(held: Sequence[CheckedMemory], checked: Sequence[CheckedMemory]) -> str:
    """A row for each number and source, and one for all sources together."""
    rows = []
    for number, words in _WORDS.items():
        some, whole = pairs_of(held, number), pairs_of(checked, number)
        sources = sorted({pair.row.source for pair in whole})
        for source in [*sources, "all sources"]:
            mine = [p for p in some if source in (p.row.source, "all sources")]
            every = [p for p in whole if source in (p.row.source, "all sources")]
            cells = _stated(mine) if mine else ("-", "-", "-")
            others = _stated(every)
            rows.append(
                [words, source, f"{len(mine)} ({len(every)})",
                 *(f"{a} ({b})" for a, b in zip(cells, others, strict=True))]
            )  # fmt: skip
    return _table(["measured", "source", "runs", "median %", "90th %", "signed median %"], rows)


def family_table(checked: Sequence[CheckedMemory]) -> str:
    """A row for each number and family."""
    rows = []
    for number, words in _WORDS.items():
        pairs = pairs_of(checked, number)
        keys = sorted({(p.row.source, p.row.family) for p in pairs})
        for source, family in keys:
            mine = [p for p in pairs if (p.row.source, p.row.family) == (source, family)]
            half = "held out" if mine[0].row.is_held_out else "fitted"
            rows.append([words, source, family, half, str(len(mine)), *_stated(mine)])
    header = ["measured", "source", "family", "half", "runs", "median %", "90th %", "signed %"]
    return _table(header, rows)


def coverage_table(checked: Sequence[CheckedMemory]) -> str:
    """Coverage and width by kind of scheme and samples."""
    rows = []
    for number, words in _WORDS.items():
        pairs = pairs_of(checked, number)
        kinds = ["all", *sorted({p.kind for p in pairs})]
        for kind in kinds:
            mine = [p for p in pairs if kind in (p.kind, "all")]
            if len(mine) < _LEAST or len({p.row.family for p in mine}) < 3:
                continue
            inside = partial(interval_of, level=level_of(mine))
            share, width = coverage_of(mine, inside)
            rows.append([words, kind, str(len(mine)), f"{100 * share:.0f} %", f"{width:.2f}"])
    return _table(["number", "kind", "runs", "within", "upper / lower end"], rows)


def fits_table(checked: Sequence[CheckedMemory]) -> str:
    """Answers by what happened."""
    rows = []
    chosen: list[tuple[str, Callable[[CheckedMemory], bool]]] = [
        (f"{source}, {half}", _chooser(source, held=held))
        for source in JUDGED
        for half, held in (("fitted", False), ("held out", True))
    ]
    chosen += [
        ("fms-acceleration and litgpt, all", lambda one: one.row.source in JUDGED[1:]),
        ("all, held out", lambda one: one.row.source in JUDGED and one.row.is_held_out),
        ("all", lambda one: one.row.source in JUDGED),
    ]
    for words, wanted in chosen:
        score = fit_score([one for one in checked if wanted(one)])
        answers = ("yes", "likely not", "no")
        counts = [
            " / ".join(str(part.get(answer, 0)) for answer in answers)
            for part in (score.ran, score.failed)
        ]
        both = sum(score.ran.values()) and sum(score.failed.values())
        rows.append(
            [words, *counts,
             f"{100 * score.right:.1f} %" if both else "-",
             f"{100 * score.wrong_fits:.1f} %" if both else "-"]
        )  # fmt: skip
    header = [
        "runs",
        "ran: yes / likely not / no",
        "ran out: yes / likely not / no",
        "right",
        "wrong",
    ]
    return _table(header, rows)


def _chooser(source: str, *, held: bool) -> Callable[[CheckedMemory], bool]:
    return lambda one: one.row.source == source and one.row.is_held_out == held


def constant_table(known: MemoryCalibration) -> str:
    """Every constant, and what it rests on."""
    mib = 2.0**20
    workspaces = ", ".join(
        f"{size / mib:.0f} MiB{f' ({name})' if name else ''}"
        for name, size in known.workspace_bytes.items()
    )
    rows = [
        ["CUDA context", f"{known.context_of('') / _GIB:.2f} GiB", "fitted"],
        ["NCCL, with several devices", f"{known.group_bytes / _GIB:.2f} GiB", "fitted"],
        ["cached beside one step's requests", f"{100 * known.cache_of(''):.0f} % of what a step "
         f"adds to parameters, gradients and states; {100 * known.cache_of(OLD):.0f} % (PyTorch 1)",
         "fitted"],
        ["usable share of a device's memory", f"{100 * known.usable_share:.1f} %",
         "median of the fullest tenth of runs"],
        ["`fits` up to", f"{100 * known.yes_below:.0f} % of the usable memory",
         "at most 2 % of `yes` wrong among the runs to fit"],
        ["does not fit from", f"{100 * known.no_above:.0f} %", "the same, of runs that ran"],
        ["cuBLAS workspaces", workspaces, "PyTorch's source, CublasHandlePool.cpp"],
    ]  # fmt: skip
    return _table(["constant", "value", "from"], rows)


def draw(checked: Sequence[CheckedMemory], known: MemoryCalibration) -> None:
    """Write the pictures."""
    for number, name, what in (
        ("device_total", "memory-device.svg", "memory of the device"),
        ("allocated", "memory-allocated.svg", "allocated memory"),
    ):
        pairs = pairs_of(checked, number)
        plot_memory(
            [(p.measured / _GIB, p.estimated / _GIB, p.row.source) for p in pairs],
            PICTURES / name,
            title=f"{what}, {len(pairs)} published runs",
            what=what,
        )
    needs: dict[bool, list[float]] = {True: [], False: []}
    for one in checked:
        usable, margin = one.made.usable_bytes, one.made.margin_bytes
        if one.row.source in JUDGED and usable is not None and margin is not None:
            needs[one.row.ran].append(1.0 - margin / usable)
    plot_need(
        needs[True],
        needs[False],
        PICTURES / "memory-fits.svg",
        title="need of runs on an RTX 3090 (timm), A100 and A10G",
        below=known.yes_below,
    )


if __name__ == "__main__":
    raise SystemExit(main())
