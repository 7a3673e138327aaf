"""A plain ring all-reduce: a rate and a fixed cost of each tensor, as published tables fit it.

In a ring of n workers, each worker sends and receives 2 (n - 1) / n of each byte (Patarasuk and
Yuan, JPDC 2009). `driple.schemes.collectives` has rings and trees of NCCL, which schemes use; this
form serves links that `driple profile links` fitted, and closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.checks import check_number
from driple.schemes.records import check_rate
from driple.schemes.timeline import StepUpdate

__all__ = ["RingExchange", "RingSpec", "one_after_another", "passing"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RingExchange:
    """Ring all-reduce of messages.

    Attributes:
        count: number of workers.
        bytes_per_s: rate of the slowest link, each way.
        tensor_s: fixed cost of each tensor of a message, seconds; published rings of 2, 4 and 8
            workers have the same.

    Raises:
        ConfigError: a rate that is not above 0, or a negative time.
    """

    count: int
    bytes_per_s: float
    tensor_s: float

    def __post_init__(self) -> None:
        check_rate("bytes_per_s", self.bytes_per_s)
        check_number("tensor_s", self.tensor_s, least=0)

    def seconds(self, sizes: FloatArray, tensors: IntArray) -> FloatArray:
        """Duration of each message, seconds, shape [num_messages]."""
        took_s: FloatArray = (
            2 * (self.count - 1) / self.count * sizes / self.bytes_per_s + tensors * self.tensor_s
        )
        return took_s


@dataclass(frozen=True, kw_only=True, slots=True)
class RingSpec:
    """Parameters of a ring.

    Attributes:
        bytes_per_s: rate of the slowest link of the ring, each way.
        tensor_s: fixed cost of each tensor of a message, seconds; published rings of 2, 4 and 8
            workers have the same.
        update_s: time of each worker's device to apply the gradients, seconds; a kernel runs and
            uses device memory throughout.
        jitter: standard deviation of the logarithm of a step's computing time.
        overlapped: whether the exchange overlaps the backward pass.
        share: fraction of the gradients' bytes that is exchanged.

    Raises:
        ConfigError: no workers, a rate that is not above 0, or a negative time.
    """

    bytes_per_s: float
    tensor_s: float
    update_s: tuple[float, ...]
    jitter: float = 0.0
    overlapped: bool = True
    share: float = 1.0

    def __post_init__(self) -> None:
        self.exchange()
        self.step()

    def exchange(self) -> RingExchange:
        """The collective of this ring."""
        return RingExchange(
            count=len(self.update_s), bytes_per_s=self.bytes_per_s, tensor_s=self.tensor_s
        )

    def step(self) -> StepUpdate:
        """Update, jitter and overlap of this ring."""
        check_number("share", self.share, least=0)
        return StepUpdate(update_s=self.update_s, jitter=self.jitter, overlapped=self.overlapped)


def passing(
    spec: RingSpec, sizes: FloatArray, tensors: IntArray, ready_s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Start and end of each message, exchanged one after another.

    A message starts when it is ready and the message before it has ended.

    Args:
        spec: the ring.
        sizes: shape [num_messages], bytes.
        tensors: shape [num_messages], number of tensors in each.
        ready_s: shape [num_messages], time at which the last worker has it, seconds.
    """
    return one_after_another(spec.exchange().seconds(sizes, tensors), ready_s)


def one_after_another(took_s: FloatArray, ready_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Start and end of each message, exchanged one after another.

    A message starts when it is ready and the message before it has ended.

    Args:
        took_s: shape [num_messages], duration of each, seconds.
        ready_s: shape [num_messages], time at which the last worker has it, seconds.
    """
    before_s = np.cumsum(took_s) - took_s
    begins: FloatArray = np.maximum.accumulate(ready_s - before_s) + before_s
    return begins, begins + took_s
