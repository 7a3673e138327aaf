"""What the reader says of a job, printed before any number that comes from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.jobs.training_config import undecided_remarks
from driple.render.job_facts import facts_words
from driple.render.remarks import sentences
from driple.render.show import note, note_unknown_costs, print_assumptions

if TYPE_CHECKING:
    from driple.jobs.load import Job

__all__ = ["show_doubts", "show_job"]


def show_doubts(job: Job, *, json: bool) -> None:
    """What is unknown of a job, before any number; on stderr if stdout is for JSON.

    The reader's other notes go to stderr.

    Args:
        job: which.
        json: whether stdout is for JSON.
    """
    report = job.graph.report
    for doubt in sentences(report.doubts):
        if json:
            note(doubt)
        else:
            print(doubt)
    for words in sentences(report.notes[len(report.doubts) :]):
        note(words)
    note_unknown_costs(job.op_types_without_cost, job.cost.without_formula)


def show_job(job: Job, *, json: bool, samples: str = "") -> None:
    """The same, then what is trained and assumed; only the doubts if stdout is for JSON.

    Args:
        job: which.
        json: whether stdout is for JSON.
        samples: of several batch sizes in words; those of the job if empty.
    """
    show_doubts(job, json=json)
    if not json:
        for words in sentences(undecided_remarks(job.undecided)):
            print(f"not read: {words}")
        print(f"job: {facts_words(job, samples)}")
        print_assumptions(job.assumptions)
