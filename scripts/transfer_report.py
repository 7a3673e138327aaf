"""Make docs/transfer.md and its pictures: Figures 11, 12, 15 and 16 of the paper on measured data.

    python scripts/transfer_report.py [--threads 2] [--presets default,paper] [--report-only]

Experiments that are not yet in docs/transfer/results.jsonl are run first, one line each; stop it at
any time, the same command goes on. All errors are on the test part of the target setting, NRMSE is
over the largest label of the whole training part, so that sizes compare.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from shipped import DOCS, FIRST, ROOT, measured_datasets, plain, run_folder, save

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import limited_split, random_split
from driple.errors import DripleError
from driple.files import write_whole
from driple.inputs import Groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.settings import Setting
from driple.training.config import preset_named
from driple.training.loop import RunOptions, train
from driple.training.transfer import transfer, transfer_config

HOME = DOCS / "transfer"
RESULTS = HOME / "results.jsonl"
SIZES = (20, 40, 80)
SEEDS = (0, 1, 2, 3, 4)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
LAYERS = (
    ("mlp",),
    ("phi_r",),
    ("phi_r", "gru"),
    ("phi_r", "mlp"),
    ("phi_r", "gru", "mlp"),
    ("phi_f", "phi_r", "gru", "readout", "mlp"),
)
# The paper's preset waits 1,000 epochs for a better one, a day over all seeds and sizes; anew, it
# is given these here. In the checkpoints it has its full patience.
ANEW: dict[str, dict[str, int]] = {
    "paper": {"patience_epochs": 100, "max_epochs": 400},
    "default": {},
}
MOVED: dict[str, object] = {"layers": ("phi_r", "mlp"), "share": 0.5}
COLOURS = {"anew": "#999999", "transferred": "#3b6ea8"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One training.

    Attributes:
        target: setting that is learned.
        preset: `paper` or `default`.
        layers: what is tuned; empty: an inspector is trained anew.
        share: of the repeated graph layers that are tuned.
        size: workloads to learn from; 0 for all of the 80 % that are not tested on.
        seed: of split, weights and batches.
    """

    target: str
    preset: str
    layers: tuple[str, ...] = ("phi_r", "mlp")
    share: float = 0.5
    size: int = 0
    seed: int = 0


def experiments(targets: list[str]) -> Iterable[Experiment]:
    """All that the figures need: every seed of one before the next, the cheap preset first."""
    for preset in ("default", "paper"):
        for seed in SEEDS:
            for target in targets:
                for size in (*SIZES, 0):
                    yield Experiment(target=target, preset=preset, size=size, seed=seed)
                    yield Experiment(
                        target=target, preset=preset, layers=(), share=0, size=size, seed=seed
                    )
                for layers in LAYERS:
                    yield Experiment(target=target, preset=preset, layers=layers, seed=seed)
                for share in SHARES:
                    yield Experiment(target=target, preset=preset, share=share, seed=seed)


def run(
    item: Experiment, dataset: Dataset, mark: str, groupings: Groupings, threads: int
) -> dict[str, object]:
    """Train, score, and say what it took."""
    split = random_split(dataset.workloads, item.seed)
    part = limited_split(split, dataset.workloads, item.size, item.seed) if item.size else split
    if item.layers:
        config = transfer_config(item.preset, tuned_share=item.share, layers=item.layers)
        config = replace(config, train=replace(config.train, seed=item.seed))
        source = ROOT / "checkpoints" / Setting.parse(FIRST).file_name
        checkpoint = load_checkpoint(source / f"{item.preset}.safetensors")
        with tempfile.TemporaryDirectory(prefix="driple-transfer-") as folder:
            options = RunOptions(threads=threads)
            result = transfer(
                checkpoint, dataset, part, config, folder, options=options, groupings=groupings
            )
    else:
        preset = preset_named(item.preset)
        changed = {"seed": item.seed, **ANEW[item.preset]}
        preset = replace(preset, train=replace(preset.train, **changed))
        place = run_folder(dataset, mark, part, preset)
        options = RunOptions(resume=True, threads=threads)
        result = train(dataset, part, preset, place, options=options, groupings=groupings)
    scores = result.test_scores(dataset, split.train)
    return {
        **asdict(item),
        "nrmse": scores.mean_nrmse,
        "smape_pct": scores.mean_smape_pct,
        "iteration_time_mape_pct": scores.iteration_time_mape_pct,
        "seconds": result.seconds,
        "seconds_to_best": result.seconds * (result.best_epoch + 1) / max(len(result.history), 1),
        "epochs": len(result.history),
        "best_epoch": result.best_epoch,
        "stopped_by": result.stopped_by,
    }


