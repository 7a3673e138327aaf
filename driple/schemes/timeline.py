"""Steps of workers whose collectives follow one another on a channel of their own.

    plan: gathers before segments, sends at their ends ->  computing  |--f1--|--f2--|--b2--|--b1--|
                                                           channel    |-g2-|        |--s2--||--s1--|

PyTorch's DistributedDataParallel, ZeRO and FSDP issue collectives in a fixed order on a stream of
their own. All workers take part in each, so it begins when the last worker has issued it and the
one before has ended. A gather is issued when the segment begins that needs the gather before it
(prefetch of one block); a send at the end of its segment. A segment begins when the device is free
and its gathers have come. All steps are computed at once, as arrays: a step begins when the one
before has ended on all workers, so that steps differ in their random slowness alone. Of workers
that are alike, the first and the slowest are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from driple.checks import check_number, check_whole
from driple.errors import ConfigError
from driple.schemes.records import Computing, Use, WorkerRecord
from driple.step.phases import HOST, UPDATE, PhasePart
from driple.step.plan import StepPlan

__all__ = ["StepCollectives", "StepUpdate", "Workers", "simulate_timeline", "simulate_together"]

FloatArray = npt.NDArray[np.float64]

_MOMENT_S = 1e-9  # rounding of sums of times
_ROUNDING = 1e-9  # of sums of rates, as a share of the largest


def _none() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCollectives:
    """The collectives of a step.

    Attributes:
        gather_s: shape [num_pulls], duration of each gather before a segment, seconds; empty if
            the plan's pulls are not gathered.
        gather_bytes: shape [num_pulls], bytes that a device sends in it.
        send_s: shape [num_sends], duration of each collective of gradients, seconds.
        send_bytes: shape [num_sends], bytes that a device sends in it.
        after_s: duration of each collective after the update, seconds.
        after_bytes: bytes that a device sends in it.
    """

    gather_s: FloatArray = field(default_factory=_none)
    gather_bytes: FloatArray = field(default_factory=_none)
    send_s: FloatArray = field(default_factory=_none)
    send_bytes: FloatArray = field(default_factory=_none)
    after_s: FloatArray = field(default_factory=_none)
    after_bytes: FloatArray = field(default_factory=_none)

    @property
    def sent_bytes(self) -> float:
        """Bytes that a device sends in a step, and receives."""
        return float(self.gather_bytes.sum() + self.send_bytes.sum() + self.after_bytes.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class StepUpdate:
    """What a step has beyond computing and collectives.

    Attributes:
        update_s: time of each worker's device to apply the gradients, seconds; a kernel runs and
            uses device memory throughout.
        jitter: standard deviation of the logarithm of a step's computing time.
        overlapped: whether collectives of gradients overlap the backward pass.
        slowed: share of the time of a collective by which it lengthens the computing beside it,
            as both use multiprocessors and device memory.
        host_s: time of the hosts to update what devices keep there, seconds, in which devices wait.

    Raises:
        ConfigError: no workers, or a negative number.
    """

    update_s: tuple[float, ...]
    jitter: float = 0.0
    overlapped: bool = True
    slowed: float = 0.0
    host_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.update_s:
            raise ConfigError("a ring of no workers; give the update time of one at least")
        for name in ("jitter", "slowed", "host_s"):
            check_number(name, getattr(self, name), least=0)
        for seconds in self.update_s:
            check_number("update_s", seconds, least=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Workers that exchange gradients with each other.

    Attributes:
        update: update, jitter and overlap.
        exchange: duration and bytes of each collective; of one worker they do not count.
        plans: step plan of each worker; all have the same messages.

    Raises:
        ConfigError: the number of plans differs from that of workers, or the plans have different
            messages.
    """

    update: StepUpdate
    exchange: StepCollectives
    plans: Sequence[StepPlan]

    def __post_init__(self) -> None:
        _check_plans(self.update, self.plans)


