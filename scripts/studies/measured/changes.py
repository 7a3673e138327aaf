"""Effect of a change of the setting on targets: of one workload (Figures 5 and 6) and of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from driple.dataset.example import Dataset, Example
from driple.trace.targets import FIGURES, TARGET_NAMES, UNITS
from scripts.studies.kit.pictures import plain
from scripts.studies.kit.tables import markdown

COMPARED = "resnet56"  # the model of Figures 5 and 6
COLOUR = "#3b6ea8"
Ratios = dict[str, float]  # by setting and target, such as `CPU-P1w3/ho-200M, net_tx.idle_duration`


def compared(datasets: Sequence[Dataset]) -> str:
    """The workload of Figures 5 and 6: asynchronous, in most settings, the largest batch."""
    counts: Counter[str] = Counter()
    batch = {}
    for dataset in datasets:
        for example in dataset.examples:
            if example.details["model"] == COMPARED and not example.details["sync"]:
                counts[example.workload] += 1
                batch[example.workload] = int(example.details["batch_size"])
    if not counts:
        raise SystemExit(f"no asynchronous {COMPARED} was measured; Figures 5 and 6 need one")
    return max(counts, key=lambda name: (counts[name], batch[name], name))


def ratios_to_first(
    first: Dataset, dataset: Dataset
) -> tuple[list[Example], npt.NDArray[np.float64]]:
    """Workloads that both settings have, and their targets over those on the first, [n, 12]."""
    known = {item.workload: item.targets.flat for item in first.examples}
    common = [item for item in dataset.examples if item.workload in known]
    return common, np.array([item.targets.flat / known[item.workload] for item in common])


def variation(dataset: Dataset, target: str) -> float:
    """Median coefficient of variation of the workloads measured repeatedly; NaN if none was."""
    repeats = dataset.about.repeatability
    return float("nan") if repeats is None else repeats.median_cv.get(target, float("nan"))


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Targets over those on the first setting.

    Attributes:
        datasets: of all settings, the first one first.
        workload: of Figures 5 and 6.
        chosen: ratios of this workload.
        median: medians over all workloads that both settings have.
        median_sync: over the synchronous ones.
        median_async: over the asynchronous ones.
    """

    datasets: tuple[Dataset, ...]
    workload: str
    chosen: Ratios
    median: Ratios
    median_sync: Ratios
    median_async: Ratios

    @classmethod
    def of(cls, datasets: Sequence[Dataset]) -> Changes:
        """All ratios of all settings but the first."""
        workload = compared(datasets)
        parts: list[Ratios] = [{}, {}, {}, {}]
        for dataset in datasets[1:]:
            common, ratios = ratios_to_first(datasets[0], dataset)
            sync = np.array([bool(item.details["sync"]) for item in common])
            chosen = np.array([item.workload == workload for item in common])
            for part, rows in zip(parts, (chosen, chosen | True, sync, ~sync), strict=True):
                values = np.median(ratios[rows], axis=0)
                for target, value in zip(TARGET_NAMES, values, strict=True):
                    part[f"{dataset.setting}, {target}"] = float(value)
        return cls(
            datasets=tuple(datasets),
            workload=workload,
            chosen=parts[0],
            median=parts[1],
            median_sync=parts[2],
            median_async=parts[3],
        )

    def table(self, resource: str) -> list[str]:
        """The workload of the pictures beside all others."""
        head = ["setting", "figure", "this workload", "all workloads", "asynchronous",
                "synchronous", "repeatability"]  # fmt: skip
        rows = []
        for dataset in self.datasets[1:]:
            for figure in FIGURES:
                target = f"{resource}.{figure}"
                key = f"{dataset.setting}, {target}"
                parts = (self.chosen, self.median, self.median_async, self.median_sync)
                cells = [f"{part[key]:.2f} x" for part in parts]
                spread = f"{100 * variation(dataset, target):.1f} %"
                rows.append([dataset.setting, figure.replace("_", " "), *cells, spread])
        return markdown(head, rows)


def changes_table(datasets: Sequence[Dataset]) -> list[str]:
    """Effect of each change of the setting: geometric mean, over the workloads that both settings
    have, of a target over the same target on the first setting.
    """
    head = ["target", *(dataset.setting for dataset in datasets[1:])]
    columns, counts = [], []
    for dataset in datasets[1:]:
        common, ratios = ratios_to_first(datasets[0], dataset)
        logs = np.log(np.where((ratios > 0) & np.isfinite(ratios), ratios, np.nan))
        columns.append(np.exp(np.nanmean(logs, axis=0)))
        counts.append(len(common))
    rows = [["workloads on both", *map(str, counts)]]
    for i, name in enumerate(TARGET_NAMES):
        rows.append([name, *(f"{found[i]:.2f}" for found in columns)])
    return markdown(head, rows)


def comparison(datasets: Sequence[Dataset], workload: str, resource: str) -> Figure:
    """Figures 5 and 6: one workload on every setting, with the setting's repeatability."""
    rows = [
        (dataset, item.targets.to_dict()[resource])
        for dataset in datasets
        for item in dataset.examples
        if item.workload == workload
    ]
    drawn, axes = plt.subplots(1, len(FIGURES), figsize=(11, 1.1 + 0.35 * len(rows)))
    for axis, figure in zip(axes, FIGURES, strict=True):
        values = np.array([found[figure] for _, found in rows])
        spread = np.array([variation(dataset, f"{resource}.{figure}") for dataset, _ in rows])
        axis.barh(
            range(len(rows)),
            values,
            xerr=values * spread,
            color=COLOUR,
            height=0.6,
            error_kw={"linewidth": 0.8},
        )
        axis.set_yticks(range(len(rows)), [dataset.setting for dataset, _ in rows], fontsize=8)
        axis.invert_yaxis()
        unit = UNITS[resource] if figure == "burst_amount" else "s"
        axis.set_title(f"{resource} {figure.replace('_', ' ')} ({unit})", fontsize=9)
        plain(axis)
        if axis is not axes[0]:
            axis.set_yticklabels([])
    drawn.suptitle(
        f"{workload}; whiskers: the setting's repeatability (median coefficient of variation)",
        fontsize=9,
    )
    drawn.tight_layout()
    return drawn
