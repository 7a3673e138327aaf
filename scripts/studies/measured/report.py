"""Page and pictures: Tables 1 and 3 and Figures 2 to 6 of the paper, ours.

All numbers come from the labels of the shipped measured data sets, the samples that they hold, and
trace-facts.json.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.jobs import Workload
from driple.measure.testbed.campaign import DisturbanceLimits
from driple.measure.testbed.collect import GRID_S
from driple.measure.testbed.cpu_quota import labelled_workers, worker_shares
from driple.measure.testbed.network import Port
from driple.trace.provenance import Repeatability, RunPlan
from driple.trace.targets import NETWORK, RESOURCES, TARGET_NAMES, UNITS
from scripts.settings.archive import read_archive
from scripts.settings.shipped import SETTINGS, measured_datasets
from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import COLOURS, plain, save
from scripts.studies.kit.tables import markdown
from scripts.studies.measured.changes import Changes, changes_table, comparison, variation
from scripts.studies.measured.run import read_facts, traces_on

# What the paper's Figure 2 and Table 1 show: model, whether it is synchronous, resource.
EXEMPLARS = (
    ("nmt_medium", False, "net_rx"),
    ("densenet40_k12", True, "device_util"),
    ("inception3", False, "device_mem_util"),
)
HOME = Path(__file__).parent
SLOWER = "CPU25-P1w2/ho-200M"  # the setting with less compute
MIXED = "CPU-P1w2/he-200M"  # with a slower second worker
THIRD = "CPU-P1w3/ho-200M"  # with a third worker
PHASES = ("burst", "idle")
SNAPSHOT_S = 10.0


def settings_table(datasets: list[Dataset]) -> list[str]:
    """Devices of each setting as shares of a core, servers, network."""
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
    chosen = []
    for model, sync, resource in EXEMPLARS:
        fitting = [
            item
            for item in dataset.examples
            if item.details["model"] == model and item.details["sync"] == sync
        ]
        if fitting:
            chosen.append((max(fitting, key=lambda item: item.iteration_time_s), resource))
    return chosen


def exemplar_table(chosen: list[tuple[Example, str]]) -> list[str]:
    """Table 1: amounts and durations of bursts and of idle gaps."""
    head = ["workload", "resource", "burst amount", "idle amount", "burst duration",
            "idle duration"]  # fmt: skip
    rows = []
    for example, resource in chosen:
        figures = example.targets.to_dict()[resource]
        idle = float(example.details[f"idle_amount_{resource}"])
        unit = UNITS[resource]
        amounts = [f"{amount:.2f} {unit}" for amount in (figures["burst_amount"], idle)]
        durations = [f"{figures[f'{phase}_duration']:.3f} s" for phase in PHASES]
        rows.append([example.workload, resource, *amounts, *durations])
    return markdown(head, rows)


def pattern_table(datasets: list[Dataset]) -> list[str]:
    """Table 3: share of traces that alternate between bursts and idle (BIB), by resource."""
    rows = []
    for dataset in datasets:
        counts = {
            resource: Counter(str(item.details[f"pattern_{resource}"]) for item in dataset.examples)
            for resource in RESOURCES
        }
        shares = [counts[name]["BIB"] / len(dataset.examples) for name in RESOURCES]
        rows.append([dataset.setting, *(f"{100 * share:.2f} %" for share in shares)])
    return markdown(["setting, share of pattern BIB", *RESOURCES], rows)


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
    worker = labelled_workers(Setting.parse(dataset.setting))[0]
    figure, axes = plt.subplots(len(chosen), 1, figsize=(9, 2.2 * len(chosen)), squeeze=False)
    for axis, (example, resource), colour in zip(axes[:, 0], chosen, COLOURS, strict=False):
        record = records[f"{Workload.parse(example.workload).file_name}.r0"]
        trace = traces_on(dataset, record, worker)[resource]
        shown = trace.time_s <= SNAPSHOT_S
        axis.fill_between(trace.time_s[shown], trace.amount[shown], step="post", color=colour)
        axis.set_title(f"{example.workload}: {resource}", fontsize=9, loc="left")
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


def first_table(datasets: list[Dataset]) -> list[str]:
    """Amount of measurements on each setting, and samples over the rate of a link."""
    head = ["setting", "workloads", "families", "runs", "disturbed labels", "a trace lasts",
            "a link's rate", "runs with a sample over it", "highest sample"]  # fmt: skip
    facts = read_facts()
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
        for item in datasets
        if (seen := facts[item.setting])
    ]
    return markdown(head, rows)


def disturbed(dataset: Dataset) -> list[Example]:
    """The labels with a run that was disturbed in every try."""
    return [item for item in dataset.examples if item.details["disturbed"]]


def disturbed_parts(datasets: list[Dataset]) -> dict[str, str]:
    """Number of disturbed labels, their disturbance, and the limits of it."""
    limits = DisturbanceLimits()
    unsteady = [item for dataset in datasets for item in disturbed(dataset)]
    return {
        "tries": f"{limits.tries}",
        "other_cores": f"{limits.other_cores:g}",
        "steal_cores": f"{limits.steal_cores:g}",
        "gap_pct": f"{100 * limits.gap_share:g}",
        "num_disturbed": f"{len(unsteady)}",
        "num_labels": f"{sum(len(dataset.examples) for dataset in datasets)}",
        "most_other": f"{max(float(item.details['other_cores']) for item in unsteady):.2f}",
        "most_stolen": f"{max(float(item.details['steal_cores']) for item in unsteady):.3f}",
    }


def wider_amounts(dataset: Dataset) -> tuple[list[str], list[str]]:
    """Resources whose burst amounts range further than their idle amounts, and the others."""
    ranges = {
        resource: [np.ptp(column(dataset, resource, f"{phase}_amount")) for phase in PHASES]
        for resource in RESOURCES
    }
    wider = [resource for resource, (burst, idle) in ranges.items() if burst > idle]
    return wider, [resource for resource in RESOURCES if resource not in wider]


def change_parts(datasets: list[Dataset], changes: Changes) -> dict[str, str]:
    """Factors of the settings, medians over workloads."""
    shares = [
        next(
            iter(
                worker_shares(
                    Setting.parse(name), (datasets[0].about.plan or RunPlan()).share
                ).values()
            )
        )
        for name in (datasets[0].setting, SLOWER)
    ]
    varied = [{name: variation(dataset, name) for name in TARGET_NAMES} for dataset in datasets]
    worst = [max(found, key=lambda name: found[name]) for found in varied]
    device, gap = "device_util.burst_duration", "net_tx.idle_duration"
    factors = {
        "slower_device": changes.median[f"{SLOWER}, {device}"],
        "slower_gap": changes.median[f"{SLOWER}, {gap}"],
        "slower_device_chosen": changes.chosen[f"{SLOWER}, {device}"],
        "slower_gap_chosen": changes.chosen[f"{SLOWER}, {gap}"],
        "third_device": changes.median[f"{THIRD}, device_util.idle_duration"],
        "third_gap": changes.median[f"{THIRD}, {gap}"],
        "mixed_sync_gap": changes.median_sync[f"{MIXED}, {gap}"],
        "mixed_async_gap": changes.median_async[f"{MIXED}, {gap}"],
        "mixed_async_device": changes.median_async[f"{MIXED}, {device}"],
        "mixed_device_chosen": changes.chosen[f"{MIXED}, {device}"],
    }
    mixed = next(item for item in datasets if item.setting == MIXED)
    return {
        "share_ratio": f"{shares[0] / shares[1]:.1f}",
        "num_worst": f"{worst.count(device)}",
        "num_settings": f"{len(datasets)}",
        "mixed_varied_pct": f"{100 * variation(mixed, device):.1f}",
        **{name: f"{factor:.2f}" for name, factor in factors.items()},
    }


def trace_parts(datasets: list[Dataset]) -> dict[str, str]:
    """Lengths of traces, and how near samples and bursts come to the rate of a link."""
    first, facts = datasets[0], read_facts()
    seen = facts[first.setting]
    grid_s = first.about.label_grid_s or GRID_S
    wider, narrower = wider_amounts(first)
    longest_s = max(item.iteration_time_s for data in datasets for item in data.examples)
    highest = max(column(first, name, "burst_amount").max() for name in NETWORK)
    return {
        "least_s": f"{min(item.least_s for item in facts.values()):.1f}",
        "most_s": f"{max(item.most_s for item in facts.values()):.1f}",
        "longest_iteration_s": f"{longest_s:.1f}",
        "grid_ms": f"{1000 * grid_s:.0f}",
        "burst_kib": f"{Port().burst_kib}",
        "burst_pct": f"{100 * Port().burst_kib * 1024 / (seen.rate_mb_per_s * 1e6 * grid_s):.0f}",
        "num_over_rate": f"{seen.num_over_rate}",
        "num_runs": f"{seen.num_runs}",
        "highest_mb_per_s": f"{seen.highest_mb_per_s:.1f}",
        "highest_burst": f"{highest:.1f}",
        "wider": ", ".join(wider),
        "narrower": ", ".join(narrower),
    }


def parts() -> Parts:
    """Tables and numbers of the page."""
    datasets = measured_datasets()
    changes = Changes.of(datasets)
    return {
        "settings": settings_table(datasets),
        "counts": first_table(datasets),
        "exemplars": exemplar_table(exemplars(datasets[0])),
        "patterns": pattern_table(datasets),
        "ranges": ranges(datasets[0]),
        "device_util": changes.table("device_util"),
        "net_tx": changes.table("net_tx"),
        "changes": changes_table(datasets),
        "repeatability": repeatability_table(datasets),
        "workload": changes.workload,
        **disturbed_parts(datasets),
        **change_parts(datasets, changes),
        **trace_parts(datasets),
    }


def pictures() -> None:
    """Draw the pictures."""
    datasets = measured_datasets()
    first = datasets[0]
    folder = SETTINGS / Setting.parse(first.setting).file_name
    save(snapshot(exemplars(first), first, folder), HOME / "snapshots.png")
    save(violins(first, ("burst_amount", "idle_amount"), None), HOME / "amounts.png")
    save(violins(first, ("burst_duration", "idle_duration"), "s"), HOME / "durations.png")
    workload = Changes.of(datasets).workload
    for resource in ("device_util", "net_tx"):
        save(comparison(datasets, workload, resource), HOME / f"settings-{resource}.png")
