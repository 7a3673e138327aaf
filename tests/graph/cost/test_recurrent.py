"""Recurrent layers that are one op, against the products that they come to."""

from __future__ import annotations

import pytest
from torch import nn

from driple.graph.cost import cost_of_op
from driple.graph.cost.products import product_of
from driple.graph.opkind import family_of
from driple.graph.signature import OpSignature, Tensor
from tests.graph.cost.ops import op

STEPS, BATCH, INPUT, HIDDEN = 20, 32, 48, 64
SEQUENCE, STATE = (STEPS, BATCH, INPUT), (BATCH, HIDDEN)
WEIGHTS, PEEPHOLE, BIAS = (INPUT + HIDDEN, 4 * HIDDEN), (HIDDEN,), (4 * HIDDEN,)
# Four gates read input and state, a multiply-add counts two.
LSTM_STEP = 8 * HIDDEN * (INPUT + HIDDEN) * BATCH


def flops(signature: OpSignature) -> float:
    """Those of an op that has a formula."""
    cost = cost_of_op(signature)
    assert cost.known
    return cost.flops


@pytest.mark.parametrize("version", ["", "V2"])
def test_block_lstm_and_its_gradient(version: str) -> None:
    output = (STEPS, BATCH, HIDDEN)
    inputs = ((), SEQUENCE, STATE, STATE, WEIGHTS, *(PEEPHOLE,) * 3, BIAS)
    assert flops(op(f"BlockLSTM{version}", *inputs, out=[output] * 7)) == STEPS * LSTM_STEP
    gradient = op(
        f"BlockLSTMGrad{version}", *inputs, *(output,) * 9, out=[SEQUENCE, STATE, STATE, WEIGHTS]
    )
    assert flops(gradient) == 2 * STEPS * LSTM_STEP


def test_a_block_lstm_is_as_many_cells() -> None:
    cell = op(
        "LSTMBlockCell", (BATCH, INPUT), STATE, STATE, WEIGHTS, *(PEEPHOLE,) * 3, BIAS,
        out=[STATE] * 7,
    )  # fmt: skip
    assert flops(cell) == LSTM_STEP


def test_the_gradient_of_a_cell_leaves_its_products_to_other_ops() -> None:
    gradient = op(
        "LSTMBlockCellGrad", (BATCH, INPUT), STATE, STATE, WEIGHTS, *(PEEPHOLE,) * 3, BIAS,
        *(STATE,) * 8, out=[STATE, (BATCH, 4 * HIDDEN), PEEPHOLE, PEEPHOLE, PEEPHOLE],
    )  # fmt: skip
    assert flops(gradient) == 22 * BATCH * HIDDEN
    assert product_of(gradient, flops(gradient)) is None
    assert family_of(gradient.kind) == "elementwise"


def test_a_gru_cell_has_three_gates() -> None:
    two, single = (INPUT + HIDDEN, 2 * HIDDEN), (INPUT + HIDDEN, HIDDEN)
    inputs = ((BATCH, INPUT), STATE, two, single, (2 * HIDDEN,), (HIDDEN,))
    forward = op("GRUBlockCell", *inputs, out=[STATE] * 4)
    backward = op("GRUBlockCellGrad", *inputs, *(STATE,) * 4, out=[(BATCH, INPUT), STATE, STATE])
    assert flops(forward) == flops(backward) == 6 * HIDDEN * (INPUT + HIDDEN) * BATCH


def cudnn(op_type: str = "CudnnRNN", layers: int = 1, directions: int = 1, **texts: str | int):  # type: ignore[no-untyped-def]
    """A CudnnRNN over the sequence."""
    state = (layers * directions, BATCH, HIDDEN)
    if directions == 2:
        texts["direction"] = "bidirectional"
    output = (STEPS, BATCH, directions * HIDDEN)
    return op(op_type, SEQUENCE, state, state, (99_999,), out=[output, state, state, None], **texts)


