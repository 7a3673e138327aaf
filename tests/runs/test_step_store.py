"""Stored steps simulate as the job does on the path of a user, and damaged files are refused."""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driple.cluster.setting import Setting
from driple.errors import ConfigError, DatasetError, GraphError
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.load import JobOptions, load_job
from driple.runs.measured_run import MeasuredRun
from driple.runs.step_key import UNFUSED, StepKey, attention_of
from driple.runs.step_pack import read_packed_steps
from driple.runs.step_store import ATTENTION, StepStore, StoredStep
from driple.runs.stored_steps import StoredSteps
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from scripts.published.pytorch_steps import (
    MARK,
    STORE,
    chosen,
    follows_stored,
    light,
    pack_all,
    parts,
    trace_one,
    traced,
    updates,
)
from scripts.published.step_pack import StepPacker

ADDED = StepKey(job="timm:resnet18", size=64, accumulates=True, activation_checkpointing="full")
TRAINED = StepKey(job="timm:resnet18", size=96, precision="amp-fp16", channels_last=True)
CALLED = StepKey(job="timm:vit_tiny_patch16_224", size=224, task="forward", precision="amp-fp16")
SINGLE = StepKey(job="timm:efficientnet_b0", size=64)
FIRST = StepKey(  # of PyTorch 1
    job="timm:vit_tiny_patch16_224", size=224, precision="amp-fp16", capability=UNFUSED
)
FIRST_CALLED = replace(FIRST, task="forward")
KEYS = (TRAINED, CALLED, SINGLE, ADDED, FIRST, FIRST_CALLED)
PASSES = 3
ONE_DEVICE = Setting.parse("1xA100")


def packed(*keys: StepKey) -> bytes:
    packer = StepPacker(MARK)
    for key in keys:
        graph = light(traced(key, MARK))
        packer.add(key, graph, updates(key, graph, {"adam"}))
    return packer.content()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("steps")
    (place / "test.steps.xz").write_bytes(packed(*KEYS))
    return place


@pytest.fixture(scope="module")
def store(folder: Path) -> StepStore:
    return StepStore.open(folder)


def step_s(job: PreparedJob) -> float:
    return simulated_step_s(job, ONE_DEVICE, shipped_calibration(ONE_DEVICE), num_steps=3)


def users_job(key: StepKey, batch_size: int, **more: Any) -> PreparedJob:
    """What `driple predict` simulates."""
    options = JobOptions(
        batch_size=batch_size,
        input_shape=(3, key.size, key.size),
        task=key.task,
        precision=key.precision,
        channels_last=key.channels_last,
        activation_checkpointing=None
        if key.activation_checkpointing == "none"
        else key.activation_checkpointing,
        grad_accumulation=PASSES if key.accumulates else None,
        library="torch1" if key.capability == UNFUSED else "torch2",
        **more,
    )
    job = load_job(key.job, options, setting=ONE_DEVICE, forward=True)
    return PreparedJob(job.graph, cost=job.cost)


def stored_job(step: StoredStep, batch_size: int, **options: Any) -> PreparedJob:
    """The same from the store; PyTorch 1's update follows from the library, not from the step."""
    job = step.job(batch_size, **options)
    graph = job.graph
    if step.key.capability != UNFUSED or not graph.is_training:
        return job
    update = graph.update.one_by_one(len(graph.traffic.received_bytes))
    return PreparedJob(replace(graph, update=update), kinds=job.kinds)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("batch_size", [3, 32])
@pytest.mark.parametrize("key", KEYS, ids=lambda one: one.name)
def test_it_simulates_as_for_a_user(
    store: StepStore, key: StepKey, batch_size: int, compiled: bool
) -> None:
    passes = PASSES if key.accumulates else 1
    mine = stored_job(store.step(key), batch_size, compiled=compiled, passes=passes)
    theirs = users_job(key, batch_size, compiled=compiled)
    assert step_s(mine) == pytest.approx(step_s(theirs), rel=1e-9)
    graph, other = mine.graph, theirs.graph
    assert graph.kinds.count("softmax") == (12 if key.capability == UNFUSED else 0)
    assert [graph.signatures[i] for i in graph.signature_of] == [
        other.signatures[i] for i in other.signature_of
    ]
    assert graph.phases.tolist() == other.phases.tolist()
    assert graph.executions.tolist() == other.executions.tolist()
    assert graph.tensor_bytes.tolist() == other.tensor_bytes.tolist()
    assert (graph.remote, graph.update, graph.is_training) == (
        other.remote,
        other.update,
        other.is_training,
    )
    for name in ("received_bytes", "readers", "sent_bytes", "senders"):
        mine_of, theirs_of = getattr(graph.traffic, name), getattr(other.traffic, name)
        assert sorted(np.atleast_2d(mine_of).tolist()) == sorted(np.atleast_2d(theirs_of).tolist())
    assert graph.parameters.names == other.parameters.names
    assert graph.parameters.gradients.tolist() == other.parameters.gradients.tolist()


