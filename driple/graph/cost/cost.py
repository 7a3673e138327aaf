"""Costs of the nodes of a graph in one training step, computed once per signature.

OpGraph --signatures--> OpCost each --signature_of, executions--> GraphCost, one number per node
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.cost.complete import completed
from driple.graph.cost.formulas import OpCost, cost_of_completed, has_formula
from driple.graph.cost.products import Product, product_of
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import FAMILIES, family_of
from driple.graph.signature import OpSignature

__all__ = ["GraphCost", "SignatureCosts", "cost_by_family", "cost_of_graph"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureCosts:
    """Cost of one execution of each of some op signatures, in their order.

    Attributes:
        signatures: signatures with the shapes filled in that their other shapes determine.
        costs: costs of each.
        products: the matrix product that each comes to; None if it is none.
    """

    signatures: tuple[OpSignature, ...]
    costs: tuple[OpCost, ...]
    products: tuple[Product | None, ...]

    @classmethod
    def of(cls, signatures: Sequence[OpSignature]) -> SignatureCosts:
        """Work each cost out once."""
        whole = tuple(completed(op) for op in signatures)
        costs = tuple(cost_of_completed(op) for op in whole)
        products = tuple(product_of(op, c.flops) for op, c in zip(whole, costs, strict=True))
        return cls(signatures=whole, costs=costs, products=products)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphCost:
    """Cost of one execution of each node.

    Attributes:
        flops: shape [num_nodes], floating-point operations; a multiply-add counts two.
        bytes_read: shape [num_nodes], bytes of memory.
        bytes_written: shape [num_nodes].
        parameters: shape [num_nodes], elements of the variables that the node computes with.
        left_elements: shape [num_nodes], of the left factor of a product; of a convolution, those
            of its patches (`products.py`); 0 of all else.
        executions: shape [num_nodes], int64, how often it runs in a step.
        unknown: how many nodes of each of the framework's op types have no formula; they count
            their bytes, no FLOPs.
        without_formula: those of them whose kind has no formula; of the others a shape is unknown.
        by_signature: the same of each signature of the graph, which the rest is taken from.
    """

    flops: FloatArray
    bytes_read: FloatArray
    bytes_written: FloatArray
    parameters: FloatArray
    left_elements: FloatArray
    executions: npt.NDArray[np.int64]
    unknown: Mapping[str, int]
    without_formula: frozenset[str]
    by_signature: SignatureCosts

    @property
    def per_step(self) -> FloatArray:
        """Shape [num_nodes, 4]: FLOPs, bytes moved, executions, left elements of a whole step."""
        runs = self.executions.astype(np.float64)
        moved = (self.bytes_read + self.bytes_written) * runs
        return np.stack([self.flops * runs, moved, runs, self.left_elements * runs], axis=1)

    @property
    def total_flops(self) -> float:
        """Totals of a whole step, loops counted as often as they turn."""
        return float((self.flops * self.executions).sum())

    @property
    def total_bytes(self) -> float:
        """Read and written in a whole step, loops counted as often as they turn."""
        return float(((self.bytes_read + self.bytes_written) * self.executions).sum())


def cost_by_family(graph: OpGraph, cost: GraphCost) -> FloatArray:
    """Sums of `cost.per_step` over the ops of each family, shape [4, len(FAMILIES)].

    Args:
        graph: the graph.
        cost: costs of the graph.
    """
    number = {family: i for i, family in enumerate(FAMILIES)}
    numbers = [number[family_of(op.kind)] for op in graph.signatures]
    families = np.array(numbers, dtype=np.intp)[graph.signature_of]
    return np.stack(
        [
            np.bincount(families, weights=column, minlength=len(FAMILIES))
            for column in cost.per_step.T
        ]
    )


def cost_of_graph(graph: OpGraph) -> GraphCost:
    """Cost of each node of a graph.

    Raises:
        GraphError: the graph lacks the signatures of its ops, as in the public Driple data.
    """
    graph.require_signatures()
    signatures = SignatureCosts.of(graph.signatures)
    costs = signatures.costs
    left = [product.left_elements if product else 0.0 for product in signatures.products]
    table = np.array(
        [
            [c.flops, c.bytes_read, c.bytes_written, c.parameters, elements]
            for c, elements in zip(costs, left, strict=True)
        ],
        dtype=np.float64,
    ).reshape(-1, 5)
    rows = table[graph.signature_of]
    numbers = graph.signature_of.tolist()
    unknown: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    if not all(cost.known for cost in costs):
        for op_type, number in zip(graph.op_types, numbers, strict=True):
            if not costs[number].known:
                unknown[op_type] += 1
                kinds[op_type] = signatures.signatures[number].kind
    return GraphCost(
        flops=rows[:, 0],
        bytes_read=rows[:, 1],
        bytes_written=rows[:, 2],
        parameters=rows[:, 3],
        left_elements=rows[:, 4],
        executions=graph.executions,
        unknown=dict(sorted(unknown.items())),
        without_formula=frozenset(name for name, kind in kinds.items() if not has_formula(kind)),
        by_signature=signatures,
    )
