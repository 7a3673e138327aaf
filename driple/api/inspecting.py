"""`inspect`: what does Driple see of a job: ops, FLOPs, bytes, parameters, unknowns.

JOB -> load_job -> InspectResult
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from driple.api.results import Cell, Result, job_facts
from driple.codec import Json, to_dict
from driple.jobs.load import Job, JobOptions, JobSource, load_job

__all__ = ["InspectResult", "inspect"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectResult(Result):
    """A job, read.

    Attributes:
        job: the job with its graph and the costs of its ops.
        counts: nodes of each op type, the most frequent first.
        flops: FLOPs of a step by op type.
        moved_bytes: bytes read and written in a step by op type.
    """

    job: Job
    counts: dict[str, int]
    flops: dict[str, float]
    moved_bytes: dict[str, float]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple inspect --json` prints."""
        from driple.memory.least import least_memory

        graph, cost = self.job.graph, self.job.cost
        report = graph.report
        least = to_dict(least_memory(graph)) if graph.is_training else None
        return {
            "question": "inspect",
            "job": job_facts(self.job),
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "nodes_in_file": report.nodes_in_file,
            "nodes_inlined": report.nodes_inlined,
            "nodes_without_shape": report.nodes_without_shape,
            "dangling_inputs": report.dangling_inputs,
            "tensor_bytes": int(graph.tensor_bytes.sum()),
            "flops": cost.total_flops,
            "memory_bytes": cost.total_bytes,
            "least_device_memory": least,
            "loops_of_unknown_length": report.loops_of_unknown_length,
            "layout": graph.layout,
            "is_training": graph.is_training,
            "train_ops": list(report.train_ops),
            "target": report.target,
            "left_out": dict(report.left_out),
            "sent_bytes": graph.placed_bytes[0],
            "received_bytes": graph.placed_bytes[1],
            "sent_bytes_with_servers": graph.sent_bytes,
            "received_bytes_with_servers": graph.received_bytes,
            "op_types": dict(self.counts),
            "remote_op_types": {item.op_type: item.num_nodes for item in graph.remote},
        }

    def rows(self) -> list[dict[str, Cell]]:
        """One row per op type."""
        return [
            {
                "op_type": name,
                "nodes": count,
                "flops": self.flops[name],
                "memory_bytes": self.moved_bytes[name],
            }
            for name, count in self.counts.items()
        ]


def inspect(job: JobSource, *, options: JobOptions | None = None) -> InspectResult:
    """Read a job and add up its costs by op type; a graph without a training step is read too.

    Args:
        job: JOB as on the command line, a graph or a `Job`.
        options: batch size, shapes of inputs and the like.

    Raises:
        ConfigError: no such job.
        GraphError: a job that cannot be read.
        MissingExtraError: TensorFlow or PyTorch is needed and not installed.
    """
    loaded = load_job(job, options, training=False)
    graph, cost = loaded.graph, loaded.cost
    flops: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    times = cost.executions
    for name, one, other in zip(
        graph.op_types,
        (cost.flops * times).tolist(),
        ((cost.bytes_read + cost.bytes_written) * times).tolist(),
        strict=True,
    ):
        flops[name] += one
        moved[name] += other
    return InspectResult(
        job=loaded,
        counts=dict(graph.op_type_counts().most_common()),
        flops=dict(flops),
        moved_bytes=dict(moved),
    )
