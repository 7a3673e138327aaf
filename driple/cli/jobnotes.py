"""What the reader says of a job, printed before any number that comes from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.cli.show import note, note_unknown_costs

if TYPE_CHECKING:
    from driple.jobs.load import Job

__all__ = ["show_job"]


def show_job(job: Job, *, json: bool) -> None:
    """What is unknown goes to stdout, or to stderr if stdout is for JSON; the rest to stderr."""
    report = job.graph.report
    for doubt in report.doubts:
        if json:
            note(doubt)
        else:
            print(doubt)
    for remark in report.notes[len(report.doubts) :]:
        note(remark)
    note_unknown_costs(job.op_types_without_cost, job.cost.without_formula)
