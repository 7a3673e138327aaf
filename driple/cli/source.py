"""A training job named on the command line: a graph file, or a workload of the zoo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.extras import require_tensorflow
from driple.cli.show import note
from driple.errors import ConfigError, GraphError

if TYPE_CHECKING:
    from driple.graph.opgraph import OpGraph
    from driple.settings import Setting

__all__ = ["SOURCE_HELP", "read_source", "warn_of_unknown"]

SOURCE_HELP = (
    "graph file (.pb, .pbtxt, also .gz), or a workload such as resnet20/cifar10/b32/sgd/sync"
)


def read_source(source: str, setting: Setting, *, max_mib: float) -> OpGraph:
    """The graph of a file, or of a workload, which is built (that needs TensorFlow).

    Raises:
        ConfigError: neither a file nor a workload.
        GraphError: the file cannot be read.
        MissingExtraError: a workload, and TensorFlow is not installed.
    """
    from driple.graph import graph_from_graphdef_bytes, read_graph
    from driple.zoo.names import workload_named

    if Path(source).exists():
        graph = read_graph(Path(source), max_bytes=int(max_mib * 2**20))
    else:
        if Path(source).suffix in (".pb", ".pbtxt", ".gz"):
            raise GraphError(f"there is no graph file {source}; give one, or a workload of the zoo")
        try:
            job = workload_named(source)
        except ConfigError as error:
            raise ConfigError(f"'{source}' is no file, and as a workload: {error}") from error
        require_tensorflow("building a workload's graph")
        from driple.zoo.graphmode import begin_graph_mode

        begin_graph_mode()
        from driple.zoo.training import ClusterShape, build_training_step, graphdef_of

        step = build_training_step(job, ClusterShape.of(setting), task=0)
        graph = graph_from_graphdef_bytes(graphdef_of(step))
    for remark in graph.report.notes:
        note(remark)
    return graph


def warn_of_unknown(unknown: dict[str, int], share: float) -> None:
    """Say which ops have no formula of FLOPs, and how much of the graph they are."""
    if not unknown:
        return
    most = sorted(unknown, key=lambda name: -unknown[name])[:5]
    note(
        f"FLOPs of {sum(unknown.values())} op(s) are unknown, with {100 * share:.1f} % of the "
        f"bytes that the graph moves: {', '.join(most)}; they count as 0 FLOPs"
    )