@pytest.mark.parametrize(
    ("mode", "gates"), [("", 4), ("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)]
)
@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_cudnn_layers_by_cell(mode: str, gates: int, version: str) -> None:
    texts = {"rnn_mode": mode} if mode else {}
    expected = STEPS * LSTM_STEP * gates / 4
    assert flops(cudnn(f"CudnnRNN{version}", **texts)) == expected
    assert flops(cudnn(f"CudnnRNNBackprop{version}", **texts)) == 2 * expected


def test_later_cudnn_layers_read_both_directions() -> None:
    """Layer 1 reads the input, layer 2 both directions of layer 1; each direction is a layer."""
    first = 8 * HIDDEN * (INPUT + HIDDEN)
    second = 8 * HIDDEN * (2 * HIDDEN + HIDDEN)
    both = flops(cudnn(layers=2, directions=2, rnn_mode="lstm"))
    assert both == STEPS * BATCH * 2 * (first + second)


def test_skipped_input_is_not_multiplied() -> None:
    assert flops(cudnn(input_mode="skip_input")) == STEPS * BATCH * 8 * HIDDEN * HIDDEN


def test_a_projection_narrows_the_state() -> None:
    narrow = 16
    state, cell = (1, BATCH, narrow), (1, BATCH, HIDDEN)
    output = (STEPS, BATCH, narrow)
    layer = op(
        "CudnnRNNV3", SEQUENCE, state, cell, None, out=[output, state, cell], num_proj=narrow
    )
    each = 8 * HIDDEN * (INPUT + narrow) + 2 * HIDDEN * narrow
    assert flops(layer) == STEPS * BATCH * each


def test_an_unknown_cell_is_reported() -> None:
    assert not cost_of_op(cudnn(rnn_mode="qrnn")).known
    assert not cost_of_op(op("BlockLSTM", (), None, STATE, STATE, WEIGHTS, out=[None])).known


@pytest.mark.parametrize("signature", [cudnn(), cudnn(rnn_mode="gru"), cudnn(layers=3)])
def test_steps_follow_each_other(signature: OpSignature) -> None:
    """One product whose inner side is that of all steps: they are not computed at once."""
    product = product_of(signature, flops(signature))
    assert product is not None
    assert (product.m, product.count) == (BATCH, 1)
    assert product.n in {4 * HIDDEN, 3 * HIDDEN}
    assert 2 * product.m * product.n * product.k == pytest.approx(flops(signature))
    assert family_of(signature.kind) == "matmul"


GATES = {"lstm": (4, nn.LSTM), "gru": (3, nn.GRU), "rnn": (1, nn.RNN)}


@pytest.mark.parametrize("kind", list(GATES))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_of_pytorch_multiply_their_weights_at_every_step(
    kind: str, bidirectional: bool
) -> None:
    """Twice the weight matrices (biases are no products) of PyTorch's own module, per sample."""
    gates, module = GATES[kind]
    layers = module(INPUT, HIDDEN, num_layers=3, bidirectional=bidirectional)
    weights = sum(one.numel() for one in layers.parameters() if one.dim() == 2)
    state = (3 * (2 if bidirectional else 1), BATCH, HIDDEN)
    direction = "bidirectional" if bidirectional else "unidirectional"
    numbers = (("direction", tuple(map(ord, direction))),)
    shapes = (SEQUENCE, state, *((state,) if kind == "lstm" else ()), (weights,))
    inputs = tuple(Tensor(shape, 1) for shape in shapes)
    forward = OpSignature(kind, inputs, (Tensor((STEPS, BATCH, HIDDEN), 1),), numbers)
    backward = OpSignature(f"{kind}_gradient", inputs, (Tensor(SEQUENCE, 1),), numbers)
    assert flops(forward) == 2 * STEPS * BATCH * weights
    assert flops(backward) == 2 * flops(forward)
    product = product_of(forward, flops(forward))
    assert product is not None
    assert (product.m, product.n) == (BATCH, gates * HIDDEN)
