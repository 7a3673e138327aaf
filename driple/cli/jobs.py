"""A job from what a user gives: a graph file, or the name of a workload of the zoo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.extras import require_tensorflow

if TYPE_CHECKING:
    from driple.simulate.job import Job

__all__ = ["job_of"]


def job_of(text: str) -> tuple[Job, int | None]:
    """A job from a graph file, or from a workload of the zoo with its batch size."""
    from driple.graph import read_graph
    from driple.simulate.job import Job

    if Path(text).exists() or text.count("/") < 2:
        return Job(read_graph(Path(text))), None
    import tempfile

    from driple.settings import Setting
    from driple.zoo import Workload

    workload = Workload.parse(text)
    require_tensorflow("building a graph")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from driple.zoo.training import ClusterShape, build_training_step, use_graph_mode, write_graph

    use_graph_mode()
    step = build_training_step(workload, ClusterShape.of(Setting.parse("V100-P1w2")), task=0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.pb"
        write_graph(step, file)
        return Job(read_graph(file)), workload.batch_size
