"""Train and score every method on every setting and split, and write down the errors.

    python -m scripts.studies.accuracy.run [--run trees,forest] [--settings CPU-P1w2/ho-200M]
        [--splits family] [--seeds 5] [--threads 2]

Finished folds are read from datasets/runs/evaluation, those of --run that are missing are made
there (hours; datasets/README.md shows how to restore them). Stop it at any time, the same command
goes on. The rows of the chosen settings are replaced in the CSV files of this folder, a seed of a
method of which a fold is missing is left out; two methods are compared on the seeds that they
share. A method without any fold on a split keeps its errors of an earlier run, and is compared by
those; without folds of the shipped inspector on both splits errors.csv alone changes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.dataset.lookup import read_labels
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.evaluation.benchmark import (
    ALL,
    SMAPE,
    TIME,
    BenchmarkConfig,
    BenchmarkResult,
    SplitKind,
)
from driple.evaluation.error_analysis import break_down
from driple.evaluation.evaluate import run_benchmark
from driple.evaluation.methods import TRANSFERRED, choose_methods
from driple.evaluation.summary import Summaries
from driple.files import atomic_write
from driple.trace.provenance import Provenance
from driple.trace.targets import TARGET_NAMES
from driple.training.config import AUTHORS, PRESETS, Preset
from scripts.settings.shipped import (
    FIRST,
    FIRST_SIMULATED,
    FOLDS,
    SIMULATED_CPU,
    less_patient,
    measured_folders,
    simulated_folders,
)
from scripts.studies.kit.tables import read_rows, write_rows

HOME = Path(__file__).parent
SPLITS: tuple[SplitKind, ...] = get_args(SplitKind)
# Simulated settings that are compared beside the measured ones.
SIMULATED = (FIRST_SIMULATED, "2080Ti-P1w2/ho-PCIe", "V100-P5w10/he-1G")
Rows = list[dict[str, object]]
Results = Mapping[SplitKind, BenchmarkResult]


def presets_of(split: SplitKind, *, measured: bool) -> Mapping[str, Preset]:
    """Presets of the stored folds: `paper` as the authors train it, with their patience on random
    splits of real labels.

    With that patience, a family split of it takes twelve times an hour or more.
    """
    if split == "random" and measured:
        return {**PRESETS, "paper": AUTHORS}
    return {**PRESETS, "paper": less_patient(AUTHORS)}


def arenas(
    dataset: Dataset, source: Dataset, summaries: Summaries, options: argparse.Namespace
) -> Results:
    """Both splits of a setting, after the missing folds of --run were made."""
    folder = SIMULATED_CPU / Setting.parse(dataset.setting).file_name
    labels = read_labels(folder) if folder.exists() else None
    chosen = choose_methods(dataset, simulated=labels, source=source)
    wanted = tuple(name for name in options.run.split(",") if name in chosen.methods)
    results: dict[SplitKind, BenchmarkResult] = {}
    for split in SPLITS:
        for methods, stored_only in ((wanted, False), (chosen.methods, True)):
            if not methods or (not stored_only and split not in options.splits.split(",")):
                continue
            results[split] = run_benchmark(
                dataset,
                BenchmarkConfig(
                    methods=methods,
                    split=split,
                    seeds=tuple(range(options.seeds)),
                    threads=options.threads,
                ),
                FOLDS,
                presets=presets_of(split, measured=dataset.setting not in SIMULATED),
                simulated=labels,
                source=source,
                summaries=summaries,
                stored_only=stored_only,
            )
    return results


def shipped_method(results: Results) -> str:
    """The method of the shipped inspector: a transferred one, where there is a way to one."""
    everywhere = all(TRANSFERRED in result.methods for result in results.values())
    return TRANSFERRED if everywhere else "default"


def is_complete(results: Results) -> bool:
    """Whether both splits have folds of the shipped inspector."""
    method = shipped_method(results)
    return all(
        split in results and any(row.by_seed.get(method) for row in results[split].rows())
        for split in SPLITS
    )


def error_rows(setting: str, results: Results) -> Rows:
    """Every error of every method: mean and standard deviation over its seeds."""
    return [
        {
            "setting": setting,
            "split": split,
            "method": method,
            "seeds": seeds_text(tuple(row.by_seed[method])),
            "error": row.section,
            "target": row.name,
            "mean": f"{spread.mean:.{digits_of(row.section)}f}",
            "std": "" if spread.std is None else f"{spread.std:.{digits_of(row.section)}f}",
        }
        for split, result in results.items()
        for row in result.rows()
        for method, spread in row.values.items()
    ]


def digits_of(section: str) -> int:
    """Digits that an error is stored with, after the point."""
    return 4 if section == "NRMSE" else 1


def seeds_text(seeds: Sequence[int]) -> str:
    """Such as `0`, `0-4`, `0,2`."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def family_rows(setting: str, results: Results) -> Rows:
    """SMAPE of the shipped inspector by family that was held out, and between two runs."""
    method = shipped_method(results)
    breakdown = break_down(results["family"], method)
    rows: Rows = []
    for number, (target, over) in enumerate(
        zip([*TARGET_NAMES, ALL], breakdown.over_floor, strict=False)
    ):
        values = dict(zip(breakdown.families, breakdown.by_family[number], strict=True))
        known = {**values, "all": over.smape_pct, "floor": over.floor_pct, "over floor": over.ratio}
        rows += [
            {
                "setting": setting,
                "method": method,
                "target": target,
                "family": family,
                "smape_pct": f"{value:.6g}",
            }
            for family, value in known.items()
            if value is not None
        ]
    return rows


