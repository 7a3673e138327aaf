"""Ops by their shapes, for tests."""

from __future__ import annotations

from driple.graph.signature import OpSignature, Tensor

FLOAT = 1

Shape = tuple[int, ...] | None


def op(
    op_type: str, *inputs: Shape, out: Shape | list[Shape], **numbers: tuple[int, ...] | str | int
) -> OpSignature:
    """An op of floats.

    Args:
        op_type: its type.
        inputs: shape of each input.
        out: shape of its only output, or of each.
        numbers: attributes; a text is kept as the numbers of its letters.
    """
    outputs = out if isinstance(out, list) else [out]
    return OpSignature.of_op_type(
        op_type,
        tuple(Tensor(shape, FLOAT) for shape in inputs),
        tuple(Tensor(shape, FLOAT) for shape in outputs),
        tuple((name, _values(value)) for name, value in sorted(numbers.items())),
    )


def _values(value: tuple[int, ...] | str | int) -> tuple[int, ...]:
    if isinstance(value, str):
        return tuple(map(ord, value))
    return (value,) if isinstance(value, int) else value
