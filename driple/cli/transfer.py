"""`driple transfer`: carry an inspector to another setting with few measured workloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driple.checks import MOST_SEED
from driple.cli.joboptions import MachineOption
from driple.cli.numbers import MOST_THREADS, whole_number
from driple.cli.outputs import JsonOption, RunFolderOption
from driple.cli.overrides import number, override, set_option, switch, text, whole
from driple.cli.progress import progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.cli.train import dataset_of, require_training
from driple.cli.transfer_gpu import GPU, tune
from driple.data_folders import setting_folders
from driple.errors import ConfigError
from driple.inspector.checkpoint_places import checkpoint_path
from driple.render.errors_stated import impossible_sentence
from driple.render.show import note, print_json, print_table
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.commands import TransferJson
    from driple.dataset.example import Dataset
    from driple.dataset.split import Split
    from driple.evaluation.curve import CurvePoint, LearningCurve
    from driple.evaluation.leakage import Leakage
    from driple.inspector.checkpoint import Checkpoint
    from driple.training.train import TrainResult
    from driple.training.transfer import TransferConfig

__all__ = ["transfer"]

_PRESET = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a transfer."""

    layers: str | None = text(
        None,
        "what is tuned, of phi_f, phi_r, gru, readout, mlp, with commas; phi_r,mlp for preset "
        "paper and mlp for preset default",
    )
    tuned_share: float | None = number(
        None,
        "share of the repeated graph layers that is tuned, from the last, where layers has phi_r "
        "or gru; 0.5",
        least=0,
        most=1,
    )
    align: bool | None = switch(
        None, "first put every target on the new setting's level; on for preset default"
    )
    curve: bool = switch(True, "also transfer with fewer workloads, for a learning curve")
    seed: int = whole(0, "random seed of batches", 0, MOST_SEED)
    split_seed: int = whole(0, "random seed of the split into 60/20/20", 0, MOST_SEED)
    threads: int = whole(0, "CPU threads; 0 for all", 0, MOST_THREADS)
    catalog: str | None = text(None, "catalogue file of your own that has the device of --to")


