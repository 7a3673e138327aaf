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
from measured_changes import Changes, changes_table, comparison, variation
from measured_traces import TraceFacts, trace_facts, traces_on
from shipped import DOCS, ROOT, markdown, measured_datasets, plain, save

from driple.dataset.example import Dataset, Example
from driple.errors import DripleError
from driple.files import write_whole
from driple.label.provenance import Repeatability, RunPlan
from driple.measure.archive import read_archive
from driple.measure.campaign import Limits
from driple.measure.collect import GRID_S
from driple.measure.network import Port
from driple.measure.shares import own_workers, worker_shares
from driple.settings import Setting
from driple.targets import NETWORK, RESOURCES, TARGET_NAMES, UNITS
from driple.zoo import Workload

# What the paper's Figure 2 and Table 1 show: model, whether it is synchronous, resource.
EXEMPLARS = (
    ("nmt_medium", False, "net_rx"),
    ("densenet40_k12", True, "device_util"),
    ("inception3", False, "device_mem_util"),
)
SLOWER = "CPU25-P1w2/ho-200M"  # the setting with less compute
PHASES = ("burst", "idle")
SNAPSHOT_S = 10.0
COLOURS = ("#3b6ea8", "#b5542d", "#5a8a4f")


def settings_table(datasets: list[Dataset]) -> list[str]:
    """What each setting is: devices as shares of a core, servers, network."""
    rows = []
    for dataset in datasets:
        setting, plan = Setting.parse(dataset.setting), dataset.about.plan or RunPlan()
        shares = worker_shares(setting, plan.share).values()
        rows.append(
            [
                setting.name,
                ", ".join(f"{share:g}" for share in shares),
                f"{setting.num_servers} of {plan.server_share:g}",
                setting.network.replace("M", " Mbit/s"),
            ]
        )
    return markdown(["setting", "cores of each worker", "servers, and cores of one", "link"], rows)


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
        durations = [f"{figures[f'{phase}_duration']:.3f} s" for phase in PHASES]
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
    head = ["target", *(dataset.setting for dataset in datasets)]
    spread = [dataset.about.repeatability or Repeatability() for dataset in datasets]
    rows = [["workloads repeated", *(str(s.workloads) for s in spread)]]
    for name in TARGET_NAMES:
        cells = [f"{100 * s.median_cv[name]:.1f} %" if s.median_cv else "-" for s in spread]
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
    records = read_archive(folder)
    worker = own_workers(Setting.parse(dataset.setting))[0]
    figure, axes = plt.subplots(len(chosen), 1, figsize=(9, 2.2 * len(chosen)), squeeze=False)
    for axis, (item, resource), colour in zip(axes[:, 0], chosen, COLOURS, strict=False):
        record = records[f"{Workload.parse(item.workload).file_name}.r0"]
        trace = traces_on(dataset, record, worker)[resource]
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


def first_table(datasets: list[Dataset], traces: list[TraceFacts]) -> list[str]:
    """How much was measured on each setting, and how well."""
    head = ["setting", "workloads", "families", "runs", "disturbed labels", "a trace lasts",
            "a link's rate", "runs with a sample over it", "highest sample"]  # fmt: skip
    rows = [
        [
            item.setting,
            f"{len(item.examples)}",
            f"{len({example.family for example in item.examples})}",
            f"{item.about.num_runs}",
            f"{len(disturbed(item))}",
            f"{seen.least_s:.1f} to {seen.most_s:.1f} s",
            f"{seen.rate_mb_per_s:g} MB/s",
            f"{seen.num_over_rate} of {seen.num_runs}",
            f"{seen.highest_mb_per_s:.1f} MB/s",
        ]
        for item, seen in zip(datasets, traces, strict=True)
    ]
    return markdown(head, rows)


def disturbed(dataset: Dataset) -> list[Example]:
    """The labels with a run that was disturbed in every try."""
    return [item for item in dataset.examples if item.details["disturbed"]]


def disturbed_words(datasets: list[Dataset]) -> str:
    """What a disturbed label is, and by what those that there are were disturbed."""
    limits = Limits()
    found = [item for dataset in datasets for item in disturbed(dataset)]
    total = sum(len(dataset.examples) for dataset in datasets)
    cores = [float(item.details["other_cores"]) for item in found]
    stolen = max((float(item.details["steal_cores"]) for item in found), default=0.0)
    words = (
        f"A label is disturbed if in all {limits.tries} tries of one of its runs, of which the "
        f"best is kept, other programs used over {limits.other_cores:g} of a core, the hypervisor "
        f"took over {limits.steal_cores:g}, or over {100 * limits.gap_share:g} % of the time lies "
        "in gaps between samples (decision [0001](decisions/0001-measuring-on-cpu.md)). "
        f"{len(found)} of {total} are."
    )
    if found:
        over = sum(value > limits.other_cores for value in cores)
        words += (
            f" In {over} of them other programs used too much: up to {max(cores):.2f} of a core; "
            f"the hypervisor took {stolen:.3f} at most."
        )
    return f"{words} They are trained on and tested on like all others."


