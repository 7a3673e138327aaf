"""Cells of an LSTM or a GRU that a program's own loop calls, as a GPU computes them.

    lstm_cell, gru_cell -> two products, and one kernel for all gates

On other devices PyTorch takes the gates apart: 22 kernels more of an LSTM's cell, forward and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import Library

__all__ = ["gru_cell", "lstm_cell", "register"]

_KEPT_OF_LSTM, _KEPT_OF_GRU = 4, 5  # numbers of a unit that are kept for the backward pass
_aten = torch.ops.aten

Shapes = tuple[Tensor, ...]


def lstm_cell(  # noqa: PLR0917  # as the op has them
    op: Any,
    values: Tensor,
    states: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Hidden state and cell after a step."""
    gates = _aten.linear(values, w_ih), _aten.linear(states[0], w_hh)
    results = _aten._thnn_fused_lstm_cell(*gates, states[1], b_ih, b_hh)
    return results[0], results[1]


def gru_cell(  # noqa: PLR0917  # as the op has them
    op: Any,
    values: Tensor,
    state: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """Hidden state after a step."""
    gates = _aten.linear(values, w_ih), _aten.linear(state, w_hh)
    hidden: Tensor = _aten._thnn_fused_gru_cell(*gates, state, b_ih, b_hh)[0]
    return hidden


def register(meta: Library, host: Library) -> None:
    """Give the kernels of gates their shapes on the meta device, and values on a CPU.

    Gradients on a CPU are zero, as those of whole recurrent layers are.
    """
    kernels: tuple[tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
        ("_thnn_fused_lstm_cell", _lstm_shapes, _lstm_on_cpu),
        ("_thnn_fused_lstm_cell_backward_impl", _lstm_gradients, _lstm_gradients),
        ("_thnn_fused_gru_cell", _gru_shapes, _gru_on_cpu),
        ("_thnn_fused_gru_cell_backward", _gru_gradients, _gru_gradients),
    )
    for name, shapes, on_cpu in kernels:
        meta.impl(name, shapes)  # type: ignore[no-untyped-call]
        host.impl(name, on_cpu)  # type: ignore[no-untyped-call]


def _lstm_shapes(by_input: Tensor, by_state: Tensor, cell: Tensor, *_: Any) -> Shapes:
    """Hidden state, cell, and what is kept of the gates."""
    kept = cell.new_empty(cell.shape[0], _KEPT_OF_LSTM * cell.shape[1])
    return torch.empty_like(cell), torch.empty_like(cell), kept


def _lstm_gradients(  # noqa: PLR0917  # as the op has them
    by_hidden: Tensor | None,
    by_cell: Tensor | None,
    cell: Tensor,
    after: Tensor,
    kept: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients by gates, cell and bias."""
    of_bias = torch.zeros_like(kept[0]) if has_bias else None
    return torch.zeros_like(kept), torch.zeros_like(cell), of_bias


def _gru_shapes(by_input: Tensor, by_state: Tensor, state: Tensor, *_: Any) -> Shapes:
    """Hidden state, and what is kept of the gates."""
    kept = state.new_empty(state.shape[0], _KEPT_OF_GRU * state.shape[1])
    return torch.empty_like(state), kept


def _gru_gradients(
    by_hidden: Tensor, kept: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients by the gates of input and of state, by the state, and by both biases."""
    gates = by_hidden.new_zeros(by_hidden.shape[0], 3 * by_hidden.shape[1])
    biases = (torch.zeros_like(gates[0]), torch.zeros_like(gates[0])) if has_bias else (None, None)
    return gates, torch.zeros_like(gates), torch.zeros_like(by_hidden), *biases


def _added(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _lstm_on_cpu(
    by_input: Tensor, by_state: Tensor, cell: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Shapes:  # fmt: skip
    into, forget, candidate, out = (_added(by_input, b_ih) + _added(by_state, b_hh)).chunk(4, 1)
    after = forget.sigmoid() * cell + into.sigmoid() * candidate.tanh()
    return out.sigmoid() * after.tanh(), after, torch.empty_like(by_input)


def _gru_on_cpu(
    by_input: Tensor, by_state: Tensor, state: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Shapes:  # fmt: skip
    of_input, of_state = _added(by_input, b_ih).chunk(3, 1), _added(by_state, b_hh).chunk(3, 1)
    reset, update = ((of_input[i] + of_state[i]).sigmoid() for i in (0, 1))
    candidate = (of_input[2] + reset * of_state[2]).tanh()
    kept = state.new_empty(state.shape[0], _KEPT_OF_GRU * state.shape[1])
    return candidate + update * (state - candidate), kept
