"""Roles of op types in a step: change a variable, save, sum up, compute a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.tf.raw import RawNode

__all__ = ["PRODUCTS", "UPDATES", "VARIABLES", "StepOps"]

BoolArray = npt.NDArray[np.bool_]

VARIABLES = frozenset(
    {"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "TemporaryVariable"}
)
# What an optimizer does to a variable, or to the sum of gradients that it will apply.
_GRADIENT_UPDATES = re.compile(
    r"(?:Resource)?(?:Sparse)?Apply[A-Z]\w*|(?:Resource|Sparse)?AccumulatorApplyGradient"
)
_OTHER_UPDATES = re.compile(
    r"Assign(?:Add|Sub)(?:VariableOp)?|(?:Resource)?StridedSliceAssign"
    r"|(?:Resource)?Scatter(?:Nd)?(?:Add|Sub|Mul|Div|Min|Max|Update)"
)
UPDATES = re.compile(f"{_GRADIENT_UPDATES.pattern}|{_OTHER_UPDATES.pattern}")
_PLAIN_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_TAKES = re.compile(r"(?:Resource|Sparse)?AccumulatorTakeGradient")
_SAVERS = re.compile(r"Save(?:V2|Slices)?|Restore(?:V2|Slice)?|ShardedFilename|MergeV2Checkpoints")
_SUMMARIES = re.compile(r"\w*Summary\w*")
# Ops with an effect beside their outputs, which run though only a control edge leads to them.
_ACTS = re.compile(
    r"Queue.*|.*Enqueue.*|.*Dequeue.*|Iterator.*GetNext.*|Stage|Unstage|Print(?:V2)?|Assert|.*PyFunc"
    r"|_?(?:Host)?(?:Send|Recv)|Horovod.*|Nccl.*|Collective.*|Random.*|TruncatedNormal|Barrier.*"
    r"|(?:Ref)?(?:Switch|Merge|Enter|Exit|NextIteration)|LoopCond|(?:Stateless)?(?:While|If|Case)"
)
_GRADIENTS = re.compile(r"\w+Grad(?:V\d|Grad)?|\w+Backprop\w*")
PRODUCTS = re.compile(r"\w*MatMul\w*|\w*Conv\w*|Einsum")
_HANDS_ON = frozenset(
    {"Identity", "ReadVariableOp", "Cast", "Enter", "RefEnter", "Reshape", "Transpose", "Snapshot"}
)
_GRADIENT_SCOPE = re.compile(r"(?:^|/)(?:gradients?|gradient_tape)(?:_\d+)?/")
# Ops that a loose update (a moving average that no train op leads to) may not add to a step.
_HEAVY = re.compile(r".*(?:Conv|MatMul|Einsum|LSTM|GRU|RNN).*|" + _ACTS.pattern)
_INPUTS = re.compile(r"Placeholder\w*|.*GetNext.*|.*Dequeue.*")
_BROADCASTS = re.compile(r"(?:Horovod|Nccl|Collective)\w*Broadcast\w*|Collective\w*Bcast\w*")


class StepOps:
    """Masks over the nodes of a graph, each of shape [num_nodes].

    Attributes:
        ops: op type of each node.
        applies: an optimizer's update, or what adds a gradient to the sum that it will apply.
        others: any other update that counts wherever it is.
        assigns: a plain assignment.
        takes: takes the sum of gradients out of an accumulator.
        savers: saves or restores.
        summaries: a summary.
        broadcasts: sends initial values to other workers.
        acts: has an effect beside its outputs.
        heavy: more than a moving average may add to a step.
        products: a matrix product or a convolution.
        hands_on: gives what it reads, in another form.
        variables: a variable, or its handle.
        inputs: gives the step's data.
    """

    def __init__(self, nodes: Sequence[RawNode]) -> None:
        self.ops = [node.op for node in nodes]
        self._names = [node.name for node in nodes]
        number = {op: i for i, op in enumerate(dict.fromkeys(self.ops))}
        self._types = list(number)
        self._type_of = np.array([number[op] for op in self.ops], dtype=np.intp)
        self.applies = self.matching(_GRADIENT_UPDATES)
        self.others = self.matching(_OTHER_UPDATES)
        self.assigns = self.named(_PLAIN_ASSIGNS)
        self.takes = self.matching(_TAKES)
        self.savers = self.matching(_SAVERS)
        self.summaries = self.matching(_SUMMARIES)
        self.broadcasts = self.matching(_BROADCASTS)
        self.acts = self.matching(_ACTS) | self.applies | self.others | self.assigns
        self.heavy = self.matching(_HEAVY)
        self.products = self.matching(PRODUCTS)
        self.hands_on = self.named(_HANDS_ON)
        self.variables = self.named(VARIABLES)
        self.inputs = self.matching(_INPUTS)
        self.gradient_types = self.matching(_GRADIENTS)

    def matching(self, pattern: re.Pattern[str]) -> BoolArray:
        """Nodes whose whole op type matches."""
        return self.named({op for op in self._types if pattern.fullmatch(op)})

    def named(self, names: Iterable[str]) -> BoolArray:
        """Nodes of some op types."""
        wanted = set(names)
        fits = np.array([op in wanted for op in self._types], dtype=np.bool_)
        return fits[self._type_of]

    def gradients(self) -> BoolArray:
        """Nodes of a backward pass, by op type or by the scope that their name is in."""
        return self.gradient_types | self.gradient_scopes()

    def gradient_scopes(self) -> BoolArray:
        """Nodes whose names are in the scope of a backward pass."""
        scoped = [_GRADIENT_SCOPE.search(name) is not None for name in self._names]
        return np.array(scoped, dtype=np.bool_)
