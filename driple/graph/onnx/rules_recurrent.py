"""LSTM, GRU and RNN layers: one cuDNN kernel family forward, one backward for all gradients."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.onnx.rules import Call, Gradients, Rule, Tensors, letters
from driple.graph.onnx.tape import Read, Shape, StepTensor

__all__ = ["RECURRENT_RULES"]

_MODES = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}
_WEIGHTS = (1, 2, 3)  # of the inputs, of the states, biases
_STATES = (5, 6)


def _numbers(call: Call) -> tuple[tuple[str, tuple[int, ...]], ...]:
    numbers = [("rnn_mode", letters(_MODES[call.op_type]))]
    if _directions(call) == 2:
        numbers.append(("direction", letters("bidirectional")))
    return tuple(sorted(numbers))


def _directions(call: Call) -> int:
    sizes = call.needed(2).sizes
    return sizes[0] if len(sizes) == 3 else 1


def _state_shape(call: Call) -> Shape:
    """[directions, batch, hidden]."""
    sizes, batch_axis = call.x().sizes, 0 if call.attributes.get("layout", 0) else 1
    return (_directions(call), sizes[batch_axis], call.needed(2).sizes[-1])


def _reads(call: Call) -> list[StepTensor | Read | None]:
    """Sequence as [steps, batch, input], first states, weights."""
    sequence = call.x()
    sizes = sequence.sizes
    steps_first = (sizes[1], sizes[0], *sizes[2:]) if call.attributes.get("layout", 0) else sizes
    state = _state_shape(call)
    states = [Read(call.input(i), state) for i in _STATES]
    return [Read(sequence, steps_first), *states, *(call.input(i) for i in _WEIGHTS)]


def _forward(call: Call) -> Tensors:
    outputs = call.tape.run("cudnn_rnn", _reads(call), call.results, numbers=_numbers(call))
    return outputs


def _backward(call: Call, gradients: Gradients) -> Gradients:
    given = [each for each in gradients if each is not None]
    if not given:
        return ()
    wanted = [i for i in (0, *_WEIGHTS, *_STATES) if call.needs(i)]
    targets = [call.needed(i) for i in wanted]
    results = call.tape.run(
        "cudnn_rnn_gradient",
        [*_reads(call), *(each for each in call.outputs if each is not None), *given],
        [(each.shape, each.dtype) for each in targets],
        numbers=_numbers(call),
    )
    by = dict(zip(wanted, results, strict=True))
    return tuple(by.get(i) for i in range(len(call.inputs)))


RECURRENT_RULES: Mapping[str, Rule] = MappingProxyType(
    dict.fromkeys(_MODES, Rule(_forward, _backward))
)