def transfer(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="setting of the trained inspector, or a checkpoint file; gpu: what the simulator "
            "knows of GPUs",
        ),
    ],
    target: Annotated[str, typer.Option("--to", help="setting to carry it to")],
    preset: Annotated[
        str | None,
        typer.Option(help="inspector preset: default or paper; default: default, or the file's"),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            help="data set folder; default: the new setting's in datasets/. With --from gpu, a CSV "
            "table of your own runs: job, setting, seconds"
        ),
    ] = None,
    output: RunFolderOption = None,
    workloads: Annotated[
        int | None,
        typer.Option(
            help="learn from this number of workloads, 20 or more; a fifth of the data set is for "
            "testing and not among them",
            callback=whole_number(1, 1_000_000),
        ),
    ] = None,
    machine: MachineOption = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Tune a trained inspector on the data set of another setting (paper, section 4).

    The first graph layers stay as they are; the fully connected layers, and with preset paper the
    last graph layers, learn the new setting. Needs 20 measured workloads or more, of which a fifth
    is for testing. With 40 or more to learn from, the learning curve tells whether more would help.

    With --from gpu, 5 runs of your own on one device or more tune what the simulator knows of that
    GPU and its host, and --output gets a file device.toml for --catalog.

    Examples:

      driple transfer --from CPU-P1w2 --to CPU25-P1w2

      driple transfer --from CPU-P1w2 --to CPU-P2w2 --preset paper --workloads 80

      driple transfer --from gpu --to 1xH100 --dataset my-runs.csv -o runs/h100

      driple predict timm:vit_base_patch16_224 --setting 8xH100 --catalog runs/h100/device.toml
    """
    if source == GPU:
        others = [one for one in set_ or () if not one.startswith("catalog=")]
        given = {"--preset": preset, "--workloads": workloads, "--set": others}
        unused = [flag for flag, value in given.items() if value]
        own = override(_Values, set_).catalog
        tune(target, dataset, own, output, machine=machine, unused=unused, json=json)
        return
    if machine is not None:
        raise ConfigError("--machine is for --from gpu, and no inspector learns from it")
    require_training()
    from dataclasses import replace

    from driple.cluster.setting import parse_setting
    from driple.evaluation.curve import why_no_curve

    values = override(_Values, set_)
    wanted = parse_setting(target, [] if values.catalog is None else [Path(values.catalog)])
    checkpoint, file = _checkpoint(source, preset)
    data = dataset_of(wanted, dataset, "--to")
    _check_new(checkpoint, data)
    config = _config(checkpoint.preset, values.tuned_share, values.layers, values.align)
    config = replace(config, train=replace(config.train, seed=values.seed))
    split = _split(data, workloads, values.split_seed)
    tested = [data.workloads[row] for row in split.test]
    leakage = _note_leakage(checkpoint, file, tested, values.split_seed)
    folder = output or Path("runs") / f"transfer-{wanted.file_name}-{checkpoint.preset}"
    runs = _Runs(checkpoint, data, config, folder, values.threads or None)
    result = runs.run(split, folder, "transferring")
    _note_unknown(checkpoint, data)
    line, reason = None, "no learning curve: --set curve=off was given"
    if values.curve:
        line = runs.curve(split, values.split_seed, result)
        reason = why_no_curve(len(split.train) + len(split.validation))
    note(f"wrote {folder / 'checkpoint.safetensors'}, stopped by {result.stopped_by}")
    _show(result, line, reason, folder, leakage, json=json)


def _checkpoint(source: str, preset: str | None) -> tuple[Checkpoint, Path]:
    """The inspector to start from, of the preset that was asked for; its file."""
    from driple.checks import check_choice
    from driple.cluster.setting import Setting
    from driple.inspector.checkpoint import load_checkpoint
    from driple.training.config import PRESETS

    if preset is not None:
        check_choice("--preset", preset, PRESETS)
    if Path(source).suffix == ".safetensors":
        file = Path(source)
    else:
        file = checkpoint_path(Setting.parse(source), preset or _PRESET)
        preset = preset or _PRESET
    checkpoint = load_checkpoint(file)
    if preset not in (None, checkpoint.preset):
        raise ConfigError(
            f"--preset {preset}, but {file} holds an inspector of preset {checkpoint.preset}; "
            "leave --preset out, or give another checkpoint"
        )
    return checkpoint, file


def _check_new(checkpoint: Checkpoint, data: Dataset) -> None:
    """Refuse the labels that the source has learned; note others of its own setting and kind.

    Measured labels of the setting of a simulated inspector are what a transfer is for, too.
    """
    from driple.dataset.example import fingerprint

    if checkpoint.setting != data.setting:
        return
    who = f"the inspector is of {checkpoint.setting} already, and has learned from"
    if checkpoint.trained_on.fingerprint == fingerprint(data):
        raise ConfigError(
            f"--from and --to: {who} data set {data.name} itself; use it as it is (driple "
            "predict), or name another setting or data set"
        )
    sources = {example.label_source for example in data.examples}
    if checkpoint.provenance in sources:
        note(f"{who} other {checkpoint.provenance} labels of it; it is tuned on {data.name}")


def _config(
    preset: str, tuned_share: float | None, layers: str | None, align: bool | None
) -> TransferConfig:
    """The preset's choice, but for what was asked for."""
    from driple.training.transfer import transfer_config

    chosen: dict[str, Any] = {} if tuned_share is None else {"tuned_share": tuned_share}
    chosen |= {} if layers is None else {"layers": tuple(layers.split(","))}
    chosen |= {} if align is None else {"align": align}
    config = transfer_config(preset, **chosen)
    if tuned_share is not None and not config.tunes_shared:
        who = f"preset {preset} tunes" if layers is None else "--set layers is"
        raise ConfigError(
            f"--set tuned_share={tuned_share:g} has no effect: it counts repeated graph layers, "
            f"and {who} {','.join(config.layers)}; leave it out, or give --set layers=phi_r,mlp"
        )
    return config


def _split(data: Dataset, workloads: int | None, seed: int) -> Split:
    """Of the whole data set, or with only so many workloads to learn from."""
    from driple.dataset.split import limited_split, random_split
    from driple.training.transfer import LEAST_LABELS

    split = random_split(data.workloads, seed)
    if workloads is None:
        return split
    most = len(split.train) + len(split.validation)
    if workloads < LEAST_LABELS:
        raise ConfigError(
            f"--workloads {workloads} is too few: a transfer needs {LEAST_LABELS} or more; ask for "
            f"{LEAST_LABELS}, or leave --workloads out for all that there are"
        )
    if workloads > most:
        raise ConfigError(
            f"--workloads {workloads}, but of the {len(data.examples)} workloads of data set "
            f"{data.name} {most} are left to learn from, the others test; leave --workloads out "
            "for all of them, or measure more"
        )
    return limited_split(split, data.workloads, workloads, seed)


