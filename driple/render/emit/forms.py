"""Names of `--emit`, and what each prints.

ScheduledJob, ... --> text of one file on stdout
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from driple.checks import check_choice
from driple.render.emit.kai import kai_job
from driple.render.emit.kubernetes import kubernetes_job
from driple.render.emit.kueue import kueue_job
from driple.render.emit.scheduled_job import ScheduledJob
from driple.render.emit.skypilot import skypilot_estimator, skypilot_task
from driple.render.emit.slurm import answer_line, batch_script

__all__ = ["EMIT_HELP", "ESTIMATOR", "FORMS", "PERFETTO", "check_form", "emitted"]

ESTIMATOR = "skypilot-estimator"
_OF_ONE_JOB: Mapping[str, Callable[[ScheduledJob], str]] = MappingProxyType(
    {
        "slurm": batch_script,
        "slurm-answer": answer_line,
        "kubernetes": kubernetes_job,
        "kueue": kueue_job,
        "kai": kai_job,
        "skypilot": skypilot_task,
    }
)
FORMS = (*_OF_ONE_JOB, ESTIMATOR)
PERFETTO = "perfetto"
EMIT_HELP = (
    f"print a job file for a scheduler in place of the answer: {', '.join(FORMS)}; of predict also "
    f"{PERFETTO}, a step for ui.perfetto.dev"
)


def check_form(form: str, *, timeline: bool = False) -> None:
    """Refuse a name that is none, before any work.

    Args:
        form: the name.
        timeline: whether the step can be shown, too.

    Raises:
        ConfigError: which names there are.
    """
    check_choice("--emit", form, (*FORMS, PERFETTO) if timeline else FORMS)


def emitted(jobs: Sequence[ScheduledJob], form: str) -> str:
    """The file of the first job; an estimator is of all.

    Args:
        jobs: the recommended one first.
        form: a name of `FORMS`.

    Raises:
        ConfigError: no such form.
    """
    check_form(form)
    return skypilot_estimator(jobs) if form == ESTIMATOR else _OF_ONE_JOB[form](jobs[0])
