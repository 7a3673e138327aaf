"""What of a job decides which checked runs are like it.

OpGraph --job_kind--> JobKind (network, task, precision, compiled, mix of ops)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driple.answers.op_mix import network_of, op_mix
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.remarks import Remark, remark

__all__ = ["JobKind", "job_kind"]

_HALF = (NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"])
# Number formats of which the catalogue has no rates.
_NOT_TIMED = {
    "float64": (NUMBER_OF["DT_DOUBLE"],),
    "complex": (NUMBER_OF["DT_COMPLEX64"], NUMBER_OF["DT_COMPLEX128"]),
}
_SMALL_SHARE = 0.05  # of the multiply-adds, which a step hardly shows


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKind:
    """What of a job decides which runs are like it.

    Attributes:
        framework: `tensorflow`, `pytorch` or `onnx`.
        task: `train`, or `forward` of a forward pass alone.
        network: kind of network, see `network_of`.
        half: whether most multiply-adds are in half precision.
        compiled: whether a compiler fuses ops.
        mix: share of the time by kind of op, see `op_mix`.
        unlike: why no run can be like it; None if some may be.
    """

    framework: str = "tensorflow"
    task: str = "train"
    network: str = "convolutional"
    half: bool = False
    compiled: bool = False
    mix: tuple[float, ...] = ()
    unlike: Remark | None = None


def job_kind(graph: OpGraph, cost: GraphCost | None = None) -> JobKind:
    """What a job is: by its ops, not by its name.

    Args:
        graph: of one worker's step.
        cost: of this graph, where it is known already.

    Raises:
        GraphError: the graph holds no shapes of its ops' inputs.
    """
    if graph.report.has_unknown:
        return JobKind(unlike=graph.report.unknown)
    graph.require_signatures()
    cost = cost_of_graph(graph) if cost is None else cost
    is_product = np.array([family_of(op.kind) in PRODUCT_FAMILIES for op in graph.signatures])
    flops = np.where(is_product[graph.signature_of], cost.flops * cost.executions, 0.0)
    total = float(flops.sum())

    def flops_in(formats: tuple[int, ...]) -> float:
        is_in_formats = [
            bool(op.outputs) and op.outputs[0].dtype in formats for op in graph.signatures
        ]
        return float(flops[np.array(is_in_formats)[graph.signature_of]].sum())

    if total == 0:
        return JobKind(unlike=remark("no_products"))
    for name, formats in _NOT_TIMED.items():
        if flops_in(formats) > _SMALL_SHARE * total:
            return JobKind(unlike=remark("products_not_timed", number_format=name))
    mix = op_mix(graph, cost)
    return JobKind(
        framework=graph.framework,
        task="train" if graph.is_training else "forward",
        network=network_of(mix),
        half=flops_in(_HALF) > total / 2,
        compiled=bool(len(graph.fusion_of) and (graph.fusion_of >= 0).any()),
        mix=mix,
    )
