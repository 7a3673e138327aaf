"""All steps of synchronous workers and parameter servers at once, as arrays.

    random slowness -> lanes: a step each, all from 0 on -> messages arrive, lane by lane -> records

A step of synchronous workers begins when nothing of the one before is left, so that steps differ in
their random slowness alone. Each turn takes every lane to its next event, by the rules of
`driple.schemes.servers`, which goes through the steps one after another. Workers that are alike
share the record of the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.schemes.lane_network import LaneNetwork
from driple.schemes.lane_workers import LaneWorkers
from driple.schemes.records import Computing, Use, WorkerRecord
from driple.step.plan import Message, StepPlan

if TYPE_CHECKING:
    from driple.schemes.servers import ClusterSpec

__all__ = ["simulate_synchronous"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


def simulate_synchronous(
    spec: ClusterSpec, plans: Sequence[StepPlan], slowness: FloatArray, most_at_once: int
) -> list[WorkerRecord]:
    """Simulate every worker.

    Args:
        spec: the cluster, whose workers start at 0.
        plans: step plan of each worker.
        slowness: shape [steps, workers], factor of each worker's computing.
        most_at_once: servers that a worker hears from at the same time, and sends to.

    Returns:
        One record per worker; workers that are alike share the record of the first of them.
    """
    firsts = _first_alike(spec, plans)
    steps = _Steps(spec, plans, slowness, most_at_once, sorted(set(firsts)))
    steps.run()
    records = steps.records()
    return [records[first] for first in firsts]


def _first_alike(spec: ClusterSpec, plans: Sequence[StepPlan]) -> list[int]:
    """First worker that each is like: with its plan, and alone or on the same machine."""
    places = (*spec.worker_machine, *spec.server_machine)
    known: dict[tuple[object, ...], int] = {}
    firsts = []
    for worker, (plan, machine) in enumerate(zip(plans, spec.worker_machine, strict=True)):
        copy_s = spec.copy_s_per_byte[worker] if spec.copy_s_per_byte else 0.0
        place = machine if places.count(machine) > 1 else None
        firsts.append(known.setdefault((id(plan), copy_s, place), worker))
    return firsts


class _Steps:
    """Steps from their begin to the end of the last gradient.

    Rows of the network are gradients of each lane and worker, then parameters of each.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        plans: Sequence[StepPlan],
        slowness: FloatArray,
        most_at_once: int,
        recorded: Sequence[int],
    ) -> None:
        self.spec, self.plans, self.recorded = spec, plans, recorded
        self.num_lanes, self.num_workers = slowness.shape
        self.num_servers = num_servers = len(spec.server_machine)
        copy_s = np.array(spec.copy_s_per_byte or (0.0,) * self.num_workers)
        self.workers = LaneWorkers(plans, slowness, copy_s)
        sends = [[one for part in plan.segments for one in part.sends] for plan in plans]
        messages = [*sends, *([*plan.pulls] for plan in plans)]
        self.server, self.nbytes = _message_tables(messages)
        self.half = self.num_lanes * self.num_workers
        self.copy_s = np.tile(copy_s, self.num_lanes)
        # Of each row: times at which its messages are sent, and how many were.
        self.ready_s = np.full((2 * self.half, self.nbytes.shape[1]), np.inf)
        self.message = np.tile(np.arange(self.nbytes.shape[1]), (2 * self.half, 1))
        for worker, plan in enumerate(plans):
            self.ready_s[self.half + worker :: self.num_workers, : len(plan.pulls)] = 0.0
        self.num_sent = np.zeros(2 * self.half, np.intp)
        self.sends_s = self.ready_s[:, 0].copy()  # when each row's next message is sent
        self.group = np.concatenate(
            [np.tile(np.arange(self.num_workers) + way * self.num_workers, self.num_lanes)
             for way in (0, 1)]
        )  # fmt: skip
        self.lane = np.tile(np.repeat(np.arange(self.num_lanes), self.num_workers), 2)
        self.network = LaneNetwork(
            spec.wiring(),
            self.num_workers,
            num_servers,
            num_lanes=self.num_lanes,
            num_messages=self.nbytes.shape[1],
            most_at_once=most_at_once,
        )
        self.served_s = np.zeros(self.num_lanes * num_servers)  # when each lane's server is free
        self.meters: list[tuple[FloatArray, FloatArray]] = []  # time and rates of recorded rows

    def run(self) -> None:
        """Take all lanes to their ends."""
        network = self.network
        self._ready(self.workers.compute(np.arange(self.half)))
        rows = (np.array(self.recorded)[:, None] + self.num_workers * np.arange(self.num_lanes)).T
        now_s = np.zeros(self.num_lanes)
        self._send()
        while True:
            network.share()
            self._record(now_s, rows)
            next_s = np.minimum(network.next_s(), self._next_send_s())
            is_on = np.isfinite(next_s)
            if not is_on.any():
                return
            now_s = np.where(is_on, next_s, now_s)
            self._arrive(*network.advance(now_s))
            self._send()

    def _send(self) -> None:
        """Send all messages that are ready."""
        while True:
            due = (self.sends_s[: self.network.num_rows] <= self.network.now_s).nonzero()[0]
            if not len(due):
                return
            position = self.num_sent[due]
            message = self.message[due, position]
            self.num_sent[due] += 1
            self.sends_s[due] = self.ready_s[due, position + 1]
            server, nbytes = (
                table[self.group[due], message] for table in (self.server, self.nbytes)
            )
            real = nbytes > 0
            self.network.send(due[real], position[real], server[real], nbytes[real])
            self._arrive(due[~real], position[~real])

    def _next_send_s(self) -> FloatArray:
        """When the next message of each lane is sent; all parameters are at the start."""
        by_lane: FloatArray = self.sends_s[: self.half].reshape(self.num_lanes, -1).min(axis=1)
        return by_lane

    def _arrive(self, rows: IntArray, positions: IntArray) -> None:
        """Use parameters, and apply gradients, that have arrived."""
        message = self.message[rows, positions]
        nbytes = self.nbytes[self.group[rows], message]
        usable_s = self.network.now_s[rows] + self.spec.message_s
        is_gradient = rows < self.half
        if not is_gradient.all():
            comes = ~is_gradient
            workers = rows[comes] - self.half
            copied_s = usable_s[comes] + nbytes[comes] * self.copy_s[workers]
            self._ready(self.workers.receive(workers, message[comes], copied_s))
            rows, message, nbytes, usable_s = (
                part[is_gradient] for part in (rows, message, nbytes, usable_s)
            )
        servers = self.lane[rows] * self.num_servers + self.server[self.group[rows], message]
        self.served_s[servers] = np.maximum(self.served_s[servers], usable_s)
        np.add.at(self.served_s, servers, nbytes * self.spec.apply_s_per_byte)

    def _ready(self, rows: IntArray) -> None:
        """Take over the times at which gradients can be sent."""
        if len(rows):
            count = self.workers.ready_s.shape[1]
            self.ready_s[rows, :count] = self.workers.ready_s[rows]
            self.message[rows, :count] = self.workers.message[rows]
            self.sends_s[rows] = self.ready_s[rows, self.num_sent[rows]]

    def _record(self, now_s: FloatArray, rows: IntArray) -> None:
        """Note the rates of recorded workers: shape [lanes, out and in of each]."""
        rate = self.network.rate
        sent = rate[:, rows].sum(axis=0)
        both = self.network.num_rows > self.half
        received = rate[:, self.half + rows].sum(axis=0) if both else np.zeros_like(sent)
        self.meters.append((now_s, np.concatenate([sent, received], axis=1)))

    def records(self) -> dict[int, WorkerRecord]:
        """Records of the recorded workers."""
        free_s = self.workers.free_s.reshape(self.num_lanes, -1).max(axis=1)
        step_s = np.maximum(free_s, self.served_s.reshape(self.num_lanes, -1).max(axis=1))
        step_ends_s = np.cumsum(step_s)
        starts_s = step_ends_s - step_s
        times_s = np.array([time_s for time_s, _ in self.meters])  # turns, lanes
        rates = np.array([rate for _, rate in self.meters])  # turns, lanes, meters

        def use(place: int, worker: int, _first: int, _last: int) -> Use:
            tx, rx = (
                _meter(starts_s, times_s, rates[:, :, number])
                for number in (place, place + len(self.recorded))
            )
            return self._computing(worker, starts_s), tx, rx

        return {
            worker: WorkerRecord(
                step_ends_s=step_ends_s.tolist(), make_use=partial(use, place, worker)
            )
            for place, worker in enumerate(self.recorded)
        }

    def _computing(self, worker: int, starts_s: FloatArray) -> list[Computing]:
        """Segments of a worker in all steps, in order."""
        segments = [
            (number, segment.busy_s / segment.duration_s, segment.memory_s / segment.duration_s,
             segment.parts)
            for number, segment in enumerate(self.plans[worker].segments)
            if segment.duration_s > 0
        ]  # fmt: skip
        spans = [
            (starts_s[:, None] + times_s[worker :: self.num_workers]).tolist()
            for times_s in (self.workers.begins_s, self.workers.ends_s)
        ]
        return [
            Computing(begins[number], ends[number], busy, memory, parts)
            for begins, ends in zip(*spans, strict=True)
            for number, busy, memory, parts in segments
        ]


