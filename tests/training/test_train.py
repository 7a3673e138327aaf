"""Training: it learns, repeats itself, survives a kill to the bit, and says when it fails."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from driple.dataset import Split, merge_examples, random_split
from driple.errors import ConfigError, DatasetError
from driple.features import build_input
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from driple.inspector.predict import Predictor
from driple.trace.provenance import Provenance, TimeError
from driple.trace.targets import Targets
from driple.training import runfiles
from driple.training.config import Preset
from driple.training.loop import Progress, Trainer
from driple.training.prepare import PreparedPart
from driple.training.train import RunOptions, TrainResult, train
from tests.dataset.examples import chain_graph, synthetic_dataset
from tests.training.presets import overfit_preset, small_preset

ROOT = Path(__file__).resolve().parents[2]
DATASET = synthetic_dataset()
SPLIT = random_split(DATASET.workloads, 0)
ONE_THREAD = RunOptions(threads=1)


def run(folder: Path, preset: Preset | None = None, **options: Any) -> TrainResult:
    return train(
        DATASET,
        options.pop("split", SPLIT),
        preset or small_preset(),
        folder,
        options=RunOptions(threads=1, **options),
    )


def timeless_log(folder: Path) -> list[dict[str, float]]:
    """The log without the seconds, which differ from run to run."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def state_tensors(folder: Path) -> dict[str, np.ndarray]:
    state = runfiles.load_state(folder)
    assert state is not None
    tensors = {f"model/{name}": tensor.numpy() for name, tensor in state.model.items()}
    tensors |= {f"best/{name}": tensor.numpy() for name, tensor in state.best.items()}
    for i, slots in enumerate(state.optimizer):
        tensors |= {f"optimizer/{i}/{name}": tensor.numpy() for name, tensor in slots.items()}
    return tensors


