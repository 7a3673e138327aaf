"""The optimizer's update of a derived step: bytes that it keeps and moves.

An ONNX file names no optimizer. One pass over each parameter with its gradient and states is
assumed, as a fused optimizer makes: what the update reads and writes is each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod
from types import MappingProxyType

from driple.errors import ConfigError
from driple.graph.onnx.tape import StepTensor
from driple.graph.step_facts import OptimizerUpdate

__all__ = ["DEFAULT_OPTIMIZER", "update_of"]

DEFAULT_OPTIMIZER = "momentum"
_FUSED = "-fused"
_BLOCK_8BIT, _LEAST_8BIT = 256, 4096  # bitsandbytes: a block shares a scale of 4 bytes
_SINGLE_BYTES = 4


def _copies(count: int) -> Callable[[StepTensor], int]:
    """States of the parameter's own size."""
    return lambda tensor: count * tensor.nbytes


def _rows_and_columns(tensor: StepTensor) -> int:
    """Adafactor keeps sums of rows and of columns of a matrix (Shazeer and Stern, 2018)."""
    if tensor.rank < 2:
        return tensor.nbytes
    *batch, rows, columns = tensor.sizes
    return prod(batch) * (rows + columns) * _SINGLE_BYTES


def _eight_bit(tensor: StepTensor) -> int:
    if tensor.elements < _LEAST_8BIT:
        return 2 * _SINGLE_BYTES * tensor.elements
    return 2 * (tensor.elements + _SINGLE_BYTES * ceil(tensor.elements / _BLOCK_8BIT))


_STATES: Mapping[str, Callable[[StepTensor], int]] = MappingProxyType(
    {
        "sgd": _copies(0),
        "momentum": _copies(1),
        "adam": _copies(2),
        "adamw": _copies(2),
        "rmsprop": _copies(1),
        "adagrad": _copies(1),
        "lion": _copies(1),
        "lamb": _copies(2),
        "lars": _copies(1),
        "novograd": _copies(1),
        "adafactor": _rows_and_columns,
        "adam8bit": _eight_bit,
    }
)


def update_of(parameters: Sequence[StepTensor], optimizer: str) -> OptimizerUpdate:
    """What one update of these parameters takes.

    Args:
        parameters: those that are trained.
        optimizer: a name such as `adamw`; a trailing `-fused` makes no difference.

    Raises:
        ConfigError: no such optimizer.
    """
    states = _STATES.get(optimizer.removesuffix(_FUSED))
    if states is None:
        raise ConfigError(f"optimizer must be one of {', '.join(_STATES)}, got {optimizer[:40]!r}")
    state_bytes = sum(states(each) for each in parameters)
    # Parameters are read and written, gradients read; states are read and written.
    moved = 3 * sum(each.nbytes for each in parameters) + 2 * state_bytes
    return OptimizerUpdate(
        optimizer=optimizer,
        state_bytes=state_bytes,
        moved_bytes=moved,
        num_kernels=len(parameters),
    )
