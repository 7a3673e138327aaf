"""Make docs/measured.md and its pictures: Tables 1 and 3 and Figures 2 to 6 of the paper, ours.

    python scripts/measured_report.py [--datasets datasets] [--docs docs]

Every figure comes from the shipped measured data sets and their raw samples; what to make of them
is written in docs/measured/notes.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from shipped import DOCS, ROOT, markdown, measured_datasets, plain, save

from driple.dataset.example import Dataset, Example
from driple.errors import DripleError
from driple.files import write_whole
from driple.measure.archive import read_archive
from driple.measure.collect import traces_of_run
from driple.measure.shares import own_workers, worker_shares
from driple.settings import Setting
from driple.targets import FIGURES, RESOURCES, TARGET_NAMES, UNITS
from driple.zoo import Workload

# What the paper's Figure 2 and Table 1 show: model, whether it is synchronous, resource.
EXEMPLARS = (
    ("nmt_medium", False, "net_rx"),
    ("densenet40_k12", True, "device_util"),
    ("inception3", False, "device_mem_util"),
)
COMPARED = "resnet56"  # the model of Figures 5 and 6
SNAPSHOT_S = 10.0
COLOURS = ("#3b6ea8", "#b5542d", "#5a8a4f")


def exemplars(dataset: Dataset) -> list[tuple[Example, str]]:
    """The three workloads of Table 1, as far as they were measured, each with its resource."""
    found = []
    for model, sync, resource in EXEMPLARS:
        fitting = [
            item
            for item in dataset.examples
            if item.details["model"] == model and item.details["sync"] == sync
        ]
        if fitting:
            found.append((max(fitting, key=lambda item: item.iteration_time_s), resource))
    return found


def exemplar_table(chosen: list[tuple[Example, str]]) -> list[str]:
    """Table 1: amounts and durations of bursts and of idle gaps."""
    head = ["workload", "resource", "burst amount", "idle amount", "burst duration",
            "idle duration"]  # fmt: skip
    rows = []
    for item, resource in chosen:
        figures = item.targets.to_dict()[resource]
        idle = float(item.details[f"idle_amount_{resource}"])
        unit = UNITS[resource]
        amounts = [f"{amount:.2f} {unit}" for amount in (figures["burst_amount"], idle)]
        durations = [f"{figures[f'{phase}_duration']:.3f} s" for phase in ("burst", "idle")]
        rows.append([item.workload, resource, *amounts, *durations])
    return markdown(head, rows)


def pattern_table(datasets: list[Dataset]) -> list[str]:
    """Table 3: how many traces are always busy, always idle, or go to and fro."""
    rows = []
    for dataset in datasets:
        counts = {
            resource: Counter(str(item.details[f"pattern_{resource}"]) for item in dataset.examples)
            for resource in RESOURCES
        }
        for pattern in ("I", "BIB", "B"):
            shares = [counts[name][pattern] / len(dataset.examples) for name in RESOURCES]
            cells = [f"{100 * share:.2f} %" for share in shares]
            rows.append([dataset.setting, pattern, *cells])
    return markdown(["setting", "pattern", *RESOURCES], rows)


def repeatability_table(datasets: list[Dataset]) -> list[str]:
    """Median coefficient of variation of each target over the workloads measured repeatedly."""
    names = [f"{resource}.{figure}" for resource in RESOURCES for figure in FIGURES]
    head = ["target", *(dataset.setting for dataset in datasets)]
    spread = [dataset.about.get("repeatability", {}) for dataset in datasets]
    rows = [["workloads repeated", *(str(s.get("workloads", 0)) for s in spread)]]
    for name in names:
        cells = [f"{100 * s['median_cv'][name]:.1f} %" if "median_cv" in s else "-" for s in spread]
        rows.append([name, *cells])
    return markdown(head, rows)


def ranges(dataset: Dataset) -> list[str]:
    """Section 2.4 in numbers: least, median and most of each figure."""
    rows = []
    for resource in RESOURCES:
        for figure in ("burst_amount", "idle_amount", "burst_duration", "idle_duration"):
            values = column(dataset, resource, figure)
            unit = UNITS[resource] if figure.endswith("amount") else "s"
            cells = [f"{value:.3g} {unit}" for value in np.percentile(values, (0, 50, 100))]
            rows.append([f"{resource}, {figure.replace('_', ' ')}", *cells])
    return markdown(["figure", "least", "median", "most"], rows)


def column(dataset: Dataset, resource: str, figure: str) -> np.ndarray:
    """One figure of all workloads; idle amounts come from the details."""
    if figure == "idle_amount":
        return np.array([item.details[f"idle_amount_{resource}"] for item in dataset.examples])
    return np.array([item.targets.to_dict()[resource][figure] for item in dataset.examples])


def snapshot(chosen: list[tuple[Example, str]], dataset: Dataset, folder: Path) -> Figure:
    """Figure 2: some seconds of a trace of each exemplar."""
    records, about = read_archive(folder), dataset.about
    setting = Setting.parse(dataset.setting)
    shares = worker_shares(setting, float(about["plan"]["share"]))
    worker = own_workers(setting)[0]
    figure, axes = plt.subplots(len(chosen), 1, figsize=(9, 2.2 * len(chosen)), squeeze=False)
    for axis, (item, resource), colour in zip(axes[:, 0], chosen, COLOURS, strict=False):
        record = records[f"{Workload.parse(item.workload).file_name}.r0"]
        trace = traces_of_run(
            record,
            worker,
            share=shares[worker],
            write_bytes_per_s=float(about["host"]["memory_write_bytes_per_s"]),
        )[resource]
        shown = trace.time_s <= SNAPSHOT_S
        axis.fill_between(trace.time_s[shown], trace.amount[shown], step="post", color=colour)
        axis.set_title(f"{item.workload}: {resource}", fontsize=9, loc="left")
        axis.set_ylabel(UNITS[resource], fontsize=8)
        plain(axis)
    axes[-1, 0].set_xlabel("s", fontsize=8)
    figure.tight_layout()
    return figure


def violins(dataset: Dataset, figures: tuple[str, str], unit: str | None) -> Figure:
    """Figures 3 and 4: how two figures of each resource spread over the workloads."""
    drawn, axes = plt.subplots(1, len(RESOURCES), figsize=(11, 3))
    for axis, resource in zip(axes, RESOURCES, strict=True):
        columns = [column(dataset, resource, figure) for figure in figures]
        parts = axis.violinplot(columns, showmedians=True, widths=0.8)
        for body, colour in zip(parts["bodies"], COLOURS, strict=False):
            body.set_facecolor(colour)
            body.set_alpha(0.6)
        for name in ("cbars", "cmins", "cmaxes", "cmedians"):
            parts[name].set_color("#333333")
            parts[name].set_linewidth(0.8)
        axis.set_xticks([1, 2], [name.split("_")[0] for name in figures], fontsize=8)
        axis.set_title(f"{resource} ({unit or UNITS[resource]})", fontsize=9)
        axis.set_ylim(bottom=0)
        plain(axis)
    drawn.tight_layout()
    return drawn


def compared(datasets: list[Dataset]) -> str | None:
    """The workload of Figures 5 and 6: asynchronous, in most settings, the largest batch."""
    counts: Counter[str] = Counter()
    batch = {}
    for dataset in datasets:
        for item in dataset.examples:
            if item.details["model"] == COMPARED and not item.details["sync"]:
                counts[item.workload] += 1
                batch[item.workload] = int(item.details["batch_size"])
    return max(counts, key=lambda name: (counts[name], batch[name], name), default=None)


def changes_table(datasets: list[Dataset]) -> list[str]:
    """What each change of the setting does: geometric mean, over the workloads that both settings
    have, of a target over the same target on the first setting.
    """
    first = {item.workload: item.targets.flat for item in datasets[0].examples}
    head = ["target", *(dataset.setting for dataset in datasets[1:])]
    columns, counts = [], []
    for dataset in datasets[1:]:
        common = [item for item in dataset.examples if item.workload in first]
        ratios = np.array([item.targets.flat / first[item.workload] for item in common])
        logs = np.log(np.where((ratios > 0) & np.isfinite(ratios), ratios, np.nan))
        columns.append(np.exp(np.nanmean(logs, axis=0)))
        counts.append(len(common))
    rows = [["workloads on both", *map(str, counts)]]
    for i, name in enumerate(TARGET_NAMES):
        rows.append([name, *(f"{found[i]:.2f}" for found in columns)])
    return markdown(head, rows)


def comparison(datasets: list[Dataset], workload: str, resource: str) -> Figure:
    """Figures 5 and 6: one workload on every setting."""
    rows = [
        (dataset.setting, item.targets.to_dict()[resource])
        for dataset in datasets
        for item in dataset.examples
        if item.workload == workload
    ]
    drawn, axes = plt.subplots(1, len(FIGURES), figsize=(11, 0.9 + 0.35 * len(rows)))
    for axis, figure in zip(axes, FIGURES, strict=True):
        axis.barh(
            range(len(rows)), [found[figure] for _, found in rows], color=COLOURS[0], height=0.6
        )
        axis.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
        axis.invert_yaxis()
        unit = UNITS[resource] if figure == "burst_amount" else "s"
        axis.set_title(f"{resource} {figure.replace('_', ' ')} ({unit})", fontsize=9)
        plain(axis)
        if axis is not axes[0]:
            axis.set_yticklabels([])
    drawn.tight_layout()
    return drawn


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=Path, default=ROOT / "datasets")
    parser.add_argument("--docs", type=Path, default=DOCS)
    arguments = parser.parse_args()
    datasets = measured_datasets(arguments.datasets)
    first = datasets[0]
    home = arguments.datasets / Setting.parse(first.setting).file_name
    pictures = arguments.docs / "measured"
    chosen = exemplars(first)
    save(snapshot(chosen, first, home), pictures / "snapshots.png")
    save(violins(first, ("burst_amount", "idle_amount"), None), pictures / "amounts.png")
    save(violins(first, ("burst_duration", "idle_duration"), "s"), pictures / "durations.png")
    counts = [
        [
            item.setting,
            f"{len(item.examples)}",
            f"{len({example.family for example in item.examples})}",
            f"{item.about['num_runs']}",
        ]
        for item in datasets
    ]
    lines = [
        "# What was measured",
        "",
        "Made by `python scripts/measured_report.py` from the data sets in `datasets/`. All labels "
        "are measured: real parameter-server training on CPU settings of one machine.",
        "",
        *markdown(["setting", "workloads", "families", "runs"], counts),
        "",
        f"## Three workloads on {first.setting} (the paper's Figure 2 and Table 1)",
        "",
        f"![{SNAPSHOT_S:.0f} seconds of three traces](measured/snapshots.png)",
        "",
        *exemplar_table(chosen),
        "",
        "## Patterns (Table 3)",
        "",
        *pattern_table(datasets),
        "",
        f"## Amounts and durations over the workloads of {first.setting} (Figures 3 and 4)",
        "",
        "![burst and idle amounts](measured/amounts.png)",
        "",
        "![burst and idle durations](measured/durations.png)",
        "",
        *ranges(first),
        "",
    ]
    workload = compared(datasets)
    if workload is not None and len(datasets) > 1:
        lines += [f"## {workload} on every setting (Figures 5 and 6)", ""]
        for resource in ("device_util", "net_tx"):
            save(comparison(datasets, workload, resource), pictures / f"settings-{resource}.png")
            lines += [f"![{resource}](measured/settings-{resource}.png)", ""]
        lines += [
            f"## What each change does, over all workloads (target over that on {first.setting})",
            "",
            *changes_table(datasets),
            "",
        ]
    lines += ["## Repeatability", "", *repeatability_table(datasets), ""]
    lines += [(DOCS / "measured" / "notes.md").read_text()]
    write_whole(arguments.docs / "measured.md", "\n".join(lines).encode(), error=DripleError)


if __name__ == "__main__":
    main()