def test_fusion_makes_a_difference(store: StepStore) -> None:
    step = store.step(TRAINED)
    assert step_s(step.job(8, compiled=True)) < step_s(step.job(8))


def test_a_row_that_replays_graphs_has_them(store: StepStore) -> None:
    """Replaying takes no more of the host than a compiled step does."""
    key = TRAINED
    row = MeasuredRun(
        job=key.job, setting="1xA100", precision=key.precision, batch_size=8, compiled=True,
        input_shape=(3, key.size, key.size) if key.size else None, library="torch2",
        channels_last=key.channels_last,
    )  # fmt: skip
    steps = StoredSteps(store)
    compiled, replayed = (
        steps.prepared(replace(row, cuda_graphs=graphs)) for graphs in (False, True)
    )
    assert row.step_key != replace(row, cuda_graphs=True).step_key
    assert (compiled.runtime.cuda_graphs, replayed.runtime.cuda_graphs) == (False, True)


def test_other_precisions_follow(store: StepStore) -> None:
    """Where they are traced, they are the same."""
    for key in (replace(SINGLE, precision="tf32"), replace(CALLED, precision="amp-bf16")):
        assert key in store
        mine, theirs = store.step(key).job(4), users_job(key, 4)
        assert [mine.graph.signatures[i] for i in mine.graph.signature_of] == [
            theirs.graph.signatures[i] for i in theirs.graph.signature_of
        ]
        assert step_s(mine) == pytest.approx(step_s(theirs), rel=1e-9)


def test_a_device_without_flash_attention_matters_to_attention_alone(store: StepStore) -> None:
    assert replace(TRAINED, capability=70) in store
    assert replace(CALLED, capability=70) not in store
    same = store.step(replace(SINGLE, precision="tf32", capability=70))
    assert same.signatures(4) == store.step(replace(SINGLE, precision="tf32")).signatures(4)


def test_pytorch_1_matters_to_attention_alone(store: StepStore) -> None:
    """Of the same job, one step has kernels of attention and the other products and a softmax."""
    for key in (TRAINED, ADDED, replace(SINGLE, precision="tf32")):
        first = replace(key, capability=UNFUSED)
        assert first in store
        assert store.step(first).signatures(4) == store.step(key).signatures(4)
    assert replace(SINGLE, job="timm:vit_tiny_patch16_224", capability=UNFUSED) not in store
    assert "attention" in store.kinds(CALLED) - store.kinds(FIRST_CALLED)
    assert {"softmax", "batch_matmul"} <= store.kinds(FIRST_CALLED) - store.kinds(CALLED)
    for key in (*KEYS, replace(TRAINED, capability=UNFUSED)):
        assert store.kinds(key) == set(store.step(key).kinds)


@pytest.mark.parametrize(
    ("job", "library", "generation", "capability"),
    [
        ("timm:vit_tiny_patch16_224", "torch1", "Ampere", UNFUSED),
        ("timm:vit_tiny_patch16_224", "torch1", "Volta", UNFUSED),
        ("timm:vit_tiny_patch16_224", "torch2.1", "Ampere", 80),
        ("timm:vit_tiny_patch16_224", "torch2", "Volta", 70),
        ("timm:vit_tiny_patch16_224", "", "Ampere", 80),
        ("own:mpt-7b", "torch1", "Ampere", 80),  # with a flash kernel of its own library
    ],
)
def test_models_of_timm_have_no_fused_attention_in_pytorch_1(
    job: str, library: str, generation: str, capability: int
) -> None:
    assert attention_of(job, library, generation) == capability


def test_the_script_makes_some_files_and_leaves_others(tmp_path: Path) -> None:
    """What follows from a file that stays is not traced; what is traced and equal not stored."""
    (tmp_path / "test.steps.xz").write_bytes(packed(TRAINED, CALLED))
    store = StepStore.open(tmp_path)
    same, other = replace(TRAINED, capability=UNFUSED), replace(CALLED, capability=UNFUSED)
    assert follows_stored(same, store)
    assert not follows_stored(other, store)
    assert not follows_stored(TRAINED, store)  # it follows from none
    wanted = {key: {"momentum"} for key in (same, other, TRAINED)}
    assert list(parts(wanted)) == ["timm-train-unfused", "timm-train", "timm-forward-unfused"]
    assert chosen(wanted, ["timm-forward-unfused"]) == [other]
    with pytest.raises(ConfigError, match="--part is one of timm-train-unfused, "):
        chosen(wanted, ["timm-forward"])
    for key in (same, other):
        assert not trace_one(key, tmp_path)
    (tmp_path / "failures.csv").write_text(f"step,reason\nkept,too large\n{other.name},gone\n")
    pack_all([same, other], wanted, tmp_path, tmp_path, store)
    assert (tmp_path / "failures.csv").read_text() == "step,reason\nkept,too large\n"
    assert not (tmp_path / "timm-train-unfused.steps.xz").exists()
    assert StepStore.open(tmp_path).stored == tuple(sorted((TRAINED, CALLED, other)))


