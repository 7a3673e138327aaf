"""The variable, queue or iterator that the handle, reference or value of each node belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.raw import RawNode
from driple.graph.tf.step_ops import VARIABLES

__all__ = ["HANDS_ON", "PIPELINE", "holders_of"]

# Ops of the input pipeline.
PIPELINE = re.compile(
    r".*Dataset(?:V\d+)?$|Iterator.*|.*Iterator(?:V2)?$|MakeIterator|.*Reader(?:V\d+)?$"
    r"|ReaderRead.*|Queue.*|.*Queue(?:V\d+)?$|Decode\w*|ParseExample\w*|ParseSingle\w*|ReadFile"
    r"|MatchingFiles|Stage|Unstage|StagePeek|RecordInput|Placeholder\w*"
)
# Ops that run where the variable, queue or iterator is whose handle or reference they take first.
_TAKES_HANDLE = re.compile(
    r"ReadVariableOp|Resource\w+|Assign\w*|\w*VariableOp|(?:Sparse)?Apply[A-Z]\w*|Scatter\w+"
    r"|VarIsInitializedOp|IsVariableInitialized|DestroyResourceOp|\w*Accumulator\w+|Queue\w+"
    r"|Iterator\w+|Reader\w+|RefIdentity|CountUpTo|StridedSliceAssign"
)
# Ops that hand a handle, reference or value on as it is.
HANDS_ON = frozenset({"Identity", "Enter", "RefEnter", "Switch", "RefSwitch", "RefIdentity"})
_RESOURCE = 20  # DT_RESOURCE


def holders_of(nodes: Sequence[RawNode], inputs: DataInputs, order: Sequence[int]) -> list[int]:
    """The variable, queue or iterator whose handle or reference a node has; or -1.

    Args:
        nodes: all nodes, without function calls.
        inputs: what each of them reads.
        order: positions, a node after all that it reads, but for the edges back of loops.
    """
    ops = {node.op for node in nodes}
    pipeline = {op for op in ops if PIPELINE.fullmatch(op)}
    handles = {op for op in ops if _TAKES_HANDLE.fullmatch(op)}
    holder = [-1] * len(nodes)
    for i in order:
        op = nodes[i].op
        if op in VARIABLES or (op in pipeline and not inputs[i]):
            holder[i] = i
        elif inputs[i]:
            source = inputs[i][0][0]
            passes = op in HANDS_ON and holder[source] >= 0
            if op in handles or (passes and _is_handle(nodes[i], nodes[source])):
                holder[i] = holder[source]
    return holder


def _is_handle(node: RawNode, source: RawNode) -> bool:
    """Whether what a node hands on is still a handle or reference, or the first reading."""
    kinds = node.types.get("T", (0,))
    if kinds[0] == _RESOURCE or node.op.startswith("Ref"):
        return True
    # An Identity that reads a reference variable runs beside it, as Variable.value() asks.
    return node.op == "Identity" and source.op in VARIABLES - {"VarHandleOp"}
