"""Cost of a step of TensorFlow, read from its `RunMetadata`.

partition graphs (which op ran where, what is sent) + step statistics (shapes) -> Truth
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from scripts.studies.public_graphs.flops import RanOp, flops_of, is_update

__all__ = ["Truth", "measure"]

Shape = tuple[int, ...]
_WORKER = "CPU:0"
_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")
_MANY_ELEMENTS = 1000  # an op without a formula is reported if its output is larger


@dataclass(frozen=True, kw_only=True)
class Truth:
    """One step as it ran.

    Attributes:
        target: train op that was run.
        sent_bytes: from the worker to servers, once per tensor and destination.
        received_bytes: from servers to the worker.
        flops: of all devices.
        worker_flops: of the worker alone.
        by_op: FLOPs by op type.
        parameters: elements of the variables that updates change.
        nodes: nodes that ran.
        uncounted: executions of op types that no formula counts, of large outputs.
        crossing: tensors that cross, the largest first: (way, name, bytes).
    """

    target: str
    sent_bytes: int
    received_bytes: int
    flops: float
    worker_flops: float
    by_op: Mapping[str, float]
    parameters: int
    nodes: int
    uncounted: Mapping[str, int]
    crossing: Sequence[tuple[str, str, int]]


class _Run:
    """Shapes of all tensors of a step, by node and turn."""

    def __init__(self, data: Any) -> None:
        self.shapes: defaultdict[str, list[dict[int, Shape]]] = defaultdict(list)
        for device in data.step_stats.dev_stats:
            for stats in device.node_stats:
                self.shapes[stats.node_name].append(
                    {
                        out.slot: tuple(d.size for d in out.tensor_description.shape.dim)
                        for out in stats.output
                    }
                )
        self.nodes = {n.name: n for partition in data.partition_graphs for n in partition.node}
        self._sources = {
            node.attr["tensor_name"].s: node.input[0]
            for node in self.nodes.values()
            if node.op in _SENDS
        }

    def shape_of(self, entry: str, turn: int) -> Shape | None:
        """Shape of a tensor in a turn of its loop; a received tensor has that of the sent one."""
        name, _, slot = entry.partition(":")
        node = self.nodes[name]
        if node.op in _RECEIVES and node.attr["tensor_name"].s in self._sources:
            name, _, slot = self._sources[node.attr["tensor_name"].s].partition(":")
            node = self.nodes[name]
        turns = self.shapes.get(name)
        if turns:
            return turns[min(turn, len(turns) - 1)].get(int(slot or 0))
        if node.op == "Const":
            return tuple(d.size for d in node.attr["value"].tensor.tensor_shape.dim)
        return None


def measure(data: Any, target: str, parameters: int) -> Truth:
    """Sums over all nodes that ran.

    Args:
        data: RunMetadata with full trace and partition graphs.
        target: train op that was run.
        parameters: elements of the variables that it updates.
    """
    run = _Run(data)
    flops: defaultdict[str, float] = defaultdict(float)
    uncounted: Counter[str] = Counter()
    crossing: list[tuple[str, str, int]] = []
    worker_flops = 0.0
    num_nodes = 0
    for node in run.nodes.values():
        if node.op in _SENDS:
            crossing += _crossing(node, run)
            continue
        turns = run.shapes.get(node.name, [])
        num_nodes += bool(turns)
        given = [entry for entry in node.input if not entry.startswith("^")]
        for turn, outputs in enumerate(turns):
            if not outputs and not is_update(node.op):
                continue
            op = RanOp(
                node=node,
                inputs=[run.shape_of(entry, turn) for entry in given],
                outputs=[outputs.get(i) for i in range(max(outputs, default=-1) + 1)],
            )
            count, how = flops_of(op)
            flops[op.op_type] += count
            worker_flops += count if node.device.endswith(_WORKER) else 0
            if how == "none" and op.outputs and prod(op.outputs[0] or ()) > _MANY_ELEMENTS:
                uncounted[node.op] += 1
    crossing.sort(key=lambda item: -item[2])
    return Truth(
        target=target,
        sent_bytes=sum(size for way, _, size in crossing if way == "sent"),
        received_bytes=sum(size for way, _, size in crossing if way == "received"),
        flops=sum(flops.values()),
        worker_flops=worker_flops,
        by_op=dict(sorted(flops.items(), key=lambda pair: -pair[1])),
        parameters=parameters,
        nodes=num_nodes,
        uncounted=dict(uncounted.most_common()),
        crossing=tuple(crossing),
    )


def _crossing(node: Any, run: _Run) -> list[tuple[str, str, int]]:
    """Transfers of a node between the worker and a server: way, tensor, bytes."""
    import tensorflow as tf

    here, there = (node.attr[f"{end}_device"].s.decode() for end in ("send", "recv"))
    if here == there or node.attr["client_terminated"].b:
        return []
    size = tf.dtypes.as_dtype(node.attr["T"].type).size
    way = "sent" if here.endswith(_WORKER) else "received" if there.endswith(_WORKER) else "servers"
    transfers = []
    for turn in range(max(len(run.shapes.get(node.name, [])), 1)):
        shape = run.shape_of(node.input[0], turn)
        if shape is None:  # a branch that was not taken sends a mark without a tensor
            continue
        transfers.append((way, node.input[0], prod(shape) * size))
    return transfers