def assert_same_run(run_folder: Path, other: Path) -> None:
    """Log, weights, best weights and optimizer equal to the bit."""
    assert timeless_log(run_folder) == timeless_log(other)
    state, wanted = state_tensors(run_folder), state_tensors(other)
    assert state.keys() == wanted.keys()
    assert any("exp_avg_sq" in name for name in state)
    for name, array in state.items():
        assert array.tobytes() == wanted[name].tobytes(), name
    a, b = (load_checkpoint(folder / "checkpoint.safetensors") for folder in (run_folder, other))
    assert all(a.weights[name].tobytes() == b.weights[name].tobytes() for name in a.weights)
    assert (a.metrics, a.trained_on.best_epoch) == (b.metrics, b.trained_on.best_epoch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(folder)
    return folder


@pytest.mark.parametrize("scaling", ["log", "max"])
def test_a_tiny_dataset_is_learned_by_heart(tmp_path: Path, scaling: str) -> None:
    """Eight workloads, 300 epochs: the loss all but vanishes, and so do the errors."""
    result = run(tmp_path, overfit_preset(target_scaling=scaling))
    first, last = result.history[0].train_loss, result.history[-1].train_loss
    assert last < 0.02 * first
    assert min(record.train_loss for record in result.history) < (
        0.01 if scaling == "log" else 5e-4
    )
    assert result.scores["train"].mean_nrmse < 0.1


def test_the_papers_model_learns(tmp_path: Path) -> None:
    """GCN, GRU, set2set and maximum-scaled targets go through the same loop; the loss falls."""
    preset = Preset(name="tiny paper")
    preset = replace(
        preset,
        input=replace(preset.input, num_groups=6),
        train=replace(preset.train, max_epochs=15),
    )
    result = run(tmp_path, preset)
    assert result.history[-1].train_loss < 0.8 * result.history[0].train_loss
    assert result.checkpoint.input_scaler.kind == "identity"
    assert result.checkpoint.config.num_context == 0


def test_groups_in_proportion_to_the_batch(tmp_path: Path) -> None:
    """With the policy `proportional` graphs have different M, and the model takes them all."""
    preset = small_preset(max_epochs=2)
    preset = replace(preset, input=replace(preset.input, policy="proportional"))
    result = run(tmp_path, preset)
    sizes = [DATASET.examples[i].graph.num_nodes for i in SPLIT.train]
    assert result.checkpoint.num_groups <= np.ceil(np.log10(max(sizes)))
    assert np.isfinite(result.predictions["test"]).all()


def test_a_run_repeats_itself(finished: Path, tmp_path: Path) -> None:
    """The same seed gives the same log and weights to the bit; another seed does not."""
    torch.rand(3)  # the state of torch's generator must not matter
    run(tmp_path / "again")
    assert_same_run(tmp_path / "again", finished)
    run(tmp_path / "other", small_preset(seed=1))
    assert timeless_log(tmp_path / "other") != timeless_log(finished)


def test_the_order_of_rows_changes_nothing(finished: Path, tmp_path: Path) -> None:
    """A data set whose rows stand in another order trains the same inspector."""
    turned = replace(DATASET, examples=DATASET.examples[::-1])
    train(
        turned,
        random_split(turned.workloads, 0),
        small_preset(),
        tmp_path / "run",
        options=ONE_THREAD,
    )
    assert_same_run(tmp_path / "run", finished)


def test_torch_is_left_as_it_was(tmp_path: Path) -> None:
    """Random generator and number of threads belong to the caller."""
    torch.manual_seed(5)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(5)
    train(
        DATASET,
        SPLIT,
        small_preset(max_epochs=1),
        tmp_path,
        options=RunOptions(threads=threads + 1),
    )
    assert torch.equal(torch.rand(1), expected)
    assert torch.get_num_threads() == threads
    assert json.loads((tmp_path / "config.json").read_text())["threads"] == threads + 1


def test_every_epoch_has_an_order_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every epoch sees each training workload once, shuffled anew."""
    batches: list[list[int]] = []
    one_step = Trainer._one_step

    def watched(trainer: Trainer, part: PreparedPart, rows: torch.Tensor) -> float:
        batches.append(rows.tolist())
        return one_step(trainer, part, rows)

    monkeypatch.setattr(Trainer, "_one_step", watched)
    run(tmp_path, small_preset(max_epochs=3))
    assert [len(batch) for batch in batches] == [3, 3, 2] * 3
    epochs = [[row for batch in batches[i : i + 3] for row in batch] for i in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(8)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]


def test_the_training_loss_is_the_mean_over_workloads(tmp_path: Path) -> None:
    """While the weights stand still, it does not depend on how the batches are cut."""
    losses = [
        run(
            tmp_path / str(size),
            overfit_preset(learning_rate=1e-15, max_epochs=1, batch_size=size),
        )
        .history[0]
        .train_loss
        for size in (3, 5, 8)
    ]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)


def test_a_killed_run_goes_on_to_the_bit(finished: Path, tmp_path: Path) -> None:
    """Killed with SIGKILL in the middle, then resumed: as if it had never happened."""
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "tests.training.killed_run", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 7:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    with (folder / "log.jsonl").open("a") as stream:
        stream.write('{"epoch": 8, "train_lo')  # a line torn by the kill
    state = runfiles.load_state(folder)
    assert state is not None
    assert 1 <= state.epoch <= 7
    assert not (folder / "checkpoint.safetensors").exists()
    run(folder, resume=True)
    assert_same_run(folder, finished)


@pytest.mark.parametrize("epoch", [1, 5, 11])
def test_stopped_after_any_epoch(finished: Path, tmp_path: Path, epoch: int) -> None:
    """A run that ends in the middle of an epoch goes on from its last state."""

    class StopError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.stage == "epochs" and progress.done == epoch:
            raise StopError

    with pytest.raises(StopError):
        run(tmp_path / "run", progress=stop, save_every_s=0)
    run(tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", finished)


def test_stopped_in_the_middle_of_an_epoch_nothing_of_the_others_is_lost(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, twice: the state is that of the last whole epoch, of the run before too."""
    whole = Trainer._one_step
    folder = tmp_path / "run"

    def stop_in(epoch: int) -> None:
        def step(trainer: Trainer, part: PreparedPart, rows: torch.Tensor) -> float:
            loss = whole(trainer, part, rows)
            if trainer.epoch == epoch - 1:
                raise KeyboardInterrupt
            return loss

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_one_step", step)
            with pytest.raises(KeyboardInterrupt):
                run(folder, resume=True, save_every_s=1e9)

    stop_in(6)
    stop_in(6)
    state = runfiles.load_state(folder)
    assert state is not None and state.epoch == 5
    run(folder, resume=True)
    assert_same_run(folder, finished)


def test_a_kill_before_the_first_state_starts_anew(finished: Path, tmp_path: Path) -> None:
    """With the configuration written and a log begun but no state, the first epoch is repeated."""
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(finished / "config.json", folder)
    (folder / "log.jsonl").write_text((finished / "log.jsonl").read_text()[:300])
    run(folder, resume=True)
    assert_same_run(folder, finished)


def test_resuming_a_finished_run_reads_it(finished: Path, tmp_path: Path) -> None:
    """No epoch is trained again, and the result is the same."""
    shutil.copytree(finished, tmp_path / "run")
    epochs = []
    result = run(tmp_path / "run", resume=True, progress=lambda p: epochs.append(p.stage))
    assert "epochs" not in epochs
    assert len(result.history) == 12
    assert (tmp_path / "run" / "log.jsonl").read_text() == (finished / "log.jsonl").read_text()
    assert_same_run(tmp_path / "run", finished)


def test_patience_ends_a_run_and_the_best_weights_are_kept(tmp_path: Path) -> None:
    """Three epochs after the best one it is over; the checkpoint is the best epoch's."""
    result = run(tmp_path, small_preset(max_epochs=500, patience_epochs=3, learning_rate=0.05))
    losses = [record.val_loss for record in result.history]
    assert result.stopped_by == "patience"
    assert result.best_epoch == 1 + int(np.argmin(losses)) == len(losses) - 3
    part = [DATASET.examples[i] for i in SPLIT.validation]
    predicted = _predict_with_numpy(result, [example.graph for example in part])
    scaler = result.checkpoint.target_scaler
    labels = np.array([example.targets.flat for example in part])
    error = scaler.transform(predicted) - scaler.transform(labels)
    assert np.mean(error**2) == pytest.approx(min(losses), rel=1e-3)
    assert predicted == pytest.approx(result.predictions["validation"], rel=1e-4)


def _predict_with_numpy(result: TrainResult, graphs: list[Any]) -> np.ndarray:
    checkpoint = result.checkpoint
    inputs = [build_input(g, checkpoint.op_type_table, checkpoint.input_config) for g in graphs]
    return Predictor(checkpoint).predict_inputs(inputs)


def test_the_checkpoint_predicts_what_was_scored(finished: Path) -> None:
    """The file, read without torch, gives the predictions that the metrics are about."""
    result = run(finished, resume=True)
    loaded = replace(result, checkpoint=load_checkpoint(finished / "checkpoint.safetensors"))
    by_name = {example.workload: example.graph for example in DATASET.examples}
    for part in ("train", "validation", "test"):
        graphs = [by_name[workload] for workload in result.workloads[part]]
        assert _predict_with_numpy(loaded, graphs) == pytest.approx(
            result.predictions[part], rel=1e-4
        )
    labels = DATASET.targets()
    order = [DATASET.workloads.index(workload) for workload in result.workloads["test"]]
    errors = np.sqrt(np.mean((result.predictions["test"] - labels[order]) ** 2, axis=0))
    by_hand = np.mean(errors / labels[SPLIT.train].max(axis=0))
    assert loaded.checkpoint.metrics["test_nrmse"] == pytest.approx(by_hand)


def test_a_run_writes_down_what_it_is(finished: Path) -> None:
    """Configurations, seed, versions, data set and split stand in config.json; no pickle."""
    stored = json.loads((finished / "config.json").read_text())
    assert stored["run"]["preset"] == small_preset().to_dict()
    assert stored["run"]["data_set"]["name"] == "synthetic"
    assert len(stored["run"]["data_set"]["fingerprint"]) == 64
    assert sum(len(part) for part in stored["run"]["split"].values()) == 12
    assert {"torch", "numpy", "python"} <= stored["versions"].keys()
    assert sorted(file.name for file in finished.iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "log.jsonl",
        "run.lock",
        "state.safetensors",
    ]
    checkpoint = load_checkpoint(finished / "checkpoint.safetensors")
    assert (checkpoint.setting, checkpoint.provenance) == (DATASET.setting, "measured")
    assert checkpoint.trained_on.num_train == len(SPLIT.train)


@pytest.mark.parametrize("part", ["validation", "test"])
def test_only_the_training_part_is_learned_from(tmp_path: Path, part: str) -> None:
    """Other graphs and labels outside of it change neither table, nor scalers, nor weights."""
    changed = [
        replace(
            DATASET.examples[i],
            targets=Targets(9 * DATASET.examples[i].targets.values),
            graph=replace(
                chain_graph(30, bytes_per_node=10**6), op_types=("Unheard",) * 30, remote=()
            ),
        )
        for i in getattr(SPLIT, part)
    ]
    dataset = merge_examples(DATASET, changed)
    preset = small_preset(schedule="constant")
    result = train(dataset, SPLIT, preset, tmp_path / "changed", options=ONE_THREAD)
    wanted = run(tmp_path / "wanted", preset)
    checkpoint, own = result.checkpoint, wanted.checkpoint
    assert "Unheard" not in checkpoint.op_type_table
    assert checkpoint.op_type_table == own.op_type_table
    assert checkpoint.input_scaler.to_dict() == own.input_scaler.to_dict()
    assert checkpoint.target_scaler.to_dict() == own.target_scaler.to_dict()
    losses = [[record.train_loss for record in one.history] for one in (result, wanted)]
    assert losses[0] == losses[1]
    if part == "test":
        assert timeless_log(tmp_path / "changed") == timeless_log(tmp_path / "wanted")


def test_mixed_labels_are_called_by_the_least_direct(tmp_path: Path) -> None:
    """One simulated label among measured ones makes a simulated checkpoint."""
    dataset = merge_examples(DATASET, [replace(DATASET.examples[0], label_source="simulated")])
    result = train(dataset, SPLIT, small_preset(max_epochs=1), tmp_path, options=ONE_THREAD)
    assert result.checkpoint.provenance == "simulated"
    assert result.checkpoint.trained_on.label_sources == ("measured", "simulated")


def test_a_checkpoint_keeps_the_fit_by_which_its_labels_were_simulated(tmp_path: Path) -> None:
    """The day of the training says nothing of the labels: a data set may be older."""
    about = replace(DATASET.about, calibration={"fitted": "2020-01-02", "rows": 3})
    result = train(
        replace(DATASET, about=about),
        SPLIT,
        small_preset(max_epochs=1),
        tmp_path,
        options=ONE_THREAD,
    )
    save_checkpoint(result.checkpoint, tmp_path / "kept.safetensors")
    kept = load_checkpoint(tmp_path / "kept.safetensors")
    assert kept.trained_on.labels_fitted == "2020-01-02"


def test_the_error_of_simulated_labels_goes_with_the_checkpoint(
    finished: Path, tmp_path: Path
) -> None:
    """What the data set says of its simulator; nothing where labels are measured."""
    error = TimeError(rows=20, median_pct=8.0, p90_pct=20.0)
    dataset = replace(DATASET, about=Provenance(iteration_time_error=error))
    result = train(dataset, SPLIT, small_preset(max_epochs=1), tmp_path, options=ONE_THREAD)
    assert result.checkpoint.trained_on.label_error == error
    measured = load_checkpoint(finished / "checkpoint.safetensors")
    assert measured.trained_on.label_error is None


def test_progress_counts_graphs_and_epochs(tmp_path: Path) -> None:
    """First every graph, then every epoch with its losses."""
    seen: list[Progress] = []
    run(tmp_path, small_preset(max_epochs=3), progress=seen.append)
    graphs = [p for p in seen if p.stage == "inputs"]
    epochs = [p for p in seen if p.stage == "epochs"]
    assert [p.done for p in graphs] == list(range(1, 13))
    assert [p.done for p in epochs] == [1, 2, 3]
    assert all(p.record is not None and p.record.epoch == p.done for p in epochs)
    assert {p.total for p in epochs} == {3}


def test_a_run_is_not_overwritten(finished: Path) -> None:
    """A folder that holds a run is refused unless it is to be resumed, and then only as it was."""
    with pytest.raises(ConfigError, match="already holds a training run; resume it"):
        run(finished)
    with pytest.raises(ConfigError, match=r"differs in preset\.train\.seed \(0, now 4\)"):
        run(finished, small_preset(seed=4), resume=True)
    with pytest.raises(ConfigError, match=r"differs in split\.test;"):
        run(finished, split=random_split(DATASET.workloads, 1), resume=True)


@pytest.mark.parametrize("name", ["config.json", "state.safetensors", "log.jsonl"])
def test_damaged_files_of_a_run_are_refused(finished: Path, tmp_path: Path, name: str) -> None:
    """One line that names the file and says to begin anew."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(ConfigError, match=rf"{name} .*train anew"):
        run(folder, resume=True)


def test_a_state_of_another_model_is_refused(finished: Path, tmp_path: Path) -> None:
    """Weights that do not fit are told in one line."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    state = runfiles.load_state(folder)
    assert state is not None
    runfiles.save_state(folder, replace(state, optimizer=state.optimizer[:-1]))
    with pytest.raises(ConfigError, match="does not fit the model"):
        run(folder, resume=True)


def test_a_diverging_run_says_so(tmp_path: Path) -> None:
    """An absurd learning rate ends in one line that states it."""
    preset = small_preset(learning_rate=1e30, max_epochs=50)
    with pytest.raises(ConfigError, match=r"diverged: .* with learning rate 1e\+30"):
        run(tmp_path, preset)


def test_clipping_changes_the_steps(finished: Path, tmp_path: Path) -> None:
    """A small --clip-norm is not ignored."""
    run(tmp_path / "run", small_preset(clip_norm=0.01))
    assert timeless_log(tmp_path / "run") != timeless_log(finished)


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names the file; the temporary one is gone."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runfiles.os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device; free some space"):
        run(tmp_path / "run")
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["run.lock"]


