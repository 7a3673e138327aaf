"""The shared GCN + GRU stages of preset `paper` as one differentiable function, for speed.

    h [B * M, H], normalised adjacency [B, M, M], weights  ->  h after `num_stages` stages

One stage is y = LeakyReLU(A h W^T + b); h' = GRU(input h, state y). Autograd would keep twenty
tensors per stage; here five are kept, gates that share an operand share a product, and the
adjacency, being symmetric, serves backward as it is. `docs/decisions/0003-fused-shared-stages.md`
has the measurements, `scripts/bench/inspector.py` repeats them.

Products go to oneDNN where torch offers it: on AMD processors it does twice the work per second of
the MKL behind `torch.mm`, which holds AVX-512 back there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from driple.inspector.config import CONV_NEGATIVE_SLOPE

__all__ = ["StageWeights", "shared_stages"]

Mix = Callable[[Tensor], Tensor]

# Share of entries of the adjacency that are not 0, up to which the sparse product is faster.
SPARSE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class StageWeights:
    """Weights of one GCN + GRU stage of width H, as torch names and orders them.

    Attributes:
        conv_weight: shape [H, H].
        conv_bias: shape [H].
        weight_ih: shape [3 H, H], rows in the order reset, update, new.
        weight_hh: shape [3 H, H].
        bias_ih: shape [3 H].
        bias_hh: shape [3 H].
    """

    conv_weight: Tensor
    conv_bias: Tensor
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor


def shared_stages(h: Tensor, adjacency: Tensor, weights: StageWeights, num_stages: int) -> Tensor:
    """Run the stage `num_stages` times.

    Args:
        h: shape [B, M, H].
        adjacency: shape [B, M, M], normalised and symmetric; no gradient flows to it.
        weights: weights of the one stage that is repeated.
        num_stages: K - 1.

    Returns:
        Shape [B, M, H].
    """
    flat: Tensor = _SharedStages.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
        h.reshape(-1, h.shape[2]),
        adjacency,
        weights.conv_weight,
        weights.conv_bias,
        weights.weight_ih,
        weights.weight_hh,
        weights.bias_ih,
        weights.bias_hh,
        num_stages,
    )
    return flat.view(h.shape)


class _SharedStages(torch.autograd.Function):
    """Forward keeps (h, y, [r z], q, n) of each stage; backward walks them from the last."""

    @staticmethod
    def forward(  # noqa: PLR0917  # torch passes arguments by position
        ctx: torch.autograd.function.FunctionCtx,
        h: Tensor,
        adjacency: Tensor,
        conv_weight: Tensor,
        conv_bias: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        num_stages: int,
    ) -> Tensor:
        width = h.shape[1]
        two = 2 * width
        gates_ih, gates_hh = weight_ih[:two], weight_hh[:two]
        gates_bias = (bias_ih + bias_hh)[:two].contiguous()
        new_hh, new_hh_bias = weight_hh[two:], bias_hh[two:]
        # tanh(a) = 2 sigmoid(2 a) - 1, and torch's sigmoid is ten times as fast as its tanh.
        double_new_ih, double_new_bias = 2 * weight_ih[two:], 2 * bias_ih[two:]
        minus_one = h.new_full((), -1.0)
        mix = _mixing(adjacency)
        kept = []
        for _ in range(num_stages):
            y = mix(_linear(h, conv_weight)).add_(conv_bias)
            y = functional.leaky_relu_(y, CONV_NEGATIVE_SLOPE)
            gates = _linear_add(y, _linear(h, gates_ih, gates_bias), gates_hh).sigmoid_()
            reset, update = gates[:, :width], gates[:, width:]
            q = _linear(y, new_hh, new_hh_bias)
            new = _linear(h, double_new_ih, double_new_bias)
            new.addcmul_(reset, q, value=2).sigmoid_()
            new = torch.add(minus_one, new, alpha=2)
            kept += [h, y, gates, q, new]
            h = torch.lerp(new, y, update)
        ctx.save_for_backward(adjacency, conv_weight, weight_ih, weight_hh, *kept)
        return h

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, grad_h: Tensor
    ) -> tuple[Tensor | None, ...]:
        # torch declares the attribute on no public class of contexts
        adjacency, conv_weight, weight_ih, weight_hh, *kept = ctx.saved_tensors  # type: ignore[attr-defined]
        total = _StageGradients(conv_weight, weight_ih, weight_hh)
        grad_h, mix = grad_h.contiguous(), _mixing(adjacency)
        while kept:
            stage = tuple(kept[-5:])
            del kept[-5:]
            grad_h = total.step_back(grad_h, stage, mix)
        return (grad_h, None, *total.weights(), None)


class _StageGradients:
    """Sums of the weight gradients over the stages, and the step back through one stage."""

    def __init__(self, conv_weight: Tensor, weight_ih: Tensor, weight_hh: Tensor) -> None:
        width = conv_weight.shape[0]
        two = 2 * width
        self.conv_t = conv_weight.t().contiguous()
        self.gates_ih_t = weight_ih[:two].t().contiguous()
        self.gates_hh_t = weight_hh[:two].t().contiguous()
        self.new_ih_t = weight_ih[two:].t().contiguous()
        self.new_hh_t = weight_hh[two:].t().contiguous()
        new = conv_weight.new_zeros
        self.conv, self.conv_bias = new(width, width), new(width)
        self.gates_ih, self.gates_hh, self.gates_bias = new(two, width), new(two, width), new(two)
        self.new_ih, self.new_ih_bias = new(width, width), new(width)
        self.new_hh, self.new_hh_bias = new(width, width), new(width)

    def step_back(self, grad_h: Tensor, stage: tuple[Tensor, ...], mix: Mix) -> Tensor:
        """Gradient of the stage's input from that of its output; adds the weights' share."""
        h, y, gates, q, new = stage
        width = h.shape[1]
        reset, update = gates[:, :width], gates[:, width:]
        grad_y = grad_h * update
        grad_new = torch.ops.aten.tanh_backward(grad_h - grad_y, new)
        grad_gates = torch.empty_like(gates)
        torch.mul(grad_h, y - new, out=grad_gates[:, width:])
        torch.mul(grad_new, q, out=grad_gates[:, :width])
        grad_gates = torch.ops.aten.sigmoid_backward(grad_gates, gates)
        grad_q = grad_new * reset
        grad_y = _linear_add(grad_gates, grad_y, self.gates_hh_t)
        grad_y = _linear_add(grad_q, grad_y, self.new_hh_t)
        grad_y = torch.ops.aten.leaky_relu_backward(grad_y, y, CONV_NEGATIVE_SLOPE, True)
        grad_conv = mix(grad_y)
        self.conv_bias += grad_y.sum(0)
        self.conv.addmm_(grad_conv.t(), h)
        self.gates_ih.addmm_(grad_gates.t(), h)
        self.gates_hh.addmm_(grad_gates.t(), y)
        self.gates_bias += grad_gates.sum(0)
        self.new_ih.addmm_(grad_new.t(), h)
        self.new_ih_bias += grad_new.sum(0)
        self.new_hh.addmm_(grad_q.t(), y)
        self.new_hh_bias += grad_q.sum(0)
        grad = _linear_add(grad_new, _linear(grad_gates, self.gates_ih_t), self.new_ih_t)
        return _linear_add(grad_conv, grad, self.conv_t)

    def weights(self) -> tuple[Tensor, ...]:
        """Gradients in the order of `StageWeights`."""
        return (
            self.conv,
            self.conv_bias,
            torch.cat([self.gates_ih, self.new_ih]),
            torch.cat([self.gates_hh, self.new_hh]),
            torch.cat([self.gates_bias, self.new_ih_bias]),
            torch.cat([self.gates_bias, self.new_hh_bias]),
        )


def _mixing(adjacency: Tensor) -> Mix:
    """The product of the adjacency and rows [B * M, H], by its entries if they are few.

    Groups have four neighbours on average, so most of a dense product would multiply zeros.
    """
    size, num_groups, _ = adjacency.shape
    graph, row, column = adjacency.nonzero(as_tuple=True)
    if len(graph) > SPARSE_SHARE * adjacency.numel():
        return lambda h: torch.bmm(adjacency, h.view(size, num_groups, -1)).view(h.shape)
    value = adjacency[graph, row, column]
    source = graph * num_groups + column
    counts = torch.bincount(graph * num_groups + row, minlength=size * num_groups)
    start = counts.cumsum(0) - counts
    return lambda h: functional.embedding_bag(
        source, h, start, mode="sum", per_sample_weights=value
    )


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product x W^T + b."""
    if _use_onednn(x):
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return out
    return functional.linear(x, weight, bias)


def _linear_add(x: Tensor, added: Tensor, weight: Tensor) -> Tensor:
    """The sum x W^T + added."""
    if _use_onednn(x):
        out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, added, weight, None, "add")
        return out
    return torch.addmm(added, x, weight.t())


def _use_onednn(x: Tensor) -> bool:
    """Whether torch's oneDNN linear can be called: single precision on a CPU, operator built in."""
    return (
        x.dtype == torch.float32
        and x.device.type == "cpu"
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]  # torch leaves it so
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
