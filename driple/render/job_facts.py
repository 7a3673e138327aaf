"""What is trained and how, in one line, before any number that depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.jobs.options import JOB_OPTIONS
from driple.units import counted

if TYPE_CHECKING:
    from driple.jobs.job import Job

__all__ = ["facts_words"]


def facts_words(job: Job, samples: str = "") -> str:
    """The facts of a job: `32 samples per device, input 3x224x224, fp32, momentum`.

    Args:
        job: which.
        samples: other words for the samples, such as those of several batch sizes.
    """
    facts = [samples or _samples(job.batch_size)]
    if job.input_shape is not None:
        facts.append(f"input {'x'.join(map(str, job.input_shape)) or 'scalar'}")
    if job.seq_len is not None:
        facts.append(f"{counted(job.seq_len, 'token')} per sample")
    facts.append(job.precision or "unknown precision")
    facts.append(
        (job.optimizer or "unknown optimizer")
        if job.trains
        else "a forward pass in eval mode, without gradients"
    )
    spoken = (row.words(job.stated(row.name)) for row in JOB_OPTIONS if row.words is not None)
    return ", ".join([*facts, *(words for words in spoken if words)])


def _samples(batch_size: int | None) -> str:
    if batch_size is None:
        return "the batch that the graph has"
    return f"{counted(batch_size, 'sample')} per device"
