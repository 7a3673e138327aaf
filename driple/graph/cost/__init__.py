"""OP COST: OpGraph -> FLOPs, bytes read and written, and parameters of each op."""

from driple.graph.cost.cost import GraphCost, SignatureCosts, cost_by_kind, cost_of_graph
from driple.graph.cost.formulas import OpCost, cost_of_op, flops_of_update, has_formula
from driple.graph.cost.kinds import CONVOLUTION_KINDS, KINDS, PRODUCTS, kind_of

__all__ = [
    "CONVOLUTION_KINDS",
    "KINDS",
    "PRODUCTS",
    "GraphCost",
    "OpCost",
    "SignatureCosts",
    "cost_by_kind",
    "cost_of_graph",
    "cost_of_op",
    "flops_of_update",
    "has_formula",
    "kind_of",
]
