"""Transfer: what is frozen stays to the bit, what is tuned moves, and cached equals computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from driple.dataset import Dataset
from driple.dataset.split import limited_split, random_split
from driple.errors import ConfigError, DatasetError
from driple.features import FEATURES_VERSION
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.inspector.predict import predict
from driple.trace.targets import Targets
from driple.training.config import Preset, TrainConfig
from driple.training.fine_tuning import tuned_model
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.train import RunOptions, TrainResult, train
from driple.training.transfer import (
    TransferConfig,
    transfer,
    transfer_config,
    unknown_op_types,
)
from tests.dataset.examples import grouped_dataset, of_setting, synthetic_dataset
from tests.training.presets import small_preset

OLD = synthetic_dataset(24)
SPLIT = random_split(OLD.workloads, 0)
SETTING = "CPU25-P1w2/ho-200M"
ONE_THREAD = RunOptions(threads=1)
QUICK = TrainConfig(learning_rate=0.01, batch_size=4, max_epochs=6, patience_epochs=100)


def slower(dataset: Dataset, factor: float, setting: str = SETTING) -> Dataset:
    """The same workloads on a setting where everything takes longer."""
    examples = tuple(
        replace(
            item,
            setting=setting,
            targets=Targets(item.targets.values * np.array([1.0, factor, factor])),
            iteration_time_s=item.iteration_time_s * factor,
        )
        for item in dataset.examples
    )
    return Dataset(name="slower", setting=setting, examples=examples)


NEW = slower(OLD, 1.7)


def paper_like() -> Preset:
    """GCN + GRU + set2set with six repeated layers."""
    preset = small_preset(max_epochs=3, target_scaling="max", input_scaling="identity")
    return replace(
        preset,
        name="paper",
        inspector=replace(
            preset.inspector, update="gru", depth=7, readout="set2set", set2set_steps=3
        ),
    )


@pytest.fixture(scope="module", params=["gru", "residual"])
def pretrained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Checkpoint:
    """A checkpoint of either kind, trained for three epochs."""
    preset = paper_like() if request.param == "gru" else small_preset(max_epochs=3)
    folder = tmp_path_factory.mktemp("pretrained")
    return train(OLD, SPLIT, preset, folder, options=ONE_THREAD).checkpoint


def tuned(checkpoint: Checkpoint, folder: Path, **changed: Any) -> TrainResult:
    """A transfer to the slower setting."""
    config = TransferConfig(train=changed.pop("train", QUICK), **changed)
    return transfer(checkpoint, NEW, SPLIT, config, folder, options=ONE_THREAD)


def test_frozen_weights_stay_to_the_bit_and_tuned_ones_move(
    pretrained: Checkpoint, tmp_path: Path
) -> None:
    """phi_f, phi_r^s, updates and readout keep their bytes; phi_r^FT and the MLP do not."""
    transferred = tuned(pretrained, tmp_path).checkpoint
    assert transferred.num_tuned == -(-(pretrained.config.num_layers(8) - 1) // 2)
    for name, weight in transferred.weights.items():
        source = pretrained.weights[name.replace("tuned.", "shared.")]
        moved = name.startswith(("mlp.", "tuned.conv"))
        assert np.array_equal(weight, source) != moved, name
    assert load_checkpoint(tmp_path / "checkpoint.safetensors").num_tuned == transferred.num_tuned


def test_the_tuned_copy_of_phi_r_has_a_gradient(pretrained: Checkpoint) -> None:
    """The public implementation builds the copy and never runs it: its gradient would be none."""
    model = tuned_model(pretrained, TransferConfig())
    inspector = model.inspector
    features = pretrained.config.num_features
    generator = torch.Generator().manual_seed(0)
    ring = torch.roll(torch.eye(8), 1, 0)
    from driple.inspector.batch import GroupBatch

    batch = GroupBatch(
        x=torch.rand(2, 8, features, generator=generator),
        adjacency=(ring + ring.T).expand(2, 8, 8).contiguous(),
        mask=torch.ones(2, 8),
        context=torch.rand(2, pretrained.config.num_context, generator=generator),
    )
    model(model.kept(batch)).square().sum().backward()
    for name, weight in inspector.named_parameters():
        expected = name.startswith(("mlp.", "tuned.conv"))
        assert (weight.grad is not None) == expected, name
        if name.startswith("tuned.conv"):
            assert weight.grad is not None
            assert weight.grad.abs().max() > 0


def test_share_zero_is_tuning_the_mlp_alone(pretrained: Checkpoint, tmp_path: Path) -> None:
    """Equal to the bit, and nothing but the MLP moves."""
    none = tuned(pretrained, tmp_path / "none", tuned_share=0.0).checkpoint
    mlp = tuned(pretrained, tmp_path / "mlp", layers=("mlp",)).checkpoint
    assert none.num_tuned == mlp.num_tuned == 0
    assert set(none.weights) == set(pretrained.weights)
    for name, weight in none.weights.items():
        assert np.array_equal(weight, mlp.weights[name])
        assert np.array_equal(weight, pretrained.weights[name]) != name.startswith("mlp.")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"tuned_share": 0.0},
        {"tuned_share": 0.25},
        {"tuned_share": 1.0},
        {"layers": ("phi_r", "gru")},
        {"layers": ("readout", "mlp")},
        {"layers": ("phi_f", "phi_r", "gru", "readout", "mlp"), "tuned_share": 1.0},
    ],
)
def test_the_checkpoint_predicts_what_the_cached_layers_gave(
    pretrained: Checkpoint, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """NumPy on the whole graph, against torch on embeddings that were computed once."""
    if "readout" in changed.get("layers", ()) and pretrained.config.readout != "set2set":
        changed = {**changed, "layers": tuple(n for n in changed["layers"] if n != "readout")}
    result = tuned(pretrained, tmp_path, **changed)
    by_name = {item.workload: item.graph for item in NEW.examples}
    for workload, row in zip(result.workloads["test"], result.predictions["test"], strict=True):
        predicted = predict(by_name[workload], result.checkpoint).targets.flat
        assert predicted == pytest.approx(row, rel=1e-4, abs=1e-6)


def test_residuals_are_those_of_the_new_setting(tmp_path: Path) -> None:
    """Of its training part; they are saved, and what was scored holds them."""
    source = train(
        OLD,
        SPLIT,
        small_preset(max_epochs=3, residuals="kernel"),
        tmp_path / "a",
        options=ONE_THREAD,
    ).checkpoint
    without = tuned(source, tmp_path / "b")
    assert without.checkpoint.residuals is None
    result = tuned(source, tmp_path / "c", train=replace(QUICK, residuals="kernel"))
    assert result.checkpoint.residuals is not None
    assert len(result.checkpoint.residuals.learned) == len(SPLIT.train)
    assert not np.array_equal(result.predictions["test"], without.predictions["test"])
    graph_of = {item.workload: item.graph for item in NEW.examples}
    saved = load_checkpoint(tmp_path / "c" / CHECKPOINT_FILE)
    for name, expected in zip(result.workloads["test"], result.predictions["test"], strict=True):
        np.testing.assert_allclose(predict(graph_of[name], saved).targets.flat, expected, rtol=1e-3)


def test_graphs_that_are_grouped_already_are_transferred_without_residuals(tmp_path: Path) -> None:
    """They have no context, which preset `default` tells nearness by."""
    old = grouped_dataset(24)
    preset = small_preset(max_epochs=2, residuals="kernel")
    source = train(old, SPLIT, preset, tmp_path / "a", options=ONE_THREAD).checkpoint
    new = of_setting(old, SETTING)
    config = TransferConfig(train=replace(QUICK, residuals="kernel"))
    transferred = transfer(
        source, new, SPLIT, config, tmp_path / "b", options=ONE_THREAD
    ).checkpoint
    assert transferred.residuals is None


def test_a_transfer_learns_the_new_setting(pretrained: Checkpoint, tmp_path: Path) -> None:
    """Better on the new labels than the inspector that it came from."""
    long = replace(QUICK, max_epochs=60)
    result = tuned(pretrained, tmp_path, train=long)
    by_name = {item.workload: item for item in NEW.examples}
    tests = [by_name[name] for name in result.workloads["test"]]
    truth = np.array([item.targets.flat for item in tests])
    before = np.array([predict(item.graph, pretrained).targets.flat for item in tests])
    largest = np.array([NEW.examples[i].targets.flat for i in SPLIT.train]).max(axis=0)
    untuned = (np.sqrt(np.square(before - truth).mean(axis=0)) / largest).mean()
    assert result.scores["test"].mean_nrmse < 0.8 * untuned
    assert result.checkpoint.setting == SETTING
    origin = result.checkpoint.trained_on.transferred_from
    assert origin is not None
    assert origin.setting == pretrained.setting


def test_servers_are_those_of_the_new_setting(pretrained: Checkpoint, tmp_path: Path) -> None:
    """The checkpoint says so too: `predict` deals variables out as training did."""
    new = slower(OLD, 1.0, "CPU-P2w2/ho-200M")
    config = TransferConfig(train=QUICK)
    transferred = transfer(pretrained, new, SPLIT, config, tmp_path, options=ONE_THREAD).checkpoint
    written = load_checkpoint(tmp_path / "checkpoint.safetensors")
    servers = [one.input_config.num_servers for one in (pretrained, transferred, written)]
    assert servers == [1, 2, 2]


def test_alignment_knows_a_setting_that_is_slower_by_a_factor(
    pretrained: Checkpoint, tmp_path: Path
) -> None:
    """After one epoch at a tiny rate, errors are those of alignment alone: less than without."""
    if pretrained.preset == "paper":
        pytest.skip("its outputs are bounded below, so a line does not commute with them")
    still = replace(QUICK, learning_rate=1e-9, max_epochs=1)
    errors = [
        tuned(
            pretrained, tmp_path / str(align), train=still, layers=("mlp",), align=align
        ).checkpoint.metrics["test_nrmse"]
        for align in (True, False)
    ]
    assert errors[0] < errors[1]


def test_a_transfer_goes_on_where_it_was(pretrained: Checkpoint, tmp_path: Path) -> None:
    """Stopped after three epochs and resumed: the same weights as one that was left alone."""

    class StoppedError(Exception):
        """Raised in the middle."""

    def stop(now: Any) -> None:
        if now.stage == "epochs" and now.done == 3:
            raise StoppedError

    config = TransferConfig(train=QUICK)
    broken = RunOptions(threads=1, progress=stop, save_every_s=0)
    with pytest.raises(StoppedError):
        transfer(pretrained, NEW, SPLIT, config, tmp_path / "a", options=broken)
    again = RunOptions(threads=1, resume=True)
    resumed = transfer(pretrained, NEW, SPLIT, config, tmp_path / "a", options=again)
    whole = tuned(pretrained, tmp_path / "b")
    for name, weight in whole.checkpoint.weights.items():
        assert np.array_equal(weight, resumed.checkpoint.weights[name]), name


def test_a_second_transfer_keeps_the_tuned_layers(pretrained: Checkpoint, tmp_path: Path) -> None:
    """From a transferred checkpoint with the same share; another share is refused."""
    once = tuned(pretrained, tmp_path / "once").checkpoint
    model = tuned_model(once, TransferConfig())
    for name, weight in model.inspector.state_dict().items():
        assert np.array_equal(weight.numpy(), once.weights[name])
    with pytest.raises(ConfigError, match="pre-trained one"):
        tuned(once, tmp_path / "twice", tuned_share=1.0)


def test_what_cannot_be_transferred_is_refused(pretrained: Checkpoint, tmp_path: Path) -> None:
    """Too few labels, other graphs, nothing to tune, odd options; nothing is written."""
    few = Dataset(name="few", setting=SETTING, examples=NEW.examples[:19])
    with pytest.raises(DatasetError, match="19 labels, a transfer needs 20"):
        transfer(pretrained, few, SPLIT, TransferConfig(), tmp_path / "a", options=ONE_THREAD)

    def renamed(graph: OpGraph) -> OpGraph:
        return replace(graph, op_types=tuple(f"Other{kind}" for kind in graph.op_types))

    others = tuple(replace(item, graph=renamed(item.graph)) for item in NEW.examples)
    alien = Dataset(name="alien", setting=SETTING, examples=others)
    with pytest.raises(DatasetError, match="does not know the op types"):
        transfer(pretrained, alien, SPLIT, TransferConfig(), tmp_path / "a", options=ONE_THREAD)
    assert not (tmp_path / "a").exists()
    with pytest.raises(ConfigError, match="leaves nothing to tune"):
        tuned(pretrained, tmp_path / "b", tuned_share=0.0, layers=("phi_r",))
    bounded = replace(pretrained.config, output="leaky_relu")
    with pytest.raises(ConfigError, match="--set align=on needs"):
        tuned(replace(pretrained, config=bounded), tmp_path / "c", align=True)
    assert not (tmp_path / "c").exists()
    for nonsense in ({"tuned_share": 1.5}, {"layers": ("phi_x",)}, {"layers": ()}):
        with pytest.raises(ConfigError, match=r"^(interval_folds|--set tuned_share|--set layers)"):
            TransferConfig(**nonsense)  # type: ignore[arg-type]  # on purpose


def test_graphs_that_are_mostly_unknown_are_refused(pretrained: Checkpoint, tmp_path: Path) -> None:
    """Above a half of the nodes; one op type that both share is not enough to go on."""
    counts = Counter(kind for item in NEW.examples for kind in item.graph.op_types)
    rarest = [kind for kind, _ in reversed(counts.most_common())]
    total = counts.total()

    def without(kinds: Sequence[str]) -> tuple[Dataset, int]:
        def renamed(graph: OpGraph) -> OpGraph:
            words = (f"My{kind}" if kind in kinds else kind for kind in graph.op_types)
            return replace(graph, op_types=tuple(words))

        examples = tuple(replace(item, graph=renamed(item.graph)) for item in NEW.examples)
        return replace(NEW, examples=examples), sum(counts[kind] for kind in kinds)

    alien, unknown = without(rarest[1:])
    assert unknown < total
    with pytest.raises(DatasetError, match=f"op types of {unknown} of the {total} nodes"):
        transfer(pretrained, alien, SPLIT, TransferConfig(), tmp_path / "a", options=ONE_THREAD)
    assert not (tmp_path / "a").exists()
    odd, unknown = without(rarest[:1])
    assert 0 < unknown < total / 2
    assert unknown_op_types(pretrained, odd) == {f"My{rarest[0]}": unknown}
    transfer(
        pretrained, odd, SPLIT, TransferConfig(train=QUICK), tmp_path / "b", options=ONE_THREAD
    )


def test_presets_have_a_choice_each() -> None:
    """The paper's for its own, MLP and alignment for ours; what is asked for overrides both."""
    paper, ours = transfer_config("paper", tuned_share=0.25), transfer_config("default")
    assert (paper.layers, paper.tuned_share, paper.align) == (("phi_r", "mlp"), 0.25, False)
    assert (ours.layers, ours.align) == (("mlp",), True)
    assert transfer_config("default", layers=("phi_r",)).layers == ("phi_r",)
    assert TransferConfig().num_tuned(50) == 25


