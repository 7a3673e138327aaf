"""Page and picture from the CSV files of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.tables import least, markdown, read_rows

HOME = Path(__file__).parent
COLOURS = {
    "mean": "#b9b9b9",
    "knn": "#8fb8de",
    "trees": "#3b6ea8",
    "forest": "#1f3d63",
    "simulator": "#c9a227",
    "paper": "#d98b6a",
    "default": "#b5362d",
    "transferred": "#6d1b16",
}
ALL_SEEDS = "0-4"
ALL_SMAPE, MEDIAN_TIME = ("SMAPE %", "all 12"), ("iteration time error %", "median")

Row = dict[str, str]
Errors = dict[tuple[str, str, str], Row]  # by setting, split and method


def errors_of(rows: Sequence[Row], kind: tuple[str, str]) -> Errors:
    """One kind of error of every method on every setting and split."""
    return {
        (row["setting"], row["split"], row["method"]): row
        for row in rows
        if (row["error"], row["target"]) == kind
    }


def overview(rows: Sequence[Row], split: str) -> list[str]:
    """SMAPE and median error of the iteration time of every method on every setting."""
    smape, time = errors_of(rows, ALL_SMAPE), errors_of(rows, MEDIAN_TIME)
    lines = []
    for setting in read_rows(HOME / "settings.csv"):
        name = setting["setting"]
        by_method = {
            method: smape[name, split, method]
            for method in COLOURS
            if (name, split, method) in smape
        }
        best = least({method: float(row["mean"]) for method, row in by_method.items()})
        cells = [name, setting["floor_smape_pct"] or "-"]
        for method in COLOURS:
            if method not in by_method:
                cells.append("-")
                continue
            row = by_method[method]
            text = row["mean"] + (f" ± {row['std']}" if row["std"] else "")
            text += f" ; {time[name, split, method]['mean']}"
            text += "" if row["seeds"] == ALL_SEEDS else f" (seeds {row['seeds']})"
            cells.append(f"**{text}**" if method == best else text)
        lines.append(cells)
    return markdown(["setting", "floor", *COLOURS], lines)


def ratios() -> list[str]:
    """Errors of the inspectors over those of other methods."""
    head = ["setting", "inspector", "random: to paper", "family: to paper", "random: to floor",
            "family: to trees", "family: median error of the iteration time, %",
            "iteration times of two runs differ by, %"]  # fmt: skip
    rows = []
    for row in read_rows(HOME / "ratios.csv"):
        setting, method, shipped, *values = row.values()
        *shares, time, floor = values
        rows.append([
            setting, f"`{method}`, {'shipped' if shipped == 'true' else 'anew'}",
            *(value if value == "-" else f"{float(value):.2f}" for value in shares),
            *(value if value == "-" else f"{float(value):.1f}" for value in (time, floor)),
        ])  # fmt: skip
    return markdown(head, rows)


def coverage(part: str) -> list[str]:
    """Share of labels within the 90% intervals of the shipped inspectors, pooled over settings."""
    by_key: dict[str, dict[str, list[Row]]] = {}
    for row in read_rows(HOME / "coverage.csv"):
        if row["part"] == part:
            key = row["setting"] if part == "all" else row["name"]
            by_key.setdefault(key, {}).setdefault(row["split"], []).append(row)
    rows = [
        [
            key,
            *(
                f"{pooled(splits[split], name):.{1 if part == 'all' else 0}f} %"
                for split in ("random", "family")
                for name in ("targets_pct", "time_pct")
            ),
        ]
        for key, splits in by_key.items()
    ]
    head = ["setting" if part == "all" else part]
    for split in ("random", "family"):
        head += [f"{split}: targets", f"{split}: iteration times"]
    return markdown(head, rows)


def pooled(rows: Sequence[Row], name: str) -> float:
    """Mean of a share, weighted by predictions."""
    weights = [float(row["predictions"]) for row in rows]
    return float(np.average([float(row[name]) for row in rows], weights=weights))


def families() -> list[str]:
    """SMAPE of the shipped inspectors by family that was held out, measured settings."""
    rows = [row for row in read_rows(HOME / "families.csv") if row["target"] == "all 12"]
    by: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["setting"].startswith("CPU") and row["family"] not in {"floor", "over floor"}:
            digits = 1 if row["family"] == "all" else 0
            value = f"{float(row['smape_pct']):.{digits}f}"
            by.setdefault(row["setting"], {})[row["family"]] = value
    names = list(dict.fromkeys(name for found in by.values() for name in found))
    lines = [[setting, *(found.get(name, "-") for name in names)] for setting, found in by.items()]
    return markdown(["setting", *names], lines)


def seconds(rows: Sequence[Row]) -> list[str]:
    """Seconds of one training of the inspectors, on random splits of measured settings."""
    known = errors_of(rows, ("training", "seconds"))
    lines = [
        [
            setting["setting"],
            *(
                known[key]["mean"] if (key := (setting["setting"], "random", m)) in known else "-"
                for m in ("default", "transferred", "paper")
            ),
        ]
        for setting in read_rows(HOME / "settings.csv")
        if int(setting["runs"])
    ]
    return markdown(["setting", "`default`", "`transferred`", "`paper`, seed 0"], lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """SMAPE over all targets: a group of dots per setting, both splits, the floor as a line."""
    smape = errors_of(rows, ALL_SMAPE)
    settings = read_rows(HOME / "settings.csv")[::-1]
    figure, axes = plt.subplots(1, 2, figsize=(11, 0.52 * len(settings) + 1.6), sharey=True,
                                sharex=True)  # fmt: skip
    shifts = np.linspace(0.11, -0.11, len(COLOURS))
    for axis, split in zip(axes, ("random", "family"), strict=True):
        for place, setting in enumerate(settings):
            axis.axhline(place, color="#eeeeee", linewidth=6, zorder=0)
            if setting["floor_smape_pct"]:
                axis.plot([float(setting["floor_smape_pct"])] * 2, [place - 0.35, place + 0.35],
                          color="black", linewidth=1.4,
                          label="two runs of one workload")  # fmt: skip
            for (method, colour), shift in zip(COLOURS.items(), shifts, strict=True):
                row = smape.get((setting["setting"], split, method))
                if row:
                    axis.errorbar(float(row["mean"]), place + shift, xerr=float(row["std"] or 0),
                                  fmt="o", markersize=5, color=colour, elinewidth=1,
                                  label=method)  # fmt: skip
        axis.set_title(f"{split} split", fontsize=10)
        axis.set_xlabel("SMAPE over the 12 targets (%)", fontsize=9)
        axis.set_xlim(left=0)
        plain(axis)
    axes[0].set_yticks(range(len(settings)), [row["setting"] for row in settings], fontsize=8)
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc="lower center", ncol=len(handles), fontsize=8,
                  frameon=False)  # fmt: skip
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    save(figure, path)


def parts() -> Parts:
    """Tables of the page."""
    rows = read_rows(HOME / "errors.csv")
    return {
        "random": overview(rows, "random"),
        "family": overview(rows, "family"),
        "ratios": ratios(),
        "coverage": coverage("all"),
        "coverage_by_family": coverage("family"),
        "families": families(),
        "seconds": seconds(rows),
    }


def pictures() -> None:
    """Draw the picture."""
    draw(read_rows(HOME / "errors.csv"), HOME / "settings.png")
