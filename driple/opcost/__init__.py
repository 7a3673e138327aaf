"""OP COST: OpGraph -> FLOPs, bytes read and written, and parameters of each op."""

from driple.opcost.cost import GraphCost, cost_of_graph
from driple.opcost.formulas import OpCost, cost_of_op

__all__ = ["GraphCost", "OpCost", "cost_of_graph", "cost_of_op"]