def _note_leakage(
    checkpoint: Checkpoint, file: Path, tested: list[str], seed: int
) -> Leakage | None:
    """Overlap of the tested workloads with the training part of the source; None if unknown."""
    from driple.evaluation.leakage import USUAL_SEED, learned_tests

    leakage = learned_tests(checkpoint, file, tested, setting_folders())
    who = f"the inspector of {checkpoint.setting}"
    if leakage is None:
        if seed != USUAL_SEED:
            note(
                f"the workloads that {who} learned from are not on record; unless it was trained "
                f"with --set split_seed={seed} too, it knows some that are tested here, and the "
                "errors are flattered"
            )
    elif leakage.learned:
        unsure = f", if it was trained with --set split_seed={USUAL_SEED} as the shipped ones were,"
        up_to = "" if leakage.recorded else "up to "
        note(
            f"{who}{'' if leakage.recorded else unsure} has learned from {up_to}{leakage.learned} "
            f"of the {leakage.tested} workloads that --set split_seed={seed} tests, so the errors "
            "are flattered; test with the split seed of its own training"
        )
    return leakage


def _note_unknown(checkpoint: Checkpoint, data: Dataset) -> None:
    from driple.training.transfer import unknown_op_types

    unknown = unknown_op_types(checkpoint, data)
    if unknown:
        most_often = ", ".join(kind for kind, _ in unknown.most_common(5))
        note(
            f"{counted(len(unknown), 'op type')} of {data.name} unknown to the inspector of "
            f"{checkpoint.setting}, in {unknown.total()} nodes: {most_often}"
        )


class _Runs:
    """Transfers of one checkpoint to one data set, with a progress bar each."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        data: Dataset,
        config: TransferConfig,
        folder: Path,
        threads: int | None,
    ) -> None:
        from driple.features import Groupings

        self.checkpoint, self.data, self.config = checkpoint, data, config
        self.folder, self.threads = folder, threads
        self.groupings = Groupings()

    def run(self, split: Split, folder: Path, title: str) -> TrainResult:
        """One transfer, or the rest of it."""
        from driple.training.train import Progress, RunOptions
        from driple.training.transfer import transfer as transfer_inspector

        with ending_on_sigterm(), progress_bar() as bar:
            task = bar.add_task(title, total=None)

            def progress(now: Progress) -> None:
                words = title
                if now.record is not None:
                    words = f"{title}, loss {now.record.val_loss:.4g}"
                bar.update(task, description=words, completed=now.done, total=now.total)

            return transfer_inspector(
                self.checkpoint,
                self.data,
                split,
                self.config,
                folder,
                options=RunOptions(resume=True, progress=progress, threads=self.threads),
                groupings=self.groupings,
            )

    def curve(self, split: Split, seed: int, result: TrainResult) -> LearningCurve | None:
        """The learning curve that ends in a result; all errors on the same scale."""
        from driple.dataset.split import limited_split
        from driple.evaluation.curve import CurvePoint, learning_curve

        def point(size: int, run: TrainResult) -> CurvePoint:
            scores = run.test_scores(self.data, split.train)
            return CurvePoint(size=size, scores=scores, seconds=run.seconds)

        def smaller(size: int) -> CurvePoint:
            part = limited_split(split, self.data.workloads, size, seed)
            return point(
                size, self.run(part, self.folder / f"curve-{size}", f"with {size} workloads")
            )

        return learning_curve(smaller, point(len(split.train) + len(split.validation), result))


def _show(
    result: TrainResult,
    line: LearningCurve | None,
    reason: str,
    folder: Path,
    leakage: Leakage | None,
    *,
    json: bool,
) -> None:
    """Errors and learning curve, or the reason why there is none."""
    metrics = result.checkpoint.metrics
    if words := impossible_sentence(result.scores["test"]):
        note(f"test part: {words}")
    if json:
        adapted: TransferJson = {
            "checkpoint": str(folder / "checkpoint.safetensors"),
            "metrics": metrics,
            "test_impossible": result.scores["test"].num_impossible,
            "seconds": result.seconds,
            "epochs": len(result.history),
            "learning_curve": line.to_json_dict() if line else None,
            "no_learning_curve": None if line else reason,
            "source_knows": leakage,
        }
        print_json(adapted, "transfer")
        return
    rows = [[key, f"{value:.4f}"] for key, value in metrics.items()]
    print_table([result.checkpoint.setting, "error"], rows)
    if line is None:
        print(f"\n{reason}")
        return
    print()
    rows = [
        [
            f"{point.size}",
            f"{point.scores.mean_nrmse:.4f}",
            f"{point.scores.mean_smape_pct:.1f} %",
            f"{point.scores.iteration_time_mape_pct:.1f} %",
        ]
        for point in line.points
    ]
    last = line.points[-1].size
    rows += [[f"{n}, estimated", f"{line.nrmse_at(n):.4f}", "", ""] for n in (2 * last, 4 * last)]
    print_table(["workloads", "NRMSE", "SMAPE", "iteration time"], rows)
    low, high = (100 * gain for gain in line.gain_range)
    print(
        f"twice the workloads: about {100 * line.gain_of_doubling:.0f} % less error, four times of "
        f"five between {low:.0f} and {high:.0f} %; {line.advice}"
    )