def test_an_empty_part_and_bad_threads_are_refused(tmp_path: Path) -> None:
    """Without validation workloads there is nothing to choose the epoch by."""
    none = np.zeros(0, dtype=np.int64)
    split = Split(train=SPLIT.train, validation=none, test=SPLIT.test)
    with pytest.raises(DatasetError, match="validation part of the split is empty"):
        run(tmp_path / "a", split=split)
    with pytest.raises(ConfigError, match="--set threads must be at least 1"):
        train(DATASET, SPLIT, small_preset(), tmp_path / "b", options=RunOptions(threads=0))


def test_without_a_test_part_training_still_works(tmp_path: Path) -> None:
    """A final inspector may use all workloads; then there is no test error to report."""
    none = np.zeros(0, dtype=np.int64)
    split = Split(
        train=np.concatenate([SPLIT.train, SPLIT.test]), validation=SPLIT.validation, test=none
    )
    result = run(tmp_path, small_preset(max_epochs=1), split=split)
    assert result.scores.keys() == {"train", "validation"}
    assert "test_nrmse" not in result.checkpoint.metrics


def test_durations_come_from_the_given_clock(tmp_path: Path) -> None:
    """A clock that ticks one second per look makes every epoch last one second."""
    ticks = iter(range(10_000))
    result = run(tmp_path, small_preset(max_epochs=2), clock=lambda: float(next(ticks)))
    assert [asdict(record)["seconds"] for record in result.history] == [1.0, 1.0]
    assert result.seconds == 2.0
