"""Trainings as schedulers get them: of a plan for a small GPT-2 and written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from driple.api.planning import PlanResult, plan
from driple.catalog import shipped_catalog
from driple.cluster.cluster import Host
from driple.jobs.load import JobOptions
from driple.planning.ranking import Choice
from driple.remarks import Remark
from driple.render.emit.scheduled_job import ScheduledJob
from tests.planning.gpt import write_gpt

__all__ = ["gpt_plan", "training", "two_machines"]


def gpt_plan(folder: Path) -> PlanResult:
    """Two epochs of a billion tokens on p4d and g5 instances."""
    return plan(
        write_gpt(folder),
        options=JobOptions(seq_len=64, batch_size=8, precision="amp-bf16"),
        tokens=1e9,
        epochs=2,
        instances=["p4d", "g5.xlarge"],
        machines=[1, 2],
        schemes=["ddp"],
    )


def two_machines(result: PlanResult) -> PlanResult:
    """The same, with the offer of two machines of eight devices recommended."""
    best = next(offer for offer in result.offers if offer.name == "2xp4d.24xlarge")
    return replace(result, choice=Choice(best=best, why=Remark.of_text("take it")))


def training(**changes: object) -> ScheduledJob:
    """90 minutes, 60 to 200 by its interval, on two p4d.24xlarge."""
    job = ScheduledJob(
        name="driple-gpt2",
        facts=("Training of gpt2 on 2xp4d.24xlarge, planned by Driple.",),
        num_machines=2,
        num_devices=8,
        device="A100",
        training_s=5400.0,
        lower_s=3600.0,
        limit_s=11_999.0,
        host=Host(num_cpus=96, memory_bytes=1152e9),
        instance=shipped_catalog().instances["p4d.24xlarge"],
    )
    return replace(job, **changes)  # type: ignore[arg-type]  # names of its fields
