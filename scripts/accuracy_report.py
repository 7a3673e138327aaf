"""Make docs/accuracy.md and docs/accuracy/: how wrong each method is, and where, on each setting.

    python scripts/accuracy_report.py                       from the folds that are there
    python scripts/accuracy_report.py --run trees,forest    make those that are missing, then report
    python scripts/accuracy_report.py --run default --settings CPU-P1w2/ho-200M --threads 2

Folds lie in docs/evaluation. Stop it at any time, the same command goes on; with --settings nothing
is reported, so that several may run at once on different settings. A method that lacks a fold of a
seed is shown without that seed; two methods are compared on the seeds that they share.
"""

from __future__ import annotations

import argparse
import json

from accuracy_compared import SPLITS, Compared, seed_words, with_seeds
from accuracy_figures import by_family, by_setting, predicted_against_label
from accuracy_goals import goals, seeds_told, seen_by_source
from accuracy_paper import patience_told, presets_of
from shipped import (
    DOCS,
    FIRST,
    FIRST_SIMULATED,
    FOLDS,
    SIMULATED_CPU,
    markdown,
    measured_folders,
    simulated_folders,
)

from driple.dataset.example import Dataset
from driple.dataset.lookup import StoredLabels, read_labels
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.files import write_whole
from driple.settings import Setting
from driple.targets import TARGET_NAMES
from driple.training.arena import ALL, ArenaConfig, ArenaResult, SplitKind
from driple.training.breakdown import Breakdown, break_down
from driple.training.evaluate import ArenaProgress, run_arena
from driple.training.methods import choose_methods
from driple.training.summary import Summaries

# Simulated settings that are compared beside the measured ones.
SIMULATED = (FIRST_SIMULATED, "2080Ti-P1w2/ho-PCIe", "V100-P5w10/he-1G")
PICTURES = DOCS / "accuracy"
NUM_EXPLAINED = 3
BEST = (
    "Bold is the best; a method with fewer seeds than the best of the others is compared with it "
    "on the seeds that both have."
)
TITLES = {"random": "Random split (60/20/20)", "family": "Family split (each held out in turn)"}


def compare(
    dataset: Dataset,
    source: Dataset,
    summaries: Summaries,
    *,
    seeds: int,
    run: tuple[str, ...],
    run_splits: tuple[str, ...],
    threads: int | None,
) -> Compared:
    """Read the folds of a setting, after those of `run` that are missing were made.

    Args:
        dataset: of the setting.
        source: of the first setting of its kind, from which the others are transferred.
        summaries: of the graphs of all settings.
        seeds: of the splits.
        run: methods whose missing folds are made.
        run_splits: splits whose missing folds are made.
        threads: of each training.
    """
    setting = dataset.setting
    labels = simulated_labels(setting)
    chosen = choose_methods(dataset, simulated=labels, source=source)

    def progress(now: ArenaProgress) -> None:
        if now.training is None and now.method:
            print(f"{setting}: {now.method}, {now.fold}", flush=True)

    results: dict[SplitKind, ArenaResult] = {}
    for split in SPLITS:
        presets = presets_of(split, measured=setting not in SIMULATED)
        wanted = tuple(name for name in run if name in chosen.methods)
        if wanted and split in run_splits:
            config = ArenaConfig(
                methods=wanted, split=split, seeds=tuple(range(seeds)), threads=threads
            )
            run_arena(
                dataset,
                config,
                FOLDS,
                presets=presets,
                simulated=labels,
                source=source,
                summaries=summaries,
                progress=progress,
            )
        results[split] = run_arena(
            dataset,
            ArenaConfig(methods=chosen.methods, split=split, seeds=tuple(range(seeds))),
            FOLDS,
            presets=presets,
            simulated=labels,
            source=source,
            summaries=summaries,
            stored_only=True,
        )
    return Compared(
        setting=setting,
        about=f"{len(dataset.examples)} workloads, {dataset.about.num_runs or 'no'} real runs",
        results=results,
        left_out=chosen.left_out,
    )