def key_of(fields: dict[str, object], marks: dict[str, str]) -> str:
    """What an experiment is, as one string; `marks` are the fingerprints of the data sets."""
    names = Experiment.__dataclass_fields__
    return json.dumps([marks[str(fields["target"])], {name: fields[name] for name in names}])


def load_results(marks: dict[str, str]) -> dict[str, dict[str, object]]:
    """Finished experiments on the data sets as they are now."""
    if not RESULTS.exists():
        return {}
    lines = (json.loads(line) for line in RESULTS.read_text().splitlines())
    known = [line for line in lines if marks.get(line["target"]) == line["fingerprint"]]
    return {key_of(line, marks): line for line in known}


def mean(rows: list[dict[str, object]], name: str) -> tuple[float, float]:
    """Mean and standard deviation over seeds."""
    values = np.array([float(str(row[name])) for row in rows])
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


class Results:
    """Finished experiments, to be picked by their fields."""

    def __init__(self, rows: Iterable[dict[str, object]]) -> None:
        self.rows = [{**row, "layers": tuple(row["layers"])} for row in rows]  # type: ignore[arg-type]  # a JSON list

    def pick(self, **fields: object) -> list[dict[str, object]]:
        """Those whose fields are these."""
        return [row for row in self.rows if all(row[k] == v for k, v in fields.items())]


def accuracy_table(results: Results, targets: list[str]) -> list[str]:
    """Figure 15 and 16 in numbers: errors and seconds by setting, preset and size."""
    lines = [
        "| setting | preset | labels | NRMSE anew | NRMSE transferred | iteration time anew | "
        "transferred | seconds anew | transferred |",
        "|---" * 9 + "|",
    ]
    for target in targets:
        for preset in ("default", "paper"):
            for size in (*SIZES, 0):
                same = {"target": target, "preset": preset, "size": size}
                anew, moved = results.pick(**same, layers=()), results.pick(**same, **MOVED)
                if not moved:
                    continue
                cells = [target, preset, str(size or "all")]
                for name, digits, unit in (
                    ("nrmse", 4, ""),
                    ("iteration_time_mape_pct", 1, " %"),
                    ("seconds_to_best", 1, " s"),
                ):
                    for rows in (anew, moved):
                        if not rows:
                            cells.append("-")
                            continue
                        middle, spread = mean(rows, name)
                        cells.append(f"{middle:.{digits}f} ± {spread:.{digits}f}{unit}")
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def saving_table(results: Results, targets: list[str], labels: dict[str, int]) -> list[str]:
    """What transfer saves: the fewest labels with which it is as good as training anew on all."""
    lines = [
        "| setting | preset | NRMSE anew, all labels | fewest labels as good by transfer | "
        "NRMSE then | data saved | time saved |",
        "|---" * 7 + "|",
    ]
    for preset in ("default", "paper"):
        for target in targets:
            same = {"target": target, "preset": preset}
            anew = results.pick(**same, size=0, layers=())
            if not anew:
                continue
            wanted, _ = mean(anew, "nrmse")
            anew_s, _ = mean(anew, "seconds_to_best")
            cells = [target, preset, f"{wanted:.4f}", "none", "-", "-", "-"]
            for size in (*SIZES, 0):
                moved = results.pick(**same, size=size, **MOVED)
                if moved and mean(moved, "nrmse")[0] <= wanted:
                    count = size or labels[target]
                    cells[3:] = [
                        str(count),
                        f"{mean(moved, 'nrmse')[0]:.4f}",
                        f"{labels[target] / count:.1f} x",
                        f"{anew_s / mean(moved, 'seconds_to_best')[0]:.1f} x",
                    ]
                    break
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def choice_table(
    results: Results, targets: list[str], choices: dict[str, dict[str, object]]
) -> list[str]:
    """NRMSE of some choices on every setting, all labels, the best of each in bold."""
    lines = [
        "| " + " | ".join(["preset", "tuned", *targets, "mean"]) + " |",
        "|---" * (3 + len(targets)) + "|",
    ]
    for preset in ("default", "paper"):
        found = {
            name: [
                mean(rows, "nrmse")[0] if (rows := results.pick(
                    target=target, preset=preset, size=0, **fields
                )) else np.nan
                for target in targets
            ]
            for name, fields in choices.items()
        }  # fmt: skip
        table = np.array(list(found.values()))
        if np.isnan(table).all():
            continue
        table = np.concatenate([table, table.mean(axis=1, keepdims=True)], axis=1)
        for name, row in zip(found, table, strict=True):
            cells = [
                "-" if np.isnan(value) else f"**{value:.4f}**" if value == best else f"{value:.4f}"
                for value, best in zip(row, np.nanmin(table, axis=0), strict=True)
            ]
            lines.append("| " + " | ".join([preset, name, *cells]) + " |")
    return lines


