"""Samples and tokens that a setting trains per second, from the time of an iteration.

samples/s = sum over workers of (batch size x passes per update) / iteration time
devices that split a model among them (tensor and pipeline parallelism) count as one worker
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.estimate import Estimate, Interval

if TYPE_CHECKING:
    from driple.api.predicting import Answer

__all__ = ["Throughput", "throughput_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What all workers of a setting train together.

    Attributes:
        samples_per_s: samples per second.
        tokens_per_s: tokens per second; None for data other than tokens, or of unknown length.
    """

    samples_per_s: Estimate
    tokens_per_s: Estimate | None


def throughput_of(answer: Answer) -> Throughput | None:
    """The throughput of an answer; None if the batch size is unknown or no time is above 0.

    Unlike workers that the simulator answers for count with their own iteration times.
    """
    job, time = answer.job, answer.iteration_time_s
    if job.batch_size is None or not time.value > 0:
        return None
    samples = job.batch_size * job.grad_accumulation
    times_s = [time.value] * answer.setting.num_workers
    if answer.method == "simulator" and answer.simulation is not None:
        times_s = [record.iteration_time_s for record in answer.simulation.records]
    share = answer.setting.num_replicas / answer.setting.num_workers
    rate = share * sum(samples / one_s for one_s in times_s)
    of_samples = _scaled(time, rate)
    length = job.seq_len
    return Throughput(
        samples_per_s=of_samples,
        tokens_per_s=None if length is None else _scaled(time, rate * length),
    )


def _scaled(time: Estimate, rate: float) -> Estimate:
    """The rate, with an interval whose lower end belongs to the longest time."""
    ends, interval = time.interval, None
    if ends is not None:
        low = 0.0 if ends.high is None else rate * time.value / ends.high
        high = rate * time.value / ends.low if ends.low > 0 else None
        interval = Interval(low=low, high=high, level=ends.level)
    return Estimate(value=rate, interval=interval, method=time.method, source=time.source)
