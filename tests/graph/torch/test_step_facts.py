"""Phases, modules, parameters, lifetimes, accumulation and checkpointing of traced steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from driple.errors import ConfigError
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase, TensorRole
from driple.graph.torch.step import StepOptions, traced_step


class Block(nn.Module):
    """Two layers and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.narrow(nn.functional.gelu(self.wide(inputs)))


class Net(nn.Module):
    """Three blocks, optionally checkpointed by the model itself."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        self.begin = nn.Linear(16, 16)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.reentrant = reentrant

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.begin(inputs)
        for block in self.blocks:
            if self.reentrant is None:
                hidden = block(hidden)
            else:
                hidden = checkpoint(block, hidden, use_reentrant=self.reentrant)  # type: ignore[no-untyped-call]
        return hidden.square().sum()


def graph_of(model: nn.Module | None = None, **options: Any) -> OpGraph:
    with torch.device("meta"):
        module, inputs = model or Net(), torch.zeros(8, 16)
    return traced_step(module.to("meta"), inputs, None, StepOptions(**options))


def products(graph: OpGraph, phase: Phase) -> Counter[str]:
    """Matrix products of a phase by module."""
    counts: Counter[str] = Counter()
    for node, number in enumerate(graph.signature_of.tolist()):
        if graph.signatures[number].kind == "matmul" and graph.phases[node] == phase:
            counts[graph.modules[int(graph.module_of[node])]] += 1
    return counts


LAYERS = ["begin", *(f"blocks.{i}.{name}" for i in range(3) for name in ("wide", "narrow"))]


def test_every_product_knows_its_phase_and_module() -> None:
    """Each layer: a product forward; two backward, but of the first layer, whose input is given."""
    graph = graph_of()
    assert products(graph, Phase.FORWARD) == Counter(LAYERS)
    expected = Counter(LAYERS) + Counter(LAYERS)
    expected["begin"] -= 1
    assert products(graph, Phase.BACKWARD) == expected
    assert not products(graph, Phase.RECOMPUTE)
    last_forward = np.flatnonzero(graph.phases == Phase.FORWARD).max()
    assert last_forward < np.flatnonzero(graph.phases == Phase.BACKWARD).min()
    additions = [
        graph.modules[int(graph.module_of[node])]
        for node, op in enumerate(graph.op_types)
        if op == "aten::add"
    ]
    assert additions[:3] == ["blocks.0", "blocks.1", "blocks.2"]


def test_parameters_have_names_readers_and_the_op_that_completes_their_gradient() -> None:
    model = Net()
    graph = graph_of(model)
    table = graph.parameters
    assert table.names == tuple(name for name, _ in model.named_parameters())
    assert table.elements.tolist() == [one.numel() for one in model.parameters()]
    assert table.is_trained.all()
    for number, node in table.gradients.tolist():
        assert graph.phases[node] == Phase.BACKWARD
        module = graph.modules[int(graph.module_of[node])]
        assert table.names[number].startswith(f"{module}.")
        assert table.elements[number] * 4 in [
            one.nbytes for one in graph.signatures[int(graph.signature_of[node])].outputs
        ]
    assert set(table.readers[:, 0].tolist()) == set(range(len(table.names)))


def test_frozen_parameters_have_no_gradient_no_update_and_no_traffic() -> None:
    """All but the last block is frozen: nothing is computed backward below it."""
    model = Net()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("blocks.2" in name)
    graph = graph_of(model, optimizer="adamw")
    assert products(graph, Phase.FORWARD) == Counter(LAYERS)
    assert products(graph, Phase.BACKWARD) == Counter({"blocks.2.wide": 1, "blocks.2.narrow": 2})
    trained = sum(one.nbytes for one in model.parameters() if one.requires_grad)
    assert graph.parameters.is_trained.sum() == len(graph.parameters.gradients) == 4
    assert len(graph.parameters.names) == len(list(model.parameters()))
    assert graph.sent_bytes == graph.received_bytes == trained
    assert graph.update.state_bytes == 2 * trained


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_models_own_checkpoints_are_recomputed(reentrant: bool) -> None:
    graph = graph_of(Net(reentrant))
    again = products(graph, Phase.RECOMPUTE)
    # Nobody needs the last product of a block again; only the non-reentrant form stops before it.
    expected = Counter(name for name in LAYERS if "wide" in name)
    if reentrant:
        expected += Counter(name for name in LAYERS if "narrow" in name)
    assert again == expected
    assert products(graph, Phase.BACKWARD) == products(graph_of(), Phase.BACKWARD)


def test_checkpointing_as_an_option_saves_memory_and_costs_work() -> None:
    plain, full, selective = (
        graph_of(activation_checkpointing=mode) for mode in ("none", "full", "selective")
    )
    assert products(full, Phase.RECOMPUTE) == Counter(name for name in LAYERS if "wide" in name)
    assert not products(selective, Phase.RECOMPUTE)
    again = [
        selective.kinds[node]
        for node in np.flatnonzero(selective.phases == Phase.RECOMPUTE).tolist()
    ]
    assert again.count("gelu") == 3
    kept = [
        int(one.lifetimes.nbytes[one.lifetimes.roles == TensorRole.ACTIVATION].sum())
        for one in (plain, selective, full)
    ]
    assert kept[0] > kept[1] > kept[2]
    flops = [cost_of_graph(one).total_flops for one in (plain, selective, full)]
    assert flops[0] < flops[1] < flops[2]
    with torch.device("meta"):
        model, inputs = nn.Linear(16, 4), torch.zeros(8, 16)
    with pytest.raises(ConfigError, match="needs repeated blocks"):
        traced_step(
            model, inputs, lambda outputs: outputs.sum(),
            StepOptions(activation_checkpointing="full"),
        )  # fmt: skip


def test_accumulation_repeats_passes_and_adds_gradients() -> None:
    once, four = graph_of(), graph_of(grad_accumulation=4)
    runs = four.executions
    assert set(runs.tolist()) == {3, 4}
    assert (runs == 3).sum() == len(four.parameters.names)
    flops = [cost_of_graph(one).flops @ one.executions for one in (once, four)]
    added = 3 * four.parameters.elements.sum()
    assert flops[1] == 4 * flops[0] + added
    assert four.sent_bytes == once.sent_bytes
    assert four.update == once.update


def test_shared_weights_are_one_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
            self.head.weight = self.words.weight

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(self.words(inputs)).sum()

    with torch.device("meta"):
        model, inputs = Tied(), torch.zeros(4, 6, dtype=torch.int64)
    graph = traced_step(model, inputs, None, StepOptions())
    assert graph.parameters.names == ("words.weight",)
    assert len(graph.parameters.readers) >= 2
    assert len(graph.parameters.gradients) == 1


class Mixer(nn.Module):
    """Embedding, norms, attention by hand, and a loss: no op that takes a workspace on a CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(200, 64)
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(4))
        self.wide = nn.ModuleList(nn.Linear(64, 256) for _ in range(4))
        self.narrow = nn.ModuleList(nn.Linear(256, 64) for _ in range(4))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens)
        for norm, wide, narrow in zip(self.norms, self.wide, self.narrow, strict=True):
            inner = norm(hidden)
            scores = (inner @ inner.transpose(1, 2)).softmax(-1)
            hidden = hidden + narrow(nn.functional.gelu(wide(scores @ inner)))
        logits = hidden @ self.words.weight.t()
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def peak_of(graph: OpGraph) -> int:
    """Most bytes that live at once, of what the step itself allocates."""
    lives = graph.lifetimes
    own = lives.made_by >= 0
    change = np.zeros(graph.num_nodes + 2, dtype=np.int64)
    np.add.at(change, lives.made_by[own], lives.nbytes[own])
    np.add.at(change, lives.freed_after[own] + 1, -lives.nbytes[own])
    return int(np.cumsum(change).max())


