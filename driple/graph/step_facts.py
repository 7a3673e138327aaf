"""What a reader knows about the roles of ops and tensors in one training step.

A table for each fact: parameters and their gradients, the optimizer's update, the phase and module
of each op, how long each tensor lives, and which ops one compiled kernel computes. All are empty
where a file does not show them: a graph stored by an earlier reader, or a TensorFlow graph without
module names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

__all__ = ["OptimizerUpdate", "ParameterTable", "Phase", "TensorLifetimes", "TensorRole"]

_FUSED = "-fused"
# Element-wise ops of `torch.optim` (1.13, single tensor) for one parameter.
_KERNELS_OF_A_PARAMETER = {
    "sgd": 1,
    "momentum": 3,
    "adam": 8,
    "adamw": 9,
    "rmsprop": 4,
    "adagrad": 4,
}
_KERNELS_OF_OTHERS = 8
_TENSORS_AT_ONCE = 2  # of one parameter's size, such as Adam's root and its quotient

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


def _no_int8() -> Int8Array:
    return np.zeros(0, dtype=np.int8)


def _no_int32() -> Int32Array:
    return np.zeros(0, dtype=np.int32)


def _no_int64() -> Int64Array:
    return np.zeros(0, dtype=np.int64)


def _no_bool() -> npt.NDArray[np.bool_]:
    return np.zeros(0, dtype=np.bool_)


def _no_pairs() -> Int32Array:
    return np.zeros((0, 2), dtype=np.int32)


class Phase(IntEnum):
    """Part of the training step in which an op runs."""

    FORWARD = 0
    BACKWARD = 1
    UPDATE = 2
    RECOMPUTE = 3  # forward ops that activation checkpointing runs again in the backward pass


class TensorRole(IntEnum):
    """What a tensor is kept for."""

    PARAMETER = 0
    GRADIENT = 1
    OPTIMIZER_STATE = 2
    ACTIVATION = 3  # made in the forward pass and read in the backward pass
    TEMPORARY = 4
    INPUT = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterTable:
    """The parameters of a model, and the ops that read them or compute their gradients.

    Attributes:
        names: length p; dotted as in PyTorch, or the variable's name.
        elements: shape [p], number of elements.
        nbytes: shape [p], bytes as stored; the update works on these.
        is_trained: shape [p], false where the parameter is frozen.
        readers: shape [e, 2], (parameter, node that reads it).
        gradients: shape [g, 2], (parameter, node that completes its gradient); none if frozen.
    """

    names: tuple[str, ...] = ()
    elements: Int64Array = field(default_factory=_no_int64)
    nbytes: Int64Array = field(default_factory=_no_int64)
    is_trained: npt.NDArray[np.bool_] = field(default_factory=_no_bool)
    readers: Int32Array = field(default_factory=_no_pairs)
    gradients: Int32Array = field(default_factory=_no_pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerUpdate:
    """The update of all trained parameters, once per step.

    Attributes:
        optimizer: `sgd`, `momentum`, `adam`, `adamw`, `adafactor`, `lion`, `adam8bit`, ...; empty
            if unknown.
        state_bytes: bytes that the optimizer keeps from step to step.
        moved_bytes: bytes of memory that one update reads and writes.
        num_kernels: kernels that one update starts; 0 if unknown.
        temporary_bytes: most bytes that one update allocates at once and frees; 0 if unknown.
    """

    optimizer: str = ""
    state_bytes: int = 0
    moved_bytes: int = 0
    num_kernels: int = 0
    temporary_bytes: int = 0

    def one_by_one(self, parameters: int, largest_bytes: int = 0) -> OptimizerUpdate:
        """The update as PyTorch 1 makes it, which starts its kernels for each parameter anew.

        Args:
            parameters: number of trained ones.
            largest_bytes: of the largest of them, which bounds the temporary memory.
        """
        if self.optimizer.endswith(_FUSED) or not self.optimizer:
            return self
        each = _KERNELS_OF_A_PARAMETER.get(self.optimizer, _KERNELS_OF_OTHERS)
        return replace(
            self,
            num_kernels=max(self.num_kernels, each * parameters),
            temporary_bytes=min(self.temporary_bytes, _TENSORS_AT_ONCE * largest_bytes),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorLifetimes:
    """Allocations of one step, in the order in which they are made; views share one.

    Attributes:
        nbytes: shape [t], bytes asked of the allocator.
        made_by: shape [t], node that allocates it; -1 if it exists before the step.
        freed_after: shape [t], last node that reads or writes it; `num_nodes` if it outlives the
            step.
        roles: shape [t], a `TensorRole` each.
    """

    nbytes: Int64Array = field(default_factory=_no_int64)
    made_by: Int32Array = field(default_factory=_no_int32)
    freed_after: Int32Array = field(default_factory=_no_int32)
    roles: Int8Array = field(default_factory=_no_int8)
