"""Page and graphs.csv from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.studies.kit.page import Parts
from scripts.studies.kit.tables import markdown, write_rows
from scripts.studies.public_graphs.run import CHOSEN, HELD_OUT, RESULTS, Row, read_rows

HEADS = (
    "project: file (commit)", "kind", "nodes (run)", "batch", "sent MB", "received MB", "GFLOP",
    "Driple / truth", "truth", "deviation",
)  # fmt: skip


def table(rows: Sequence[Row]) -> list[str]:
    """Count of graphs with three right numbers, and a line for each of the others."""
    wrong = [row for row in rows if not row.is_right()]
    lines = [
        f"All three numbers are within 10 % for {len(rows) - len(wrong)} of {len(rows)} graphs."
    ]
    if wrong:
        lines += ["The others:", "", *markdown(HEADS, [_cells(row) for row in wrong])]
    return lines


def data_row(row: Row) -> dict[str, str]:
    """All cells of a graph, for graphs.csv."""
    return {"group": row.group, **dict(zip(HEADS, _cells(row), strict=True))}


def pictures() -> None:
    """Write every graph to graphs.csv."""
    write_rows(RESULTS.parent / "graphs.csv", [data_row(r) for r in read_rows(RESULTS).values()])


def _cells(row: Row) -> tuple[str, ...]:
    truth, ratios = row.truth, row.ratios()
    values = ("-", "-", "-")
    if truth is not None:
        values = (
            f"{truth.sent_bytes / 1e6:.3g}",
            f"{truth.received_bytes / 1e6:.3g}",
            f"{truth.flops / 1e9:.3g}",
        )
    return (
        f"{row.project}: {row.path} ({row.commit[:7]})",
        row.kind,
        f"{row.num_nodes:,} ({row.num_run:,})",
        str(row.batch),
        *values,
        " / ".join(f"{ratio:.3f}" for ratio in ratios) if ratios else "refused",
        row.how,
        "" if row.is_right() else row.reason or row.error or "not explained",
    )


def parts() -> Parts:
    """Tables of the page."""
    rows = list(read_rows(RESULTS).values())
    return {
        "chosen": table([row for row in rows if row.group == CHOSEN]),
        "held_out": table([row for row in rows if row.group == HELD_OUT]),
    }
