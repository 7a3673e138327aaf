"""An op on a share of the tokens: fewer rows, matrices and gradients of whole size.

StepFlow, node, degree -> OpSignature of one device
"""

from __future__ import annotations

from dataclasses import replace

from driple.graph.signature import OpSignature, Tensor
from driple.step.shard_shapes import divided
from driple.step.step_flow import PRODUCTS, StepFlow

__all__ = ["made_share", "on_tokens"]

_ROWS = -2


def on_tokens(flow: StepFlow, node: int, degree: int) -> OpSignature:
    """The op of a node on 1 / degree of the tokens that it reads.

    Args:
        flow: of the step.
        node: that computes on tokens, or sums gradients of parameters over them.
        degree: devices that share the tokens.
    """
    op = flow.ops[node]
    sizes = flow.gradient_of.get(node, set())
    if op.kind in PRODUCTS and len(op.inputs) > 1:
        return _product(op, degree, sizes)
    elements = flow.graph.parameters.elements
    read = sizes | {int(elements[one]) for one in flow.read(node)}

    def cut(tensor: Tensor, whole: set[int]) -> Tensor:
        is_whole = tensor.is_parameter or tensor.elements in whole
        return tensor if is_whole else divided(tensor, degree, _ROWS)

    inputs = tuple(cut(one, read) for one in op.inputs)
    outputs = tuple(cut(one, sizes) for one in op.outputs)
    own: OpSignature = replace(op, inputs=inputs, outputs=outputs)
    return own


def _product(op: OpSignature, degree: int, sizes: set[int]) -> OpSignature:
    """Fewer rows of a product; the gradient of a matrix is a sum over fewer tokens."""
    left, right, *rest = op.inputs
    output = op.outputs[0]
    if output.elements in sizes:
        inner = (divided(left, degree, -1), divided(right, degree, _ROWS))
        return replace(op, inputs=(*inner, *rest))
    rows = divided(left, degree, _ROWS)
    return replace(op, inputs=(rows, right, *rest), outputs=(divided(output, degree, _ROWS),))


def made_share(whole: OpSignature, own: OpSignature, degree: int) -> float:
    """Share of what an op makes that a device has, before sizes are rounded up."""
    elements = sum(one.elements for one in whole.outputs)
    shared = sum(
        one.elements
        for one, mine in zip(whole.outputs, own.outputs, strict=True)
        if mine.elements != one.elements
    )
    return 1 - shared / elements * (1 - 1 / degree) if elements else 1.0
