"""Page, table and picture from allocated.jsonl, tensorflow.jsonl and curves.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, read_results
from scripts.studies.kit.tables import markdown, write_rows

HOME = Path(__file__).parent
RESULTS, TENSORFLOW = HOME / "allocated.jsonl", HOME / "tensorflow.jsonl"
CURVES, PICTURE = HOME / "curves.json", HOME / "curves.png"
TABLE = HOME / "allocated.csv"
CLOSE_PCT = 3.0
_MB = 1e6


def difference_pct(row: Row) -> float:
    """Predicted peak against that of the tensors, percent."""
    return 100 * (float(row["predicted_bytes"]) / float(row["measured_of_tensors"]) - 1)


def workspace_pct(row: Row) -> float:
    """How much workspace of kernels raises the measured peak, percent."""
    return 100 * (float(row["measured_bytes"]) / float(row["measured_of_tensors"]) - 1)


def _most(values: Sequence[float]) -> str:
    return f"{max(map(abs, values)):.2f}"


def model_table(rows: Sequence[Row]) -> list[str]:
    """A line for each model: the largest differences over its steps."""
    names = list(dict.fromkeys(row["model"] for row in rows))
    body = []
    for name in names:
        own = [row for row in rows if row["model"] == name]
        plain = own[0]
        body.append(
            [
                name,
                plain["library"],
                f"{plain['measured_of_tensors'] / _MB:.1f}",
                f"{plain['predicted_bytes'] / _MB:.1f}",
                _most([difference_pct(row) for row in own]),
                f"{max(row['curve_pct'] for row in own):.2f}",
                f"{max(map(workspace_pct, own)):.1f}",
            ]
        )
    head = ["model", "library", "measured, MB", "predicted, MB", "peak, %", "curve, %",
            "workspace, %"]  # fmt: skip
    return markdown(head, body, right=True)


def tensorflow_table(rows: Sequence[Row]) -> list[str]:
    """Models of Keras: TensorFlow's allocator beside the graph's lifetimes."""
    body = []
    for row in rows:
        tensors = row["requested_bytes"] - row["workspace_bytes"] - row["update_bytes"]
        megabytes = [
            f"{row[name] / _MB:.1f}"
            for name in ("allocator_bytes", "requested_bytes", "workspace_bytes", "update_bytes")
        ]
        body.append(
            [
                row["model"],
                row["optimizer"],
                *megabytes,
                f"{tensors / _MB:.1f}",
                f"{row['predicted_bytes'] / _MB:.1f}",
                f"{100 * (row['predicted_bytes'] / tensors - 1):+.1f}",
            ]
        )
    head = ["model", "optimizer", "allocator, MB", "requested, MB", "workspace", "update's own",
            "other tensors", "predicted, MB", "difference, %"]  # fmt: skip
    return markdown(head, body, right=True)


def parts() -> Parts:
    """Numbers and tables of the page; allocated.csv has a row for each step."""
    rows = read_results(RESULTS)
    columns = ("model", "library", "precision", "checkpointing", "optimizer", "passes",
               "measured_bytes", "measured_of_tensors", "predicted_bytes", "curve_pct",
               "matched_ops_pct")  # fmt: skip
    write_rows(
        TABLE,
        [
            {name: row[name] for name in columns} | {"difference_pct": f"{difference_pct(row):.3f}"}
            for row in rows
        ],
    )
    off = [abs(difference_pct(row)) for row in rows]
    raw = [abs(100 * (row["predicted_bytes"] / row["measured_bytes"] - 1)) for row in rows]
    checkpointed = [difference_pct(row) for row in rows if row["checkpointing"]]
    return {
        "num_models": str(len({row["model"] for row in rows})),
        "num_steps": str(len(rows)),
        "num_close": str(sum(one <= CLOSE_PCT for one in off)),
        "median": f"{np.median(off):.4f}",
        "most": f"{max(off):.2f}",
        "most_checkpointed": _most(checkpointed),
        "curve": f"{max(row['curve_pct'] for row in rows):.2f}",
        "raw_close": f"{100 * np.mean([one <= CLOSE_PCT for one in raw]):.0f} %",
        "raw_most": f"{max(raw):.0f} %",
        "models": model_table(rows),
        "tensorflow": tensorflow_table(read_results(TENSORFLOW)),
    }


def pictures() -> None:
    """Measured and predicted curves of some steps."""
    from matplotlib import pyplot as plt

    from scripts.studies.kit.pictures import COLOURS, plain, save

    curves = json.loads(CURVES.read_text(encoding="utf-8"))
    figure, axes = plt.subplots(2, 2, figsize=(9, 5))
    for axis, curve in zip(axes.flat, curves, strict=True):
        measured, predicted = (np.array(curve[one]) / _MB for one in ("measured", "predicted"))
        axis.plot(measured, color=COLOURS[0], linewidth=2.4, label="measured (profiler)")
        axis.plot(predicted, color=COLOURS[1], linewidth=0.9, label="predicted")
        axis.set_title(curve["title"], fontsize=8, loc="left")
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
        plain(axis)
    axes[0, 0].legend(fontsize=7, frameon=False, loc="lower right")
    for axis in axes[1]:
        axis.set_xlabel("ops of one step", fontsize=7)
    for axis in axes[:, 0]:
        axis.set_ylabel("allocated, MB", fontsize=7)
    figure.tight_layout()
    save(figure, PICTURE)