def measured_peak(model: nn.Module, inputs: Tensor) -> int:
    """The same of a real step on the CPU, by the allocator's own events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        model(inputs).backward()
    events = [
        event for event in recorded.profiler.kineto_results.events()  # type: ignore[union-attr]
        if event.name() == "[memory]"
    ]  # fmt: skip
    events.sort(key=lambda event: event.start_ns())
    now = peak = 0
    for event in events:
        now += event.nbytes()
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize("make", [Mixer, Net, lambda: Net(False)])
def test_lifetimes_add_up_to_the_peak_of_a_real_step(make: Any) -> None:
    """Within 2 % of what PyTorch's allocator on the CPU saw."""
    model = make()
    inputs = torch.randint(0, 200, (8, 64)) if isinstance(model, Mixer) else torch.rand(4096, 16)
    measured = measured_peak(model, inputs)
    for parameter in model.parameters():
        parameter.grad = None
    with torch.device("meta"):
        shapes = make()
    graph = traced_step(shapes, inputs.to("meta"), None, StepOptions())
    assert peak_of(graph) == pytest.approx(measured, rel=0.02)


def test_a_compiled_model_is_read_as_it_is_written() -> None:
    """`torch.compile` only wraps the model: nothing is compiled, its ops are fusion groups."""
    with torch.device("meta"):
        model, inputs = Net(), torch.zeros(8, 16)
    compiled = traced_step(torch.compile(model), inputs, None, StepOptions())  # type: ignore[arg-type]
    plain = traced_step(model, inputs, None, StepOptions())
    assert compiled.parameters.names == plain.parameters.names
    assert compiled.op_types == plain.op_types
    assert (compiled.fusion_of >= 0).any()
    assert not len(plain.fusion_of)