def simulate_timeline(
    update: StepUpdate,
    exchange: StepCollectives,
    plans: Sequence[StepPlan],
    num_steps: int,
    seed: int = 0,
) -> list[WorkerRecord]:
    """Simulate every worker.

    Args:
        update: update, jitter and overlap.
        exchange: duration and bytes of each collective; of one worker they do not count.
        plans: step plan of each worker; all have the same messages.
        num_steps: steps of each worker.
        seed: random seed of the jitter.

    Returns:
        One record per worker; workers that are alike share the record of the first of them.

    Raises:
        ConfigError: the number of plans differs from the number of workers, the plans have
        different messages, or there are no steps.
    """
    workers = Workers(update=update, exchange=exchange, plans=plans)
    return simulate_together([workers], num_steps, seed)[0]


def simulate_together(
    groups: Sequence[Workers], num_steps: int, seed: int = 0
) -> list[list[WorkerRecord]]:
    """Simulate groups of workers, such as the stages of a pipeline, whose steps end together.

    Args:
        groups: one or more; their collectives do not hinder each other.
        num_steps: steps of each worker.
        seed: random seed of the jitter.

    Returns:
        Records of each group, as `simulate_timeline` returns them.

    Raises:
        ConfigError: there are no steps.
    """
    check_whole("num_steps", num_steps, 1)
    random = np.random.default_rng(seed)
    lines = [_line_of(group, num_steps, random) for group in groups]
    step_s = np.max([line.step_s for line, _ in lines], axis=0)
    by_group = []
    for line, kinds in lines:
        record_of = {
            worker: record
            for workers, record in zip(kinds, line.records(step_s), strict=True)
            for worker in workers
        }
        by_group.append([record_of[worker] for worker in range(len(record_of))])
    return by_group


def _line_of(
    group: Workers, num_steps: int, random: np.random.Generator
) -> tuple[_Line, list[list[int]]]:
    """All steps of a group, and its workers of each kind."""
    update, plans = group.update, group.plans
    slowness = np.exp(random.normal(0.0, update.jitter, (num_steps, len(plans))))
    each = list(zip(map(id, plans), update.update_s, strict=True))
    kinds: dict[tuple[int, float], list[int]] = {each[0]: [*range(len(each))]}
    if len(set(each)) > 1:
        kinds = {}
        for worker, kind in enumerate(each):
            kinds.setdefault(kind, []).append(worker)
    firsts = [workers[0] for workers in kinds.values()]
    line = _Line(
        update,
        group.exchange if len(plans) > 1 else _nothing(plans[0]),
        [(plans[worker], update.update_s[worker]) for worker in firsts],
        np.concatenate(
            [
                slowness[:, firsts],
                np.stack([slowness[:, workers].max(axis=1) for workers in kinds.values()], axis=1),
            ],
            axis=1,
        ).T,
    )
    return line, list(kinds.values())


def _check_plans(update: StepUpdate, plans: Sequence[StepPlan]) -> None:
    if len(plans) != len(update.update_s):
        raise ConfigError(
            f"{len(plans)} step plans for a ring of {len(update.update_s)}; give one for each "
            "worker"
        )
    known = {id(plan): plan for plan in plans}.values()
    counts = {sum(len(segment.sends) for segment in plan.segments) for plan in known}
    if len(counts) > 1:
        raise ConfigError(
            f"workers of a ring send {' and '.join(map(str, sorted(counts)))} messages a step; all "
            "must send the same"
        )


def _nothing(plan: StepPlan) -> StepCollectives:
    """The collectives of one worker alone: none takes time or moves bytes."""
    sends = np.zeros(sum(len(segment.sends) for segment in plan.segments))
    return StepCollectives(send_s=sends, send_bytes=sends)


