"""The authors' weights under our names compute what the authors' model computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from driple.dataset.released import RELEASED_FEATURES, RELEASED_TARGETS, read_released
from driple.dataset.split import given_split
from driple.errors import CheckpointError, DatasetError
from driple.inspector.batch import GroupBatch
from driple.inspector.config import CONV_NEGATIVE_SLOPE
from driple.inspector.model import Inspector
from driple.training.authors import read_authors_weights
from driple.training.config import AUTHORS, preset_named
from driple.training.train import RunOptions, train
from tests.dataset import test_released

GROUPS, HIDDEN = 8, 64
CONFIG = AUTHORS.inspector


class Authors(nn.Module):
    """A model with the names of their state: one GRU for all layers, W as [inputs, outputs]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_layers = nn.ModuleList([Conv(3, HIDDEN), Conv(HIDDEN, HIDDEN)])
        self.gru = Held(gru=nn.GRU(HIDDEN, HIDDEN))
        lstm = nn.LSTM(2 * HIDDEN, HIDDEN)
        widths = (2 * HIDDEN, HIDDEN, HIDDEN, 12)
        linears = [Held(linear=nn.Linear(widths[i], widths[i + 1])) for i in range(3)]
        self.graph_read_out = Held(
            set2set=Held(lstm=lstm), mlp=Held(fully_connected=nn.ModuleList(linears))
        )

    def forward(self, x: Tensor, norm: Tensor) -> Tensor:
        """One graph: features [M, 3] in their order, normalised adjacency [M, M] -> [12]."""
        h = x
        first, shared = self.conv_layers
        for layer in [first] + [shared] * (CONFIG.num_layers(GROUPS) - 1):
            y = functional.leaky_relu(norm @ (h @ layer.W) + layer.b, CONV_NEGATIVE_SLOPE)
            padded = functional.pad(h, (0, HIDDEN - h.shape[1]))
            h = self.gru.gru(padded[None], y[None])[0][0]
        state = cell = torch.zeros(1, 1, HIDDEN)
        star = torch.zeros(1, 1, 2 * HIDDEN)
        for _ in range(CONFIG.num_set2set_steps(GROUPS)):
            query, (state, cell) = self.graph_read_out.set2set.lstm(star, (state, cell))
            share = torch.softmax(h @ query[0, 0], dim=0)
            star = torch.cat([query[0, 0], share @ h])[None, None]
        out = star[0, 0]
        for i, layer in enumerate(self.graph_read_out.mlp.fully_connected):
            out = layer.linear(out)
            out = functional.relu(out) if i < 2 else functional.leaky_relu(out, CONV_NEGATIVE_SLOPE)
        return out


class Conv(nn.Module):
    def __init__(self, num_in: int, num_out: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.randn(num_in, num_out) / num_in)
        self.b = nn.Parameter(torch.randn(num_out))


class Held(nn.Module):
    """Modules by name."""

    def __init__(self, **held: nn.Module) -> None:
        super().__init__()
        for name, module in held.items():
            self.add_module(name, module)


@pytest.fixture
def authors() -> Authors:
    torch.manual_seed(0)
    return Authors()


def saved(folder: Path, state: object) -> Path:
    torch.save(state, folder / "model.pkl")
    return folder / "model.pkl"


def test_same_numbers_as_their_model(tmp_path: Path, authors: Authors) -> None:
    weights = read_authors_weights(saved(tmp_path, authors.state_dict()), CONFIG, GROUPS)
    ours = Inspector(CONFIG, GROUPS)
    ours.load_state_dict(weights)
    theirs = torch.rand(GROUPS, 3)
    adjacency = torch.zeros(GROUPS, GROUPS)
    adjacency[range(GROUPS - 1), range(1, GROUPS)] = 1.0
    adjacency += adjacency.T.clone()
    batch = GroupBatch(
        x=theirs[None][:, :, list(RELEASED_FEATURES)],
        adjacency=adjacency[None],
        mask=torch.ones(1, GROUPS),
        context=torch.zeros(1, 0),
    )
    looped = adjacency + torch.eye(GROUPS)
    scale = looped.sum(dim=1).rsqrt()
    with torch.no_grad():
        wanted = authors(theirs, scale[:, None] * looped * scale)[list(RELEASED_TARGETS)]
        torch.testing.assert_close(ours(batch)[0], wanted, rtol=1e-4, atol=1e-5)