def curves(results: Results, targets: list[str], labels: dict[str, int], path: Path) -> None:
    """Figures 15 and 16: error and seconds against labels, a thin line for each setting."""
    drawn, axes = plt.subplots(2, 2, figsize=(9, 6.5), sharex=True)
    for row, preset in zip(axes, ("paper", "default"), strict=True):
        for axis, name, words in (
            (row[0], "nrmse", "average NRMSE"),
            (row[1], "seconds_to_best", "seconds to the best epoch"),
        ):
            for way, fields in (("anew", {"layers": ()}), ("transferred", MOVED)):
                lines = []
                for target in targets:
                    points = [
                        (size or labels[target], mean(rows, name)[0])
                        for size in (*SIZES, 0)
                        if (rows := results.pick(target=target, preset=preset, size=size, **fields))
                    ]
                    if points:
                        axis.plot(*zip(*points, strict=True), color=COLOURS[way], linewidth=0.7,
                                  alpha=0.6)  # fmt: skip
                        lines.append(points)
                if lines and len({len(points) for points in lines}) == 1:
                    middle = np.array(lines, dtype=float).mean(axis=0)
                    axis.plot(middle[:, 0], middle[:, 1], color=COLOURS[way], linewidth=2.2,
                              marker="o", markersize=4, label=way)  # fmt: skip
            axis.set_ylabel(f"{preset}: {words}", fontsize=8)
            plain(axis)
        row[0].set_ylim(bottom=0)
        row[1].set_yscale("log")
    for axis in axes[-1]:
        axis.set_xlabel("labels of the new setting", fontsize=8)
    axes[0, 0].legend(fontsize=8, frameon=False)
    drawn.suptitle("mean over settings (thick), each setting (thin)", fontsize=9)
    drawn.tight_layout()
    save(drawn, path)