def simulated_labels(setting: str) -> StoredLabels | None:
    """What the simulator says of the workloads of a measured setting."""
    folder = SIMULATED_CPU / Setting.parse(setting).file_name
    return read_labels(folder) if folder.exists() else None


def table(result: ArenaResult) -> list[str]:
    """The arena's table, the best in bold."""
    rows = []
    for row in result.rows():
        cells = [row.section, row.name]
        for method in result.methods:
            text = row.to_text(method)
            cells.append(f"**{text}**" if method == row.best else text)
        rows.append(cells)
    seeds = {method: result.seeds_of(method) for method in result.methods}
    heads = [
        method if of == result.config.seeds else f"{method}, {seed_words(of)}"
        for method, of in seeds.items()
    ]
    lines = markdown(["", "target", *heads], rows)
    if len(set(seeds.values())) > 1:
        lines += ["", f"Numbers are over all seeds of a method. {BEST}"]
    return lines


def overview(found: list[Compared], split: SplitKind) -> list[str]:
    """SMAPE and median error of the iteration time of every method on every setting."""
    methods = methods_of(found)
    rows = []
    for item in found:
        result = item.results[split]
        cells = [item.setting, "-" if item.floor_pct is None else f"{item.floor_pct:.1f}"]
        best = item.best(split)
        for method in methods:
            error, time = item.smape(split, method), item.time_median(split, method)
            if error is None or time is None:
                cells.append("-")
                continue
            text = f"{error.to_text(1)} ; {time.mean:.1f}"
            text = with_seeds(text, result.seeds_of(method), result.config.seeds)
            cells.append(f"**{text}**" if method == best else text)
        rows.append(cells)
    words = (
        f"SMAPE over the 12 targets, ± over {seed_words(found[0].results[split].config.seeds)} or "
        "those that a cell names; after the semicolon the median error of the iteration time. All "
        f"in percent. {BEST}"
    )
    return [words, "", *markdown(["setting", "floor", *methods], rows)]


def methods_of(found: list[Compared]) -> list[str]:
    """Methods that have folds anywhere, in the arena's order."""
    names: dict[str, None] = {}
    for item in found:
        for result in item.results.values():
            names |= dict.fromkeys(result.methods)
    order = next(iter(found[0].results.values())).config.methods
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def unseen(found: list[Compared]) -> dict[str, dict[str, dict[str, float]]]:
    """Errors on held-out families by measured setting, shipped and trees, for README.md.

    Both are over the seeds that both have.
    """
    errors = {}
    for item in found:
        methods = {"shipped": item.shipped, "trees": "trees"}
        seeds = item.seeds("family", methods.values())
        if item.is_measured and seeds:
            errors[item.setting] = {
                name: {"smape_pct": error.mean, "iteration_time_median_pct": time.mean}
                for name, method in methods.items()
                if (error := item.smape("family", method, seeds))
                and (time := item.time_median("family", method, seeds))
            }
    return errors


def where(found: Breakdown) -> list[str]:
    """Families and targets, error over floor, the ten worst workloads."""
    names = [*TARGET_NAMES, ALL]
    families = markdown(
        ["target", *found.families, "all", "floor", "over floor"],
        [
            [
                name,
                *(f"{value:.0f}" for value in found.by_family[i]),
                f"{row.smape_pct:.1f}",
                "-" if row.floor_pct is None else f"{row.floor_pct:.1f}",
                "-" if row.ratio is None else f"{row.ratio:.2f}",
            ]
            for i, (name, row) in enumerate(zip(names, found.over_floor[: len(names)], strict=True))
        ],
    )
    worst = markdown(
        [
            "worst workloads",
            "SMAPE",
            "iteration: predicted, label",
            "worst target: predicted, label",
            "its own runs differ by",
        ],
        [
            [
                item.workload,
                f"{item.smape_pct:.0f} %",
                f"{item.predicted_time_s:.3f} s, {item.time_s:.3f} s",
                f"{item.worst_target}: {item.worst_predicted:.3g}, {item.worst_label:.3g}",
                "-" if item.repeat_smape_pct is None else f"{item.repeat_smape_pct:.0f} %",
            ]
            for item in found.worst
        ],
    )  # fmt: skip
    reasons = [f"- {item.workload}: {item.reason}." for item in found.worst[:NUM_EXPLAINED]]
    return [*families, "", *worst, "", "Why the worst three:", "", *reasons]


