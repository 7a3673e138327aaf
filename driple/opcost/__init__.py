"""OP COST: OpGraph -> FLOPs, bytes read and written, and parameters of each op."""

from driple.opcost.cost import GraphCost, SignatureCosts, cost_by_kind, cost_of_graph
from driple.opcost.formulas import OpCost, cost_of_op, flops_of_update, has_formula
from driple.opcost.kinds import CONVOLUTION_KINDS, KINDS, PRODUCTS, kind_of

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
