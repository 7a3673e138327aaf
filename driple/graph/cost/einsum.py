"""The indices of an Einsum and their sizes: abc,cd->abd on [2, 3, 4], [4, 5] has a of 2, d of 5."""

from __future__ import annotations

from math import prod

from driple.graph.signature import OpSignature

__all__ = ["index_sizes", "indices_of"]

_REST = "..."


def indices_of(op: OpSignature) -> tuple[list[str], str] | None:
    """Indices of each input and of the output; None if the graph lacks them.

    An ellipsis stays as it is, in front, in the middle or at the end.
    """
    letters = dict(op.numbers).get("equation", ())
    inputs, arrow, output = "".join(map(chr, letters)).replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or len(terms) != len(op.inputs):
        return None
    return terms, output


def index_sizes(op: OpSignature) -> dict[str, int] | None:
    """Size of each index; those under an ellipsis count as one index; None if unknown.

    A dimension of unknown size counts as 1, as everywhere.
    """
    indices = indices_of(op)
    if indices is None:
        return None
    sizes: dict[str, int] = {}
    for term, tensor in zip(indices[0], op.inputs, strict=True):
        if tensor.shape is None:
            return None
        before, rest, after = term.partition(_REST)
        shape = [max(n, 1) for n in tensor.shape]
        under = len(shape) - len(before) - len(after)
        if under < 0 or (under and not rest):
            return None
        named = [*shape[: len(before)], *shape[len(before) + under :]]
        pairs = [*zip(before + after, named, strict=True)]
        pairs += [(_REST, prod(shape[len(before) : len(before) + under]))] * bool(rest)
        for name, size in pairs:
            sizes[name] = max(sizes.get(name, 1), size)
    return sizes
