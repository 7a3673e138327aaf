"""The one way from what a user typed to a training job.

    JOB, JobOptions --load_job--> Job

JOB is a graph file, a SavedModel's folder, a workload of the catalogue, a built-in PyTorch model,
or FILE.py:FUNCTION that builds a model of one's own; from Python also an `OpGraph`, or a `Job`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from driple.cluster.setting import Setting
from driple.errors import ConfigError, GraphError
from driple.extras import require_tensorflow, require_torch
from driple.graph import OpGraph, graph_from_graphdef_bytes, read_graph, require_training
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.options import GRAPH_FORMATS, GRAPH_SUFFIXES, ReadOptions

__all__ = ["JOB_HELP", "MAX_MIB", "Job", "JobKindName", "JobOptions", "JobSource", "load_job"]

JOB_HELP = (
    f"graph file ({GRAPH_FORMATS}); a SavedModel's folder; workload such as "
    "resnet50/imagenet/b32/sgd/sync; built-in PyTorch model such as mobilenet_v2; or "
    "FILE.py:FUNCTION that builds your own, with --data-function: the file is executed"
)
MAX_MIB = 512.0
_MIB_BYTES = 2**20
_USUAL_SETTING = "V100-P1w2/ho-PCIe"

JobKindName = Literal["file", "workload", "pytorch", "own_model", "graph"]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOptions:
    """What a user adds to a job.

    Attributes:
        read: batch size, shapes of inputs, train op and loop turns.
        max_bytes: largest graph file that is read.
        data_function: FILE.py:FUNCTION that builds the data set of the user's own model.
        loss_function: FILE.py:FUNCTION of the model's outputs and labels; cross entropy if None.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    max_bytes: int = int(MAX_MIB * _MIB_BYTES)
    data_function: str | None = None
    loss_function: str | None = None

    @property
    def file_flags(self) -> tuple[str, ...]:
        """The given flags that make sense for a graph file only."""
        given = {
            "--input": self.read.inputs,
            "--target": self.read.target,
            "--loop-turns": self.read.loop_turns,
        }
        return tuple(flag for flag, value in given.items() if value)

    @property
    def model_flags(self) -> tuple[str, ...]:
        """The given flags that make sense for FILE.py:FUNCTION only."""
        given = {"--data-function": self.data_function, "--loss-function": self.loss_function}
        return tuple(flag for flag, value in given.items() if value is not None)

    @property
    def flags(self) -> tuple[str, ...]:
        """All given flags except the size limit."""
        batch = ("--batch-size",) if self.read.batch_size else ()
        return (*batch, *self.file_flags, *self.model_flags)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A training job, ready for every question.

    Attributes:
        source: what the user typed.
        kind: what that is; `own_model` is FILE.py:FUNCTION, `graph` a graph given from Python.
        graph: of one worker's step.
        cost: FLOPs and bytes of its ops.
        batch_size: samples per device and iteration; None if a graph file does not state it.
        samples: samples of an epoch of its data set; None if unknown.
        assumptions: what was assumed about the job, one sentence each.
    """

    source: str
    kind: JobKindName
    graph: OpGraph
    cost: GraphCost
    batch_size: int | None = None
    samples: int | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Short name for titles: the file's name, or what the user typed."""
        return Path(self.source).name if self.kind == "file" else self.source

    @property
    def has_unknown(self) -> bool:
        """Whether sizes or loop turns are unknown: then no price, advice or error is stated."""
        return self.graph.report.has_unknown

    @property
    def unknown_words(self) -> str:
        """What is unknown; empty if nothing is."""
        return self.graph.report.unknown_words

    @property
    def options_that_set(self) -> str:
        """The options that set what is unknown."""
        report = self.graph.report
        is_open = any("--input" in doubt for doubt in report.doubts)
        sizes = ["--input NAME=SHAPE"] if is_open else []
        return " and ".join([*sizes, *(["--loop-turns N"] if report.unknown_turns else [])])

    @property
    def op_types_without_cost(self) -> Mapping[str, int]:
        """Number of nodes of each op type that has no formula."""
        return self.cost.unknown


JobSource = str | Path | OpGraph | Job


