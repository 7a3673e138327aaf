"""Errors of the simulator without each model and each device, as tables.json.

    python -m scripts.studies.simulation.run

It reads what scripts/fits/heldout.py predicted. Inspectors of simulated settings are scored as
well: `python -m scripts.settings.checkpoints --labels simulated --all` makes those that do not
ship.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt

from driple.catalog import DEVICES
from driple.cluster.setting import KNOWN_SETTINGS, Setting
from driple.dataset.example import Dataset, Example
from driple.dataset.graph_store import GraphStore
from driple.dataset.split import random_split
from driple.dataset.store import read_dataset
from driple.errors import PredictionError
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.runs.validation.held_out import ErrorRow, HeldOutPrediction, error_rows, read_tensorflow
from driple.runs.validation.paper_figures import Fact, check_facts, read_facts, workloads_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.trace.repeatability import smape_shares
from scripts.fits.refit import read_graphs
from scripts.settings.shipped import (
    DATASETS,
    FIRST,
    FIRST_SIMULATED,
    ROOT,
    SETTINGS,
    inspector_file,
    ops_of,
)
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.stored import write_stored

FloatArray = npt.NDArray[np.float64]
HOME = Path(__file__).parent
TABLES = DATASETS / "runs" / "published"
CALIBRATION = DATASETS / "graphs"
KINDS = {
    "single": "One device",
    "ring": "All-reduce in a ring",
    "servers": "Parameter servers",
}
HELD_OUT = {"nothing": "nothing", "model": "the model", "device": "the device"}


def error_table(rows: Sequence[ErrorRow], kind: str) -> list[str]:
    """Errors on one kind of cluster."""
    lines = [
        "| held out | source | rows | median | 90th percentile | roofline: median | 90th |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.kind == kind:
            errors = " | ".join(
                f"{getattr(row, name):.1f} %"
                for name in ("median_pct", "p90_pct", "roofline_median_pct", "roofline_p90_pct")
            )
            name = HELD_OUT[row.held_out]
            lines.append(f"| {name} | {row.source} | {row.rows} | {errors} |")
    return lines


def summary_table(rows: Sequence[ErrorRow]) -> list[str]:
    """Median error on each kind of cluster."""
    lines = ["| median error | the model held out | the device held out |", "|---|---|---|"]
    for kind, words in KINDS.items():
        medians = [
            row.median_pct
            for held_out in ("model", "device")
            for row in rows
            if (row.kind, row.held_out, row.source) == (kind, held_out, "all")
        ]
        lines.append(f"| {words} | {' | '.join(f'{value:.1f} %' for value in medians)} |")
    return lines


def cpu_table() -> list[str]:
    """Errors of simulated CPU settings against the measured ones."""
    lines = ["| setting | workloads | median | 90th percentile |", "|---|---|---|---|"]
    errors = shipped_calibration(Setting.parse(FIRST)).errors["servers"].settings
    for name, summary in errors.items():
        lines.append(
            f"| {name} | {summary.rows} | {summary.median_pct:.1f} % | {summary.p90_pct:.1f} % |"
        )
    return lines


def by(predictions: Sequence[HeldOutPrediction], what: str, kind: str = "single") -> list[str]:
    """Errors on one kind of cluster by device or by model, where it was held out."""
    lines = [
        f"| {what} held out | rows | median | 90th percentile | simulated / measured, median |",
        "|---|---|---|---|---|",
    ]
    some = [p for p in predictions if p.run.kind == kind and p.held_out == what]
    for name in sorted({getattr(p.run, what) for p in some}):
        chosen = [p for p in some if getattr(p.run, what) == name]
        errors = 100 * np.array([p.error for p in chosen])
        ratio = np.median([p.simulated_s / p.run.step_s for p in chosen])
        lines.append(
            f"| {name} | {len(chosen)} | {np.median(errors):.1f} % | "
            f"{np.percentile(errors, 90):.1f} % | {ratio:.2f} |"
        )
    return lines


def scatter(predictions: Sequence[HeldOutPrediction], path: Path) -> None:
    """Simulated against measured iteration times, the model held out."""
    drawn, axes = plt.subplots(1, len(KINDS), figsize=(12, 4.2))
    for axis, (kind, words) in zip(axes, KINDS.items(), strict=True):
        some = [p for p in predictions if p.run.kind == kind and p.held_out == "model"]
        for source in sorted({p.run.source for p in some}):
            chosen = [p for p in some if p.run.source == source]
            axis.scatter(
                [p.run.step_s for p in chosen],
                [p.simulated_s for p in chosen],
                s=9,
                alpha=0.6,
                linewidths=0,
                label=f"{source} ({len(chosen)})",
            )
        ends = np.array([p.run.step_s for p in some])
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


def inspectors() -> list[str]:
    """Errors of the shipped inspectors of simulated settings on their test workloads."""
    lines = [
        "| setting | preset | learned from | NRMSE | SMAPE | iteration time |",
        "|---|---|---|---|---|---|",
    ]
    for setting in KNOWN_SETTINGS:
        for file in sorted((ROOT / "checkpoints" / Setting.parse(setting).file_name).glob("*")):
            checkpoint = load_checkpoint(file)
            if checkpoint.provenance != "simulated":
                continue
            origin = checkpoint.trained_on.transferred_from
            how = "anew" if origin is None else f"tuned from {origin.setting}"
            lines.append(
                f"| {setting} | {checkpoint.preset} | {checkpoint.trained_on.num_train} graphs, "
                f"{how} | {checkpoint.metrics['test_nrmse']:.4f} | "
                f"{checkpoint.metrics['test_smape_pct']:.1f} % | "
                f"{checkpoint.metrics['test_iteration_time_mape_pct']:.1f} % |"
            )
    return lines


def first_simulated() -> Dataset:
    """The data set of the paper's first setting."""
    return read_dataset(SETTINGS / Setting.parse(FIRST_SIMULATED).file_name)


