"""What a rule gets and gives: one node of a model, forward and backward.

    Call --forward--> its outputs        Call, gradients of the outputs --backward--> of the inputs

A rule adds the ops of both passes to the tape, in kinds of `driple.graph.opkind`, and returns the
tensors. The modules `rules_*` hold the rules; `rule_of` finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.onnx.tape import Read, Shape, StepTensor, Tape
from driple.graph.step_facts import TensorRole

__all__ = [
    "Call",
    "Gradients",
    "Rule",
    "Tensors",
    "count_of",
    "few_numbers",
    "first_gradient",
    "letters",
    "no_gradient",
    "view_of",
]

Array = npt.NDArray[Any]
Result = tuple[Shape | None, int]
Tensors = Sequence[StepTensor | None]
Gradients = Sequence[StepTensor | None]


@dataclass(slots=True)
class Call:
    """One node of the model.

    Attributes:
        tape: where its ops go.
        op_type: of ONNX.
        attributes: by name.
        inputs: tensors it reads; None where one is left out.
        values: elements of inputs that are small and depend on no data.
        results: shape and dtype of each output.
        outputs: tensors that the forward pass made; None where one is left out.
        saved: further tensors that the forward pass keeps for the backward pass.
    """

    tape: Tape
    op_type: str
    attributes: Mapping[str, Any]
    inputs: tuple[StepTensor | None, ...]
    values: tuple[Array | None, ...]
    results: tuple[Result, ...]
    outputs: tuple[StepTensor | None, ...] = ()
    saved: tuple[StepTensor, ...] = ()

    def input(self, position: int) -> StepTensor | None:
        """An input; None if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def value(self, position: int) -> Array | None:
        """The elements of an input; None if they are not known."""
        return self.values[position] if position < len(self.values) else None

    def needs(self, position: int) -> bool:
        """Whether the gradient by an input is wanted."""
        given = self.input(position)
        return given is not None and given.needs_gradient

    def needed(self, position: int) -> StepTensor:
        """An input that the op cannot do without.

        Raises:
            GraphError: the file leaves it out.
        """
        given = self.input(position)
        if given is None:
            raise GraphError(
                f"a {self.op_type} of the model has no input {position}; the file is corrupt"
            )
        return given

    def x(self) -> StepTensor:
        """The first input."""
        return self.needed(0)

    def y(self) -> StepTensor:
        """The first output, after the forward pass."""
        output = self.outputs[0] if self.outputs else None
        if output is None:
            raise GraphError(f"a {self.op_type} of the model has no output; the file is corrupt")
        return output

    def made(
        self,
        kind: str,
        inputs: Sequence[StepTensor | Read | None],
        *,
        numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> tuple[StepTensor, ...]:
        """Run one op that gives the node's first output."""
        return self.tape.run(kind, inputs, self.results[:1], numbers=numbers)

    def like(
        self,
        kind: str,
        inputs: Sequence[StepTensor | Read | None],
        target: StepTensor,
        *,
        numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> StepTensor:
        """Run one op that gives a tensor of another one's shape: the gradient by it."""
        role = TensorRole.TEMPORARY if target.storage.parameter < 0 else TensorRole.GRADIENT
        return self.tape.run(
            kind, inputs, [(target.shape, target.dtype)], numbers=numbers, role=role
        )[0]

    def summed(self, gradient: StepTensor, target: StepTensor) -> StepTensor:
        """A gradient summed over the dimensions in which its target was broadcast."""
        if gradient.shape == target.shape:
            return gradient
        if gradient.elements == target.elements:
            return view_of(gradient, target.shape)
        return self.like("reduce_sum", [gradient, few_numbers(gradient.rank)], target)

    def integers(self, name: str, position: int) -> tuple[int, ...] | None:
        """Whole numbers that are an attribute in old opsets and an input in new ones."""
        value = self.value(position)
        if value is not None:
            return tuple(int(n) for n in np.asarray(value).reshape(-1))
        given = self.attributes.get(name)
        return None if given is None else tuple(int(n) for n in given)


@dataclass(frozen=True, slots=True)
class Rule:
    """How an op of ONNX becomes ops of a training step.

    Attributes:
        forward: adds the ops of the forward pass and returns the outputs.
        backward: adds those of the backward pass, and returns a gradient for each input, None where
            there is none; None if nothing can be differentiated.
    """

    forward: Callable[[Call], Tensors]
    backward: Callable[[Call, Gradients], Gradients] | None = None


def view_of(tensor: StepTensor, shape: Shape | None, dtype: int | None = None) -> StepTensor:
    """The same memory in another shape."""
    return replace(tensor, shape=shape, dtype=tensor.dtype if dtype is None else dtype)


def few_numbers(count: int) -> Read:
    """Sizes or axes that the host hands over."""
    return Read(None, (max(count, 1),))


def first_gradient(gradients: Gradients) -> StepTensor | None:
    """The gradient of the first output."""
    return gradients[0] if gradients else None


def no_gradient(_: Call, __: Gradients) -> Gradients:
    """Backward pass of an op whose gradient is zero everywhere, such as rounding."""
    return ()


def letters(text: str) -> tuple[int, ...]:
    """A text attribute as the numbers of its letters, as signatures hold it."""
    return tuple(map(ord, text))


def count_of(shape: Sequence[int]) -> int:
    """Product of sizes; an unknown one counts as 1."""
    count = 1
    for size in shape:
        count *= 1 if size == -1 else size
    return count
