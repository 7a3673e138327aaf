"""Make docs/evaluation.md and its picture from the shipped data sets and the shipped folds.

    python scripts/evaluation_report.py [--threads 2] [--paper-on-first]

Folds that are not in docs/evaluation/folds are trained first. With `--paper-on-first` preset
`paper` is only evaluated on the first setting, which spares half an hour for each other one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from shipped import DOCS, FIRST, FOLDS, measured_datasets, plain, save

from driple.dataset.example import Dataset
from driple.errors import DripleError
from driple.files import write_whole
from driple.targets import FIGURES, RESOURCES, TARGET_NAMES, UNITS
from driple.training.arena import ArenaConfig, ArenaResult, SplitKind
from driple.training.evaluate import run_arena

Comparison = tuple[SplitKind, tuple[str, ...]]
# Split and methods. The paper's preset takes hours on a split by families: one training for each.
COMPARISONS: tuple[Comparison, ...] = (
    ("random", ("mean", "paper", "default")),
    ("family", ("mean", "default")),
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
        plain(axis)
    figure.supxlabel("measured")
    figure.supylabel("predicted")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(shown), fontsize=8, frameon=False,
                  bbox_to_anchor=(0.5, 0.02))  # fmt: skip
    figure.tight_layout(rect=(0.01, 0.05, 1, 1))
    save(figure, path)


def overview(found: list[tuple[Dataset, list[ArenaResult]]]) -> list[str]:
    """One row per setting: errors of every method on both splits."""
    head = ["setting", "workloads"]
    head += [f"{split}: {name}" for split, methods in COMPARISONS for name in methods]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for dataset, results in found:
        cells = [dataset.setting, str(len(dataset.examples))]
        for result, (_, methods) in zip(results, COMPARISONS, strict=True):
            rows = {row.name: row for row in result.rows()}
            errors = {name: rows["all 12"].nrmse[name] for name in result.config.methods}
            best = min(value for value in errors.values() if value is not None)
            for name in methods:
                error = errors.get(name)
                if error is None:
                    cells.append("-")
                    continue
                text = f"{error:.4f}, {rows['iteration_time'].smape_pct[name]:.1f} %"
                cells.append(f"**{text}**" if error == best else text)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def repeatability(dataset: Dataset) -> str:
    """How far the labels of one workload differ from run to run."""
    repeat = dataset.about["repeatability"]
    if not repeat["workloads"]:
        return "No workload was measured more than once."
    spreads = ", ".join(f"{name} {100 * v:.1f} %" for name, v in repeat["median_cv"].items())
    return (
        f"Repeatability, median coefficient of variation of {repeat['workloads']} workloads that "
        f"were measured more than once: {spreads}."
    )


def section(result: ArenaResult) -> list[str]:
    """One comparison: errors by target, effort, and by family where these were held out."""
    config = result.config
    title = (
        "Random split (60/20/20)" if config.split == "random" else "Family split (each held out)"
    )
    lines = ["", f"### {title}", "", *table(result), "", *effort(result)]
    return lines if config.split == "random" else [*lines, "", *family_table(result)]


def main() -> None:
    """Train what is missing, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--paper-on-first", action="store_true")
    arguments = parser.parse_args()
    threads = arguments.threads
    left_out = {"paper"} if arguments.paper_on_first else set()
    found, sections = [], []
    for dataset in measured_datasets():
        first = dataset.setting == FIRST
        results = [
            run_arena(
                dataset,
                ArenaConfig(split=split, methods=methods, threads=threads),
                FOLDS,
            )
            for split, methods in (
                (split, tuple(m for m in methods if first or m not in left_out))
                for split, methods in COMPARISONS
            )
        ]
        found.append((dataset, results))
        sections += ["", f"## {dataset.setting}", ""]
        sections += [f"Labels: measured, {len(dataset.examples)} workloads, "
                     f"{dataset.about['num_runs']} runs. {repeatability(dataset)}"]  # fmt: skip
        if first:
            picture(dataset, results[0], "default", DOCS / "pictures/evaluation.png")
            sections += ["", "![predicted against measured](pictures/evaluation.png)"]
        for result in results:
            sections += section(result)
    lines = [
        "# How wrong",
        "",
        "Made by `python scripts/evaluation_report.py` from `datasets/` and `docs/evaluation/`.",
        "NRMSE: root mean squared error over the largest training label. SMAPE: 0 to 200 %. "
        "`iteration_time`: mean absolute error of burst + idle of `net_rx` against the measured "
        "time of an iteration. The table gives the average NRMSE and the error of the iteration "
        "time of each method.",
        "",
        *overview(found),
        *sections,
    ]
    write_whole(DOCS / "evaluation.md", "\n".join([*lines, ""]).encode(), error=DripleError)


if __name__ == "__main__":
    main()
