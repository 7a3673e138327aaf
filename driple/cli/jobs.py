"""A job from what a user gives: a graph file, a workload of the zoo, or a PyTorch model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.extras import require_torch
from driple.cli.source import read_source
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.simulate.job import Job

__all__ = ["JOB_HELP", "GivenJob", "job_of"]

JOB_HELP = (
    "graph file, workload such as resnet50/imagenet/b32/sgd/sync, or PyTorch model such as "
    "mobilenet_v2"
)
_MAX_MIB = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenJob:
    """What a user gave.

    Attributes:
        job: ready for simulating.
        batch_size: samples of a device in an iteration; None of a graph file, which does not tell.
        samples: of an epoch of the data that the paper trains it on; None where it does not.
    """

    job: Job
    batch_size: int | None
    samples: int | None = None


def job_of(text: str, batch_size: int | None = None) -> GivenJob:
    """A job from a graph file, a workload of the zoo, or a model of `driple.stalls.workloads`.

    Args:
        text: which.
        batch_size: of a device; a model's graph is made with it, all others have theirs.

    Raises:
        ConfigError: none of these, or a batch size that is not the workload's own.
        GraphError: the file cannot be read.
        MissingExtraError: TensorFlow or PyTorch is needed, and not installed.
    """
    from driple.settings import Setting
    from driple.simulate.job import Job

    if not Path(text).exists() and "/" not in text and not Path(text).suffix:
        from driple.stalls.workloads import workload_named

        model = workload_named(text)
        require_torch("a PyTorch model's graph")
        from driple.stalls.traced import graph_of_workload

        size = batch_size or model.batch_size
        return GivenJob(
            job=Job(graph_of_workload(model, size)), batch_size=size, samples=model.samples
        )
    job = Job(read_source(text, Setting.parse("V100-P1w2"), max_mib=_MAX_MIB))
    if Path(text).exists():
        return GivenJob(job=job, batch_size=batch_size)
    from driple.zoo import Workload

    own = Workload.parse(text).batch_size
    if batch_size not in (None, own):
        raise ConfigError(
            f"{text} has batches of {own}, got --batch-size {batch_size}; give the workload with "
            "that batch size in its name"
        )
    return GivenJob(job=job, batch_size=own)