def worst_rows(setting: str, results: Results) -> Rows:
    """The workloads with the largest errors of the shipped inspector, families held out."""
    method = shipped_method(results)
    return [
        {
            "setting": setting,
            "method": method,
            "workload": item.workload,
            "smape_pct": f"{item.smape_pct:.3g}",
            "iteration_s": f"{item.predicted_time_s:.3f} s, {item.time_s:.3f} s",
            "worst_target": f"{item.worst_target}: {item.worst_predicted:.3g}, "
            f"{item.worst_label:.3g}",
            "own_runs_differ_pct": "",
        }
        for item in break_down(results["family"], method).worst
    ]


def coverage_rows(setting: str, results: Results) -> Rows:
    """Share of labels within the intervals of the shipped inspector."""
    method, rows = shipped_method(results), []
    for split, result in results.items():
        coverage = result.coverage(method)
        if coverage is None:
            continue
        workloads = {name for fold in result.folds_of(method) for name in fold.predictions}
        held = [("all", "all", len(workloads), coverage.targets, coverage.iteration_time)]
        held += [
            ("family", name, some.num_predictions, some.targets, some.iteration_time)
            for name, some in coverage.by_family.items()
        ]
        rows += [
            {
                "setting": setting,
                "split": split,
                "method": method,
                "part": part,
                "name": name,
                "predictions": num,
                "targets_pct": f"{100 * targets:.3g}",
                "time_pct": f"{100 * time:.3g}",
            }
            for part, name, num, targets, time in held
        ]
    return rows


def ratio_rows(setting: str, results: Results, about: Provenance) -> Rows:
    """SMAPE of inspectors over that of other methods, on the seeds that both have."""
    floors = about.repeatability.smape_pct if about.repeatability else {}
    floor = sum(floors[name] for name in TARGET_NAMES) / len(TARGET_NAMES) if floors else None
    rows: Rows = []
    for method in dict.fromkeys((shipped_method(results), "default")):
        random = spread_of(results["random"], (SMAPE, ALL), method)
        time = spread_of(results["family"], (TIME, "median"), method)
        cells = {
            "random_to_paper": ratio(setting, results["random"], method, "paper"),
            "family_to_paper": ratio(setting, results["family"], method, "paper"),
            "random_to_floor": random / floor if random is not None and floor else None,
            "family_to_trees": ratio(setting, results["family"], method, "trees"),
            "family_time_median_pct": time,
            "time_floor_pct": floors.get("iteration_time"),
        }
        rows.append(
            {
                "setting": setting,
                "method": method,
                "shipped": str(method == shipped_method(results)).lower(),
                **{name: "-" if value is None else f"{value:.3g}" for name, value in cells.items()},
            }
        )
    return rows


def spread_of(
    result: BenchmarkResult, name: tuple[str, str], method: str, seeds: Iterable[int] = ()
) -> float | None:
    """Mean of one error over these seeds, or over all of the method; None without folds."""
    for row in result.rows():
        if (row.section, row.name) == name and method in row.by_seed:
            known = row.by_seed[method]
            values = [known[seed] for seed in tuple(seeds) or known]
            return sum(values) / len(values) if values else None
    return None


