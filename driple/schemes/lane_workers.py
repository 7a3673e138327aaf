"""Computing of workers in many steps at once, as arrays; each step is a lane.

    parameters in -> segments computed -> gradients ready to be sent, in order of time

What a worker computes depends on its parameters alone, so that all segments that have theirs are
computed at once, into the future.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.step.plan import StepPlan

__all__ = ["LaneWorkers"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_NEVER = 1 << 40  # more than any number of parameters


class LaneWorkers:
    """Workers of each lane, whose steps begin at 0. Rows are those of each lane and worker.

    Attributes:
        begins_s: shape [rows, segments], when each segment begins.
        ends_s: the same of its end.
        ready_s: shape [rows, gradients], when each gradient can be sent, in order of time; infinite
            where that is not known yet.
        message: shape [rows, gradients], which gradient that is.

    Args:
        plans: step plan of each worker.
        slowness: shape [lanes, workers], factor of each segment.
        copy_s_per_byte: of each worker, between its host's memory and its device.
    """

    def __init__(
        self, plans: Sequence[StepPlan], slowness: FloatArray, copy_s_per_byte: FloatArray
    ) -> None:
        num_lanes, num_workers = slowness.shape
        num_rows = num_lanes * num_workers
        segments = [plan.segments for plan in plans]
        sends = [[one for part in parts for one in part.sends] for parts in segments]
        self._plan = np.tile(np.arange(num_workers), num_lanes)  # of each row
        self._slowness = slowness.ravel()
        self._took_s = _padded([[one.duration_s for one in parts] for parts in segments], 0.0)
        needs = _padded([[one.needs for one in parts] for parts in segments], _NEVER)
        num_sends = _padded([[len(one.sends) for one in parts] for parts in segments], 0)
        self._needs, self._num_sends = needs.astype(np.intp), num_sends.astype(np.intp)
        self._first_send = np.cumsum(self._num_sends, axis=1) - self._num_sends
        self._copy_s = _padded([[one.nbytes for one in sent] for sent in sends], 0.0)
        self._copy_s *= copy_s_per_byte[:, None]
        # Of each row: parameters usable, how many are in with all before them, when these were
        # usable; segments computed, and when its device is free.
        self._usable_s = np.full((num_rows, 1 + max(len(plan.pulls) for plan in plans)), np.inf)
        self._arrived = np.zeros(num_rows, np.intp)
        self._arrived_s = np.zeros(num_rows)
        self._computed = np.zeros(num_rows, np.intp)
        self.free_s = np.zeros(num_rows)
        self.begins_s = np.zeros((num_rows, self._needs.shape[1]))
        self.ends_s = np.zeros_like(self.begins_s)
        self._ready_s = np.full((num_rows, self._copy_s.shape[1]), np.inf)
        self.ready_s = self._ready_s.copy()
        self.message = np.tile(np.arange(self._copy_s.shape[1]), (num_rows, 1))

    def receive(self, rows: IntArray, numbers: IntArray, usable_s: FloatArray) -> IntArray:
        """Take parameters, and compute what has all it needs.

        Args:
            rows: shape [n]; may occur several times.
            numbers: of each parameter message.
            usable_s: when each can be used.

        Returns:
            Rows whose `ready_s` has changed.
        """
        self._usable_s[rows, numbers] = usable_s
        return self.compute(np.unique(rows))

    def compute(self, rows: IntArray) -> IntArray:
        """Compute all segments that have their parameters; returns rows with gradients to send."""
        sending: list[IntArray] = []
        while len(rows):
            plans, segments = self._plan[rows], self._computed[rows]
            computes = self._needs[plans, segments] <= self._arrived[rows]
            sending.append(self._segment(rows[computes]))
            waiting = rows[~computes]
            usable_s = self._usable_s[waiting, self._arrived[waiting]]
            is_in = np.isfinite(usable_s)
            waiting = waiting[is_in]
            self._arrived[waiting] += 1
            self._arrived_s[waiting] = np.maximum(self._arrived_s[waiting], usable_s[is_in])
            computes[~computes] = is_in
            rows = rows[computes]
        sent = np.unique(np.concatenate(sending)) if sending else rows
        if len(sent):
            order = self._ready_s[sent].argsort(axis=1, kind="stable")
            self.message[sent] = order
            self.ready_s[sent] = np.take_along_axis(self._ready_s[sent], order, axis=1)
        return sent

    def _segment(self, rows: IntArray) -> IntArray:
        """Compute the next segment of these rows; returns those that send gradients at its end."""
        plans, segments = self._plan[rows], self._computed[rows]
        begin_s = np.maximum(self.free_s[rows], self._arrived_s[rows])
        end_s = begin_s + self._took_s[plans, segments] * self._slowness[rows]
        self.begins_s[rows, segments] = begin_s
        self.ends_s[rows, segments] = self.free_s[rows] = end_s
        self._computed[rows] += 1
        count, first = self._num_sends[plans, segments], self._first_send[plans, segments]
        for number in range(count.max(initial=0)):
            has = count > number
            message = first[has] + number
            self._ready_s[rows[has], message] = end_s[has] + self._copy_s[plans[has], message]
        return rows[count > 0]


def _padded(rows: Sequence[Sequence[float]], value: float) -> npt.NDArray[np.float64]:
    """Rows with a value at the end of each, at least one."""
    width = 1 + max(map(len, rows))
    return np.array([[*row, *[value] * (width - len(row))] for row in rows])
