"""Attention as one op (opset 23 and newer), and rotary positions: one kernel each way.

A fused kernel keeps its result and a number for each row of the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.datatypes import NUMBER_OF
from driple.graph.onnx.rules import Call, Gradients, Rule, Tensors, first_gradient
from driple.graph.onnx.tape import Read, Shape, StepTensor

__all__ = ["ATTENTION_RULES"]

_FLOAT = NUMBER_OF["DT_FLOAT"]
_HEADS = ("q_num_heads", "kv_num_heads", "kv_num_heads")  # of queries, keys, values


def _reads(call: Call) -> list[Read]:
    """Queries, keys and values as [batch, heads, length, width]."""
    reads = []
    for position, name in enumerate(_HEADS):
        tensor = call.needed(position)
        shape = tensor.sizes
        heads = call.attributes.get(name, 0)
        if len(shape) == 3 and heads:
            shape = (shape[0], heads, shape[1], max(shape[2] // heads, 1))
        reads.append(Read(tensor, shape))
    return reads


def _numbers(call: Call) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (("causal", (1,)),) if call.attributes.get("is_causal", 0) else ()


def _attention(call: Call) -> Tensors:
    reads = _reads(call)
    rows: Shape = (reads[0].shape or ())[:-1]
    output, sums = call.tape.run(
        "attention",
        [*reads, call.input(3)],
        [call.results[0], (rows, _FLOAT)],
        numbers=_numbers(call),
    )
    call.saved = (sums,)
    return (output,)


def _attention_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    targets = [call.needed(i) for i in range(len(_HEADS))]
    return call.tape.run(
        "attention_gradient",
        [*_reads(call), given, call.input(3), call.y(), *call.saved],
        [(one.shape, one.dtype) for one in targets],
        numbers=_numbers(call),
    )


def _rotated(call: Call) -> Tensors:
    return call.made("elementwise", call.inputs)


def _rotated_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    reads: list[StepTensor | None] = [given, *call.inputs[1:]]
    return (call.like("elementwise", reads, call.x()),)


ATTENTION_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Attention": Rule(_attention, _attention_gradient),
        "RotaryEmbedding": Rule(_rotated, _rotated_gradient),
    }
)
