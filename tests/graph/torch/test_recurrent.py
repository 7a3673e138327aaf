"""Recurrent layers are one op of cuDNN, with the FLOPs of the cells that it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode

from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.step import StepOptions, traced_step

CELLS: list[tuple[type[nn.RNNBase], dict[str, Any], str]] = [
    (nn.LSTM, {}, "lstm"),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}, "lstm"),
    (nn.LSTM, {"proj_size": 8}, "lstm"),
    (nn.GRU, {"num_layers": 2, "batch_first": True}, "gru"),
    (nn.RNN, {"nonlinearity": "relu", "batch_first": True}, "rnn"),
]


class Net(nn.Module):
    """A recurrent layer, the last of whose outputs is read."""

    def __init__(self, cell: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = cell(24, 16, **options)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs)[0].sum()


def traced(model: nn.Module, inputs: Tensor, precision: str = "fp32") -> OpGraph:
    return traced_step(model, inputs, None, StepOptions(precision=precision))  # type: ignore[arg-type]


@pytest.mark.parametrize(("cell", "options", "kind"), CELLS)
def test_a_recurrent_layer_is_one_op_each_way(
    cell: type[nn.RNNBase], options: dict[str, Any], kind: str
) -> None:
    """FLOPs are those of the products of all cells, which PyTorch computes without cuDNN."""
    with torch.device("meta"):
        model, inputs = Net(cell, **options), torch.zeros(5, 5, 24, requires_grad=True)
    graph = traced(model, inputs)
    kinds = [graph.signatures[number].kind for number in graph.signature_of.tolist()]
    assert kinds.count(kind) == kinds.count(f"{kind}_gradient") == 1
    assert len(kinds) < 12 + len(list(model.parameters()))
    assert not cost_of_graph(graph).unknown
    assert len(graph.parameters.gradients) == len(list(model.parameters()))
    flops = dict(zip(kinds, cost_of_graph(graph).flops.tolist(), strict=True))
    counter = FlopCounterMode(display=False)
    with counter:
        model(inputs)
    assert flops[kind] == counter.get_total_flops()
    assert flops[f"{kind}_gradient"] == 2 * flops[kind]


def test_under_autocast_it_runs_in_half_precision() -> None:
    with torch.device("meta"):
        model, inputs = Net(nn.LSTM), torch.zeros(5, 3, 24)
    graph = traced(model, inputs, "amp-fp16")
    types = {one.outputs[0].dtype for one in graph.signatures if one.kind.startswith("lstm")}
    plain = {one.outputs[0].dtype for one in traced(model, inputs).signatures
             if one.kind.startswith("lstm")}  # fmt: skip
    assert types.isdisjoint(plain)


@pytest.mark.parametrize(("task", "kept"), [("train", 1), ("forward", 0)])
def test_an_lstm_keeps_gates_and_cells_for_its_backward_pass(task: Any, kept: int) -> None:
    """5 numbers of a unit at each of 5 steps of 3 samples, 16 units, two directions."""
    with torch.device("meta"):
        model, inputs = Net(nn.LSTM, bidirectional=True), torch.zeros(5, 3, 24)
    graph = traced_step(model, inputs, None, StepOptions(task=task))
    reserve = 5 * (5 * 3 * 16 * 2) * 4
    lives = graph.lifetimes
    assert np.count_nonzero(lives.nbytes == reserve) == kept
    if kept:
        (row,) = np.flatnonzero(lives.nbytes == reserve)
        kinds = [graph.kinds[lives.made_by[row]], graph.kinds[lives.freed_after[row]]]
        assert kinds == ["lstm", "lstm_gradient"]


def test_packed_sequences_count_their_own_lengths() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.GRU(24, 16)

        def forward(self, inputs: Tensor) -> Tensor:
            packed = pack_padded_sequence(inputs, torch.tensor([5, 3, 2], device="cpu"))
            return self.layer(packed)[0].data.sum()

    model, inputs = Packed(), torch.zeros(5, 3, 24)
    graph = traced_step(model, inputs, None, StepOptions(trace="real"))
    assert cost_of_graph(graph).total_flops > 0


class Loop(nn.Module):
    """A cell that a loop of the program's own calls at each step."""

    def __init__(self, cell: type[nn.RNNCellBase], **options: Any) -> None:
        super().__init__()
        self.cell = cell(24, 16, **options)

    def forward(self, inputs: Tensor) -> Tensor:
        states: Any = None
        for values in inputs.unbind():
            states = self.cell(values, states)
        return (states[0] if isinstance(states, tuple) else states).sum()


@pytest.mark.parametrize(("cell", "sums"), [(nn.LSTMCell, 1), (nn.GRUCell, 2)])
def test_a_cell_in_a_loop_is_two_products_and_one_kernel(
    cell: type[nn.RNNCellBase], sums: int
) -> None:
    """Each step has them forward and back, and a sum over the batch for each bias that it has."""
    with torch.device("meta"):
        model, inputs = Loop(cell), torch.zeros(7, 3, 24)
    kinds = [
        graph.signatures[number].kind
        for graph in [traced(model, inputs)]
        for number in graph.signature_of.tolist()
    ]
    assert kinds.count("cell_gates") == kinds.count("cell_gates_gradient") == 7
    assert not {"sigmoid", "tanh", "mul", "sigmoid_gradient", "tanh_gradient"} & set(kinds)
    assert kinds.count("reduce_sum") == 7 * sums + 1  # the loss
    # Products: forward two a step, back one for each weight, and one for the state before it.
    assert kinds.count("matmul") == 7 * 4 + 6


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_on_real_inputs_gives_what_it_gives(cell: type[nn.RNNCellBase], bias: bool) -> None:
    """Values that a program may read are PyTorch's own."""
    torch.manual_seed(0)
    model, inputs = Loop(cell, bias=bias), torch.randn(4, 3, 24)
    own = model(inputs)
    with gpu_autocast():
        assert torch.allclose(model(inputs), own)


def test_a_cell_under_autocast_multiplies_in_half_precision() -> None:
    with torch.device("meta"):
        model, inputs = Loop(nn.LSTMCell), torch.zeros(2, 3, 24)
    gates = {
        precision: {
            one.inputs[0].dtype
            for one in traced(model, inputs, precision).signatures
            if one.kind == "cell_gates"
        }
        for precision in ("fp32", "amp-fp16")
    }
    assert gates["fp32"].isdisjoint(gates["amp-fp16"])