def load_job(
    source: JobSource,
    options: JobOptions | None = None,
    *,
    setting: Setting | None = None,
    training: bool = True,
) -> Job:
    """The job that a user named.

    Args:
        source: JOB of the command line, a graph, or a job, which is returned as it is.
        options: what the user adds to it.
        setting: cluster that a TensorFlow workload is built for; V100-P1w2 if None.
        training: whether a graph without a training step is refused.

    Raises:
        ConfigError: no such job, or options that make no sense for it.
        GraphError: the file cannot be read, or contains no training step.
        MissingExtraError: TensorFlow or PyTorch is needed and not installed.
    """
    options = JobOptions() if options is None else options
    if isinstance(source, Job):
        return source
    if isinstance(source, OpGraph):
        if training:
            require_training(source)
        return _job("graph", "graph", source, batch_size=options.read.batch_size)
    text = str(source)
    if ":" in text and not Path(text).exists():
        return _own_model(text, options)
    if options.model_flags:
        raise ConfigError(
            f"{' and '.join(options.model_flags)}: for a model of your own (FILE.py:FUNCTION), and "
            f"'{text}' is none; leave them out"
        )
    if Path(text).exists():
        return _file(Path(text), options, training=training)
    if "/" not in text and not Path(text).suffix:
        return _pytorch_workload(text, options)
    if Path(text).suffix in (*GRAPH_SUFFIXES, ".gz"):
        raise GraphError(f"there is no graph file {text}; give one, or a workload")
    return _tensorflow_workload(text, options, setting or Setting.parse(_USUAL_SETTING))


def _job(
    source: str,
    kind: JobKindName,
    graph: OpGraph,
    *,
    batch_size: int | None = None,
    samples: int | None = None,
    assumptions: tuple[str, ...] = (),
) -> Job:
    return Job(
        source=source,
        kind=kind,
        graph=graph,
        cost=cost_of_graph(graph),
        batch_size=batch_size,
        samples=samples,
        assumptions=assumptions,
    )


def _file(path: Path, options: JobOptions, *, training: bool) -> Job:
    graph = read_graph(path, max_bytes=options.max_bytes, options=options.read)
    if training:
        try:
            require_training(graph)
        except GraphError as error:
            raise GraphError(f"{path}: {error}") from error
    return _job(str(path), "file", graph, batch_size=_shared(options.read.batch_size, graph))


def _shared(batch_size: int | None, graph: OpGraph) -> int | None:
    """Batch size of the kept tower, where several towers share the samples of a step."""
    if batch_size is None:
        return None
    return max(1, round(batch_size * graph.report.samples_share))


def _own_model(text: str, options: JobOptions) -> Job:
    batch_size = options.read.batch_size
    if options.data_function is None or batch_size is None:
        raise ConfigError(
            f"a model of your own, '{text}', needs --data-function FILE.py:FUNCTION and "
            "--batch-size"
        )
    _refuse_file_flags(text, options)
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.step_graph import graph_of_functions

    graph, samples = graph_of_functions(
        text, options.data_function, options.loss_function, batch_size
    )
    return _job(text, "own_model", graph, batch_size=batch_size, samples=samples)


def _pytorch_workload(text: str, options: JobOptions) -> Job:
    from driple.jobs.pytorch.workloads import pytorch_workload_named

    model = pytorch_workload_named(text)
    _refuse_file_flags(text, options)
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.step_graph import graph_of_workload

    given = options.read.batch_size
    size = model.batch_size if given is None else given
    assumed = () if given else (f"batches of {size} samples per device, since --batch-size is not "
                                "given",)  # fmt: skip
    return _job(
        text,
        "pytorch",
        graph_of_workload(model, size),
        batch_size=size,
        samples=model.samples,
        assumptions=assumed,
    )


def _tensorflow_workload(text: str, options: JobOptions, setting: Setting) -> Job:
    from driple.jobs.names import workload_named

    try:
        workload = workload_named(text)
    except ConfigError as error:
        raise ConfigError(f"'{text}' is no file, and as a workload: {error}") from error
    if options.read.batch_size not in (None, workload.batch_size):
        raise ConfigError(
            f"{text} has batches of {workload.batch_size}, got --batch-size "
            f"{options.read.batch_size}; give the workload with that batch size in its name"
        )
    _refuse_file_flags(text, options)
    require_tensorflow("building a workload's graph")
    from driple.jobs.tensorflow.graphmode import begin_graph_mode

    begin_graph_mode()
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of

    step = build_training_step(workload, ClusterShape.of(setting), task=0)
    graph = graph_from_graphdef_bytes(graphdef_of(step))
    return _job(text, "workload", graph, batch_size=_shared(workload.batch_size, graph))


def _refuse_file_flags(source: str, options: JobOptions) -> None:
    """Raise ConfigError if options were given that only a graph file needs."""
    if options.file_flags:
        raise ConfigError(
            f"{' and '.join(options.file_flags)}: these are for graph files, and {source} is none; "
            "leave them out"
        )
