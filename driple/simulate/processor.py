"""Steps of PyTorch on the cores of a processor: every op waits for the one before.

    Device -> ProcessorPace;  OpTable, ProcessorPace -> OpTimes

An op takes as long as its multiply-adds or its bytes, whichever is longer, after a start that
nothing hides. A product with a short side fills no registers, a convolution, pool or norm is set up
with effort, and what a library loops over costs a little each turn. `DeviceEfficiency` is of
TensorFlow's kernels, which PyTorch (oneDNN, MKL) does not use: on 42 programs those were 33 % off
in the median, and this is 10 % off (scripts/studies/processor, decision 0067).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.catalog.model import Fact
from driple.simulate.optable import OpTable
from driple.step.plan import OpTimes

__all__ = [
    "ProcessorPace",
    "is_measured",
    "op_seconds",
    "processor_pace",
    "processor_times",
    "processor_update_s",
    "with_pace",
]

FloatArray = npt.NDArray[np.float64]
SMALL_SIDE = 8.0
"""Length of a product's shortest side at which it takes twice as long for each multiply-add."""
SET_UP_OPS, TURN_OPS, TENSOR_OPS = 8.0, 0.6, 0.6
"""Starts of an op that it takes to set up a convolution, pool or norm; to turn in a library's
loop; to hand on a trained tensor's gradient and update. Of 42 programs (scripts/studies/processor),
as is the usual pace below."""
_CORE_FLOPS = 191e9  # of the core that was measured, as devices.toml states 0.4 of it
_FLOPS_SHARE, _BYTES_SHARE, _OP_S = 0.627, 0.363, 11.5e-6
_FLOPS, _BYTES, _OP = "processor_flops_per_s", "processor_bytes_per_s", "processor_op_s"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorPace:
    """What a worker's cores reach.

    Attributes:
        flops_per_s: of large products in single precision.
        bytes_per_s: that ops read and write.
        op_s: seconds to start an op.
    """

    flops_per_s: float
    bytes_per_s: float
    op_s: float


def processor_pace(device: Device) -> ProcessorPace:
    """The measured pace of a device's cores, or that of the core that was measured by its share."""
    if is_measured(device):
        flops, nbytes, op_s = (float(str(device.facts[name])) for name in (_FLOPS, _BYTES, _OP))
        return ProcessorPace(flops_per_s=flops, bytes_per_s=nbytes, op_s=op_s)
    return ProcessorPace(
        flops_per_s=_FLOPS_SHARE * device.fp32_flops,
        bytes_per_s=_BYTES_SHARE * device.bytes_per_s,
        op_s=_OP_S * _CORE_FLOPS / device.fp32_flops,
    )


def with_pace(facts: Mapping[str, Fact], pace: ProcessorPace) -> dict[str, Fact]:
    """Facts of a device whose cores were measured."""
    return {**facts, _FLOPS: pace.flops_per_s, _BYTES: pace.bytes_per_s, _OP: pace.op_s}


def is_measured(device: Device) -> bool:
    """Whether a machine file states what the device's cores reach."""
    return device.find(_OP) is not None


def op_seconds(table: OpTable, pace: ProcessorPace) -> FloatArray:
    """Seconds of one execution of each op of a table, [n]; 0 where nothing is moved."""
    shortest = np.maximum(table.sides[:, :3].min(axis=1), 1.0)
    product_s = 2 * table.sides.prod(axis=1) / pace.flops_per_s * (1 + SMALL_SIDE / shortest)
    there = table.moved > 0
    starts = there * (1 + SET_UP_OPS * table.windowed) + TURN_OPS * table.inner_kernels
    seconds: FloatArray = np.maximum(product_s, table.moved / pace.bytes_per_s)
    return seconds * there + starts * pace.op_s


def processor_times(
    table: OpTable,
    kind_of: npt.NDArray[np.integer],
    executions: npt.NDArray[np.int64],
    pace: ProcessorPace,
) -> OpTimes:
    """How long each op of a graph keeps the cores, all its turns together.

    Args:
        table: of the kinds of ops.
        kind_of: shape [num_nodes], row of each node in the table.
        executions: shape [num_nodes], turns of each node in a step.
        pace: of the cores.
    """
    seconds = op_seconds(table, pace)[kind_of] * executions
    memory_s = (table.moved / pace.bytes_per_s)[kind_of] * executions
    return OpTimes(duration_s=seconds, busy_s=seconds, memory_s=np.minimum(memory_s, seconds))


def processor_update_s(moved_bytes: float, tensors: int, pace: ProcessorPace) -> float:
    """Seconds of the optimizer, and of handing each trained tensor to it.

    Args:
        moved_bytes: that the update reads and writes.
        tensors: that are trained.
        pace: of the cores.
    """
    return moved_bytes / pace.bytes_per_s + TENSOR_OPS * tensors * pace.op_s
