"""OP COST: OpGraph -> FLOPs, bytes read and written, and parameters of each op."""

from driple.graph.cost.cost import GraphCost, SignatureCosts, cost_by_family, cost_of_graph
from driple.graph.cost.formulas import OpCost, cost_of_op, flops_of_update, has_formula

__all__ = [
    "GraphCost",
    "OpCost",
    "SignatureCosts",
    "cost_by_family",
    "cost_of_graph",
    "cost_of_op",
    "flops_of_update",
    "has_formula",
]