def by_length(data: Dataset) -> dict[str, str]:
    """SMAPE of the first setting's inspectors on short steps and on long ones, in percent."""
    tested = [data.examples[i] for i in random_split(data.workloads, 0).test]
    steps_s = np.array([item.iteration_time_s for item in tested])
    default, paper = (100 * smapes(data, tested, preset) for preset in ("default", "paper"))
    window_s = DEVICES["V100"].counter_window_s
    short, shortest = steps_s < window_s, steps_s <= np.quantile(steps_s, 0.25)
    longest = steps_s >= np.quantile(steps_s, 0.75)
    return {
        "long_pct": f"{np.nanmean(default[~short]):.1f}",
        "num_long": f"{(~short).sum()}",
        "short_pct": f"{np.nanmean(default[short]):.1f}",
        "num_short": f"{short.sum()}",
        "paper_short_pct": f"{np.nanmean(paper[shortest]):.0f}",
        "paper_long_pct": f"{np.nanmean(paper[longest]):.0f}",
        "default_short_pct": f"{np.nanmean(default[shortest]):.0f}",
        "default_long_pct": f"{np.nanmean(default[longest]):.0f}",
    }


def smapes(data: Dataset, tested: Sequence[Example], preset: str) -> FloatArray:
    """SMAPE of a shipped inspector on each of these workloads, as shares; NaN where it refuses."""
    checkpoint = load_checkpoint(inspector_file(data.setting, preset))
    errors = np.full(len(tested), np.nan)
    for i, example in enumerate(tested):
        try:
            targets = predict(ops_of(example), checkpoint).targets
        except PredictionError:
            continue
        errors[i] = smape_shares(targets.flat, example.targets.flat).mean()
    return errors


def main() -> None:
    """Fit, predict, draw, and store all tables."""
    graphs = read_graphs(CALIBRATION / "graphs")
    predictions = [
        prediction
        for prediction in read_tensorflow(TABLES)
        if (prediction.run.job, prediction.run.half) in graphs
    ]
    facts_rows = read_facts(TABLES / "driple_paper.csv")
    store = GraphStore.open(CALIBRATION / "paper")
    jobs = {name: PreparedJob(store.graph(name)) for name in workloads_of(facts_rows)}
    whole = first_simulated()
    rows = error_rows(predictions)
    scatter(predictions, HOME / "simulation.png")
    tables = {
        "summary": summary_table(rows),
        **{kind: error_table(rows, kind) for kind in KINDS},
        "cpu": cpu_table(),
        "by_device": by(predictions, "device"),
        "by_model": by(predictions, "model"),
        "rings_by_device": by(predictions, "device", "ring"),
        "paper": fact_table(check_facts(facts_rows, jobs, shipped_calibration(), whole)),
        "inspectors": inspectors(),
    }
    write_stored(HOME / "tables.json", tables, by_length(whole))


if __name__ == "__main__":
    main()
