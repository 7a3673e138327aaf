"""Make docs/simulation.md and its pictures: how far the simulation is from what others measured.

    python scripts/simulation_report.py [--inspectors-only]

The whole takes some ten minutes; after inspectors were trained anew, only their table changes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from shipped import (
    DATASETS,
    DOCS,
    FIRST,
    FIRST_SIMULATED,
    ROOT,
    SHORTER_PAPER,
    inspector_file,
    plain,
    save,
)

from driple.dataset.example import Dataset, Example
from driple.dataset.split import random_split
from driple.dataset.store import read_dataset
from driple.errors import DripleError
from driple.files import write_whole
from driple.hardware import DEVICES, LINKS
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.label.repeatability import smape_shares
from driple.settings import KNOWN_SETTINGS, Setting
from driple.simulate.counters import NVML_WINDOW_S
from driple.simulate.device import is_cpu, shipped_calibration
from driple.simulate.facts import Fact, check_facts, read_facts, workloads_of
from driple.simulate.job import Job
from driple.simulate.validate import Prediction, error_rows, validate
from driple.zoo.store import GraphStore

FloatArray = npt.NDArray[np.float64]
TABLES = ROOT / "data" / "published"
CALIBRATION = ROOT / "data" / "calibration"
KINDS = {
    "single": "One device",
    "ring": "All-reduce in a ring",
    "servers": "Parameter servers",
}
PAGE = DOCS / "simulation.md"
INSPECTORS, HARDWARE = "## Inspectors of simulated settings", "## Devices and links"
# Asked of the median on rows that were held out, in percent.
GOALS = {"single": 6, "ring": 10, "servers": 10}
HELD_OUT = {"nothing": "nothing", "model": "the model", "device": "the device"}


def error_table(rows: Sequence[dict[str, object]], kind: str) -> list[str]:
    """Errors on one kind of cluster."""
    lines = [
        "| held out | source | rows | median | 90th percentile | roofline: median | 90th |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["kind"] == kind:
            errors = " | ".join(
                f"{row[name]:.1f} %"
                for name in ("median_pct", "p90_pct", "roofline_median_pct", "roofline_p90_pct")
            )
            name = HELD_OUT[str(row["held_out"])]
            lines.append(f"| {name} | {row['source']} | {row['rows']} | {errors} |")
    return lines


def goal_table(rows: Sequence[dict[str, object]]) -> list[str]:
    """What was asked of each kind of cluster, and what was reached."""
    lines = ["| median | goal | the model held out | the device held out |", "|---|---|---|---|"]
    for kind, words in KINDS.items():
        cells = []
        for held_out in ("model", "device"):
            (found,) = (
                float(str(row["median_pct"]))
                for row in rows
                if (row["kind"], row["held_out"], row["source"]) == (kind, held_out, "all")
            )
            cells.append(f"{found:.1f} %, {'met' if found <= GOALS[kind] else 'missed'}")
        lines.append(f"| {words} | {GOALS[kind]} % | {' | '.join(cells)} |")
    return lines


def cpu_table() -> list[str]:
    """How far simulated CPU settings are from the measured ones."""
    lines = ["| setting | workloads | median | 90th percentile |", "|---|---|---|---|"]
    errors = shipped_calibration(Setting.parse(FIRST)).errors["servers"].settings
    for name, found in errors.items():
        lines.append(
            f"| {name} | {found.rows} | {found.median_pct:.1f} % | {found.p90_pct:.1f} % |"
        )
    return lines


def by(predictions: Sequence[Prediction], what: str, kind: str = "single") -> list[str]:
    """Errors on one kind of cluster by device or by model, where it was held out."""
    lines = [
        f"| {what} held out | rows | median | 90th percentile | simulated / measured, median |",
        "|---|---|---|---|---|",
    ]
    some = [p for p in predictions if p.run.kind == kind and p.held_out == what]
    for name in sorted({getattr(p.run, what) for p in some}):
        found = [p for p in some if getattr(p.run, what) == name]
        errors = 100 * np.array([p.error for p in found])
        ratio = np.median([p.simulated_s / p.run.seconds for p in found])
        lines.append(
            f"| {name} | {len(found)} | {np.median(errors):.1f} % | "
            f"{np.percentile(errors, 90):.1f} % | {ratio:.2f} |"
        )
    return lines


def scatter(predictions: Sequence[Prediction], path: Path) -> None:
    """Simulated against measured iteration times, the model held out."""
    drawn, axes = plt.subplots(1, len(KINDS), figsize=(12, 4.2))
    for axis, (kind, words) in zip(axes, KINDS.items(), strict=True):
        some = [p for p in predictions if p.run.kind == kind and p.held_out == "model"]
        for source in sorted({p.run.source for p in some}):
            found = [p for p in some if p.run.source == source]
            axis.scatter(
                [p.run.seconds for p in found],
                [p.simulated_s for p in found],
                s=9,
                alpha=0.6,
                linewidths=0,
                label=f"{source} ({len(found)})",
            )
        ends = np.array([p.run.seconds for p in some])
        span = np.array([ends.min() / 1.3, ends.max() * 1.3])
        axis.plot(span, span, color="#444444", linewidth=0.8)
        for share in (0.8, 1.25):
            axis.plot(span, share * span, color="#aaaaaa", linewidth=0.6, linestyle="--")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"{words} (dashed: 25 %)", fontsize=9)
        axis.set_xlabel("published iteration time (s)", fontsize=8)
        axis.legend(fontsize=7, frameon=False)
        plain(axis)
    axes[0].set_ylabel("simulated, the model held out (s)", fontsize=8)
    drawn.tight_layout()
    save(drawn, path)


def fact_table(facts: Sequence[Fact]) -> list[str]:
    """The figures of the Driple paper beside ours."""
    lines = ["| section | what | paper | simulated | open in the paper |", "|---|---|---|---|---|"]
    for fact in facts:
        ours = "-" if fact.simulated is None else f"{fact.simulated:.3g} {fact.unit}"
        lines.append(
            f"| {fact.section} | {fact.what} | {fact.paper:g} {fact.unit} | {ours} | {fact.note} |"
        )
    return lines


def devices() -> list[str]:
    """The catalogue, and whose measurements each device was fitted to."""
    calibration = shipped_calibration()
    of_cpus = shipped_calibration(Setting.parse(FIRST))
    lines = [
        "| device | fp32, TFLOP/s | half, TFLOP/s | GB/s | efficiency from | source of the peaks |",
        "|---|---|---|---|---|---|",
    ]
    for device in DEVICES.values():
        reached_by = of_cpus if is_cpu(device.name) else calibration
        origin = reached_by.device(device.name).measured_on
        whose = "itself" if origin == device.name else origin or "all"
        lines.append(
            f"| {device.name} | {device.fp32_flops / 1e12:g} | {device.half_flops / 1e12:g} | "
            f"{device.bytes_per_s / 1e9:g} | {whose} | "
            f"{device.source} |"
        )
    lines += ["", "| link | GB/s each way | share reached by two | source |", "|---|---|---|---|"]
    for link in LINKS.values():
        reached = calibration.link(link.name).share_of(2)
        lines.append(
            f"| {link.name} | {link.bytes_per_s / 1e9:g} | {100 * reached:.0f} % | {link.source} |"
        )
    lines += [
        "",
        f"Between two containers of one machine: {calibration.bridge_bytes_per_s / 1e6:.0f} MB/s. "
        f"A role passes at most {calibration.server_bytes_per_s / 1e6:.0f} MB/s, and a server "
        f"works off a byte of a gradient in {1e9 * calibration.apply_s_per_byte:.2f} ns. Memory is "
        f"seen in use {calibration.memory_activity:.2f} times as long as its bytes take.",
    ]
    return lines


def inspectors() -> list[str]:
    """What the shipped inspectors of simulated settings make of workloads they have not seen."""
    lines = [
        "| setting | preset | learned from | NRMSE | SMAPE | iteration time |",
        "|---|---|---|---|---|---|",
    ]
    for setting in KNOWN_SETTINGS:
        for file in sorted((ROOT / "checkpoints" / Setting.parse(setting).file_name).glob("*")):
            made = load_checkpoint(file)
            if made.provenance != "simulated":
                continue
            origin = made.trained_on.transferred_from
            how = "anew" if origin is None else f"tuned from {origin.setting}"
            lines.append(
                f"| {setting} | {made.preset} | {made.trained_on.num_train} graphs, {how} | "
                f"{made.metrics['test_nrmse']:.4f} | {made.metrics['test_smape_pct']:.1f} % | "
                f"{made.metrics['test_iteration_time_mape_pct']:.1f} % |"
            )
    return lines


def first_simulated() -> Dataset:
    """The data set of the paper's first setting."""
    return read_dataset(DATASETS / Setting.parse(FIRST_SIMULATED).file_name)


