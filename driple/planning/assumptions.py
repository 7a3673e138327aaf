"""Assumptions behind a price: precision, optimizer, batch size and samples per epoch.

OpGraph, batch size, samples -> Assumptions
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.graph.cost import cost_of_graph
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.planning.amount import Amount
from driple.remarks import Remark

__all__ = ["Assumptions", "assumptions_of", "precision_of"]

_NAMES = {
    NUMBER_OF["DT_FLOAT"]: "float32", NUMBER_OF["DT_DOUBLE"]: "float64",
    NUMBER_OF["DT_HALF"]: "float16", NUMBER_OF["DT_BFLOAT16"]: "bfloat16",
}  # fmt: skip
_LEAST_SHARE = 0.005  # minimum fraction of the multiply-adds for a precision to be listed


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """Assumptions behind the price of a job.

    Attributes:
        precision: precision of convolutions and matrix products, with its share of their FLOPs if
            there are several.
        optimizer: name of the optimizer, such as `momentum`; empty if the graph has none.
        batch_size_per_device: samples per device and iteration.
        samples_per_epoch: samples of all devices together.
        samples_from: source of that number.
        epochs: how often they are trained on.
        global_batch: samples of all devices per update that every offer keeps; None if these
            follow from batch and devices.
        batches_differ: whether offers differ in their batch per device.
    """

    precision: str
    optimizer: str
    batch_size_per_device: int
    samples_per_epoch: int
    samples_from: Remark
    epochs: float = 1.0
    global_batch: int | None = None
    batches_differ: bool = False


def assumptions_of(
    graph: OpGraph,
    amount: Amount,
    *,
    batch_size: int,
    global_batch: int | None = None,
    batches_differ: bool = False,
) -> Assumptions:
    """The assumptions behind the price of training on this graph.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    return Assumptions(
        precision=precision_of(graph),
        optimizer=graph.update.optimizer,
        batch_size_per_device=batch_size,
        samples_per_epoch=amount.samples_per_epoch,
        samples_from=amount.source,
        epochs=amount.epochs,
        global_batch=global_batch,
        batches_differ=batches_differ,
    )


def precision_of(graph: OpGraph) -> str:
    """Data types of convolutions and matrix products, most used first.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    cost = cost_of_graph(graph)
    flops = (cost.flops * cost.executions).tolist()
    sums: dict[str, float] = {}
    for number, op_flops in zip(graph.signature_of.tolist(), flops, strict=True):
        op = graph.signatures[number]
        if family_of(op.kind) in PRODUCT_FAMILIES and op.outputs:
            name = _NAMES.get(op.outputs[0].dtype, "unknown precision")
            sums[name] = sums.get(name, 0.0) + op_flops
    total = sum(sums.values())
    named = sorted(sums, key=lambda name: -sums[name])
    shares = {name: sums[name] / total for name in named if total}
    large = [name for name, share in shares.items() if share >= _LEAST_SHARE]
    if len(large) < 2:
        return large[0] if large else "unknown precision"
    return ", ".join(f"{name} ({shares[name]:.0%})" for name in large)
