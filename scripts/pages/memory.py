"""Write docs/memory.md, its pictures, and the CSV files of scripts/studies/memory/published.

    python -m scripts.pages.memory [--check]

Everything comes from committed tables: rows, the tensors of their steps, and the calibration that
ships. `--check` writes nothing and names what is not up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from driple.memory.calibration import MemoryCalibration, shipped_memory_calibration
from scripts.fits.calibration_memory import JUDGED, MOST_WRONG, OLD, interval_of, level_of
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
from scripts.pages.memory_measured import FOLDERS, NOT_COMPILED, measured_tables
from scripts.pages.memory_scatter import plot_memory, plot_need
from scripts.studies.kit.page import fill
from scripts.studies.kit.tables import read_rows
from scripts.studies.kit.written import Table, csv_files, options_of, written

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED, PAGE = ROOT / "datasets" / "runs" / "published", ROOT / "docs" / "memory.md"
PICTURES = ROOT / "docs" / "pictures"
HOME = ROOT / "scripts" / "studies" / "memory" / "published"
TEMPLATE = HOME / "memory.in.md"
ON_CPU = HOME.parent / "allocated.csv"  # steps beside PyTorch's profiler
_GIB = 2.0**30
_WORDS = {"allocated": "allocated", "reserved": "reserved", "device_total": "device"}
_ALL = "all sources"
_LEAST = 30  # runs of a kind


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, the CSV files and the pictures, or check the page and the CSV files."""
    given = options_of(__doc__).parse_args(argv)
    known, checked = shipped_memory_calibration(), shipped_checks()
    status = written(
        files(checked, known), check=given.check, program="python -m scripts.pages.memory"
    )
    if not given.check:
        draw(checked, known)
    return status


def shipped_checks() -> list[CheckedMemory]:
    """Published runs with their estimates."""
    return checked_rows(
        read_memory_runs(PUBLISHED / MEMORY_FILE),
        MemoryStore.open(PUBLISHED / MEMORY_STEPS_FILE),
        shipped_memory_calibration(),
    )


def files(checked: Sequence[CheckedMemory], known: MemoryCalibration) -> dict[Path, str]:
    """Text of the page and of all CSV files."""
    tables = {
        "sources": source_table(checked),
        "families": family_table(checked),
        "intervals": interval_table(checked),
        "fits": fits_table(checked),
        **measured_tables(known),
        "constants": constant_table(known),
    }
    tables = {"summary": summary_table(tables), **tables}
    page = fill(TEMPLATE.read_text(encoding="utf-8"), sentences(tables, known))
    return {PAGE: page, **csv_files(HOME, tables)}


def _rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.head, cells, strict=True)) for cells in table.rows]


def _row(table: Table, **fields: str) -> dict[str, str]:
    """The row whose cells are these; empty cells if there is none."""
    rows = (row for row in _rows(table) if fields.items() <= row.items())
    return next(rows, dict.fromkeys(table.head, ""))


def summary_table(tables: Mapping[str, Table]) -> Table:
    """Errors and intervals of each number: of published runs held out, and of each GPU measured."""
    lines = []
    for where in ("published", *FOLDERS):
        for number in _WORDS.values():
            if where == "published":
                errors = _row(tables["sources"], number=number, source=_ALL, half="held out")
                stated = _row(tables["intervals"], number=number, kind="all")
            else:
                errors = _row(tables["measured"], device=where, number=number, kind=NOT_COMPILED)
                stated = _row(tables["measured_intervals"], device=where, number=number)
            lines.append([
                where, number,
                *(errors[name] for name in ("runs", "median_pct", "p90_pct", "signed_median_pct")),
                *(stated[name] for name in ("runs", "inside_pct", "width")),
            ])  # fmt: skip
    return Table(
        ["where", "number", "runs", "median_pct", "p90_pct", "signed_median_pct", "interval_runs",
         "inside_pct", "width"],
        lines,
    )  # fmt: skip


def shown_table(summary: Table) -> Table:
    """The table of the page."""
    names = ("where", "number", "runs", "median_pct", "p90_pct", "inside_pct", "width")
    return Table(
        ["where", "number", "runs", "median, %", "90th, %", "inside, %", "width"],
        [[row[name] for name in names] for row in _rows(summary)],
    )


def sentences(tables: Mapping[str, Table], known: MemoryCalibration) -> dict[str, str]:
    """Text for each place of the page."""
    fits = _row(tables["fits"], runs="all, held out")
    far = {
        is_compiled: [
            abs(float(row["error_pct"]))
            for row in _rows(tables["measured_far"])
            if (" compiled" in row["run"]) == is_compiled
        ]
        for is_compiled in (True, False)
    }
    on_cpu = read_rows(ON_CPU)
    return {
        "table": shown_table(tables["summary"]).markdown(),
        "fits_right": fits["right_pct"],
        "fits_wrong": fits["wrong_pct"],
        "yes_below": f"{100 * known.yes_below:.0f}",
        "usable": f"{100 * known.usable_share:.1f}",
        "fits_aim": f"{100 * MOST_WRONG:.0f}",
        "compiled_far": f"{max(far[True]):.0f}",
        "plain_far": f"{max(far[False]):.0f}",
        "cpu_steps": str(len(on_cpu)),
        "cpu_models": str(len({row["model"] for row in on_cpu})),
        "cpu_most": f"{max(abs(float(row['difference_pct'])) for row in on_cpu):.1f}",
    }


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


