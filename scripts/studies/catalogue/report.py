"""Page and data files from rows.json."""

from __future__ import annotations

import json
from collections.abc import Sequence

from scripts.studies.catalogue.counts import OP_KINDS
from scripts.studies.catalogue.run import ONE_MACHINE, ROWS, SETTINGS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row
from scripts.studies.kit.tables import markdown, write_rows

FIGURES_CSV, KINDS_CSV = ROWS.parent / "figures.csv", ROWS.parent / "kinds.csv"
FIGURES = {
    "num_ops": ("ops", 1.0),
    "parameters": ("parameters, M", 1e6),
    "flops": ("FLOPs of a step, G", 1e9),
    "bytes": ("bytes of all outputs, MB", 1e6),
    "sent_bytes": ("sent, MB", 1e6),
    "received_bytes": ("received, MB", 1e6),
    **{f"step_s {name}": (f"step on {name}, s", 1.0) for name in SETTINGS},
}


def figure_table(rows: Sequence[Row]) -> list[str]:
    """Largest difference of the catalogue from the original by mode, in percent."""
    head = ["mode", "graphs", *(title.split(",")[0] for title, _ in FIGURES.values())]
    body = []
    for mode in dict.fromkeys(row["mode"] for row in rows):
        of_mode = [row for row in rows if row["mode"] == mode]
        cells = []
        for key in FIGURES:
            errors = [error for row in of_mode if (error := difference(row, key)) is not None]
            cells.append(f"{100 * max(map(abs, errors)):.1f} %" if errors else "")
        body.append([mode, str(len(of_mode)), *cells])
    return markdown(head, body)


def difference(row: Row, key: str) -> float | None:
    """Relative difference of the catalogue's figure; None where the mode has no such figure."""
    server_only = key.endswith("_bytes") and row["mode"] in ONE_MACHINE
    if key not in row["original"] or server_only:
        return None
    return float(row["catalogue"][key] / row["original"][key] - 1)


def kind_table(rows: Sequence[Row]) -> list[str]:
    """Kinds of ops whose numbers differ: in how many graphs, and by how many ops at most."""
    body = []
    for kind in (*OP_KINDS, "moving averages", "updates"):
        counts = [(count(row, "original", kind), count(row, "catalogue", kind)) for row in rows]
        unlike = [abs(theirs - ours) for theirs, ours in counts if theirs != ours]
        body.append([kind, str(len(unlike)), str(max(unlike, default=0))])
    return markdown(["kind of op", f"graphs of {len(rows)} that differ", "ops, at most"], body)


def count(row: Row, side: str, kind: str) -> int:
    """Ops of a kind in the original or in the catalogue's graph."""
    return int(row[side]["kinds"].get(kind, row[side].get(kind)))


def pictures() -> None:
    """Write every number of every graph to figures.csv and kinds.csv."""
    rows = json.loads(ROWS.read_bytes())
    sides = ("original", "catalogue")
    write_rows(
        FIGURES_CSV,
        [
            {"workload": row["workload"], "mode": row["mode"]}
            | {
                f"{key} {side}": "" if difference(row, key) is None else row[side][key]
                for key in FIGURES
                for side in sides
            }
            for row in rows
        ],
    )
    write_rows(
        KINDS_CSV,
        [
            {"workload": row["workload"], "mode": row["mode"]}
            | {
                f"{kind} {side}": count(row, side, kind)
                for kind in (*OP_KINDS, "moving averages", "updates")
                for side in sides
            }
            for row in rows
            if row["mode"] not in ONE_MACHINE
        ],
    )


def parts() -> Parts:
    """Tables and numbers of the page."""
    rows = json.loads(ROWS.read_bytes())
    served = [row for row in rows if row["mode"] not in ONE_MACHINE]
    worst = {
        title: max(abs(row["catalogue"][key] / row["original"][key] - 1) for row in served)
        for key, (title, _) in FIGURES.items()
    }
    return {
        "num_served": f"{len(served)}",
        "largest": "; ".join(
            f"{name.split(',')[0]} {100 * most:.1f} %" for name, most in worst.items()
        ),
        "figures": figure_table(rows),
        "kinds": kind_table(served),
    }