def wider_amounts(dataset: Dataset) -> tuple[list[str], list[str]]:
    """Resources whose burst amounts range further than their idle amounts, and the others."""
    ranges = {
        resource: [np.ptp(column(dataset, resource, f"{phase}_amount")) for phase in PHASES]
        for resource in RESOURCES
    }
    wider = [resource for resource, (burst, idle) in ranges.items() if burst > idle]
    return wider, [resource for resource in RESOURCES if resource not in wider]


def notes(datasets: list[Dataset], traces: list[TraceFacts], changes: Changes) -> str:
    """What to make of it; the numbers in it are filled in."""
    first, seen = datasets[0], traces[0]
    wider, narrower = wider_amounts(first)
    shares = [
        next(
            iter(worker_shares(Setting.parse(name), (first.about.plan or RunPlan()).share).values())
        )
        for name in (first.setting, SLOWER)
    ]
    grid_s = first.about.label_grid_s or GRID_S
    varied = [{name: variation(dataset, name) for name in TARGET_NAMES} for dataset in datasets]
    worst = [max(found, key=lambda name: found[name]) for found in varied]
    facts = {
        "least_s": min(item.least_s for item in traces),
        "most_s": max(item.most_s for item in traces),
        "longest_iteration_s": max(
            item.iteration_time_s for dataset in datasets for item in dataset.examples
        ),
        "grid_ms": 1000 * grid_s,
        "burst_kib": Port().burst_kib,
        "burst_pct": 100 * Port().burst_kib * 1024 / (seen.rate_mb_per_s * 1e6 * grid_s),
        "num_over_rate": seen.num_over_rate,
        "num_runs": seen.num_runs,
        "highest_mb_per_s": seen.highest_mb_per_s,
        "highest_burst_mb_per_s": max(
            column(first, resource, "burst_amount").max() for resource in NETWORK
        ),
        "first": first.setting,
        "wider": ", ".join(wider),
        "narrower": ", ".join(narrower) or "none",
        "share_ratio": shares[0] / shares[1],
        "num_worst": worst.count("device_util.burst_duration"),
        "num_settings": len(datasets),
        "varied_pct": {
            dataset.setting: 100 * found["device_util.burst_duration"]
            for dataset, found in zip(datasets, varied, strict=True)
        },
        "chosen": changes.chosen,
        "all": changes.median,
        "sync": changes.median_sync,
        "asynchronous": changes.median_async,
    }
    return (DOCS / "measured" / "notes.md").read_text().format_map(facts)


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
    traces = [trace_facts(item, arguments.datasets) for item in datasets]
    changes = Changes.of(datasets)
    lines = [
        "# What was measured",
        "",
        "Made by `python scripts/measured_report.py` from the data sets in `datasets/`. All labels "
        "are measured: real parameter-server training on CPU settings of one machine.",
        "",
        *settings_table(datasets),
        "",
        "Labels of a mixed setting (`he`) are those of its first worker, of the others the mean "
        "over all. Each role runs in a network namespace and a control group of its own, which "
        "hold its link and its share of a core (decision "
        "[0001](decisions/0001-measuring-on-cpu.md)).",
        "",
        *first_table(datasets, traces),
        "",
        disturbed_words(datasets),
        "",
        "A run gives a trace of each worker whose label it is. Samples over a link's rate are "
        "those of a worker's link, sent or received, on the grid of the labels.",
        "",
        f"## Three workloads on {first.setting} (the paper's Figure 2 and Table 1)",
        "",
        f"![the first {SNAPSHOT_S:.0f} seconds of three traces, less where one ended sooner]"
        "(measured/snapshots.png)",
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
    lines += [f"## {changes.workload} on every setting (Figures 5 and 6)", ""]
    for resource in ("device_util", "net_tx"):
        picture = pictures / f"settings-{resource}.png"
        save(comparison(datasets, changes.workload, resource), picture)
        lines += [f"![{resource}](measured/{picture.name})", "", *changes.table(resource), ""]
    lines += [
        f"Ratios are those of a target to the same on {first.setting}; of all workloads that both "
        "settings have, of the asynchronous and of the synchronous ones it is the median. Whiskers "
        "and last column: median coefficient of variation of the setting's repeated workloads; "
        "single ones repeat worse.",
        "",
        f"## What each change does, over all workloads (target over that on {first.setting})",
        "",
        "Geometric means.",
        "",
        *changes_table(datasets),
        "",
    ]
    lines += ["## Repeatability", "", *repeatability_table(datasets), ""]
    lines += [notes(datasets, traces, changes)]
    write_whole(arguments.docs / "measured.md", "\n".join(lines).encode(), error=DripleError)


if __name__ == "__main__":
    main()
