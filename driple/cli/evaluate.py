"""`driple evaluate`: how wrong each method is on workloads that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.numbers import MOST_THREADS
from driple.cli.outputs import JsonOption, RunFolderOption
from driple.cli.overrides import engine_name, override, set_option, text, whole
from driple.cli.progress import progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.cli.train import dataset_of, require_training
from driple.data_folders import setting_folders
from driple.engine.engine import MOST_WORKERS
from driple.render.errors_stated import coverage_sentence
from driple.render.show import note, print_json, print_table
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.validate import EvaluateJson
    from driple.cluster.setting import Setting
    from driple.dataset.example import Dataset
    from driple.dataset.lookup import StoredLabels
    from driple.evaluation.benchmark import BenchmarkConfig, BenchmarkResult
    from driple.evaluation.error_analysis import ErrorBreakdown

__all__ = ["evaluate"]

# Beside the shipped data sets: the measured settings, simulated for the same workloads.
_SIMULATED = "simulated-cpu"
_USUAL = "CPU-P1w2"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of an evaluation."""

    seeds: int = whole(1, "splits, with the seeds 0, 1, ...", 1, 1000)
    simulated: str | None = text(
        None,
        "data set folder with simulated labels of the same workloads, for the method simulator; by "
        "default the shipped one of the setting",
    )
    source: str | None = text(
        None, "data set folder of the setting that the method transferred starts from"
    )
    max_epochs: int | None = whole(
        None, "last epoch of each fold at the latest; the preset's", 1, 1_000_000
    )
    patience_epochs: int | None = whole(
        None, "epochs of a fold without a better validation loss; the preset's", 1, 1_000_000
    )
    threads: int | None = whole(None, "CPU threads of a fold; all", 1, MOST_THREADS)
    processes: int = whole(1, "folds that are made at the same time", 1, MOST_WORKERS)
    engine: str = engine_name()


