"""The one way from what a user names to a graph: a file, or a workload of the zoo, which is built.

name, GraphOptions --read_source--> Reading --show--> messages, before any result
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.extras import require_tensorflow
from driple.cli.show import note, note_unknown_costs
from driple.codec import Json
from driple.errors import ConfigError, GraphError
from driple.graph.options import GRAPH_FORMATS, GRAPH_SUFFIXES

if TYPE_CHECKING:
    from driple.cli.graphoptions import GraphOptions
    from driple.cluster.setting import Setting
    from driple.cluster.topology import Topology
    from driple.estimation.stated_error import StatedError
    from driple.graph.cost import GraphCost
    from driple.graph.opgraph import OpGraph
    from driple.simulate.prepared_job import PreparedJob

__all__ = [
    "SOURCE_HELP",
    "Reading",
    "read_file",
    "read_source",
    "reading_of",
    "refuse_file_flags",
]

SOURCE_HELP = (
    f"graph file ({GRAPH_FORMATS}), a SavedModel's folder, or a workload such as "
    "resnet20/cifar10/b32/sgd/sync"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A graph, and what must be known about it before any number that comes from it.

    Attributes:
        graph: of one worker's step.
        cost: of its ops, which all that comes from the graph shares.
    """

    graph: OpGraph
    cost: GraphCost

    @property
    def op_types_without_cost(self) -> Mapping[str, int]:
        """How many nodes of each op type have no formula."""
        return self.cost.unknown

    def job(self) -> PreparedJob:
        """The training job of the graph."""
        from driple.simulate.prepared_job import PreparedJob

        return PreparedJob(self.graph, cost=self.cost)

    @property
    def has_unknown(self) -> bool:
        """Whether sizes or turns of loops are unknown: then no price, advice or error is stated."""
        return self.graph.report.has_unknown

    @property
    def unknown_words(self) -> str:
        """What is unknown; empty if nothing is."""
        return self.graph.report.unknown_words

    @property
    def options_that_set(self) -> str:
        """The options with which a user says what is unknown."""
        report = self.graph.report
        is_open = any("--input" in doubt for doubt in report.doubts)
        sizes = ["--input NAME=SHAPE"] if is_open else []
        return " and ".join([*sizes, *(["--loop-turns N"] if report.unknown_turns else [])])

    def stated_error(self, setting: Setting, scene: Topology | None = None) -> StatedError:
        """Error of a simulated answer on a setting; not known with unknown sizes or turns.

        Args:
            setting: the cluster.
            scene: its machines, where they are known already.
        """
        from driple.estimation.stated_error import StatedError, stated_error

        if self.has_unknown:
            return StatedError(runs=self.unknown_words)
        return stated_error(setting, self.graph, cost=self.cost, scene=scene)

    def show(self, *, json: bool) -> None:
        """What is unknown first, on stdout unless that is for JSON; the rest on stderr."""
        report = self.graph.report
        for doubt in report.doubts:
            if json:
                note(doubt)
            else:
                print(doubt)
        for remark in report.notes[len(report.doubts) :]:
            note(remark)
        note_unknown_costs(self.op_types_without_cost)

    def to_json_dict(self) -> dict[str, Json]:
        """What the JSON of every command with a graph holds."""
        report = self.graph.report
        return {
            "unknown_dimensions": report.unknown_dimensions,
            "unknown_share": report.unknown_share,
            "unknown_turns": list(report.unknown_turns),
            "notes": list(report.notes),
            "op_types_without_cost": dict(self.op_types_without_cost),
        }


def reading_of(graph: OpGraph) -> Reading:
    """A graph with its costs looked over.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    from driple.graph.cost import cost_of_graph

    return Reading(graph=graph, cost=cost_of_graph(graph))


def read_file(path: Path, options: GraphOptions, *, training: bool = True) -> Reading:
    """The graph of a file.

    Args:
        path: a graph file.
        options: what the user adds to it.
        training: whether a graph without a training step is refused.

    Raises:
        GraphError: the file cannot be read, or holds no training step.
    """
    from driple.graph import read_graph, require_training

    graph = read_graph(path, max_bytes=options.max_bytes, options=options.read)
    if training:
        try:
            require_training(graph)
        except GraphError as error:
            raise GraphError(f"{path}: {error}") from error
    return reading_of(graph)


def read_source(source: str, setting: Setting, options: GraphOptions) -> Reading:
    """The graph of a training job: of a file, or of a workload, which is built.

    Raises:
        ConfigError: neither a file nor a workload, or options that the workload has not.
        GraphError: the file cannot be read, or holds no training step.
        MissingExtraError: a workload, and TensorFlow is not installed.
    """
    from driple.graph import graph_from_graphdef_bytes
    from driple.jobs.names import workload_named

    if Path(source).exists():
        return read_file(Path(source), options)
    if Path(source).suffix in (*GRAPH_SUFFIXES, ".gz"):
        raise GraphError(f"there is no graph file {source}; give one, or a workload of the zoo")
    try:
        job = workload_named(source)
    except ConfigError as error:
        raise ConfigError(f"'{source}' is no file, and as a workload: {error}") from error
    if options.read.batch_size not in (None, job.batch_size):
        raise ConfigError(
            f"{source} has batches of {job.batch_size}, got --batch-size "
            f"{options.read.batch_size}; give the workload with that batch size in its name"
        )
    refuse_file_flags(source, options)
    require_tensorflow("building a workload's graph")
    from driple.jobs.tensorflow.graphmode import begin_graph_mode

    begin_graph_mode()
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of

    step = build_training_step(job, ClusterShape.of(setting), task=0)
    return reading_of(graph_from_graphdef_bytes(graphdef_of(step)))


def refuse_file_flags(source: str, options: GraphOptions) -> None:
    """Raise ConfigError if options were given that only a graph file needs."""
    if options.file_flags:
        raise ConfigError(
            f"{' and '.join(options.file_flags)}: these are for graph files, and {source} is none; "
            "leave them out"
        )
