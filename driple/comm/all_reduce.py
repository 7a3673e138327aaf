"""Synchronous all-reduce training, step by step, without parameter servers.

    step: compute -> all-reduce of each gradient message once all workers have it -> update

Messages are exchanged one after another, overlapping the computation. All workers take part in each
message, so their steps end together. The scheme gives the duration of a message (`Collective`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from driple.checks import check_number, check_whole
from driple.comm.records import Computing, WorkerRecord
from driple.errors import ConfigError
from driple.step.plan import StepPlan

__all__ = ["AllReduceStep", "Collective", "one_after_another", "simulate_all_reduce"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOMENT_S = 1e-9  # rounding of sums of times


class Collective(Protocol):
    """The all-reduce algorithm of a scheme."""

    def seconds(self, sizes: FloatArray, tensors: IntArray) -> FloatArray:
        """Duration of each message, seconds, shape [num_messages].

        Args:
            sizes: shape [num_messages], bytes.
            tensors: shape [num_messages], number of tensors in each message.
        """

    def passed_bytes(self, sizes: FloatArray) -> FloatArray:
        """Bytes of each message that a worker sends, and receives; shape [num_messages]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AllReduceStep:
    """Parameters of an all-reduce step other than compute times and the collective.

    Attributes:
        update_s: time of each worker's device to apply the gradients, seconds; a kernel runs and
            uses device memory throughout.
        jitter: standard deviation of the logarithm of a step's computing time.
        overlapped: whether the exchange overlaps the backward pass.
        share: fraction of the gradients' bytes that is exchanged.

    Raises:
        ConfigError: no workers, or a negative number.
    """

    update_s: tuple[float, ...]
    jitter: float = 0.0
    overlapped: bool = True
    share: float = 1.0

    def __post_init__(self) -> None:
        if not self.update_s:
            raise ConfigError("a ring of no workers; give the update time of one at least")
        for name in ("jitter", "share"):
            check_number(name, getattr(self, name), least=0)
        for seconds in self.update_s:
            check_number("update_s", seconds, least=0)


def simulate_all_reduce(
    step: AllReduceStep,
    collective: Collective,
    plans: Sequence[StepPlan],
    num_steps: int,
    seed: int = 0,
) -> list[WorkerRecord]:
    """Simulate every worker.

    Args:
        step: update, jitter and overlap.
        collective: the all-reduce algorithm.
        plans: step plan of each worker; all send the same messages. Pulls from servers are
            ignored.
        num_steps: steps of each worker.
        seed: random seed of the jitter.

    Returns:
        One record per worker.

    Raises:
        ConfigError: the number of plans differs from the number of workers, the plans send
        different messages, or there are no steps.
    """
    check_whole("num_steps", num_steps, 1)
    _check_plans(step, plans)
    random = np.random.default_rng(seed)
    records = [WorkerRecord(tx=[(0.0, 0.0)], rx=[(0.0, 0.0)]) for _ in plans]
    messages = [message for segment in plans[0].segments for message in segment.sends]
    sizes = step.share * np.array([message.nbytes for message in messages])
    tensors = np.array([message.tensors for message in messages])
    exchanged = len(plans) > 1 and len(sizes) > 0
    took_s = collective.seconds(sizes, tensors) if exchanged else np.zeros(0)
    passed = collective.passed_bytes(sizes) if exchanged else np.zeros(0)
    start_s = 0.0
    for _ in range(num_steps):
        slowness = np.exp(random.normal(0.0, step.jitter, len(plans)))
        ready = [
            _compute(record, plan, start_s, float(slow))
            for record, plan, slow in zip(records, plans, slowness, strict=True)
        ]
        free_s = max(record.computing[-1].end_s if record.computing else start_s
                     for record in records)  # fmt: skip
        if exchanged:
            ready_s = np.max(ready, axis=0)
            if not step.overlapped:
                ready_s = np.full(len(ready_s), free_s)
            begins, ends = one_after_another(took_s, ready_s)
            free_s = max(free_s, float(ends[-1]))
            _meter(records, passed, begins, ends)
        for record, update_s in zip(records, step.update_s, strict=True):
            if update_s > 0:
                record.computing.append(Computing(free_s, free_s + update_s, 1.0, 1.0))
        start_s = free_s + max(step.update_s)
        for record in records:
            record.step_ends_s.append(start_s)
    return records


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


def _check_plans(step: AllReduceStep, plans: Sequence[StepPlan]) -> None:
    if len(plans) != len(step.update_s):
        raise ConfigError(
            f"{len(plans)} step plans for a ring of {len(step.update_s)}; give one for each worker"
        )
    counts = {sum(len(segment.sends) for segment in plan.segments) for plan in plans}
    if len(counts) > 1:
        raise ConfigError(
            f"workers of a ring send {' and '.join(map(str, sorted(counts)))} messages a step; all "
            "must send the same"
        )


def _compute(record: WorkerRecord, plan: StepPlan, start_s: float, slowness: float) -> list[float]:
    """Run the segments one after another; return when each gradient message is ready."""
    now_s, ready = start_s, []
    for segment in plan.segments:
        end_s = now_s + segment.duration_s * slowness
        if segment.duration_s > 0:
            busy, memory = (
                seconds / segment.duration_s for seconds in (segment.busy_s, segment.memory_s)
            )
            record.computing.append(Computing(now_s, end_s, busy, memory))
        now_s = end_s
        ready += [now_s] * len(segment.sends)
    return ready


def _meter(
    records: Sequence[WorkerRecord], passed: FloatArray, begins: FloatArray, ends: FloatArray
) -> None:
    """Record the rates on every worker's links during the exchange."""
    took_s = ends - begins
    rates = np.divide(passed, took_s, out=np.zeros_like(passed), where=took_s > 0)
    for begin_s, end_s, rate in zip(begins.tolist(), ends.tolist(), rates.tolist(), strict=True):
        for record in records:
            for meter in (record.tx, record.rx):
                last_s = meter[-1][0]
                if begin_s <= last_s + _MOMENT_S:  # no pause between two messages
                    meter.pop()
                meter += [(max(begin_s, last_s), rate), (end_s, 0.0)]
