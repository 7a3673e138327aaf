"""Make docs/evaluation.md and its picture from the shipped data set and the shipped folds.

python scripts/evaluation_report.py [--setting CPU-P1w2]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

from driple.dataset.example import Dataset
from driple.dataset.store import read_dataset
from driple.errors import DripleError
from driple.files import replacing, write_whole
from driple.settings import Setting
from driple.targets import FIGURES, RESOURCES, TARGET_NAMES, UNITS
from driple.training.arena import ArenaConfig, ArenaResult, SplitKind
from driple.training.evaluate import run_arena

mpl.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDS = DOCS / "evaluation"

# Each comparison: split, methods, and the cap on epochs where a preset's own end would take hours.
COMPARISONS: tuple[tuple[SplitKind, tuple[str, ...], int | None], ...] = (
    ("random", ("mean", "paper", "default"), None),
    ("family", ("mean", "default"), None),
    ("family", ("paper",), 300),
)


def table(result: ArenaResult) -> list[str]:
    """The errors as Markdown, the best of several methods in bold."""
    methods = result.config.methods
    head = [
        "target",
        *(f"{name} NRMSE" for name in methods),
        *(f"{name} SMAPE" for name in methods),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in result.rows():
        cells = [row.name]
        for values, digits, unit in ((row.nrmse, 4, ""), (row.smape_pct, 1, " %")):
            numbers = {name: values[name] for name in methods}
            best = min((v for v in numbers.values() if v is not None), default=None)
            for value in numbers.values():
                text = "-" if value is None else f"{value:.{digits}f}{unit}"
                is_best = len(methods) > 1 and value is not None and value == best
                cells.append(f"**{text}**" if is_best else text)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def family_table(result: ArenaResult) -> list[str]:
    """NRMSE and SMAPE of each held-out family."""
    methods = result.config.methods
    head = [
        "family",
        "workloads",
        *(f"{m} NRMSE" for m in methods),
        *(f"{m} SMAPE" for m in methods),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    by_method = {name: result.folds_of(name) for name in methods}
    for i, fold in enumerate(by_method[methods[0]]):
        scores = [by_method[name][i].scores for name in methods]
        cells = [fold.name.split(",")[0], str(fold.scores.num_workloads)]
        cells += [f"{s.mean_nrmse:.4f}" for s in scores]
        cells += [f"{s.mean_smape_pct:.1f} %" for s in scores]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def effort(result: ArenaResult) -> list[str]:
    """Training time of each method."""
    lines = []
    for name in result.config.methods:
        folds = result.folds_of(name)
        if name == "mean":
            continue
        stops = ", ".join(sorted({fold.stopped_by for fold in folds}))
        lines.append(
            f"- `{name}`: {sum(f.num_epochs for f in folds)} epochs in "
            f"{sum(f.train_seconds for f in folds):.0f} s, ended by {stops}."
        )
    return lines


def picture(dataset: Dataset, result: ArenaResult, method: str, path: Path) -> None:
    """Predicted against measured for every test workload, one panel per target."""
    fold = result.folds_of(method)[0]
    true = {item.workload: item.targets.flat for item in dataset.examples}
    names = list(fold.predictions)
    families = {item.workload: item.family for item in dataset.examples}
    shown = sorted(set(families.values()))
    colours = dict(zip(shown, plt.get_cmap("tab20").colors, strict=False))
    figure, axes = plt.subplots(len(FIGURES), len(RESOURCES), figsize=(12, 9))
    for i, target in enumerate(TARGET_NAMES):
        resource, figure_name = target.split(".")
        axis = axes[FIGURES.index(figure_name), RESOURCES.index(resource)]
        for family in shown:
            mine = [name for name in names if families[name] == family]
            axis.scatter(
                [true[name][i] for name in mine],
                [fold.predictions[name][i] for name in mine],
                s=16, color=colours[family], label=family,
            )  # fmt: skip
        both = np.array([[true[n][i], fold.predictions[n][i]] for n in names])
        low, high = both.min() * 0.9, both.max() * 1.05
        axis.plot([low, high], [low, high], color="#888888", linewidth=0.8)
        unit = UNITS[resource] if figure_name == "burst_amount" else "s"
        axis.set_title(f"{resource}\n{figure_name.replace('_', ' ')} ({unit})", fontsize=9)
        axis.tick_params(labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("measured")
    figure.supylabel("predicted")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(shown), fontsize=8, frameon=False,
                  bbox_to_anchor=(0.5, 0.02))  # fmt: skip
    figure.tight_layout(rect=(0.01, 0.05, 1, 1))
    with replacing(path) as (part,):
        figure.savefig(part, dpi=110, format="png")
    plt.close(figure)


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", default="CPU-P1w2")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    setting = Setting.parse(arguments.setting)
    dataset = read_dataset(ROOT / "datasets" / setting.file_name)
    repeat = dataset.about["repeatability"]
    lines = [
        f"# How wrong: {setting.name}",
        "",
        f"Labels: measured, {len(dataset.examples)} workloads, {dataset.about['num_runs']} runs. "
        "Made by `python scripts/evaluation_report.py` from `datasets/` and `docs/evaluation/`.",
        "NRMSE: root mean squared error over the largest training label. SMAPE: 0 to 200 %. "
        "`iteration_time`: mean absolute error of burst + idle of `net_rx` against the measured "
        "time of an iteration.",
        "",
        f"Repeatability, median coefficient of variation of {repeat['workloads']} workloads that "
        "were measured twice: "
        + ", ".join(f"{k} {100 * v:.1f} %" for k, v in repeat.get("median_cv", {}).items())
        + ".",
    ]
    for split, methods, max_epochs in COMPARISONS:
        config = ArenaConfig(
            split=split,
            methods=methods,
            max_epochs=max_epochs,
            threads=arguments.threads,
        )
        result = run_arena(dataset, config, FOLDS)
        title = "Random split (60/20/20)" if split == "random" else "Family split (each held out)"
        capped = f", `{methods[0]}` cut off at {max_epochs} epochs" if max_epochs else ""
        lines += ["", f"## {title}{capped}", "", *table(result), "", *effort(result)]
        if split == "family":
            lines += ["", *family_table(result)]
        elif "default" in methods:
            picture(dataset, result, "default", DOCS / "pictures/evaluation.png")
            lines += ["", "![predicted against measured](pictures/evaluation.png)"]
    write_whole(DOCS / "evaluation.md", "\n".join([*lines, ""]).encode(), error=DripleError)


if __name__ == "__main__":
    main()
