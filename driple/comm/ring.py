"""Ring all-reduce over all devices: the scheme `ddp`.

In a ring of n workers, each worker sends and receives 2 (n - 1) / n of each byte (Patarasuk and
Yuan, JPDC 2009). A ring over several machines crosses the link within each machine and the network
between them; the slower of the two determines the duration of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.checks import check_number
from driple.cluster.schemes import DDP
from driple.cluster.topology import Topology
from driple.comm.all_reduce import AllReduceStep, one_after_another, simulate_all_reduce
from driple.comm.records import WorkerRecord, check_rate
from driple.comm.scheme import Layouts, SchemeStep, link_of, messages_of
from driple.graph.opgraph import Layout
from driple.step.plan import StepPlan

__all__ = ["Ring", "RingExchange", "RingSpec", "passing", "simulate_ring"]

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

    def passed_bytes(self, sizes: FloatArray) -> FloatArray:
        """Bytes of each message that a worker sends, shape [num_messages]."""
        passed: FloatArray = 2 * (self.count - 1) / self.count * sizes
        return passed


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

    def step(self) -> AllReduceStep:
        """Update, jitter and overlap of this ring."""
        return AllReduceStep(
            update_s=self.update_s,
            jitter=self.jitter,
            overlapped=self.overlapped,
            share=self.share,
        )


def simulate_ring(
    spec: RingSpec, plans: Sequence[StepPlan], num_steps: int, seed: int = 0
) -> list[WorkerRecord]:
    """Simulate every worker with `simulate_all_reduce`."""
    return simulate_all_reduce(spec.step(), spec.exchange(), plans, num_steps, seed)


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


class Ring:
    """The scheme `ddp`: one ring over all devices of all machines."""

    name = DDP
    uses_servers = False

    def assumption(self, layout: Layout, num_workers: int) -> str:
        """Assumption for a graph that was built for another scheme."""
        if num_workers < 2:
            return Layouts.alone(layout)
        return Layouts.without_servers(
            layout, "each worker updates all variables itself, and its gradients go round the ring"
        )

    def error_kind(self, num_workers: int) -> str:
        """Kind of published runs that give the scheme's error."""
        return "ring" if num_workers > 1 else "single"

    def link_loads(
        self, topology: Topology, link: float, bridge: float
    ) -> tuple[float, float] | None:
        """None: the closed forms cover parameter servers only."""
        return None

    def simulate(self, step: SchemeStep, num_steps: int, seed: int) -> list[WorkerRecord]:
        """Simulate every worker, a record each; the slowest link of the ring sets its rate."""
        count = len(step.topology.workers)
        rings = [
            RingExchange(
                count=count, bytes_per_s=link.bytes_per_s(count), tensor_s=link.efficiency.tensor_s
            )
            for link in (link_of(step, between=False), link_of(step, between=True))
            if link is not None
        ]
        sizes, tensors = messages_of(step)
        slowest = max(
            rings,
            key=lambda ring: float(ring.seconds(sizes, tensors).sum()),
            default=RingExchange(count=1, bytes_per_s=np.inf, tensor_s=0.0),
        )
        return simulate_all_reduce(step.all_reduce, slowest, step.plans, num_steps, seed)
