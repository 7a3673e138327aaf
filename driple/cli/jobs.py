"""A job from what a user gives: a graph file, a workload of the zoo, or a PyTorch model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_torch
from driple.cli.source import Reading, read_source, reading_of, refuse_file_flags
from driple.errors import ConfigError
from driple.graph.options import GRAPH_FORMATS

if TYPE_CHECKING:
    from driple.cli.graphoptions import GraphOptions
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["JOB_HELP", "DatasetOption", "GivenJob", "LossOption", "job_of"]

JOB_HELP = (
    f"graph file ({GRAPH_FORMATS}); workload such as resnet50/imagenet/b32/sgd/sync; built-in "
    "PyTorch model such as mobilenet_v2; or FILE.py:FUNCTION that builds your own, with --dataset: "
    "the file and these functions are executed"
)
DatasetOption = Annotated[
    str | None, typer.Option(help="FILE.py:FUNCTION that builds your model's data set")
]
LossOption = Annotated[
    str | None,
    typer.Option(help="FILE.py:FUNCTION of your model's outputs and labels; cross entropy without"),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenJob:
    """What a user gave.

    Attributes:
        job: ready for simulating.
        reading: its graph, and what the reader says of it.
        batch_size: samples of a device in an iteration; None of a graph file that does not tell.
        samples: of an epoch of its own data set, or of the paper's; None where neither is known.
    """

    job: PreparedJob
    reading: Reading
    batch_size: int | None
    samples: int | None = None


def job_of(
    text: str,
    options: GraphOptions,
    *,
    dataset: str | None = None,
    loss: str | None = None,
) -> GivenJob:
    """A job from a graph file, a workload of the zoo, or a PyTorch model, built in or the user's.

    Args:
        text: which.
        options: what the user adds to it; a PyTorch model's graph is made with its batch size.
        dataset: function that builds the data set of the user's model.
        loss: function of its outputs and labels.

    Raises:
        ConfigError: none of these, or options that make no sense for it.
        GraphError: the file cannot be read, or holds no training step.
        MissingExtraError: TensorFlow or PyTorch is needed, and not installed.
    """
    from driple.cluster.setting import Setting
    from driple.simulate.prepared_job import PreparedJob

    batch_size = options.read.batch_size
    is_own = ":" in text and not Path(text).exists()
    refuse_own_flags(text, {"--dataset": dataset, "--loss": loss}, is_own=is_own)
    if is_own:
        if dataset is None or batch_size is None:
            raise ConfigError(
                f"a model of your own, '{text}', needs --dataset FILE.py:FUNCTION and --batch-size"
            )
        refuse_file_flags(text, options)
        require_torch("a PyTorch model's graph")
        from driple.jobs.pytorch.step_graph import graph_of_functions

        graph, samples = graph_of_functions(text, dataset, loss, batch_size)
        return GivenJob(
            job=PreparedJob(graph),
            reading=reading_of(graph),
            batch_size=batch_size,
            samples=samples,
        )
    if not Path(text).exists() and "/" not in text and not Path(text).suffix:
        from driple.jobs.pytorch.workloads import pytorch_workload_named

        model = pytorch_workload_named(text)
        refuse_file_flags(text, options)
        require_torch("a PyTorch model's graph")
        from driple.jobs.pytorch.step_graph import graph_of_workload

        samples = model.batch_size if batch_size is None else batch_size
        graph = graph_of_workload(model, samples)
        return GivenJob(
            job=PreparedJob(graph),
            reading=reading_of(graph),
            batch_size=samples,
            samples=model.samples,
        )
    reading = read_source(text, Setting.parse("V100-P1w2"), options)
    own = None if Path(text).exists() else _batch_size_of(text)
    samples = batch_size or own
    if samples is not None:  # where towers share the samples, one of them was kept
        samples = max(1, round(samples * reading.graph.report.samples_share))
    return GivenJob(job=PreparedJob(reading.graph), reading=reading, batch_size=samples)


def refuse_own_flags(text: str, flags: Mapping[str, str | None], *, is_own: bool) -> None:
    """Raise ConfigError if options were given that only a model of the user's own needs."""
    given = [flag for flag, value in flags.items() if value is not None]
    if given and not is_own:
        raise ConfigError(
            f"{' and '.join(given)}: for a model of your own (FILE.py:FUNCTION), and '{text}' is "
            "none; leave them out"
        )


def _batch_size_of(name: str) -> int:
    """The batch size of a workload of the zoo."""
    from driple.jobs import Workload

    return Workload.parse(name).batch_size