def evaluate(
    setting: Annotated[
        str | None, typer.Option(help="setting; default: that of --dataset, or CPU-P1w2")
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(help="data set folder; default: the setting's in datasets/"),
    ] = None,
    split: Annotated[
        str,
        typer.Option(help="random (60/20/20 by workload) or family (each held out in turn)"),
    ] = "random",
    against: Annotated[
        str,
        typer.Option(
            help="all, or names with commas: mean, knn, trees, forest, simulator, paper, default, "
            "transferred; of one name alone, also where its error is: families, targets, the worst "
            "workloads"
        ),
    ] = "all",
    output: RunFolderOption = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Train and score methods on workloads, or whole families, that they have never seen.

    Methods are the mean of the training labels; nearest neighbours (knn), boosted trees (trees) and
    extremely randomised trees (forest) on whole-graph summaries; the simulator; the presets; and
    preset default of another setting, tuned on this one (transferred, with --set source).
    Finished folds are kept in --output: the same command continues where it was stopped, and prints
    at once when all is done. The shipped folds are in datasets/runs/evaluation.

    Examples:

      driple evaluate -o datasets/runs/evaluation

      driple evaluate --dataset datasets/mine --split family --set seeds=5

      driple evaluate --set seeds=5 --set processes=2 --set threads=1

      driple evaluate --split family --set seeds=5 --against trees

      driple evaluate --setting CPU-P1w3 --set source=datasets/settings/CPU-P1w2_ho-200M
    """
    require_training()
    values = override(_Values, set_)
    from driple.cluster.setting import Setting
    from driple.dataset.store import read_dataset
    from driple.evaluation.benchmark import BenchmarkConfig
    from driple.evaluation.error_analysis import break_down
    from driple.evaluation.methods import choose_methods

    if setting is None and dataset is not None:
        data = read_dataset(dataset)
    else:
        data = dataset_of(Setting.parse(setting or _USUAL), dataset, "--setting")
    measured_on = Setting.parse(data.setting)
    labels = _simulated_labels(values.simulated, measured_on)
    other = None if values.source is None else read_dataset(Path(values.source))
    chosen = choose_methods(data, against, simulated=labels, source=other)
    config = BenchmarkConfig(
        split=split,  # type: ignore[arg-type]  # BenchmarkConfig checks it
        seeds=tuple(range(values.seeds)),
        methods=chosen.methods,
        max_epochs=values.max_epochs,
        patience_epochs=values.patience_epochs,
        threads=values.threads,
    )
    for name, reason in chosen.left_out.items():
        note(f"{name} is left out: {reason}")
    folder = output or Path("runs") / f"evaluate-{measured_on.file_name}"
    result = _run(data, config, folder, labels, other, (values.engine, values.processes))
    breakdown = break_down(result, chosen.methods[0]) if len(chosen.methods) == 1 else None
    if json:
        evaluated: EvaluateJson = {
            **result.to_json_dict(),
            "left_out": chosen.left_out,
            "where": None if breakdown is None else breakdown.to_json_dict(),
        }
        print_json(evaluated, "evaluate")
        return
    _print(result)
    if breakdown is not None:
        _print_where(breakdown)
    _note_overrides(result)


def _simulated_labels(folder: str | None, setting: Setting) -> StoredLabels | None:
    """Labels of the folder that was given, or of the shipped one, if there is one."""
    from driple.dataset.lookup import read_labels

    if folder is not None:
        return read_labels(Path(folder))
    for root in setting_folders():
        shipped = root / _SIMULATED / setting.file_name
        if shipped.exists():
            return read_labels(shipped)
    return None


def _run(
    data: Dataset,
    config: BenchmarkConfig,
    folder: Path,
    labels: StoredLabels | None,
    source: Dataset | None,
    workers: tuple[str, int],
) -> BenchmarkResult:
    """All folds, with a progress bar; `workers` are the engine and its number of processes."""
    from driple.evaluation.evaluate import BenchmarkProgress, run_benchmark

    with ending_on_sigterm(), progress_bar() as bar:
        task = bar.add_task("evaluating", total=None)

        def progress(now: BenchmarkProgress) -> None:
            epoch = f", epoch {now.training.done}" if now.training is not None else ""
            bar.update(
                task,
                completed=now.folds_done,
                total=now.num_folds,
                description=f"{now.method} {now.fold}{epoch}",
            )

        return run_benchmark(
            data,
            config,
            folder,
            simulated=labels,
            source=source,
            engine=workers[0],
            processes=workers[1],
            progress=progress,
        )


def _print(result: BenchmarkResult) -> None:
    print(f"{_title(result)}; errors on the test part")
    methods, cells, bold = result.methods, [], set()
    section = ""
    for row in result.rows():
        if row.section != section:
            cells.append([row.section, *("" for _ in methods)])
            section = row.section
        for column, method in enumerate(methods, start=1):
            if method == row.best:
                bold.add((len(cells), column))
        marks = ["*" if method == row.best else " " for method in methods]
        numbers = [row.to_text(method) + mark for method, mark in zip(methods, marks, strict=True)]
        cells.append([f"  {row.name}", *numbers])
    print_table(["", *(f"{name} " for name in methods)], cells, bold=bold)
    seeds = len(result.config.seeds)
    spread = f", ± standard deviation over {seeds} seeds" if seeds > 1 else ""
    print(f"* the best of its row{spread}")
    for method in methods:
        coverage = result.coverage(method)
        if coverage is not None:
            print(f"{method}: {coverage_sentence(coverage)}")


def _title(result: BenchmarkResult) -> str:
    """What was done, on what."""
    config = result.config
    random = config.split == "random"
    kind = "random splits 60/20/20" if random else "one model family held out in turn"
    folds = len(result.folds) // len(result.methods)
    return f"{result.dataset.name}: {kind}, {counted(folds, 'fold')} of each method"


def _note_overrides(result: BenchmarkResult) -> None:
    changed = [
        f"--set {key}={value}"
        for key, value in (
            ("max_epochs", result.config.max_epochs),
            ("patience_epochs", result.config.patience_epochs),
        )
        if value is not None
    ]
    if changed:
        note(f"presets were changed by {', '.join(changed)}; their own figures may be better")


def _print_where(breakdown: ErrorBreakdown) -> None:
    from driple.trace.targets import TARGET_NAMES

    print(f"\nwhere the error of {breakdown.method} is\n\nSMAPE % by family")
    rows = [
        [name, *(f"{value:.1f}" for value in breakdown.by_family[i])]
        for i, name in enumerate([*TARGET_NAMES, "all 12"])
    ]
    counts = ["workloads", *(str(number) for number in breakdown.num_workloads)]
    print_table(["target", *breakdown.families], [*rows, counts])
    print(
        f"\nerror over floor (SMAPE between two runs, {breakdown.num_repeated} repeated workloads)"
    )
    print_table(
        ["target", "SMAPE %", "floor %", "ratio"],
        [
            [
                row.name,
                f"{row.smape_pct:.1f}",
                "-" if row.floor_pct is None else f"{row.floor_pct:.1f}",
                "-" if row.ratio is None else f"{row.ratio:.2f}",
            ]
            for row in breakdown.over_floor
        ],
    )
    print("\nworst workloads (predictions: mean over the seeds)")
    for number, workload in enumerate(breakdown.worst, start=1):
        print(
            f"{number:2}. {workload.workload}: SMAPE {workload.smape_pct:.0f} %, iteration "
            f"{workload.predicted_time_s:.3f} s predicted, {workload.time_s:.3f} s in the label"
        )
        print(
            f"    worst in {workload.worst_target}: {workload.worst_predicted:.3g} predicted, "
            f"{workload.worst_label:.3g} in the label ({workload.worst_smape_pct:.0f} %); "
            f"{workload.reason}"
        )
