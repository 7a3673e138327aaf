"""Page from rows.json."""

from __future__ import annotations

import json
from collections.abc import Sequence

from driple.jobs.counts import OP_KINDS
from scripts.studies.catalogue.run import ONE_MACHINE, ROWS, SETTINGS
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row
from scripts.studies.kit.tables import markdown

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
    """The original's number and the catalogue's difference from it."""
    head = ["workload", "mode", *(title for title, _ in FIGURES.values())]
    body = []
    for row in rows:
        cells = []
        for key, (_, unit) in FIGURES.items():
            server_only = key.endswith("_bytes") and row["mode"] in ONE_MACHINE
            if key not in row["original"] or server_only:
                cells.append("")
                continue
            theirs, mine = row["original"][key], row["catalogue"][key]
            cells.append(f"{theirs / unit:.4g} ({100 * (mine / theirs - 1):+.2f} %)")
        body.append([row["workload"], row["mode"], *cells])
    return markdown(head, body)


def kind_table(rows: Sequence[Row]) -> list[str]:
    """Ops by kind: the original's number, and the catalogue's where it differs."""
    head = ["workload", *OP_KINDS, "moving averages", "updates"]
    body = []
    for row in rows:
        cells = []
        for name in head[1:]:
            theirs, mine = (
                row[side]["kinds"].get(name, row[side].get(name))
                for side in ("original", "catalogue")
            )
            cells.append(f"{theirs}" if theirs == mine else f"{theirs} ({mine})")
        body.append([row["workload"], *cells])
    return markdown(head, body)


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
