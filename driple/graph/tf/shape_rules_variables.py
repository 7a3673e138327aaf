"""Shape functions of variables behind handles: a write to one states its shape, too.

    handle --ReadVariableOp--> value      AssignSub(handle, change), ResourceApplyAdam(.., gradient)

A graph that was written without shapes holds none of a captured variable. It follows from an
update, whose change has the variable's shape, and from the list on which a loop keeps its value.
"""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.datatypes import NUMBER_OF
from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import Holder, Key, OpCall, broadcast, is_known, merged, rule

__all__ = ["learn_value_read"]

_RESOURCE = 20  # DT_RESOURCE
_WHOLE = frozenset({NUMBER_OF["DT_INT32"], NUMBER_OF["DT_INT64"]})
_MOST_PASSED = 200  # ops between a gradient and an update
# Ops whose output is as large as their largest input.
_ELEMENTWISE = frozenset(
    {
        "Abs", "Add", "AddN", "AddV2", "Cast", "Div", "DivNoNan", "Identity", "Maximum", "Minimum",
        "Mul", "Neg", "Pow", "RealDiv", "Reciprocal", "Rsqrt", "Sign", "Sqrt", "Square",
        "SquaredDifference", "Sub",
    }
)  # fmt: skip
_PASSES_ON = frozenset({"Identity", "Cast"})


@rule("VarHandleOp", "_VarHandlesOp")
def _variable(call: OpCall) -> Sequence[Shape]:
    holder = call.create()
    # A placeholder that stands for a handle has the handle's shape, not the variable's.
    is_handle = call.node.types.get("dtype") == (_RESOURCE,)
    for shape in call.listed("_handle_shapes" if is_handle else "shape"):
        holder.learn(shape)
    return ((),)


@rule("ReadVariableOp")
def _read(call: OpCall) -> Sequence[Shape] | None:
    holder = call.holder(0)
    if holder is None:
        return None
    for shape in (call.node.shapes or ())[:1]:
        holder.learn(shape)
    return (holder.read(),)


@rule("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
def _assign_variable(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    if holder is not None:
        holder.learn(call.shape(1))
        if not is_known(holder.shapes[0]) and len(call.reads) > 1:
            holder.learn(_shape_of_change(call, call.reads[1]))
    return ()


@rule(
    "ResourceApplyAdam", "ResourceApplyGradientDescent", "ResourceApplyMomentum",
    "ResourceApplyKerasMomentum", "ResourceApplyRMSProp", "ResourceApplyCenteredRMSProp",
    "ResourceApplyAdagrad", "ResourceApplyAdagradV2", "ResourceApplyAdadelta", "ResourceApplyFtrl",
    "ResourceApplyFtrlV2", "ResourceApplyAdaMax", "ResourceApplyAdamWithAmsgrad",
    "ResourceApplyProximalGradientDescent", "ResourceApplyProximalAdagrad", "ResourceApplyAddSign",
    "ResourceApplyPowerSign", "ResourceApplyAdagradDA",
)  # fmt: skip
def _apply(call: OpCall) -> Sequence[Shape]:
    """The variable and its slots have the shape of the gradient, the only input that is large."""
    holders = [holder for i in range(len(call.reads)) if (holder := call.holder(i)) is not None]
    given = [shape for shape in call.shapes if shape and is_known(shape)]
    for holder in holders:
        if not is_known(holder.shapes[0]):
            for shape in given[:1]:
                holder.learn(shape)
    return ()


def _shape_of_change(call: OpCall, tensor: Key) -> Shape:
    """Shape of what an update adds, whose other operands are values of variables and numbers."""
    tables = call.tables
    known: list[Shape] = []
    todo, seen = [tensor], {tensor}
    while todo and len(seen) < _MOST_PASSED:
        there = todo.pop()
        shape, op = call.shape_of(there), tables.nodes[there[0]].op
        if shape is not None and is_known(shape):
            known.append(shape)
        elif op in _ELEMENTWISE:
            fresh = [one for one in tables.inputs[there[0]] if one not in seen]
            seen.update(fresh)
            todo += fresh
        elif op != "ReadVariableOp":
            return None
    result = broadcast(known)
    # A number changes a counter, or is the rate of a weight decay.
    is_counter = call.node.types.get("dtype", (0,))[0] in _WHOLE
    return result if result or is_counter else None


def learn_value_read(call: OpCall, number: int, shape: Shape) -> None:
    """Refine the variable whose value an input is."""
    at = call.reads[number][0] if number < len(call.reads) else None
    tables = call.tables
    for _ in range(_MOST_PASSED):
        if at is None or tables.nodes[at].op not in _PASSES_ON or not tables.inputs[at]:
            break
        at = tables.inputs[at][0][0]
    if at is None or tables.nodes[at].op != "ReadVariableOp" or not tables.inputs[at]:
        return
    holder: Holder | None = tables.holders.get(tables.inputs[at][0])
    if holder is not None and not is_known(holder.shapes[0]):
        holder.learn(merged(holder.shapes[0], shape))
