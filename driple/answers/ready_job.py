"""A job ready to be asked about on many places: what does not depend on the place is found once.

Job -> ReadyJob: PreparedJob, JobKind, step of one device alone
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from driple.analytic.closed_forms import Work, work_of
from driple.answers.job_kind import JobKind, job_kind
from driple.answers.step_parts import Alone
from driple.jobs.job import Job
from driple.simulate.prepared_job import PreparedJob

__all__ = ["ReadyJob"]

_READY: WeakKeyDictionary[Job, ReadyJob] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ReadyJob:
    """A job, prepared for the methods; the same job is prepared once.

    Attributes:
        job: training, or a forward pass.
        alone: steps of one device by itself that `step_parts.alone_of` has worked out, by device
            and calibration.
        enough: what `network_speed.enough_bytes_per_s` has found, by all but the rate of the link.
    """

    job: Job
    alone: dict[tuple[str, int], Alone] = field(default_factory=dict)
    enough: dict[Hashable, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> ReadyJob:
        """The job's, which is kept as long as the job is: a later question starts from it."""
        kept = _READY.get(job)
        if kept is None:
            kept = _READY[job] = cls(replace(job))  # a copy, as a kept value must not hold its key
        return kept

    @cached_property
    def prepared(self) -> PreparedJob:
        """The job as the simulator and the closed forms take it.

        Raises:
            GraphError: the graph does not tell what its ops compute on.
        """
        return PreparedJob.of_job(self.job)

    @cached_property
    def work(self) -> Work:
        """What the closed forms count in the job.

        Raises:
            GraphError: the job sends no gradients.
        """
        return work_of(self.prepared)

    @cached_property
    def kind(self) -> JobKind:
        """What decides which published runs are like it.

        Raises:
            GraphError: the graph holds no shapes of its ops' inputs.
        """
        return job_kind(self.job.graph, self.job.cost)