def bars(groups: dict[str, list[dict[str, object]]], title: str, path: Path) -> None:
    """NRMSE and seconds of a few choices, side by side."""
    drawn, axes = plt.subplots(1, 2, figsize=(10, 0.8 + 0.4 * len(groups)))
    for axis, name, unit in (
        (axes[0], "nrmse", "average NRMSE"),
        (axes[1], "seconds_to_best", "seconds to the best epoch"),
    ):
        found = [mean(rows, name) for rows in groups.values()]
        axis.barh(
            range(len(groups)),
            [middle for middle, _ in found],
            xerr=[spread for _, spread in found],
            color="#3b6ea8",
            height=0.6,
            error_kw={"linewidth": 0.8},
        )
        axis.set_yticks(range(len(groups)), list(groups), fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel(unit, fontsize=8)
        plain(axis)
    axes[1].set_yticklabels([])
    drawn.suptitle(title, fontsize=9)
    drawn.tight_layout()
    save(drawn, path)


def report(results: Results, datasets: dict[str, Dataset]) -> None:
    """Tables and pictures of what is there."""
    targets = list(datasets)
    labels = {name: round(0.8 * len(data.examples)) for name, data in datasets.items()}
    choices: dict[str, dict[str, dict[str, object]]] = {
        "layers": {
            ", ".join(layers): {"layers": layers, "share": 0.5} for layers in LAYERS
        } | {"all, anew": {"layers": ()}},
        "shares": {f"{share:g}": {"layers": ("phi_r", "mlp"), "share": share} for share in SHARES},
    }  # fmt: skip
    titles = {
        "layers": "What is tuned (Figure 11)",
        "shares": "Share of phi_r that is tuned, beside the MLP (Figure 12)",
    }
    curves(results, targets, labels, HOME / "sizes.png")
    lines = [
        "# Transfer learning on measured settings",
        "",
        f"Made by `python scripts/transfer_report.py`. Pre-trained on {FIRST}; every other "
        "measured setting is learned anew and by transfer, from the same labels, on the same test "
        f"workloads; means and standard deviations over {len(SEEDS)} seeds. `labels` are those to "
        "train and to validate on, `all` is 80 % of the setting's workloads. Seconds are those up "
        "to the best epoch. The pre-trained inspector has seen the graphs of the test workloads "
        "with the labels of its own setting, as in the paper. Preset `paper` is given "
        f"{ANEW['paper']['patience_epochs']} epochs of patience and {ANEW['paper']['max_epochs']} "
        "at most where it is trained anew, in place of 1,000 and 100,000.",
        "",
        "## What transfer saves",
        "",
        *saving_table(results, targets, labels),
        "",
        "![error and seconds against labels](transfer/sizes.png)",
        "",
        "## With and without transfer (Figures 15 and 16)",
        "",
        *accuracy_table(results, targets),
    ]
    for name, groups in choices.items():
        lines += ["", f"## {titles[name]}", "", *choice_table(results, targets, groups)]
        for preset in ("paper", "default"):
            made = {
                label: rows
                for label, fields in groups.items()
                if (rows := results.pick(preset=preset, size=0, **fields))
            }
            if made:
                bars(made, f"{preset}: {titles[name]}, all settings", HOME / f"{name}-{preset}.png")
                lines += ["", f"![{titles[name]}](transfer/{name}-{preset}.png)"]
    write_whole(DOCS / "transfer.md", "\n".join([*lines, ""]).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--presets", default="default,paper", help="run these only")
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    datasets = {item.setting: item for item in measured_datasets() if item.setting != FIRST}
    if not datasets:
        raise SystemExit(f"no measured setting besides {FIRST} in datasets/; measure one first")
    marks = {setting: fingerprint(data) for setting, data in datasets.items()}
    done = load_results(marks)
    groupings = Groupings()
    HOME.mkdir(parents=True, exist_ok=True)
    presets = [] if arguments.report_only else arguments.presets.split(",")
    wanted = [item for item in experiments(list(datasets)) if item.preset in presets]
    for i, item in enumerate(wanted):
        key = key_of(json.loads(json.dumps(asdict(item))), marks)
        if key in done:
            continue
        found = run(item, datasets[item.target], marks[item.target], groupings, arguments.threads)
        line = json.loads(json.dumps({**found, "fingerprint": marks[item.target]}))
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        done[key] = line
        print(f"{i + 1}/{len(wanted)} {item.preset} {item.target} {line['nrmse']:.4f}", flush=True)
    report(Results(done.values()), datasets)


if __name__ == "__main__":
    main()
