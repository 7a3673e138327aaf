"""A job for `driple stalls predict`, whose options are not those of `@job_options` yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import DataFunctionOption as DatasetOption
from driple.cli.joboptions import LossFunctionOption as LossOption
from driple.jobs.load import JOB_HELP, Job, JobOptions, load_job

if TYPE_CHECKING:
    from driple.codec import Json
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["JOB_HELP", "DatasetOption", "GivenJob", "LossOption", "job_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """What the reader says of a job."""

    job: Job

    def show(self, *, json: bool) -> None:
        """Print it."""
        show_job(self.job, json=json)

    def to_json_dict(self) -> dict[str, Json]:
        """The facts of every JSON about a job."""
        from driple.api.results import job_facts

        return {"job": job_facts(self.job)}


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenJob:
    """A job, ready for simulating.

    Attributes:
        job: of the simulator.
        reading: what the reader says of it.
    """

    job: PreparedJob
    reading: _Reading


def job_of(
    text: str,
    options: JobOptions,
    *,
    dataset: str | None = None,
    loss: str | None = None,
) -> GivenJob:
    """The job that a user named; see `driple.jobs.load.load_job`."""
    from driple.simulate.prepared_job import PreparedJob

    job = load_job(text, replace(options, data_function=dataset, loss_function=loss))
    return GivenJob(job=PreparedJob(job.graph, cost=job.cost), reading=_Reading(job=job))
