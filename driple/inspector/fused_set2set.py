"""Steps of set2set as one differentiable function, for speed.

    h [B, M, H], mask, LSTM weights  ->  [q_T, r_T] [B, 2 H]

Autograd would write two outer products of the size of h for each of the M steps and add them up.
Here the attention and its gradient are kept, and the gradient of h is one product over all steps.
`docs/decisions/0003-fused-shared-stages.md` has the measurements.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["set2set"]


def set2set(h: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, num_steps: int) -> Tensor:
    """Run the steps from a state of zeros.

    Args:
        h: shape [B, M, H].
        mask: shape [B, M], 1 for a real group, 0 for a padded one; no gradient flows to it.
        weight: shape [2 H, 4 H], from [q, r] to the LSTM's gates in, forget, update, out.
        bias: shape [4 H].
        num_steps: T.

    Returns:
        Shape [B, 2 H].
    """
    out: Tensor = _Set2Set.apply(h, mask, weight, bias, num_steps)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return out


class _Set2Set(torch.autograd.Function):
    """Forward keeps the state, gates, cell and attention of each step."""

    @staticmethod
    def forward(  # noqa: PLR0917  # torch passes arguments by position
        ctx: torch.autograd.function.FunctionCtx,
        h: Tensor,
        mask: Tensor,
        weight: Tensor,
        bias: Tensor,
        num_steps: int,
    ) -> Tensor:
        size, num_groups, width = h.shape
        blocked = torch.zeros_like(mask).masked_fill(mask == 0, -torch.inf).unsqueeze(1)
        columns = h.transpose(1, 2)
        states = h.new_zeros(num_steps + 1, size, 2 * width)
        cells = h.new_zeros(num_steps + 1, size, width)
        gates = h.new_empty(num_steps, size, 4 * width)
        attention = h.new_empty(num_steps, size, 1, num_groups)
        for step in range(num_steps):
            torch.addmm(bias, states[step], weight, out=gates[step])
            gate_in, gate_forget, update, gate_out = gates[step].chunk(4, 1)
            update.tanh_()
            for gate in (gate_in, gate_forget, gate_out):
                gate.sigmoid_()
            torch.mul(gate_forget, cells[step], out=cells[step + 1]).addcmul_(gate_in, update)
            query, read = states[step + 1].chunk(2, 1)
            torch.mul(gate_out, torch.tanh(cells[step + 1]), out=query)
            score = torch.baddbmm(blocked, query.unsqueeze(1), columns)
            torch.softmax(score, dim=2, out=attention[step])
            read.copy_(torch.bmm(attention[step], h).squeeze(1))
        ctx.save_for_backward(h, weight, states, cells, gates, attention)
        return states[num_steps].clone()

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, grad_out: Tensor
    ) -> tuple[Tensor | None, ...]:
        # torch declares the attribute on no public class of contexts
        h, weight, states, cells, gates, attention = ctx.saved_tensors  # type: ignore[attr-defined]
        width = h.shape[2]
        weight_t, columns = weight.t().contiguous(), h.transpose(1, 2)
        grad_gates, grad_scores = torch.empty_like(gates), torch.empty_like(attention)
        grad_reads = torch.empty_like(cells[1:])
        grad_state, grad_cell = grad_out, torch.zeros_like(cells[0])
        for step in reversed(range(len(gates))):
            grad_query, grad_read = grad_state.chunk(2, 1)
            grad_reads[step] = grad_read
            attended = torch.bmm(grad_read.unsqueeze(1), columns)
            grad_scores[step] = torch.ops.aten._softmax_backward_data(
                attended, attention[step], 2, h.dtype
            )
            grad_query = grad_query + torch.bmm(grad_scores[step], h).squeeze(1)
            gate_in, gate_forget, update, gate_out = gates[step].chunk(4, 1)
            cell = torch.tanh(cells[step + 1])
            grad_cell = grad_cell + torch.ops.aten.tanh_backward(grad_query * gate_out, cell)
            # Sigmoid of the three gates, tanh of the update.
            kept = grad_gates[step]
            kept[:, :width] = grad_cell * update
            kept[:, width : 2 * width] = grad_cell * cells[step]
            kept[:, 2 * width : 3 * width] = torch.ops.aten.tanh_backward(
                grad_cell * gate_in, update
            )
            kept[:, 3 * width :] = grad_query * cell
            for part in (slice(0, 2 * width), slice(3 * width, 4 * width)):
                kept[:, part] = torch.ops.aten.sigmoid_backward(kept[:, part], gates[step][:, part])
            grad_cell = grad_cell * gate_forget
            grad_state = kept @ weight_t
        flat_gates = grad_gates.flatten(0, 1)
        return (
            _summed(attention, grad_reads) + _summed(grad_scores, states[1:, :, :width]),
            None,
            states[:-1].flatten(0, 1).t() @ flat_gates,
            flat_gates.sum(0),
            None,
        )


def _summed(weights: Tensor, vectors: Tensor) -> Tensor:
    """Sum over the steps of weights [T, B, 1, M] times vectors [T, B, H]; shape [B, M, H]."""
    return torch.bmm(weights.squeeze(2).permute(1, 2, 0), vectors.transpose(0, 1))