def test_a_smaller_choice_of_labels_is_part_of_a_larger_one() -> None:
    """The test part stays, a quarter validates, and sizes are met exactly."""
    names = OLD.workloads
    small, large = (limited_split(SPLIT, names, size, 0) for size in (8, 16))
    for part in (small, large):
        assert np.array_equal(part.test, SPLIT.test)
        assert not set(part.train) & set(part.validation)
    assert len(small.train) + len(small.validation) == 8
    assert len(large.validation) == 4
    assert set(small.train) <= set(large.train)
    with pytest.raises(DatasetError, match="100 workloads"):
        limited_split(SPLIT, names, 100, 0)


def test_a_transfer_keeps_the_older_version(pretrained: Checkpoint, tmp_path: Path) -> None:
    """What was learned first stays in it; training takes the version of its data set."""
    assert pretrained.reader_version == OLD.reader_version
    assert pretrained.features_version == FEATURES_VERSION
    config = TransferConfig(train=replace(QUICK, max_epochs=1))

    def moved(source: Checkpoint, data: Dataset, name: str) -> Checkpoint:
        result = transfer(source, data, SPLIT, config, tmp_path / name, options=ONE_THREAD)
        return result.checkpoint

    first = replace(pretrained, reader_version=1, features_version=1)
    from_first = moved(first, NEW, "a")
    assert (from_first.reader_version, from_first.features_version) == (1, 1)
    to_first = moved(pretrained, replace(NEW, reader_version=1), "b")
    assert (to_first.reader_version, to_first.features_version) == (1, FEATURES_VERSION)
    old_data = replace(OLD, reader_version=1)
    preset = small_preset(max_epochs=1)
    anew = train(old_data, SPLIT, preset, tmp_path / "c", options=ONE_THREAD)
    assert anew.checkpoint.reader_version == 1