def _meter(
    starts_s: FloatArray, times_s: FloatArray, rates: FloatArray
) -> list[tuple[float, float]]:
    """Rates of one meter where they change, step by step.

    Args:
        starts_s: shape [steps], begin of each.
        times_s: shape [turns, steps], since the begin of its step.
        rates: shape [turns, steps], bytes/s from then on.
    """
    at_s = (starts_s + times_s).T.ravel()
    rate = rates.T.ravel()
    is_last = np.append(at_s[1:] > at_s[:-1], True)  # of what is noted of one moment
    at_s, rate = at_s[is_last], rate[is_last]
    changes = np.append(True, rate[1:] != rate[:-1])
    meter = list(zip(at_s[changes].tolist(), rate[changes].tolist(), strict=True))
    return meter if meter[0][0] == 0.0 else [(0.0, 0.0), *meter]


def _message_tables(rows: Sequence[Sequence[Message]]) -> tuple[IntArray, FloatArray]:
    """Server and bytes of each message of each row, with one more that is never sent."""
    width = 1 + max(map(len, rows))
    padded = [[*row, *[Message(0, 0.0)] * (width - len(row))] for row in rows]
    servers = [[one.server for one in row] for row in padded]
    return np.array(servers, np.intp), np.array([[one.nbytes for one in row] for row in padded])