def test_other_weights_are_refused(tmp_path: Path, authors: Authors) -> None:
    state = authors.state_dict()
    lacking = {name: item for name, item in state.items() if name != "conv_layers.1.b"}
    with pytest.raises(CheckpointError, match=r"lacks the weight conv_layers\.1\.b"):
        read_authors_weights(saved(tmp_path, lacking), CONFIG, GROUPS)
    with pytest.raises(CheckpointError, match="that ours lacks: more"):
        read_authors_weights(saved(tmp_path, {**state, "more": torch.ones(1)}), CONFIG, GROUPS)
    odd = {**state, "conv_layers.1.b": torch.zeros(3)}
    with pytest.raises(CheckpointError, match="has shape"):
        read_authors_weights(saved(tmp_path, odd), CONFIG, GROUPS)
    nan = {**state, "conv_layers.1.b": torch.full((HIDDEN,), torch.nan)}
    with pytest.raises(CheckpointError, match="NaN"):
        read_authors_weights(saved(tmp_path, nan), CONFIG, GROUPS)
    for what in ([1, 2], {"a": 1}, torch.ones(2)):
        with pytest.raises(CheckpointError, match="no state of a model"):
            read_authors_weights(saved(tmp_path, what), CONFIG, GROUPS)
    with pytest.raises(CheckpointError, match="preset paper"):
        default = preset_named("default").inspector
        read_authors_weights(saved(tmp_path, state), default, GROUPS)


@pytest.mark.parametrize(
    ("name", "weight", "words"),
    [
        ("gru.gru.weight_ih_l0", torch.ones(12), r"weight_ih_l0 has shape \(12,\)"),
        ("gru.gru.weight_ih_l0", torch.ones(192, 2), r"weight_ih_l0 has shape \(192, 2\)"),
        ("conv_layers.1.W", torch.tensor(1.0), r"conv_layers\.1\.W has shape \(\)"),
        ("graph_read_out.mlp.fully_connected.2.linear.bias", torch.tensor(1.0), r"has shape \(\)"),
        (
            "conv_layers.1.b",
            torch.ones(HIDDEN).to_sparse(),
            r"conv_layers\.1\.b is no dense tensor",
        ),
        ("conv_layers.1.b", torch.ones(HIDDEN, device="meta"), "is no dense tensor"),
    ],
)
def test_weights_of_other_forms_are_refused_in_one_line(
    tmp_path: Path, authors: Authors, name: str, weight: Tensor, words: str
) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        read_authors_weights(
            saved(tmp_path, {**authors.state_dict(), name: weight}), CONFIG, GROUPS
        )
    assert "\n" not in str(caught.value)


def test_whole_models_are_refused(tmp_path: Path, authors: Authors) -> None:
    with pytest.raises(DatasetError, match="nothing of it was run"):
        read_authors_weights(saved(tmp_path, authors), CONFIG, GROUPS)


def test_training_on_imported_data_begins_with_them(tmp_path: Path, authors: Authors) -> None:
    content = test_released.content(GROUPS)
    data = read_released(test_released.saved(tmp_path, content), test_released.SETTING)
    preset = AUTHORS
    still = replace(preset, train=replace(preset.train, learning_rate=1e-12, max_epochs=1))
    file = saved(tmp_path, authors.state_dict())
    split = given_split(data.examples)
    assert split is not None
    run, options = tmp_path / "run", RunOptions(threads=1)
    checkpoint = train(data, split, still, run, options=options, init=file).checkpoint
    begun = read_authors_weights(file, CONFIG, checkpoint.num_groups)
    for name, weight in checkpoint.weights.items():
        torch.testing.assert_close(torch.from_numpy(weight), begun[name], atol=1e-6, rtol=0)
    assert checkpoint.provenance == "published"
    assert checkpoint.num_groups == GROUPS - 1  # one of them fills up
    assert not checkpoint.op_type_table
    with pytest.raises(CheckpointError, match="cannot read"):
        train(data, split, still, tmp_path / "other", init=tmp_path / "none.pkl")
