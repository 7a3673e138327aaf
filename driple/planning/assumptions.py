"""What a price rests on: precision, optimizer, batch size and samples of an epoch.

OpGraph, batch size, samples -> Assumptions
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.codec import Json, to_dict
from driple.graph.cost import cost_of_graph
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of

__all__ = ["Assumptions", "assumptions_of", "precision_of"]

_NAMES = {
    NUMBER_OF["DT_FLOAT"]: "float32", NUMBER_OF["DT_DOUBLE"]: "float64",
    NUMBER_OF["DT_HALF"]: "float16", NUMBER_OF["DT_BFLOAT16"]: "bfloat16",
}  # fmt: skip
_LEAST_SHARE = 0.005  # of the multiply-adds, for a precision to be named


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """What was priced.

    Attributes:
        precision: of convolutions and matrix products, with its share of their FLOPs if there are
            several.
        optimizer: optimizer of its update, such as `momentum`; empty if the graph shows none.
        batch_size_per_device: samples of a device in an iteration.
        samples_per_epoch: of all devices together.
        samples_from: where that number comes from.
    """

    precision: str
    optimizer: str
    batch_size_per_device: int
    samples_per_epoch: int
    samples_from: str

    def sentence(self) -> str:
        """For a user."""
        optimizer = self.optimizer or "unknown"
        return (
            f"assumed: products in {self.precision}; optimizer {optimizer}; batches of "
            f"{self.batch_size_per_device} samples per device; {self.samples_per_epoch:,} samples "
            f"per epoch ({self.samples_from})"
        )

    def to_json_dict(self) -> dict[str, Json]:
        """As `--json` prints it."""
        return to_dict(self)


def assumptions_of(
    graph: OpGraph, *, batch_size: int, samples: int, samples_from: str
) -> Assumptions:
    """What the price of an epoch of this graph rests on.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    return Assumptions(
        precision=precision_of(graph),
        optimizer=graph.update.optimizer,
        batch_size_per_device=batch_size,
        samples_per_epoch=samples,
        samples_from=samples_from,
    )


def precision_of(graph: OpGraph) -> str:
    """Data types of convolutions and matrix products, the most used first.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    cost = cost_of_graph(graph)
    flops = (cost.flops * cost.executions).tolist()
    sums: dict[str, float] = {}
    for number, one in zip(graph.signature_of.tolist(), flops, strict=True):
        op = graph.signatures[number]
        if family_of(op.kind) in PRODUCT_FAMILIES and op.outputs:
            name = _NAMES.get(op.outputs[0].dtype, "unknown precision")
            sums[name] = sums.get(name, 0.0) + one
    total = sum(sums.values())
    named = sorted(sums, key=lambda name: -sums[name])
    shares = {name: sums[name] / total for name in named if total}
    large = [name for name, share in shares.items() if share >= _LEAST_SHARE]
    if len(large) < 2:
        return large[0] if large else "unknown precision"
    return ", ".join(f"{name} ({shares[name]:.0%})" for name in large)