def by_length(data: Dataset) -> str:
    """How far the first setting's inspectors are off on short steps and on long ones."""
    tested = [data.examples[i] for i in random_split(data.workloads, 0).test]
    steps_s = np.array([item.iteration_time_s for item in tested])
    errors = {preset: 100 * smapes(data, tested, preset) for preset in ("default", "paper")}
    short, shortest = steps_s < NVML_WINDOW_S, steps_s <= np.quantile(steps_s, 0.25)
    longest = steps_s >= np.quantile(steps_s, 0.75)
    return (
        "Where a step is shorter than a window of NVML (1/6 s), bursts and gaps of the device are "
        "ripples of its counter: an inspector can tell how busy it is, and hardly how long a "
        f"ripple lasts. On {data.setting}, preset `default` has a SMAPE of "
        f"{errors['default'][~short].mean():.1f} % over the {(~short).sum()} tested workloads with "
        f"longer steps, and of {errors['default'][short].mean():.1f} % over the {short.sum()} with "
        "shorter ones. Preset `paper` learns targets over the largest of them, in which short "
        "steps count for next to nothing, and SMAPE counts all alike: it has "
        f"{errors['paper'][shortest].mean():.0f} % on the quarter with the shortest steps and "
        f"{errors['paper'][longest].mean():.0f} % on the one with the longest (`default`: "
        f"{errors['default'][shortest].mean():.0f} % and "
        f"{errors['default'][longest].mean():.0f} %)."
    )


