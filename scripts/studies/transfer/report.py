"""Make page.md and its pictures: Figures 11, 12, 15 and 16 of the paper on measured data.

    python -m scripts.studies.transfer.report [--threads 1] [--presets default,paper] [--targets S,S]
        [--report-only]

Experiments that are not yet in results.jsonl are run first, one line each; stop it at
any time, the same command goes on; several may run at once, with different targets. All errors are
on the test part of the target setting, NRMSE is over the largest label of the whole training part,
so that sizes compare.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from driple.dataset.example import Dataset, fingerprint
from driple.errors import DripleError
from driple.files import write_whole
from driple.inputs import Groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.training.config import preset_named
from driple.training.transfer import transfer_config
from scripts.shipped import DOCS, FIRST, OLD_NUMBERS, inspector_file, measured_datasets
from scripts.studies.kit.tables import markdown
from scripts.studies.transfer.figures import bars, curves
from scripts.studies.transfer.goals import goal_lines, saving_table, speed_lines
from scripts.studies.transfer.run import (
    ANEW,
    HOME,
    LAYERS,
    MOVED,
    PAPERS,
    RESULTS,
    SEEDS,
    SHARES,
    SIZES,
    Results,
    experiments,
    key_of,
    load_results,
    mean,
    run,
)

SHARE_TITLE = "Share of phi_r (layers of it) that is tuned, beside the MLP (Figure 12)"
ALIGNED_TITLE = "Targets put on the new level first, or not"


def accuracy_table(results: Results, targets: list[str]) -> list[str]:
    """Figure 15 and 16 in numbers: errors and seconds by setting, preset and size."""
    head = ["setting", "preset", "labels", "NRMSE anew", "NRMSE transferred", "iteration time anew",
            "transferred", "seconds anew", "transferred"]  # fmt: skip
    rows = []
    for target in targets:
        for preset in ("default", "paper"):
            for size in (*SIZES, 0):
                same = {"target": target, "preset": preset, "size": size}
                anew, moved = results.pick(**same, layers=()), results.pick(**same, **MOVED[preset])
                if not moved:
                    continue
                cells = [target, preset, str(size or "all")]
                for name, digits, unit in (
                    ("nrmse", 4, ""),
                    ("iteration_time_mape_pct", 1, " %"),
                    ("seconds_to_best", 2, " s"),
                ):
                    for some in (anew, moved):
                        if not some:
                            cells.append("-")
                            continue
                        middle, spread = mean(some, name)
                        around = f" ± {spread:.{digits}f}" if len(some) > 1 else ""
                        cells.append(f"{middle:.{digits}f}{around}{unit}")
                rows.append(cells)
    return markdown(head, rows)


def shares_apart(preset: str) -> dict[str, float]:
    """The shares of Figure 12 that tune different layers, by label; others are one training."""
    made = preset_named(preset)
    num_layers = made.inspector.num_layers(made.input.num_groups)
    alike: dict[int, list[float]] = {}
    for share in SHARES:
        config = transfer_config(preset, layers=PAPERS, tuned_share=share)
        alike.setdefault(config.num_tuned(num_layers), []).append(share)
    return {
        " to ".join(f"{share:g}" for share in dict.fromkeys((some[0], some[-1])))
        + f" ({count} of {num_layers - 1})": some[-1]
        for count, some in alike.items()
    }


def choices(preset: str) -> dict[str, dict[str, dict[str, object]]]:
    """Titles of the comparisons, and the experiments of each by label."""
    aligned = MOVED[preset]["aligned"]
    anew: dict[str, object] = {"layers": (), "size": 0}
    found: dict[str, dict[str, dict[str, object]]] = {
        "What is tuned (Figure 11)": {
            **{
                ", ".join(layers): {"layers": layers, "share": 0.5, "aligned": aligned, "size": 0}
                for layers in LAYERS
            },
            "all, anew": anew,
        },
        SHARE_TITLE: {
            words: {"layers": PAPERS, "share": share, "aligned": aligned, "size": 0}
            for words, share in shares_apart(preset).items()
        },
    }
    if aligned:
        found[ALIGNED_TITLE] = {
            f"{size or 'all'} labels, {words}": {**MOVED[preset], "aligned": way, "size": size}
            for size in (*SIZES, 0)
            for words, way in (("aligned", True), ("not aligned", False))
        }
    return found


def choice_table(
    results: Results, targets: list[str], title: str, presets: Iterable[str]
) -> list[str]:
    """NRMSE of some choices on every setting, the best of each in bold."""
    lines = []
    for preset in presets:
        found = {
            name: [
                mean(rows, "nrmse")[0]
                if (rows := results.pick(target=target, preset=preset, **fields))
                else np.nan
                for target in targets
            ]
            for name, fields in choices(preset)[title].items()
        }
        table = np.array(list(found.values()))
        if np.isnan(table).all():
            continue
        table = np.concatenate([table, table.mean(axis=1, keepdims=True)], axis=1)
        for name, row in zip(found, table, strict=True):
            cells = [
                "-" if np.isnan(value) else f"**{value:.4f}**" if value == best else f"{value:.4f}"
                for value, best in zip(row, np.fmin.reduce(table, axis=0), strict=True)
            ]
            lines.append([preset, name, *cells])
    return markdown(["preset", "tuned", *targets, "mean"], lines)


def alignment(results: Results, targets: list[str], preset: str) -> str:
    """Which of both is better in the mean over settings and sizes, and which takes less time."""
    ways: list[list[dict[str, Any]]] = [[], []]
    better = []
    for size in (*SIZES, 0):
        same = {**MOVED[preset], "preset": preset, "size": size}
        pairs = [results.pick(**{**same, "aligned": way}) for way in (True, False)]
        if len(pairs[0]) != len(pairs[1]) or {row["target"] for row in pairs[0]} != set(targets):
            continue
        for made, rows in zip(ways, pairs, strict=True):
            made.extend(rows)
        better.append(mean(pairs[0], "nrmse")[0] < mean(pairs[1], "nrmse")[0])
    if not better:
        return f"Preset `{preset}`: not all trainings are there."
    nrmse, to_best, in_all = (
        [mean(rows, name)[0] for rows in ways] for name in ("nrmse", "seconds_to_best", "seconds")
    )
    best = "aligned" if nrmse[0] < nrmse[1] else "not aligned"
    return (
        f"Preset `{preset}`: {best} is better in the mean over settings, sizes and seeds, NRMSE "
        f"{nrmse[0]:.4f} aligned and {nrmse[1]:.4f} not; aligned is better with {sum(better)} of "
        f"{len(better)} numbers of labels. To the best epoch it takes {to_best[0]:.2f} s aligned "
        f"and {to_best[1]:.2f} s not, in all {in_all[0]:.2f} s and {in_all[1]:.2f} s."
    )


def trainings(results: Results, targets: list[str]) -> str:
    """How many seeds each preset has, and how much is missing of all that is wanted."""
    words = []
    wanted = [item.preset for item in set(experiments(targets))]
    for preset in ("default", "paper"):
        rows = results.pick(preset=preset)
        seeds, total = len({row["seed"] for row in rows}), wanted.count(preset)
        so_far = "" if len(rows) == total else f", {len(rows)} of {total} trainings so far"
        words.append(f"preset `{preset}`: {seeds} of {len(SEEDS)}{so_far}")
    return "; ".join(words)


def pretrained_words() -> str:
    """The first bar of Figure 15: how wrong the inspectors are from which transfers start."""
    made = {name: load_checkpoint(inspector_file(FIRST, name)) for name in ("default", "paper")}
    errors = [f"preset `{name}` {one.metrics['test_nrmse']:.4f}" for name, one in made.items()]
    return (
        f"The shipped pre-trained inspectors themselves, on the test workloads of {FIRST} (the "
        f"first bar of Figure 15; seed 0): NRMSE, {', '.join(errors)}."
    )


def kept_for_the_test(datasets: dict[str, Dataset]) -> str:
    """Why no more labels are shown than there are."""
    sizes = sorted({len(data.examples) for data in datasets.values()})
    words = "; ".join(
        f"of the {size} workloads of a setting {size - round(0.8 * size)} are kept for the test, "
        f"`all` is the other {round(0.8 * size)}"
        for size in sizes
    )
    return f"{words[0].upper()}{words[1:]}, so that there is no row of {sizes[-1]} labels."


def how_timed(results: Results) -> str:
    """What the seconds of the tables are, as far as the rows tell."""
    threads = sorted({row["threads"] for row in results.rows})
    if threads == [1]:
        words = "one thread (of the processor: what others use does not count)"
    else:
        words = f"{' or '.join(map(str, threads))} threads"
    return (
        f"Seconds are those of {words}, over all epochs up to the best one; what is done once "
        "before them, grouping graphs and running frozen layers, does not count."
    )


def report(results: Results, first: Dataset, datasets: dict[str, Dataset]) -> None:
    """Tables and pictures of what is there."""
    targets = list(datasets)
    labels = {name: round(0.8 * len(data.examples)) for name, data in datasets.items()}
    curves(results, targets, labels, HOME / "sizes.png")
    lines = [
        "# Transfer learning on measured settings",
        "",
        OLD_NUMBERS,
        "",
        f"Made by `python -m scripts.studies.transfer.report`. Pre-trained on {FIRST}; every other "
        "measured setting is learned anew and by transfer, from the same labels, on the same test "
        f"workloads; means and standard deviations over seeds ({trainings(results, targets)}). "
        f"`labels` are those to train and to validate on. {kept_for_the_test(datasets)} "
        f"{how_timed(results)} Each seed has a pre-trained inspector of its own, which has learned "
        "none of the workloads that the seed tests. Where preset `paper` "
        f"is trained anew, it is given {ANEW['paper']['patience_epochs']} epochs of patience and "
        f"{ANEW['paper']['max_epochs']} in all, in place of 1,000 and 100,000.",
        "",
        "## What transfer saves",
        "",
        *saving_table(results, targets, labels),
        "",
        pretrained_words(),
        "",
        "![error and seconds against labels](transfer/sizes.png)",
        "",
        "## Against the goal and the paper",
        "",
        *goal_lines(results, targets, labels),
        "",
        (HOME / "notes.md").read_text().rstrip(),
        "",
        "## Speed",
        "",
        *speed_lines(results, first),
        "",
        "## With and without transfer (Figures 15 and 16)",
        "",
        *accuracy_table(results, targets),
    ]
    for name, title in zip(("layers", "shares", "aligned"), choices("default"), strict=True):
        presets = [preset for preset in ("default", "paper") if title in choices(preset)]
        lines += ["", f"## {title}", "", *choice_table(results, targets, title, presets)]
        if title == ALIGNED_TITLE:
            lines += ["", *(alignment(results, targets, preset) for preset in presets)]
        for preset in presets:
            picture = HOME / f"{name}-{preset}.png"
            groups = {
                label: results.pick(preset=preset, **fields)
                for label, fields in choices(preset)[title].items()
            }
            if bars(groups, targets, f"{preset}: {title}", picture):
                lines += ["", f"![{preset}: {title}](transfer/{picture.name})"]
    write_whole(DOCS / "transfer.md", "\n".join([*lines, ""]).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--presets", default="default,paper", help="run these only")
    parser.add_argument("--targets", help="run these settings only")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="run the first ones only")
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    first, *others = measured_datasets()
    datasets = {item.setting: item for item in others}
    if not datasets:
        raise SystemExit(f"no measured setting besides {FIRST} in datasets/; measure one first")
    marks = {setting: fingerprint(data) for setting, data in datasets.items()}
    groupings = Groupings()
    HOME.mkdir(parents=True, exist_ok=True)
    presets = [] if arguments.report_only else arguments.presets.split(",")
    targets = arguments.targets.split(",") if arguments.targets else list(datasets)
    if unknown := set(targets) - set(datasets):
        raise SystemExit(f"--targets: {', '.join(unknown)} is none of {', '.join(datasets)}")
    wanted = [item for item in experiments(targets, arguments.seeds) if item.preset in presets]
    wanted.sort(key=lambda item: bool(item.layers))  # what waits for no source first
    for i, item in enumerate(wanted):
        key = key_of(json.loads(json.dumps(asdict(item))), marks)
        if key in load_results(marks):  # read anew: another process may have run it
            continue
        found = run(item, datasets[item.target], marks[item.target], groupings, arguments.threads)
        line = json.loads(json.dumps({**found, "fingerprint": marks[item.target]}))
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{i + 1}/{len(wanted)} {item.preset} {item.target} {line['nrmse']:.4f}", flush=True)
    report(Results(load_results(marks).values()), first, datasets)


if __name__ == "__main__":
    main()
