"""`driple train`: train the inspector of a setting on its data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.checks import MOST_SEED
from driple.cli.numbers import MOST_THREADS
from driple.cli.outputs import JsonOption, RunFolderOption
from driple.cli.overrides import override, set_option, text, whole
from driple.cli.progress import progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.data_folders import HERE, checkout_or_here, setting_folders
from driple.errors import ConfigError, DatasetError, MissingExtraError, install_hint
from driple.render.errors_stated import impossible_sentence
from driple.render.show import note, print_json, print_table

if TYPE_CHECKING:
    from driple.api.json_types.commands import TrainJson
    from driple.cluster.setting import Setting
    from driple.dataset.example import Dataset

__all__ = ["dataset_of", "dataset_path", "datasets_folder", "require_training", "train"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a training run."""

    seed: int = whole(0, "random seed of weights and batches", 0, MOST_SEED)
    init: str | None = text(
        None, "file of the weights that Driple's authors published, to begin with (preset paper)"
    )
    max_epochs: int | None = whole(None, "last epoch at the latest; the preset's", 1, 1_000_000)
    patience_epochs: int | None = whole(
        None, "epochs without a better validation loss; the preset's", 1, 1_000_000
    )
    split_seed: int = whole(0, "random seed of the split into 60/20/20", 0, MOST_SEED)
    threads: int = whole(0, "CPU threads; 0 for all", 0, MOST_THREADS)


def train(
    setting: Annotated[str, typer.Option(help="setting to train for")],
    preset: Annotated[str, typer.Option(help="inspector preset: default or paper")] = "default",
    dataset: Annotated[
        Path | None,
        typer.Option(help="data set folder; default: the setting's in datasets/"),
    ] = None,
    output: RunFolderOption = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Train an inspector; writes checkpoint.safetensors, log.jsonl and config.json.

    Preset paper is the paper's inspector. Its budget is 400 epochs; in the first 392 the 49
    repeated layers are in closed form, which takes a twentieth of the time. With --set init it
    trains as the authors' code does: at a constant rate, until 1,000 epochs bring nothing.

    Stopped, the same command goes on after the last whole epoch, and ends with the same weights;
    killed, after the last state, which is saved every 30 s. Preset default then trains up to five
    more inspectors, each without some of the families, which tell how wide its intervals are on new
    ones. A data set that came with a split of its own (driple data import) keeps it.

    Examples:

      driple train --setting CPU-P1w2

      driple train --setting CPU-P1w2 --preset paper -o runs/paper

      driple train --setting V100 --dataset datasets/V100-released --preset paper
      --set init=model.pkl
    """
    require_training()
    from dataclasses import replace

    from driple.checks import check_choice
    from driple.cluster.setting import Setting
    from driple.dataset.split import given_split, random_split
    from driple.training.config import AUTHORS, PRESETS, preset_named
    from driple.training.loop import Progress
    from driple.training.train import RunOptions
    from driple.training.train import train as train_inspector

    values = override(_Values, set_)
    init = None if values.init is None else Path(values.init)
    check_choice("--preset", preset, PRESETS)
    wanted = Setting.parse(setting)
    data = dataset_of(wanted, dataset, "--setting")
    base = AUTHORS if init is not None and preset == AUTHORS.name else preset_named(preset)
    chosen = replace(
        base,
        train=replace(
            base.train,
            seed=values.seed,
            max_epochs=values.max_epochs or base.train.max_epochs,
            patience_epochs=values.patience_epochs or base.train.patience_epochs,
        ),
    )
    usual = f"train-{wanted.file_name}-{preset}-s{values.split_seed}.{values.seed}"
    folder = output or Path("runs") / usual
    split = given_split(data.examples) or random_split(data.workloads, values.split_seed)
    with ending_on_sigterm(), progress_bar() as bar:
        task = bar.add_task("building inputs", total=None)

        def progress(now: Progress) -> None:
            words = "building inputs"
            if now.record is not None:
                words = f"loss {now.record.val_loss:.4g}, best in epoch {now.best_epoch}"
            bar.update(task, description=words, completed=now.done, total=now.total)

        options = RunOptions(resume=True, progress=progress, threads=values.threads or None)
        result = train_inspector(data, split, chosen, folder, options=options, init=init)
    note(f"wrote {folder / 'checkpoint.safetensors'}, stopped by {result.stopped_by}")
    metrics, test = result.checkpoint.metrics, result.scores.get("test")
    if test is not None and (words := impossible_sentence(test)):
        note(f"test part: {words}")
    if json:
        file = str(folder / "checkpoint.safetensors")
        impossible = None if test is None else test.num_impossible
        trained: TrainJson = {
            "checkpoint": file,
            "metrics": metrics,
            "test_impossible": impossible,
        }
        print_json(trained, "train")
    else:
        print_table(
            [data.setting, "error"], [[key, f"{value:.4f}"] for key, value in metrics.items()]
        )


def datasets_folder(given: Path) -> Path:
    """A folder of data sets; the usual one may lie beside the package's source."""
    if given != HERE:
        return given
    return next((root for root in checkout_or_here() if root.is_dir()), given)


def dataset_of(setting: Setting, folder: Path | None, flag: str) -> Dataset:
    """The data set in a folder, or else the usual one of the setting.

    Args:
        setting: that is asked for.
        folder: that is asked for.
        flag: by which the setting was asked for.

    Raises:
        ConfigError: the data set is of another setting.
        DatasetError: there is none, or it is damaged.
    """
    from driple.cluster.setting import Setting
    from driple.dataset.store import read_dataset

    data = read_dataset(folder or dataset_path(setting))
    if Setting.parse(data.setting) != setting:
        raise ConfigError(
            f"{flag} {setting.name}, but data set {data.name} is of {data.setting}; give the one "
            "that you mean"
        )
    return data


def dataset_path(setting: Setting) -> Path:
    """The data set folder of a setting, here or beside the package's source.

    Raises:
        DatasetError: there is none.
    """
    for place in setting_folders():
        folder = place / setting.file_name
        if (folder / "dataset.json").exists():
            return folder
    raise DatasetError(
        f"no data set of {setting.name} in datasets/; give --dataset FOLDER, or measure one: "
        f"driple measure WORKLOAD... --setting {setting.name} "
        f"--dataset datasets/{setting.file_name}"
    )


def require_training() -> None:
    """Raise MissingExtraError unless the extra `train` is installed."""
    from importlib.util import find_spec

    needed = ("torch", "pyarrow", "category_encoders", "networkx")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"training needs {', '.join(missing)}, which is not installed; {install_hint('train')}"
        )
