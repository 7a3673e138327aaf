"""A job from what a user gives: a graph file, a workload of the zoo, or a PyTorch model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.checks import check_whole
from driple.cli.extras import require_torch
from driple.cli.source import read_source
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.simulate.job import Job

__all__ = ["JOB_HELP", "DatasetOption", "GivenJob", "LossOption", "job_of"]

JOB_HELP = (
    "graph file; workload such as resnet50/imagenet/b32/sgd/sync; built-in PyTorch model such as "
    "mobilenet_v2; or FILE.py:FUNCTION that builds your own, with --dataset: the file and these "
    "functions are executed"
)
DatasetOption = Annotated[
    str | None, typer.Option(help="FILE.py:FUNCTION that builds your model's data set")
]
LossOption = Annotated[
    str | None,
    typer.Option(help="FILE.py:FUNCTION of your model's outputs and labels; cross entropy without"),
]
_MAX_MIB = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenJob:
    """What a user gave.

    Attributes:
        job: ready for simulating.
        batch_size: samples of a device in an iteration; None of a graph file, which does not tell.
        samples: of an epoch of its own data set, or of the paper's; None where neither is known.
    """

    job: Job
    batch_size: int | None
    samples: int | None = None


def job_of(
    text: str,
    batch_size: int | None = None,
    *,
    dataset: str | None = None,
    loss: str | None = None,
) -> GivenJob:
    """A job from a graph file, a workload of the zoo, or a PyTorch model, built in or the user's.

    Args:
        text: which.
        batch_size: of a device; a PyTorch model's graph is made with it, all others have theirs.
        dataset: function that builds the data set of the user's model.
        loss: function of its outputs and labels.

    Raises:
        ConfigError: none of these, a batch size below 1, or one that is not the workload's own.
        GraphError: the file cannot be read.
        MissingExtraError: TensorFlow or PyTorch is needed, and not installed.
    """
    from driple.settings import Setting
    from driple.simulate.job import Job

    if batch_size is not None:
        check_whole("--batch-size", batch_size, 1)
    if dataset is not None or (":" in text and not Path(text).exists()):
        if dataset is None or batch_size is None:
            raise ConfigError(
                f"a model of your own, '{text}', needs --dataset FILE.py:FUNCTION and --batch-size"
            )
        require_torch("a PyTorch model's graph")
        from driple.stalls.traced import graph_of_functions

        graph, samples = graph_of_functions(text, dataset, loss, batch_size)
        return GivenJob(job=Job(graph), batch_size=batch_size, samples=samples)
    if not Path(text).exists() and "/" not in text and not Path(text).suffix:
        from driple.stalls.workloads import workload_named

        model = workload_named(text)
        require_torch("a PyTorch model's graph")
        from driple.stalls.traced import graph_of_workload

        size = model.batch_size if batch_size is None else batch_size
        return GivenJob(
            job=Job(graph_of_workload(model, size)), batch_size=size, samples=model.samples
        )
    own = None if Path(text).exists() else _batch_size_of(text)
    if None not in (own, batch_size) and own != batch_size:
        raise ConfigError(
            f"{text} has batches of {own}, got --batch-size {batch_size}; give the workload with "
            "that batch size in its name"
        )
    job = Job(read_source(text, Setting.parse("V100-P1w2"), max_mib=_MAX_MIB))
    return GivenJob(job=job, batch_size=batch_size or own)


def _batch_size_of(name: str) -> int | None:
    """The batch size of a workload of the zoo; None of what is none, which is refused later."""
    from driple.zoo import Workload

    try:
        return Workload.parse(name).batch_size
    except ConfigError:
        return None
