"""The training step that follows from a forward graph: forward pass, loss, backward pass.

    nodes in order --rules--> Tape, forward
    cross entropy of the output by labels
    nodes in reverse order, gradients of their outputs --rules--> Tape, backward; gradients summed

Entry point: `derive_step`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from driple.errors import GraphError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.onnx.fusion import fused_nodes
from driple.graph.onnx.library import attributes_of
from driple.graph.onnx.modules import module_of
from driple.graph.onnx.precision import is_autocast, with_precision
from driple.graph.onnx.ranks import check_ranks
from driple.graph.onnx.rules import Call, Rule, few_numbers
from driple.graph.onnx.rules_attention import ATTENTION_RULES
from driple.graph.onnx.rules_elementwise import ELEMENTWISE_RULES
from driple.graph.onnx.rules_linear import LINEAR_RULES
from driple.graph.onnx.rules_moves import MOVE_RULES
from driple.graph.onnx.rules_norms import NORM_RULES
from driple.graph.onnx.rules_recurrent import RECURRENT_RULES
from driple.graph.onnx.sizes import Sizes
from driple.graph.onnx.tape import StepTensor, Storage, Tape
from driple.graph.onnx.types import FLOATS
from driple.graph.step_facts import Phase, TensorRole
from driple.remarks import Remark, remark

__all__ = ["LOSSES", "DerivedStep", "derive_step"]

_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **ATTENTION_RULES,
        **ELEMENTWISE_RULES,
        **LINEAR_RULES,
        **MOVE_RULES,
        **NORM_RULES,
        **RECURRENT_RULES,
    }
)
_INT64, _FLOAT = NUMBER_OF["DT_INT64"], NUMBER_OF["DT_FLOAT"]
LOSSES = ("cross-entropy", "bce", "mse")
_LOSS_KINDS = {"bce": "binary_cross_entropy", "mse": "mean_squared_error"}
_LOSS = "SoftmaxCrossEntropyLoss"
_RANDOM = "Random"
_FEW = 4


@dataclass(slots=True)
class DerivedStep:
    """A training step.

    Attributes:
        tape: its ops.
        inputs: tensors of the model's inputs, and the labels.
        parameters: tensor of each parameter by name, in the order of the file.
        gradients: by the name of the parameter; none where no gradient reaches it.
        notes: what a user should know.
    """

    tape: Tape
    inputs: dict[str, StepTensor] = field(default_factory=dict)
    parameters: dict[str, StepTensor] = field(default_factory=dict)
    gradients: dict[str, StepTensor] = field(default_factory=dict)
    notes: list[Remark] = field(default_factory=list)


def derive_step(
    model: Any,
    sizes: Sizes,
    parameters: Sequence[str],
    *,
    loss: str = LOSSES[0],
    precision: str = "fp32",
) -> DerivedStep:
    """The training step of a checked model.

    Args:
        model: checked (`parse_model`).
        sizes: of its tensors.
        parameters: names of the tensors that are trained.
        loss: one of `LOSSES`, of the first output that they lead to.
        precision: such as `amp-bf16`.

    Raises:
        GraphError: no parameter leads to an output, or an operator has no gradient.
    """
    derivation = _Derivation(model, sizes, parameters, precision)
    derivation.forward()
    derivation.loss(loss)
    derivation.backward()
    return derivation.found


@dataclass(frozen=True, slots=True)
class _Done:
    """A node whose forward pass is on the tape."""

    call: Call
    rule: Rule
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    label: str
    module: str
    is_open: bool


class _Derivation:
    """State between the passes."""

    def __init__(self, model: Any, sizes: Sizes, parameters: Sequence[str], precision: str) -> None:
        self.graph = model.graph
        self.tape = Tape()
        self.found = DerivedStep(self.tape)
        self.tensors: dict[str, StepTensor | None] = {"": None}
        self.done: list[_Done] = []
        self.without_rule: Counter[str] = Counter()
        self.cutting: Counter[str] = Counter()  # of these, on the way of a gradient
        self.gradients: dict[str, StepTensor] = {}
        wanted = set(parameters)
        outputs = [one.name for one in self.graph.output]
        fused = fused_nodes(sizes, wanted, outputs)
        self.nodes, sizes = with_precision(fused, sizes, wanted, precision)
        self.sizes, self.is_autocast = sizes, is_autocast(precision)
        for number, name in enumerate(parameters):
            facts = sizes.tensors[name]
            storage = Storage(0, -1, TensorRole.PARAMETER, number)
            tensor = StepTensor(facts.shape, facts.dtype, storage, needs_gradient=True)
            storage.nbytes = tensor.nbytes
            self.tensors[name] = self.found.parameters[name] = tensor
        for name in sorted(sizes.stored - wanted):
            facts = sizes.tensors[name]
            self.tensors[name] = self._constant(facts.shape, facts.dtype)
        for model_input in self.graph.input:
            if model_input.name not in self.tensors:
                facts = sizes.tensors[model_input.name]
                storage = Storage(0, -1, TensorRole.INPUT)
                tensor = StepTensor(facts.shape, facts.dtype, storage)
                storage.nbytes = tensor.nbytes
                self.tensors[model_input.name] = self.found.inputs[model_input.name] = tensor

    def _constant(self, shape: tuple[int, ...] | None, dtype: int) -> StepTensor:
        storage = Storage(0, -1, TensorRole.TEMPORARY)
        tensor = StepTensor(shape, dtype, storage, is_constant=True)
        storage.nbytes = tensor.nbytes
        return tensor

    def forward(self) -> None:
        """Add the ops of the forward pass."""
        for node in self.nodes:
            facts = [self.sizes.tensors[name] for name in node.output]
            if node.output and node.output[0] in self.found.parameters:
                continue  # a copy of a stored tensor
            inputs = tuple(self.tensors[name] for name in node.input)
            if self._is_fixed(node, inputs):
                for name, known in zip(node.output, facts, strict=True):
                    self.tensors[name] = self._constant(known.shape, known.dtype)
                continue
            self._run(node, inputs)
        if self.cutting:
            listed = ", ".join(f"{n} {name}" for name, n in self.cutting.most_common(_FEW))
            raise GraphError(
                f"Driple has no gradient of these operators: {listed}; export the model without "
                "them"
            )

    def _is_fixed(self, node: Any, inputs: Sequence[StepTensor | None]) -> bool:
        """Whether a node gives the same in every step: a size, or what follows from constants."""
        if node.op_type in ("Shape", "Size"):
            return True
        if node.op_type.startswith(_RANDOM):
            return False
        if node.op_type == "CastLike":
            inputs = inputs[:1]  # of the other input only its type matters
        return all(one is None or one.is_constant for one in inputs)

    def _run(self, node: Any, inputs: tuple[StepTensor | None, ...]) -> None:
        rule = _RULES.get(node.op_type)
        if rule is None:
            rule = Rule(lambda call: call.tape.run("other", call.inputs, call.results))
            self.without_rule[node.op_type] += 1
            if any(one is not None and one.needs_gradient for one in inputs):
                self.cutting[node.op_type] += 1
        facts = [self.sizes.tensors[name] for name in node.output]
        known = [self.sizes.tensors[name].value if tensor is not None and tensor.is_constant
                 else None for name, tensor in zip(node.input, inputs, strict=True)]  # fmt: skip
        call = Call(
            tape=self.tape,
            op_type=node.op_type,
            attributes=attributes_of(node),
            inputs=inputs,
            values=tuple(known),
            results=tuple((one.shape, one.dtype) for one in facts),
        )
        weights = [name for name, tensor in zip(node.input, inputs, strict=True)
                   if tensor is not None and tensor.storage.parameter >= 0]  # fmt: skip
        label = node.name or next(iter(node.output), node.op_type)
        names = (*node.input, *node.output)
        done = _Done(
            call=call,
            rule=rule,
            reads=tuple(node.input),
            gives=tuple(node.output),
            label=label.strip("/"),
            module=module_of(node, weights),
            is_open=any(name in self.sizes.open for name in names),
        )
        check_ranks(node, inputs)
        self._place(done, Phase.FORWARD)
        outputs = list(rule.forward(call))[: len(node.output)]
        outputs += [None] * (len(node.output) - len(outputs))
        leads = rule.backward is not None and any(
            one is not None and one.needs_gradient for one in inputs
        )
        call.outputs = tuple(
            None if one is None
            else replace(one, needs_gradient=leads and one.dtype in FLOATS, is_constant=False)
            for one in outputs
        )  # fmt: skip
        self.tensors |= dict(zip(node.output, call.outputs, strict=True))
        self.done.append(done)

    def _place(self, done: _Done, phase: Phase) -> None:
        tape = self.tape
        tape.phase, tape.module, tape.is_open = phase, done.module, done.is_open
        is_forward = phase == Phase.FORWARD
        tape.label = done.label if is_forward else f"{done.label}/gradient"
        tape.op_type = done.call.op_type if is_forward else f"{done.call.op_type}Grad"

    def loss(self, kind: str) -> None:
        """Add the loss of the first output that parameters lead to, and its gradient.

        Args:
            kind: one of `LOSSES`.

        Raises:
            GraphError: there is no such output.
        """
        names = [one.name for one in self.graph.output]
        trained = [
            (name, tensor)
            for name in names
            if (tensor := self.tensors.get(name)) is not None and tensor.needs_gradient
        ]
        if not trained:
            raise GraphError(
                f"no output of the model ({', '.join(names[:_FEW])[:120]}) depends on a "
                "floating-point weight, so it has nothing to train; export a model with weights"
            )
        name, output = trained[0]
        if len(trained) > 1:
            others = tuple(other for other, _ in trained[1 : 1 + _FEW])
            self.found.notes.append(remark("loss_of_output", output=name, others=others))
        tape = self.tape
        tape.label, tape.module, tape.phase = "loss", "", Phase.FORWARD
        tape.op_type = _LOSS
        tape.is_open = name in self.sizes.open
        if not output.elements or (output.rank == 0 or output.shape in ((), (1,))):
            self.found.notes.append(remark("output_is_loss", output=name))
            (self.gradients[name],) = tape.run("fill", [few_numbers(1)],
                                               [(output.shape, output.dtype)])  # fmt: skip
            return
        self.found.notes.append(remark("kind_of_loss", loss=kind, output=name))
        as_loss = output
        if self.is_autocast and output.dtype != _FLOAT:
            (as_loss,) = tape.run("cast", [output], [(output.shape, _FLOAT)])
        given = (
            self._cross_entropy(as_loss) if kind == LOSSES[0] else self._by_element(as_loss, kind)
        )
        if as_loss is not output:
            (given,) = tape.run("cast", [given], [(output.shape, output.dtype)])
        self.gradients[name] = given

    def _by_element(self, output: StepTensor, kind: str) -> StepTensor:
        """Gradient of the mean of a loss that each element has, by a label of its own."""
        like = (output.shape, output.dtype)
        labels = StepTensor(
            output.shape, output.dtype, Storage(output.nbytes, -1, TensorRole.INPUT)
        )
        self.found.inputs["labels"] = labels
        tape, op = self.tape, _LOSS_KINDS[kind]
        tape.op_type = op.title().replace("_", "")
        if kind == "bce":
            (each,) = tape.run(op, [output, labels], [like])
            tape.run("reduce_mean", [each, few_numbers(1)], [((), output.dtype)])
        else:
            tape.run(op, [output, labels], [((), output.dtype)])
        tape.phase, tape.label = Phase.BACKWARD, "loss/gradient"
        tape.op_type += "Grad"
        return tape.run(f"{op}_gradient", [few_numbers(1), output, labels], [like])[0]

    def _cross_entropy(self, output: StepTensor) -> StepTensor:
        """Gradient of the mean cross entropy; classes are the second dimension of images."""
        classes = 1 if output.rank > 3 else output.rank - 1
        places = tuple(size for i, size in enumerate(output.sizes) if i != classes)
        storage = Storage(0, -1, TensorRole.INPUT)
        labels = StepTensor(places, _INT64, storage)
        storage.nbytes = labels.nbytes
        self.found.inputs["labels"] = labels
        tape, like = self.tape, (output.shape, output.dtype)
        (logs,) = tape.run("log_softmax", [output], [like])
        tape.run("nll_loss", [logs, labels, few_numbers(1)], [((), _FLOAT)])
        tape.phase, tape.label, tape.op_type = Phase.BACKWARD, "loss/gradient", f"{_LOSS}Grad"
        (given,) = tape.run("nll_loss_gradient", [labels, few_numbers(1), few_numbers(2)], [like])
        return tape.run("log_softmax_gradient", [given, logs], [like])[0]

    def backward(self) -> None:
        """Add the ops of the backward pass, in the reverse order of the forward pass."""
        for done in reversed(self.done):
            given = tuple(self.gradients.get(name) for name in done.gives)
            if done.rule.backward is None or all(one is None for one in given):
                continue
            if not any(done.call.needs(i) for i in range(len(done.call.inputs))):
                continue
            self._place(done, Phase.BACKWARD)
            by_input = done.rule.backward(done.call, given)
            for position, (name, gradient) in enumerate(zip(done.reads, by_input, strict=False)):
                if gradient is not None and done.call.needs(position):
                    self._add(name, gradient)
        for name, tensor in self.found.parameters.items():
            gradient = self.gradients.get(name)
            if gradient is not None:
                if gradient.storage.parameter < 0 and gradient.nbytes >= tensor.nbytes:
                    gradient.storage.role = TensorRole.GRADIENT
                self.found.gradients[name] = gradient
        if self.without_rule:
            listed = tuple(f"{n} {name}" for name, n in self.without_rule.most_common(_FEW))
            self.found.notes.append(remark("operators_of_unknown_cost", operators=listed))

    def _add(self, name: str, gradient: StepTensor) -> None:
        """Add a gradient to what is there of the same tensor."""
        there = self.gradients.get(name)
        if there is None:
            self.gradients[name] = gradient
            return
        target = self.tensors[name]
        shape = gradient.shape if target is None else target.shape
        (self.gradients[name],) = self.tape.run("add", [there, gradient], [(shape, gradient.dtype)])
