"""A job is like none that was timed only where such products are more than a few of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.answers.job_kind import JobKind, job_kind
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from tests.simulate.jobs import net


def with_products_in(dtype: str, rows: int) -> OpGraph:
    """A product of 10,000 by 100 by 100 in single precision, and one of some rows in another."""
    graph = net(8)

    def product(count: int, number: int) -> OpSignature:
        shapes = (count, 100), (100, 100), (count, 100)
        left, right, output = (Tensor(shape, number) for shape in shapes)
        return OpSignature.of_op_type("MatMul", (left, right), (output,))

    usual, other = product(10_000, NUMBER_OF["DT_FLOAT"]), product(rows, NUMBER_OF[dtype])
    is_product = [op.kind == "matmul" for op in graph.signatures]
    first = is_product.index(True)
    signatures = [
        usual if i == first else other if one else OpSignature("add", op.inputs[:1], op.outputs)
        for i, (op, one) in enumerate(zip(graph.signatures, is_product, strict=True))
    ]
    return replace(graph, signatures=tuple(signatures))


def unlike(graph: OpGraph) -> str | None:
    kind: JobKind = job_kind(graph)
    return None if kind.unlike is None else kind.unlike.code


@pytest.mark.parametrize("dtype", ["DT_DOUBLE", "DT_COMPLEX64"])
def test_a_few_products_that_were_not_timed_do_not_matter(dtype: str) -> None:
    """Up to one of twenty multiply-adds."""
    assert unlike(with_products_in(dtype, 100)) is None
    assert unlike(with_products_in(dtype, 5_000)) == "products_not_timed"