class _Line:
    """All steps of the first and the slowest worker of each kind.

    Rows of the arrays are the first worker of each kind, then the slowest; columns are steps. Times
    count from the begin of the step.
    """

    def __init__(
        self,
        update: StepUpdate,
        exchange: StepCollectives,
        kinds: Sequence[tuple[StepPlan, float]],
        slowness: FloatArray,
    ) -> None:
        self.update, self.exchange = update, exchange
        self.plans = [plan for plan, _ in kinds]
        self.update_s = [seconds for _, seconds in kinds]
        self.slowness = slowness
        self.num_gathers = len(exchange.gather_s)  # pulls from servers are none
        num_steps = slowness.shape[1]
        self.free_s = np.zeros(num_steps)  # of the channel
        self.device_s = np.zeros(slowness.shape)
        self.came_s: list[FloatArray] = []  # end of each gather
        self.spans: list[tuple[FloatArray, FloatArray, float, float]] = []
        self.computed: list[tuple[FloatArray, FloatArray]] = []
        self._run()
        self.step_s = self._after()

    def _run(self) -> None:
        sends = [len(segment.sends) for segment in self.plans[0].segments]
        waiting: list[int] = []
        sent = 0
        if self.num_gathers:
            self._gather(np.zeros(len(self.free_s)))
        for number, first in enumerate(self.plans[0].segments):
            begin_s = self._begin(min(first.needs, self.num_gathers))
            end_s = self._compute(number, begin_s)
            for _ in range(sends[number]):
                if self.update.overlapped:
                    self._send(sent, end_s.max(axis=0))
                else:
                    waiting.append(sent)
                sent += 1
        done_s = self.device_s.max(axis=0)
        for number in waiting:
            self._send(number, done_s)
        self.computed_s = np.maximum(done_s, self.free_s)

    def _begin(self, needs: int) -> FloatArray:
        """When a segment begins on each row; the gather after those that it needs is issued."""
        begin_s = self.device_s
        while len(self.came_s) < needs:
            self._gather(begin_s.max(axis=0))
        if needs:
            begin_s = np.maximum(begin_s, self.came_s[needs - 1])
        if needs == len(self.came_s) and needs < self.num_gathers:
            self._gather(begin_s.max(axis=0))
        return begin_s

    def _compute(self, number: int, begin_s: FloatArray) -> FloatArray:
        """End of a segment on each row."""
        took = [plan.segments[number].duration_s for plan in self.plans]
        took_s = np.array(took * 2)[:, None] * self.slowness
        if self.update.slowed:
            beside = np.clip(self.free_s - begin_s, 0.0, took_s)
            took_s = took_s + self.update.slowed * beside
        end_s = begin_s + took_s
        self.device_s = end_s
        self.computed.append((begin_s, end_s))
        return end_s

    def _gather(self, issued_s: FloatArray) -> None:
        number = len(self.came_s)
        exchange = self.exchange
        self.came_s.append(
            self._channel(issued_s, exchange.gather_s[number], float(exchange.gather_bytes[number]))
        )

    def _send(self, number: int, issued_s: FloatArray) -> None:
        exchange = self.exchange
        self._channel(issued_s, exchange.send_s[number], float(exchange.send_bytes[number]))

    def _channel(self, issued_s: FloatArray, took_s: float, nbytes: float) -> FloatArray:
        """Occupy the channel; returns the end."""
        begin_s = np.maximum(self.free_s, issued_s)
        self.free_s = begin_s + took_s
        self.spans.append((begin_s, self.free_s, took_s, nbytes))
        return self.free_s

    def _after(self) -> FloatArray:
        """Length of each step, with the collectives after the update."""
        ends_s = self.computed_s + max(self.update_s) + self.update.host_s
        self.free_s = ends_s
        for took_s, nbytes in zip(
            self.exchange.after_s.tolist(), self.exchange.after_bytes.tolist(), strict=True
        ):
            self._channel(ends_s, took_s, nbytes)
        return self.free_s

    def records(self, step_s: FloatArray) -> list[WorkerRecord]:
        """Record of the first worker of each kind; steps end when all groups are ready."""
        starts_s = np.cumsum(step_s) - step_s
        ends_s = (starts_s + step_s).tolist()
        return [
            WorkerRecord(step_ends_s=list(ends_s), make_use=partial(self._use, row, starts_s))
            for row in range(len(self.plans))
        ]

    def _use(self, row: int, starts_s: FloatArray, first: int, last: int) -> Use:
        """Segments of one row in some steps, and the rates on its links in both directions."""
        plan, steps = self.plans[row], slice(first, last)
        sends = any(segment.sent_bytes for segment in plan.segments)
        # What adds up is rounded as the sum of all steps is.
        meter = self._added_meter(row, plan, starts_s) if sends else self._meter(starts_s, steps)
        return self._computing(row, plan, starts_s, steps), list(meter), list(meter)

    def _computing(
        self, row: int, plan: StepPlan, all_starts_s: FloatArray, steps: slice
    ) -> list[Computing]:
        """Segments and updates of one row, in order."""
        starts_s = all_starts_s[steps]
        own_s = self.update_s[row]
        parts = [
            (
                (starts_s + begin_s[row, steps]).tolist(),
                (starts_s + end_s[row, steps]).tolist(),
                segment.busy_s / segment.duration_s,
                segment.memory_s / segment.duration_s,
                segment.parts,
            )
            for segment, (begin_s, end_s) in zip(plan.segments, self.computed, strict=True)
            if segment.duration_s > 0
        ]
        if own_s > 0:
            begin_s = starts_s + self.computed_s[steps]
            applied = (PhasePart(UPDATE, own_s, own_s, own_s),)
            parts.append((begin_s.tolist(), (begin_s + own_s).tolist(), 1.0, 1.0, applied))
        host_s = self.update.host_s
        if host_s > 0:
            begin_s = starts_s + self.computed_s[steps] + max(self.update_s)
            waited = (PhasePart(HOST, host_s, 0.0, 0.0),)
            parts.append((begin_s.tolist(), (begin_s + host_s).tolist(), 0.0, 0.0, waited))
        return [
            Computing(begins[step], ends[step], busy, memory, phases)
            for step in range(len(starts_s))
            for begins, ends, busy, memory, phases in parts
        ]

    def _meter(self, all_starts_s: FloatArray, steps: slice) -> list[tuple[float, float]]:
        """Rates on every worker's links, as both directions have them."""
        starts_s = all_starts_s[steps]
        meter = [(0.0, 0.0)]
        spans = [
            (
                (starts_s + begin_s[steps]).tolist(),
                (starts_s + end_s[steps]).tolist(),
                nbytes / took_s if took_s > 0 else 0.0,
            )
            for begin_s, end_s, took_s, nbytes in self.spans
            if nbytes > 0 or took_s > 0
        ]
        for step in range(len(starts_s)):
            for begins, ends, rate in spans:
                begin_s, end_s = begins[step], ends[step]
                last_s = meter[-1][0]
                if begin_s <= last_s + _MOMENT_S:  # no pause between two messages
                    meter.pop()
                meter += [(max(begin_s, last_s), rate), (end_s, 0.0)]
        return meter

    def _added_meter(
        self, row: int, plan: StepPlan, starts_s: FloatArray
    ) -> list[tuple[float, float]]:
        """The same where segments also send: rates of what is sent at once add up."""
        parts = [(begin_s, end_s, nbytes) for begin_s, end_s, _, nbytes in self.spans]
        parts += [
            (begin_s[row], end_s[row], segment.sent_bytes)
            for segment, (begin_s, end_s) in zip(plan.segments, self.computed, strict=True)
        ]
        parts = [part for part in parts if part[2] > 0 and (part[1] > part[0]).all()]
        begins = np.concatenate([starts_s + begin_s for begin_s, _, _ in parts])
        ends = np.concatenate([starts_s + end_s for _, end_s, _ in parts])
        rates = np.concatenate([nbytes / (end_s - begin_s) for begin_s, end_s, nbytes in parts])
        times, place = np.unique(np.concatenate([begins, ends]), return_inverse=True)
        change = np.bincount(place.ravel(), weights=np.concatenate([rates, -rates]))
        total = np.cumsum(change)
        total[total < _ROUNDING * rates.max()] = 0.0
        return [(0.0, 0.0), *zip(times.tolist(), total.tolist(), strict=True)]
