"""FLOPs of recurrent layers that are one op: a step (a cell), a sequence, or a stack of layers.

Counted are the products of the gates' weights with input and state, a multiply-add as two; what a
cell does element by element is a few thousandths of that. A gradient that gives those of inputs and
of weights takes two products for each product of the forward pass.

    LSTM, one step of one sample:  2 * 4 hidden * (input + hidden)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from driple.graph.cost.shapes import (
    ALL,
    LAST,
    Formula,
    UnknownShapeError,
    elements_in,
    numbers_of,
    shape_in,
    text_of,
)
from driple.graph.signature import OpSignature

__all__ = ["RECURRENT", "RECURRENT_FLOPS", "sides_of_step"]

# Gates of a cell, by the kind of the layers, or by the attribute `rnn_mode` of `cudnn_rnn`.
_GATES = {"lstm": 4, "gru": 3, "rnn": 1, "rnn_tanh": 1, "rnn_relu": 1}
_LAYERS = ("lstm", "gru", "rnn", "cudnn_rnn")
# Element by element, for each of the hidden units: gradients of output (4), cell (5), the gates for
# candidate, forget and input (4 each), and of the cell before (1).
_LSTM_CELL_GRADIENT = 22
# Of a gate: sums with the other product and two biases (3), sigmoid, and use (1).
_GATES_OF_ELEMENT = 5
_STATE = slice(None, None, 2)  # layers and width of [layers * directions, batch, width]


def _block_lstm(op: OpSignature) -> float:
    """Cost of a sequence: x is [steps, batch, input], w is [input + hidden, 4 hidden]."""
    steps, batch = shape_in(op, 1, 3)[:2]
    return 2.0 * steps * batch * prod(shape_in(op, 4, 2, ALL))


def _block_lstm_gradient(op: OpSignature) -> float:
    return 2 * _block_lstm(op)


def _lstm_cell(op: OpSignature) -> float:
    """Cost of one step: x is [batch, input], w is [input + hidden, 4 hidden]."""
    return 2.0 * shape_in(op, 0, 2)[0] * prod(shape_in(op, 3, 2, ALL))


def _lstm_cell_gradient(op: OpSignature) -> float:
    """Element by element only: the products with the weights are ops of their own."""
    return float(_LSTM_CELL_GRADIENT * elements_in(op, 1))


def _cell_gates(op: OpSignature) -> float:
    """All gates of a cell, element by element, of the products that are its first input."""
    return float(_GATES_OF_ELEMENT * elements_in(op, 0))


def _cell_gates_gradient(op: OpSignature) -> float:
    return float(_LSTM_CELL_GRADIENT * elements_in(op, 0))


def _gru_cell(op: OpSignature) -> float:
    """Cost of one step or of its gradient, which leaves that of the weights to ops of their own.

    x is [batch, input], the weights [input + hidden, 2 hidden] and [input + hidden, hidden].
    """
    weights = prod(shape_in(op, 2, 2, ALL)) + prod(shape_in(op, 3, 2, ALL))
    return 2.0 * shape_in(op, 0, 2)[0] * weights


def _stacked(op: OpSignature) -> float:
    """Cost of all layers and directions over a sequence.

    Inputs are [steps, batch, input] (or batch first), the first state [layers * directions, batch,
    hidden], the cell's state the same if it has one, and the parameters of all layers as one
    vector. `direction` among the numbers spells `bidirectional`.
    """
    steps, batch, width = shape_in(op, 0, 3, LAST)[:3]
    stacked, _, output = shape_in(op, 1, 3, _STATE)[:3]
    gates, hidden = _gates_and_hidden(op)
    directions = 2 if text_of(op, "direction") == "bidirectional" else 1
    layers = stacked // directions
    if not layers:
        raise UnknownShapeError(f"{op.kind}: its state has no layers")
    projected = 2 * hidden * output if hidden != output else 0
    first = 0 if text_of(op, "input_mode") == "skip_input" else width
    of_states = layers * 2 * gates * hidden * output
    of_inputs = 2 * gates * hidden * (first + (layers - 1) * directions * output)
    each = directions * (of_states + of_inputs + layers * projected)
    return float(steps * batch * each)


def _stacked_gradient(op: OpSignature) -> float:
    return 2 * _stacked(op)


def _gates_and_hidden(op: OpSignature) -> tuple[int, int]:
    """Gates of a cell, and its hidden units; `cudnn_rnn` may leave out its default, an LSTM."""
    kind = op.kind.removesuffix("_gradient")
    mode = kind if kind != "cudnn_rnn" else text_of(op, "rnn_mode") or "lstm"
    gates = _GATES.get(mode)
    if gates is None:
        raise UnknownShapeError(f"{op.kind}: no cell is named {mode[:20]!r}")
    output = shape_in(op, 1, 3, _STATE)[2]
    if gates == _GATES["lstm"] and numbers_of(op, "num_proj"):
        return gates, shape_in(op, 2, 3, LAST)[2]
    return gates, output


def cells_of(op: OpSignature) -> float:
    """Steps times layers times directions of a stack over a sequence; 0 for any other op.

    Raises:
        UnknownShapeError: a shape is not known.
    """
    if op.kind.removesuffix("_gradient") not in _LAYERS:
        return 0.0
    first, second = shape_in(op, 0, 3, LAST)[:2]  # steps and batch, or batch first
    stacked, batch, _ = shape_in(op, 1, 3, _STATE)[:3]
    return float(first * second / batch * stacked) if batch else 0.0


def sides_of_step(op: OpSignature) -> tuple[float, float]:
    """Rows and columns of the product of one step: batch, and all gates of the hidden units.

    Raises:
        UnknownShapeError: a shape is not known.
    """
    if op.kind.startswith("block_lstm"):
        return float(shape_in(op, 1, 3)[1]), float(shape_in(op, 4, 2)[1])
    if op.kind.startswith("lstm_cell"):
        return float(shape_in(op, 0, 2)[0]), float(shape_in(op, 3, 2)[1])
    if op.kind.startswith("gru_cell"):
        return float(shape_in(op, 0, 2)[0]), float(shape_in(op, 2, 2)[1] * 3 // 2)
    gates, hidden = _gates_and_hidden(op)
    return float(shape_in(op, 1, 3)[1]), float(gates * hidden)


RECURRENT_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        "block_lstm": _block_lstm,
        "block_lstm_gradient": _block_lstm_gradient,
        "lstm_cell": _lstm_cell,
        "lstm_cell_gradient": _lstm_cell_gradient,
        "cell_gates": _cell_gates,
        "cell_gates_gradient": _cell_gates_gradient,
        "gru_cell": _gru_cell,
        "gru_cell_gradient": _gru_cell,
        **dict.fromkeys(_LAYERS, _stacked),
        **{f"{kind}_gradient": _stacked_gradient for kind in _LAYERS},
    }
)
# Those that come to products of matrices.
RECURRENT = frozenset(RECURRENT_FLOPS) - {
    "lstm_cell_gradient", "cell_gates", "cell_gates_gradient",
}  # fmt: skip
