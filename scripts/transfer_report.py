"""Make docs/transfer.md and its pictures: Figures 11, 12, 15 and 16 of the paper on measured data.

    python scripts/transfer_report.py [--threads 2] [--report-only]

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
# Where the paper's preset is trained anew, its patience of 1,000 epochs takes hours over all seeds.
PAPER_SCRATCH_SEEDS = (0,)


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
    """All that the figures need, the cheap ones first."""
    for preset in ("default", "paper"):
        for target in targets:
            for seed in SEEDS:
                for size in (*SIZES, 0):
                    yield Experiment(target=target, preset=preset, size=size, seed=seed)
                    if preset == "default" or seed in PAPER_SCRATCH_SEEDS:
                        yield Experiment(
                            target=target, preset=preset, layers=(), share=0, size=size, seed=seed
                        )
    for preset in ("default", "paper"):
        for seed in SEEDS[:3]:
            for layers in LAYERS:
                yield Experiment(target=targets[0], preset=preset, layers=layers, seed=seed)
            for share in SHARES:
                yield Experiment(target=targets[0], preset=preset, share=share, seed=seed)


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
        preset = replace(preset, train=replace(preset.train, seed=item.seed))
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
                anew = results.pick(**same, layers=())
                moved = results.pick(**same, layers=("phi_r", "mlp"), share=0.5)
                if not moved:
                    continue
                cells = [target, preset, str(size or "all")]
                for name, digits, unit in (
                    ("nrmse", 4, ""),
                    ("iteration_time_mape_pct", 1, " %"),
                    ("seconds", 1, " s"),
                ):
                    for rows in (anew, moved):
                        if not rows:
                            cells.append("-")
                            continue
                        middle, spread = mean(rows, name)
                        cells.append(f"{middle:.{digits}f} ± {spread:.{digits}f}{unit}")
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def bars(groups: dict[str, list[dict[str, object]]], title: str, path: Path) -> None:
    """NRMSE and seconds of a few choices, side by side."""
    drawn, axes = plt.subplots(1, 2, figsize=(10, 0.8 + 0.4 * len(groups)))
    for axis, name, unit in (
        (axes[0], "nrmse", "average NRMSE"),
        (axes[1], "seconds", "seconds of training"),
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


def report(results: Results, targets: list[str]) -> None:
    """Tables and pictures of what is there."""
    lines = [
        "# Transfer learning on measured settings",
        "",
        f"Made by `python scripts/transfer_report.py`. Pre-trained on {FIRST}; every other "
        "measured setting is learned anew and by transfer, from the same labels, on the same test "
        "workloads; means and standard deviations over seeds. The pre-trained inspector has seen "
        "the graphs of the test workloads with the labels of its own setting, as in the paper.",
        "",
        "## With and without transfer (Figures 15 and 16)",
        "",
        *accuracy_table(results, targets),
    ]
    for preset in ("paper", "default"):
        first = {"target": targets[0], "preset": preset, "size": 0}
        chosen = {
            ", ".join(layers): results.pick(**first, layers=layers, share=0.5) for layers in LAYERS
        }
        chosen["anew"] = results.pick(**first, layers=())
        shares = {
            f"{share:g}": results.pick(**first, layers=("phi_r", "mlp"), share=share)
            for share in SHARES
        }
        for name, groups, title in (
            ("layers", chosen, "what is tuned (Figure 11)"),
            ("shares", shares, "share of phi_r that is tuned (Figure 12)"),
        ):
            made = {label: rows for label, rows in groups.items() if rows}
            if made:
                bars(made, f"{preset}: {title}, {targets[0]}", HOME / f"{name}-{preset}.png")
                lines += ["", f"![{title}](transfer/{name}-{preset}.png)"]
    write_whole(DOCS / "transfer.md", "\n".join([*lines, ""]).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    datasets = {item.setting: item for item in measured_datasets() if item.setting != FIRST}
    if not datasets:
        raise SystemExit(f"no measured setting besides {FIRST} in datasets/; measure one first")
    marks = {setting: fingerprint(data) for setting, data in datasets.items()}
    done = load_results(marks)
    groupings = Groupings()
    HOME.mkdir(parents=True, exist_ok=True)
    wanted = [] if arguments.report_only else list(experiments(list(datasets)))
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
    report(Results(done.values()), list(datasets))


if __name__ == "__main__":
    main()