def section(item: Compared) -> list[str]:
    """One setting."""
    floor = (
        "No workload ran more than once."
        if item.floor_pct is None
        else f"Two runs of one workload differ by {item.floor_pct:.1f} % (SMAPE, 12 targets)."
    )
    lines = ["", f"## {item.setting}", "", f"{item.about}. {floor}"]
    lines += [f"`{name}` is left out: {reason}." for name, reason in item.left_out.items()]
    if item.setting == FIRST:
        method = item.explained("random")
        if method is not None:
            predicted_against_label(item.results["random"], method, PICTURES / "predicted.png")
            lines += ["", f"![{method}: predicted against label](accuracy/predicted.png)"]
    for split in SPLITS:
        result = item.results[split]
        lines += ["", f"### {TITLES[split]}", "", *table(result)]
        for name in result.methods:
            coverage = result.coverage(name)
            if coverage is not None:
                lines += ["", f"`{name}`: {coverage.sentence()}."]
        method = item.explained(split)
        if split == "family" and method is not None:
            lines += [
                "",
                f"### Where the error of `{method}` is, family split, SMAPE in percent",
                "",
            ]
            lines += where(break_down(result, method))
    return lines


def main() -> None:
    """Run what is asked for, then write the report from all folds that are there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--run", default="", help="methods whose missing folds are made, with commas"
    )
    parser.add_argument("--settings", default="", help="make folds of these alone, report nothing")
    parser.add_argument("--splits", default=",".join(SPLITS), help="splits that are run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    run = tuple(filter(None, arguments.run.split(",")))
    folders = {**measured_folders(), **{name: simulated_folders()[name] for name in SIMULATED}}
    asked = [name for name in arguments.settings.split(",") if name] or list(folders)
    unknown = sorted(set(asked) - set(folders))
    if unknown:
        raise SystemExit(f"--settings: {unknown[0]} is none of {', '.join(folders)}")
    run_splits = tuple(arguments.splits.split(","))
    if unknown := sorted(set(run_splits) - set(SPLITS)):
        raise SystemExit(f"--splits: {unknown[0]!r} is none of {', '.join(SPLITS)}")
    summaries = Summaries()
    sources = {name: FIRST_SIMULATED if name in SIMULATED else FIRST for name in asked}
    wanted = dict.fromkeys([*sources.values(), *asked])
    datasets = {item.setting: item for item in read_datasets(folders[name] for name in wanted)}
    found = [
        compare(
            datasets[name],
            datasets[sources[name]],
            summaries,
            seeds=arguments.seeds,
            run=run,
            run_splits=run_splits,
            threads=arguments.threads,
        )
        for name in asked
    ]
    if not arguments.settings:
        report(found)


def report(found: list[Compared]) -> None:
    """The page and its pictures."""
    by_setting(found, methods_of(found), PICTURES / "settings.png")
    by_family([item for item in found if item.is_measured], PICTURES / "families.png")
    known = json.dumps(unseen(found), indent=1).encode()
    write_whole(PICTURES / "unseen-families.json", known, error=DripleError)
    head = (DOCS / "accuracy.head.md").read_text(encoding="utf-8").rstrip()
    lines = [head, "", *seen_by_source(found), "", *patience_told(found)]
    lines += ["", *seeds_told(found)]
    lines += ["", "## Goals", "", *goals(found)]
    for split in SPLITS:
        lines += ["", f"## All settings: {TITLES[split].lower()}", "", *overview(found, split)]
    lines += [
        "",
        "![error by method and setting](accuracy/settings.png)",
        "",
        "![error by family](accuracy/families.png)",
        "",
        "The first picture is over all seeds of a method, the second over those that the methods "
        "in it share on a setting.",
    ]
    for item in found:
        lines += section(item)
    write_whole(DOCS / "accuracy.md", "\n".join([*lines, ""]).encode(), error=DripleError)


if __name__ == "__main__":
    main()
