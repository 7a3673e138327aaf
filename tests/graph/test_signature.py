"""Signatures as text: there and back, whatever the names, and refused when damaged."""

from __future__ import annotations

import json

import pytest

from driple.errors import GraphError
from driple.graph.signature import (
    OpSignature,
    Tensor,
    signatures_from_json,
    signatures_to_json,
)

SOME = (
    OpSignature.of_op_type(
        "Conv2D", (Tensor((2, -1, 3), 1), Tensor(None, 0)), (Tensor((), 1),), ()
    ),
    OpSignature.of_op_type("MaxPool", (), (), (("ksize", (1, 2, 2, 1)), ("strides", (1, 2)))),
    OpSignature("attention", (Tensor((4, 8, 2), 1),) * 3, (), (("causal", (1,)),)),
    OpSignature.of_op_type("Add", (Tensor((4,), 1),) * 2, (Tensor((4,), 1),)),
    OpSignature.of_op_type("_Fused", (Tensor((4,), 1, is_parameter=True),), (), (("N", (2,)),)),
    OpSignature.of_op_type("lower_case", (), (Tensor((1,), 3),), (("Tidx", (1,)), ("k", ()))),
    OpSignature.of_op_type(
        "Conv2D", (Tensor((2, -1, 3), 1), Tensor(None, 0)), (Tensor((), 1),), ()
    ),
)


@pytest.mark.parametrize("chosen", [(), SOME[:1], SOME[:2], SOME[3:], SOME, SOME[::-1]])
def test_there_and_back(chosen: tuple[OpSignature, ...]) -> None:
    """Op types and attributes in capitals or not, in any order."""
    text = signatures_to_json(chosen)
    assert signatures_from_json(text) == chosen
    assert json.dumps(json.loads(text), separators=(",", ":")) == text


def test_equal_signatures_are_one_object() -> None:
    """A data set of hundreds of graphs holds each once."""
    first, *_, last = signatures_from_json(signatures_to_json((SOME[0], SOME[1], SOME[-1])))
    assert first is last


@pytest.mark.parametrize(
    "text",
    ["", "[", "{}x", "[1]", '[["Conv2D"]]', '[["Conv2D",[[1,2,3]],[],[]]]', '[["A",[],[],[]],]'],
)
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(GraphError, match="damaged"):
        signatures_from_json(text)