def pair_of(
    setting: str, result: BenchmarkResult, name: tuple[str, str], methods: tuple[str, str]
) -> tuple[float | None, float | None]:
    """One error of two methods, on the seeds that both have; without folds, the stored error.

    None for both where both have folds, and share no seed.
    """
    folded = [method for method in methods if result.seeds_of(method)]
    seeds = result.common_seeds(folded)
    if folded and not seeds:
        return None, None
    first, other = (
        spread_of(result, name, method, seeds)
        if method in folded
        else stored_error(setting, result.config.split, name, method)
        for method in methods
    )
    return first, other


def stored_error(setting: str, split: str, name: tuple[str, str], method: str) -> float | None:
    """An error of an earlier run; None if there is none."""
    wanted = {"setting": setting, "split": split, "method": method}
    wanted |= {"error": name[0], "target": name[1]}
    for row in read_rows(HOME / "errors.csv"):
        if wanted.items() <= row.items():
            return float(row["mean"])
    return None


def ratio(setting: str, result: BenchmarkResult, method: str, other: str) -> float | None:
    """SMAPE of a method over that of another; None where one has none."""
    own, two = pair_of(setting, result, (SMAPE, ALL), (method, other))
    return None if own is None or two is None else own / two


def unseen(setting: str, results: Results) -> dict[str, dict[str, float | None]]:
    """Errors on held-out families, shipped and trees, for README.md."""
    methods = {"shipped": shipped_method(results), "trees": "trees"}
    pair = (methods["shipped"], methods["trees"])
    smape, time = (
        pair_of(setting, results["family"], name, pair) for name in ((SMAPE, ALL), (TIME, "median"))
    )
    return {
        name: {"smape_pct": smape[number], "iteration_time_median_pct": time[number]}
        for number, name in enumerate(methods)
    }


def replace_rows(name: str, setting: str, rows: Rows, columns: Sequence[str] = ()) -> None:
    """Put the rows of a setting in place of those that a CSV file has.

    Args:
        name: of the file.
        setting: whose rows.
        rows: new ones.
        columns: rows of the setting with other values in these than all new ones stay.
    """
    replaced = {tuple(row[column] for column in columns) for row in rows}
    kept = [
        row
        for row in read_rows(HOME / name)
        if row["setting"] != setting or tuple(row[column] for column in columns) not in replaced
    ]
    write_rows(HOME / name, [*kept, *rows])


def main() -> None:
    """Run, and replace the rows of the chosen settings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", default="", help="methods whose missing folds are made")
    parser.add_argument("--settings", default="", help="these alone, instead of all")
    parser.add_argument("--splits", default=",".join(SPLITS), help="splits that are run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    folders = {**measured_folders(), **{name: simulated_folders()[name] for name in SIMULATED}}
    asked = [name for name in options.settings.split(",") if name] or list(folders)
    if unknown := sorted(set(asked) - set(folders)):
        raise SystemExit(f"--settings: {unknown[0]} is none of {', '.join(folders)}")
    sources = {name: FIRST_SIMULATED if name in SIMULATED else FIRST for name in asked}
    wanted = dict.fromkeys([*sources.values(), *asked])
    datasets = {item.setting: item for item in read_datasets(folders[name] for name in wanted)}
    summaries = Summaries()
    known = json.loads((HOME / "unseen-families.json").read_bytes())
    for name in asked:
        results = arenas(datasets[name], datasets[sources[name]], summaries, options)
        replace_rows("errors.csv", name, error_rows(name, results), ("split", "method"))
        print(f"{name}: {len(results)} splits", flush=True)
        if not is_complete(results):
            continue
        replace_rows("families.csv", name, family_rows(name, results))
        replace_rows("worst.csv", name, worst_rows(name, results))
        replace_rows("coverage.csv", name, coverage_rows(name, results))
        if name not in SIMULATED:
            replace_rows("ratios.csv", name, ratio_rows(name, results, datasets[name].about))
            known[name] = unseen(name, results)
    text = json.dumps(known, indent=1)
    atomic_write(HOME / "unseen-families.json", text.encode(), error=DripleError)


if __name__ == "__main__":
    main()