def smapes(data: Dataset, tested: Sequence[Example], preset: str) -> FloatArray:
    """SMAPE of a shipped inspector on each of these workloads, as shares."""
    made = load_checkpoint(inspector_file(data.setting, preset))
    return np.array(
        [
            smape_shares(predict(item.graph, made).targets.flat, item.targets.flat).mean()
            for item in tested
        ]
    )


def inspector_section(data: Dataset) -> list[str]:
    """The part of the page that the shipped inspectors decide; `data` of the first setting."""
    return [
        INSPECTORS,
        "",
        "Errors on the simulated labels of the test workloads (a fifth of all). To those of a real "
        "cluster, the simulator's own error comes on top. Preset `paper` on "
        f"{FIRST_SIMULATED} was given {SHORTER_PAPER['patience_epochs']} epochs of patience and "
        f"{SHORTER_PAPER['max_epochs']} in all, in place of 1,000 and 100,000.",
        "",
        by_length(data),
        "",
        *inspectors(),
        "",
    ]


def refresh_inspectors() -> None:
    """Write that part anew, and leave all else as it is."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(INSPECTORS)
    _, _, after = rest.partition(HARDWARE)
    lines = [*inspector_section(first_simulated()), HARDWARE]
    write_whole(PAGE, (before + "\n".join(lines) + after).encode(), error=DripleError)


def main() -> None:
    """Fit, predict, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inspectors-only", action="store_true", help="nothing else has changed")
    if parser.parse_args().inspectors_only:
        refresh_inspectors()
        return
    predictions = validate(TABLES, CALIBRATION / "graphs", lambda what: print(what, flush=True))
    facts_rows = read_facts(TABLES / "driple_paper.csv")
    store = GraphStore.open(CALIBRATION / "paper")
    jobs = {name: Job(store.graph(name)) for name in workloads_of(facts_rows)}
    whole = first_simulated()
    facts = check_facts(facts_rows, jobs, shipped_calibration(), whole)
    rows = error_rows(predictions)
    text = (DOCS / "simulation.head.md").read_text().rstrip()
    lines = [text]
    scatter(predictions, DOCS / "pictures" / "simulation.png")
    lines += ["", "![simulated against published](pictures/simulation.png)"]
    lines += ["", *goal_table(rows)]
    for kind, words in KINDS.items():
        lines += ["", f"### {words}", "", *error_table(rows, kind)]
    lines += ["", "### Measured CPU settings", "", *cpu_table()]
    lines += ["", "### One device, by device", "", *by(predictions, "device")]
    lines += ["", "### One device, by model", "", *by(predictions, "model")]
    lines += ["", "### Rings, by device", "", *by(predictions, "device", "ring")]
    lines += ["", "## The figures of the Driple paper", "", *fact_table(facts)]
    lines += ["", *inspector_section(whole), HARDWARE, "", *devices(), ""]
    write_whole(PAGE, "\n".join(lines).encode(), error=DripleError)


if __name__ == "__main__":
    main()
