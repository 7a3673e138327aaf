"""`driple evaluate`: how wrong each method is on workloads that it was not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.show import note, print_json, print_table, progress_bar
from driple.cli.train import dataset_path, require_training

if TYPE_CHECKING:
    from driple.training.arena import ArenaResult, TableRow

__all__ = ["evaluate"]

_METHODS = "mean,paper,default"


def evaluate(
    setting: Annotated[str, typer.Option(help="cluster setting")] = "CPU-P1w2",
    dataset: Annotated[
        Path | None,
        typer.Option(help="data set folder; by default the one of the setting in datasets/"),
    ] = None,
    split: Annotated[
        str, typer.Option(help="random (60/20/20 by workload) or family (each held out in turn)")
    ] = "random",
    seeds: Annotated[int, typer.Option(help="splits, with the seeds 0, 1, ...")] = 1,
    methods: Annotated[str, typer.Option(help="baselines and presets, with commas")] = _METHODS,
    work: Annotated[
        Path | None,
        typer.Option(help="folder of finished folds; what is done there is not trained again"),
    ] = None,
    max_epochs: Annotated[
        int | None,
        typer.Option(help="train each fold for at most so many epochs, in place of the preset's"),
    ] = None,
    patience_epochs: Annotated[
        int | None,
        typer.Option(help="stop a fold after so many epochs without a better validation loss"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="CPU threads while training"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Train and score methods on workloads, or whole families, that they have never seen.

    Finished folds are kept in --work: the same command goes on where it was stopped, and prints at
    once when all is done. The shipped folds are in docs/evaluation.

    Examples:

      driple evaluate --work docs/evaluation

      driple evaluate --split family --methods mean,default

      driple evaluate --seeds 5 --json
    """
    require_training()
    from driple.dataset.store import read_dataset
    from driple.errors import ConfigError
    from driple.settings import Setting
    from driple.training.arena import ArenaConfig
    from driple.training.evaluate import ArenaProgress, run_arena

    wanted = Setting.parse(setting)
    data = read_dataset(dataset or dataset_path(wanted))
    if seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    config = ArenaConfig(
        split=split,  # type: ignore[arg-type]  # ArenaConfig checks it
        seeds=tuple(range(seeds)),
        methods=tuple(methods.split(",")),
        max_epochs=max_epochs,
        patience_epochs=patience_epochs,
        threads=threads,
    )
    folder = work or Path("runs") / f"evaluate-{wanted.file_name}"
    with progress_bar() as bar:
        task = bar.add_task("evaluating", total=None)

        def progress(now: ArenaProgress) -> None:
            epoch = f", epoch {now.training.done}" if now.training is not None else ""
            bar.update(
                task,
                completed=now.folds_done,
                total=now.num_folds,
                description=f"{now.method} {now.fold}{epoch}",
            )

        result = run_arena(data, config, folder, progress=progress)
    if json:
        print_json(result.to_json_dict())
    else:
        _print(result)


def _print(result: ArenaResult) -> None:
    config = result.config
    kind = (
        "random splits 60/20/20"
        if config.split == "random"
        else "one model family held out in turn"
    )
    folds = len(result.folds) // len(config.methods)
    print(f"{result.data_set}: {kind}, {folds} fold(s); errors on the test part")
    header = [
        "target",
        *(f"{name} NRMSE" for name in config.methods),
        *(f"{name} SMAPE %" for name in config.methods),
    ]
    print_table(header, [_cells(row, config.methods) for row in result.rows()])
    for name in config.methods:
        done = result.folds_of(name)
        stops = {fold.stopped_by for fold in done}
        seconds = sum(fold.train_seconds for fold in done)
        epochs = sum(fold.num_epochs for fold in done)
        print(
            f"{name}: {seconds:.0f} s of training, {epochs} epochs, stopped by {', '.join(stops)}"
        )
    changed = [
        f"--{key.replace('_', '-')} {value}"
        for key, value in (
            ("max_epochs", config.max_epochs),
            ("patience_epochs", config.patience_epochs),
        )
        if value is not None
    ]
    if changed:
        note(f"presets were changed by {', '.join(changed)}; their own figures may be better")


def _cells(row: TableRow, methods: tuple[str, ...]) -> list[str]:
    errors = [row.nrmse[name] for name in methods]
    best = min((error for error in errors if error is not None), default=None)
    nrmse = [
        "-" if error is None else f"{error:.4f}{'*' if error == best else ' '}" for error in errors
    ]
    least = min(row.smape_pct.values())
    smape = [
        f"{row.smape_pct[name]:.1f}{'*' if row.smape_pct[name] == least else ' '}"
        for name in methods
    ]
    return [row.name, *nrmse, *smape]
