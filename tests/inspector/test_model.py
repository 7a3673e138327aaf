"""The inspector: its equations written out, batch mates, padding, depth, and that it can learn."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from driple.errors import ConfigError
from driple.features import InspectorInput
from driple.inspector.config import InspectorConfig
from driple.inspector.model import Inspector, make_batch, repeated_tanh
from driple.inspector.shapes import weight_shapes

from .examples import random_input, random_inspector

LAYERS = ("gcn", "gat", "gin", "mpnn")
UPDATES = ("gru", "residual")
READOUTS = ("add", "mean", "max", "sort", "set2set")
STRUCTURES = [
    InspectorConfig(layer=layer, update=update, readout=readout, hidden=8, sort_groups=4)
    for layer, update, readout in product(LAYERS, UPDATES, READOUTS)
]


def name_of(config: InspectorConfig) -> str:
    return f"{config.layer}-{config.update}-{config.readout}"


def paper_inspector(
    state: dict[str, Tensor], graph_input: InspectorInput, num_layers: int
) -> Tensor:
    """Preset `paper` for one graph, line by line from the paper's description."""
    num_groups = graph_input.num_groups
    adjacency = torch.eye(num_groups)
    for i, j in graph_input.edges.tolist():
        adjacency[i, j] = adjacency[j, i] = 1
    degree = torch.diag(adjacency.sum(1) ** -0.5)
    adjacency = degree @ adjacency @ degree
    h = torch.from_numpy(graph_input.features)
    for k in range(num_layers):
        part = "first" if k == 0 else "shared"
        weight, bias = state[f"{part}.conv.linear.weight"], state[f"{part}.conv.linear.bias"]
        y = functional.leaky_relu(adjacency @ h @ weight.t() + bias)
        padded = functional.pad(h, (0, y.shape[1] - h.shape[1]))
        gru = [state[f"{part}.gru.{n}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        h = torch._VF.gru_cell(padded, y, *gru)
    lstm = [state[f"readout.lstm.{n}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    q_star, hidden = torch.zeros(1, 2 * h.shape[1]), torch.zeros(1, h.shape[1])
    cell = hidden
    for _ in range(2 * num_layers):  # K = M / 2, and M steps
        hidden, cell = torch._VF.lstm_cell(q_star, (hidden, cell), *lstm)
        read = torch.softmax(h @ hidden[0], dim=0) @ h
        q_star = torch.cat([hidden[0], read])[None]
    out = functional.relu(functional.linear(q_star, state["mlp.0.weight"], state["mlp.0.bias"]))
    out = functional.relu(functional.linear(out, state["mlp.1.weight"], state["mlp.1.bias"]))
    return functional.leaky_relu(
        functional.linear(out, state["mlp.2.weight"], state["mlp.2.bias"])
    )[0]


def test_preset_paper_is_the_paper() -> None:
    """Result and gradients equal the description written out, for M = 20, K = 10, width 64."""
    model = random_inspector(InspectorConfig(), 20)
    graph_input = random_input(0, 20)
    own = model(make_batch([graph_input]))[0]
    expected = paper_inspector(dict(model.named_parameters()), graph_input, 10)
    torch.testing.assert_close(own, expected, atol=1e-5, rtol=1e-5)
    parameters = list(model.parameters())
    for a, b in zip(
        torch.autograd.grad(own.sum(), parameters),
        torch.autograd.grad(expected.sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_fused_and_plain_stages_agree() -> None:
    """`fused=False` gives the same numbers from the same weights."""
    fused = random_inspector(InspectorConfig(hidden=16), 30)
    plain = Inspector(InspectorConfig(hidden=16), 30, fused=False)
    plain.load_state_dict(fused.state_dict())
    batch = make_batch([random_input(i, 30) for i in range(3)])
    torch.testing.assert_close(fused(batch), plain(batch), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", STRUCTURES, ids=name_of)
def test_batch_mates_and_padding_change_nothing(config: InspectorConfig) -> None:
    """A graph alone, and among larger and smaller ones: the same twelve numbers."""
    model = random_inspector(config, 12)
    mates = [random_input(1, 12), random_input(2, 1), random_input(3, 30)]
    graph_input = random_input(0, 7)
    with torch.no_grad():
        alone = model(make_batch([graph_input]))[0]
        among = model(make_batch([mates[0], graph_input, *mates[1:]]))[1]
    torch.testing.assert_close(among, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", STRUCTURES, ids=name_of)
def test_group_order_does_not_matter(config: InspectorConfig) -> None:
    """Renumbering the groups leaves the result alone."""
    model = random_inspector(config, 9)
    graph_input = random_input(0, 9)
    order = np.random.default_rng(0).permutation(9)
    place = np.argsort(order)
    other = replace(
        graph_input,
        features=graph_input.features[order],
        edges=np.sort(place[graph_input.edges], axis=1).astype(np.int32),
    )
    with torch.no_grad():
        first, two = model(make_batch([graph_input])), model(make_batch([other]))
    torch.testing.assert_close(first, two, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", STRUCTURES, ids=name_of)
def test_gradients_reach_every_weight(config: InspectorConfig) -> None:
    """Finite gradients, and none that is missing; padding included."""
    model = random_inspector(config, 8)
    model(make_batch([random_input(0, 8), random_input(1, 5)])).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("config", STRUCTURES, ids=name_of)
def test_shapes_are_known_without_torch(config: InspectorConfig) -> None:
    """`weight_shapes` lists the model's state, for one layer and for several."""
    for depth, num_context, mlp_layers in ((1, 0, 3), (4, 7, 5)):
        config = replace(config, depth=depth, num_context=num_context, mlp_layers=mlp_layers)
        state = Inspector(config, 10).state_dict()
        shapes = {name: tuple(value.shape) for name, value in state.items()}
        assert shapes == weight_shapes(config, 10)


@pytest.mark.parametrize("mlp_layers", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("hidden", [16, 32, 64])
def test_widths_and_heads(hidden: int, mlp_layers: int) -> None:
    """All sizes that the paper compares give twelve numbers, with a context vector too."""
    config = InspectorConfig(
        hidden=hidden, mlp_layers=mlp_layers, num_context=7, depth="log2", dropout=0.1
    )
    model = Inspector(config, 10)
    assert model(make_batch([random_input(0, 10, 7)])).shape == (1, 12)


def test_context_reaches_the_result() -> None:
    """Two graphs that differ only in their context differ in the result."""
    model = random_inspector(InspectorConfig(num_context=7, hidden=8), 6)
    graph_input = random_input(0, 6, 7)
    batch = make_batch([graph_input, replace(graph_input, context=graph_input.context + 1)])
    first, two = model(batch)
    assert not torch.allclose(first, two)


def test_linear_output_can_be_negative_at_full_slope() -> None:
    """`linear` is what comes before the last LeakyReLU."""
    leaky = random_inspector(InspectorConfig(hidden=8), 6)
    linear = Inspector(InspectorConfig(hidden=8, output="linear"), 6)
    linear.load_state_dict(leaky.state_dict())
    batch = make_batch([random_input(i, 6) for i in range(4)])
    raw = linear(batch)
    assert (raw < 0).any()
    torch.testing.assert_close(functional.leaky_relu(raw), leaky(batch))


@pytest.mark.parametrize(
    ("depth", "expected"),
    [("m", 100), ("m/2", 50), ("log2", 7), ("log3", 4), ("log4", 3), ("log5", 3), (6, 6)],
)
def test_depths(depth: str | int, expected: int) -> None:
    """K for M = 100, and at least 1 for M = 1."""
    config = InspectorConfig(depth=depth)
    assert Inspector(config, 100).num_layers == expected
    assert Inspector(config, 1).num_layers == (6 if depth == 6 else 1)


@pytest.mark.parametrize("update", UPDATES)
def test_it_can_learn_four_graphs_by_heart(update: str) -> None:
    """Overfitting: the error on four graphs falls below a hundredth of where it began."""
    torch.manual_seed(0)
    config = InspectorConfig(update=update, hidden=16, depth=3, set2set_steps=3, output="linear")
    model = Inspector(config, 8)
    batch = make_batch([random_input(i, 8) for i in range(4)])
    targets = torch.rand(4, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(300):
        optimizer.zero_grad()
        loss = functional.mse_loss(model(batch), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 100


def test_odd_structures_are_refused() -> None:
    """Each message names what was found."""
    odd: list[dict[str, object]] = [
        {"layer": "cnn"},
        {"depth": "m/3"},
        {"depth": 0},
        {"depth": 10**9},
        {"hidden": 2.5},
        {"hidden": 10**9},
        {"mlp_layers": 0},
        {"dropout": 1.0},
        {"dropout": "0"},
        {"set2set_steps": 0},
        {"readout": []},
        {"hidden": 2},
    ]
    for fields in odd:
        with pytest.raises(ConfigError):
            InspectorConfig.from_dict({**InspectorConfig().to_dict(), **fields})
    with pytest.raises(ConfigError, match="0 groups"):
        Inspector(InspectorConfig(), 0)
    with pytest.raises(ConfigError, match="colour"):
        InspectorConfig.from_dict({**InspectorConfig().to_dict(), "colour": 1})


def test_batches_of_nothing_or_of_mixed_inputs_are_refused() -> None:
    """An empty batch, and graphs with and without context."""
    with pytest.raises(ConfigError, match="at least one"):
        make_batch([])
    with pytest.raises(ConfigError, match="one InputConfig"):
        make_batch([random_input(0, 3), random_input(0, 3, 7)])


def test_repeated_tanh() -> None:
    """Against the 49 of them, within 2 %; one is exact."""
    h = torch.linspace(-3, 3, 61)
    assert torch.equal(repeated_tanh(h, 1), torch.tanh(h))
    looped = h
    for _ in range(49):
        looped = torch.tanh(looped)
    torch.testing.assert_close(repeated_tanh(h, 49), looped, rtol=0.02, atol=1e-6)


def test_shortened_and_back() -> None:
    """No repeated layer, until it is used as usual again."""
    torch.manual_seed(0)
    model = Inspector(InspectorConfig(hidden=8), 30).eval()
    batch = make_batch([random_input(0, 30)])
    with torch.no_grad():
        whole = model(batch)
        model.shorten(3)
        h = repeated_tanh(model.first(batch.x, model.first.conv.prepare(batch.adjacency)), 3)
        torch.testing.assert_close(model(batch), model.head(model.readout(h, batch.mask), batch))
        model.shorten(None)
        assert torch.equal(model(batch), whole)