def test_other_optimizers_have_their_updates(store: StepStore) -> None:
    key = replace(SINGLE, precision="fp32")
    mine = store.step(key).job(4, optimizer="adam")
    its = users_job(key, 4, optimizer="adam").graph.update
    assert mine.graph.update == replace(its, temporary_bytes=0)  # a store of times has no memory
    with pytest.raises(ConfigError, match="no update"):
        store.step(key).job(4, optimizer="lion")


def test_names_are_the_keys(store: StepStore) -> None:
    assert tuple(map(StepKey.parse, store.names())) == store.stored == tuple(sorted(KEYS))
    for text in ("timm:resnet18", TRAINED.name.replace("96", "x"), TRAINED.name + " "):
        with pytest.raises(ConfigError, match="names no stored step"):
            StepKey.parse(text)
    with pytest.raises(ConfigError, match="has no step"):
        store.step(replace(TRAINED, size=97))
    with pytest.raises(ConfigError, match="batch_size"):
        store.step(TRAINED).job(1)
    for key, passes in ((TRAINED, 2), (ADDED, 1)):
        with pytest.raises(ConfigError, match="passes; of one or of several"):
            store.step(key).job(4, passes=passes)


def test_a_batch_in_two_sizes_is_refused() -> None:
    """Similarities of all pairs of a batch, as contrastive losses have them."""

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, values: Tensor) -> Tensor:
            output = self.layer(values)
            scores: Tensor = output @ output.T
            return scores.mean()

    with torch.device("meta"):
        model, values = Pairs(), torch.zeros(MARK, 8)
    graph = traced_step(model, values, None, StepOptions())
    with pytest.raises(GraphError, match="two sizes that grow"):
        StepPacker(MARK).add(SINGLE, graph, {})


def changed(file: Path, at: int, byte: int) -> bytes:
    """A file whose content has another byte, compressed again."""
    magic, data = b"driple-steps\n", file.read_bytes()
    inside = bytearray(lzma.decompress(data[len(magic) :]))
    inside[at] = byte
    return magic + lzma.compress(bytes(inside))


def test_damaged_files_are_refused_or_say_what_they_hold(folder: Path, tmp_path: Path) -> None:
    """No byte leads outside of an array, and none raises anything but our own error."""
    whole = (folder / "test.steps.xz").read_bytes()
    file = tmp_path / "test.steps.xz"
    for data in (b"", whole[:-9], b"x" + whole, whole[:40]):
        file.write_bytes(data)
        with pytest.raises(DatasetError, match="restore the file"):
            StepStore.open(tmp_path)
    size = len(lzma.decompress(whole[len(b"driple-steps\n") :]))
    refused = 0
    for at in np.linspace(0, size - 1, 40).astype(int).tolist():
        file.write_bytes(changed(folder / "test.steps.xz", at, 0x7F))
        try:
            opened = StepStore.open(tmp_path)
            for key in opened.stored:
                opened.step(key)
        except DatasetError:
            refused += 1
    assert refused > 10
    with pytest.raises(DatasetError, match="holds no file"):
        StepStore.open(tmp_path / "nowhere")


def test_sizes_are_bounded(folder: Path) -> None:
    arrays: Mapping[str, Any] = read_packed_steps(folder / "test.steps.xz").arrays
    assert all(array.min(initial=0) >= 0 for array in arrays.values())


@pytest.mark.skipif(not STORE.exists(), reason="the store is not in this checkout")
def test_the_shipped_store_is_as_for_a_user() -> None:
    """One training step and one forward pass of the store in the repository."""
    shipped = StepStore.open(STORE)
    timm = [key for key in shipped.stored if key.job.startswith("timm:")]
    for task, unfused in product(("train", "forward"), (False, True)):
        small = [
            key for key in timm
            if (key.task, key.capability == UNFUSED) == (task, unfused) and "_small_" in key.job
        ]  # fmt: skip
        key = small[len(small) // 2]
        assert bool(ATTENTION & shipped.kinds(key)) <= (not unfused)
        mine, theirs = stored_job(shipped.step(key), 24), users_job(key, 24)
        assert step_s(mine) == pytest.approx(step_s(theirs), rel=1e-9)