def source_table(checked: Sequence[CheckedMemory]) -> Table:
    """Errors by number and source: of families that no constant was fitted on, and of all."""
    lines = []
    for number, words in _WORDS.items():
        whole = pairs_of(checked, number)
        sources = [*sorted({pair.row.source for pair in whole}), _ALL]
        for source in sources:
            every = [pair for pair in whole if source in (pair.row.source, _ALL)]
            held = [pair for pair in every if pair.row.is_held_out]
            for half, some in (("held out", held), ("all", every)):
                if some:
                    lines.append([words, source, half, str(len(some)), *_stated(some)])
    return Table(
        ["number", "source", "half", "runs", "median_pct", "p90_pct", "signed_median_pct"], lines
    )


def family_table(checked: Sequence[CheckedMemory]) -> Table:
    """Errors by number, source and family."""
    lines = []
    for number, words in _WORDS.items():
        pairs = pairs_of(checked, number)
        for source, family in sorted({(pair.row.source, pair.row.family) for pair in pairs}):
            some = [
                pair for pair in pairs if (pair.row.source, pair.row.family) == (source, family)
            ]
            half = "held out" if some[0].row.is_held_out else "fitted"
            lines.append([words, source, family, half, str(len(some)), *_stated(some)])
    return Table(
        ["number", "source", "family", "half", "runs", "median_pct", "p90_pct",
         "signed_median_pct"],
        lines,
    )  # fmt: skip


def interval_table(checked: Sequence[CheckedMemory]) -> Table:
    """Coverage and width by kind of scheme and samples."""
    lines = []
    for number, words in _WORDS.items():
        pairs = pairs_of(checked, number)
        for kind in ["all", *sorted({pair.kind for pair in pairs})]:
            some = [pair for pair in pairs if kind in (pair.kind, "all")]
            if len(some) < _LEAST or len({pair.row.family for pair in some}) < 3:
                continue
            inside = partial(interval_of, level=level_of(some))
            share, width = coverage_of(some, inside)
            lines.append([words, kind, str(len(some)), f"{100 * share:.0f}", f"{width:.2f}"])
    return Table(["number", "kind", "runs", "inside_pct", "width"], lines)


def fits_table(checked: Sequence[CheckedMemory]) -> Table:
    """Answers by what happened.

    `right`: the mean of both classes' shares, so that a constant answer gets 50 %. `wrong`: of the
    answers `yes`, both classes being as frequent.
    """
    lines = []
    chosen: list[tuple[str, Callable[[CheckedMemory], bool]]] = [
        (f"{source}, {half}", _chooser(source, held=held))
        for source in JUDGED
        for half, held in (("fitted", False), ("held out", True))
    ]
    chosen += [
        ("fms-acceleration and litgpt, all", lambda run: run.row.source in JUDGED[1:]),
        ("all, held out", lambda run: run.row.source in JUDGED and run.row.is_held_out),
        ("all", lambda run: run.row.source in JUDGED),
    ]
    for words, wanted in chosen:
        score = fit_score([run for run in checked if wanted(run)])
        counts = [
            str(part.get(answer, 0))
            for part in (score.ran, score.failed)
            for answer in ("yes", "likely not", "no")
        ]
        both = sum(score.ran.values()) and sum(score.failed.values())
        shares = (score.right, score.wrong_fits)
        lines.append([words, *counts, *(f"{100 * share:.1f}" if both else "" for share in shares)])
    return Table(
        ["runs", "ran_yes", "ran_likely_not", "ran_no", "failed_yes", "failed_likely_not",
         "failed_no", "right_pct", "wrong_pct"],
        lines,
    )  # fmt: skip


def _chooser(source: str, *, held: bool) -> Callable[[CheckedMemory], bool]:
    return lambda run: run.row.source == source and run.row.is_held_out == held


def constant_table(known: MemoryCalibration) -> Table:
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
    return Table(["constant", "value", "from"], rows)


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
    for pair in checked:
        usable, margin = pair.estimate.usable_bytes, pair.estimate.margin_bytes
        if pair.row.source in JUDGED and usable is not None and margin is not None:
            needs[pair.row.ran].append(1.0 - margin / usable)
    plot_need(
        needs[True],
        needs[False],
        PICTURES / "memory-fits.svg",
        title="need of runs on an RTX 3090 (timm), A100 and A10G",
        below=known.yes_below,
    )


if __name__ == "__main__":
    raise SystemExit(main())
