"""The three features of a group and the vector of the whole graph (paper, section 3.1.2).

    op types (TensorFlow's: `op_names`) -> table (share of each op type among all nodes)
    table -> op-type encoding of each node
    nodes + groups -> [encoding, tensor bytes, number of nodes], summed over each group

The table is made once, when a data set is encoded, and travels in the checkpoint; an op type that
it lacks is encoded as 0 and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError, MissingExtraError, install_hint
from driple.features.op_names import op_type_names, remote_names
from driple.graph.opgraph import OpGraph

__all__ = [
    "CONTEXT_NAMES",
    "FEATURE_NAMES",
    "context_vector",
    "fit_op_type_table",
    "group_features",
    "unknown_op_types",
]

FEATURE_NAMES = ("op_type", "tensor_bytes", "num_nodes")
CONTEXT_NAMES = (
    "num_nodes",
    "num_edges",
    "tensor_bytes",
    "num_remote_nodes",
    "remote_bytes",
    "op_types",
    "remote_op_types",
    "sent_bytes",
    "received_bytes",
)


def fit_op_type_table(graphs: Iterable[OpGraph]) -> dict[str, float]:
    """Share of each op type among all nodes of the graphs, local and remote.

    This is the frequency encoding of category_encoders (`CountEncoder(normalize=True)`).

    Raises:
        DatasetError: the graphs have no nodes.
        MissingExtraError: category_encoders is not installed (extra `train`).
    """
    counts: Counter[str] = Counter()
    for graph in graphs:
        counts.update(op_type_names(graph))
        counts.update(remote_names(graph))
    counts = +counts
    if not counts:
        raise DatasetError("no nodes to make the op-type table of; give at least one graph")
    try:
        import pandas as pd  # training only
        from category_encoders import CountEncoder
    except ImportError as error:
        raise MissingExtraError(
            f"making an op-type table needs category_encoders; {install_hint('train')}"
        ) from error
    column = np.repeat(np.array(sorted(counts), dtype=object), [counts[t] for t in sorted(counts)])
    encoder = CountEncoder(cols=["op_type"], normalize=True)
    encoder.fit(pd.DataFrame({"op_type": column}))
    shares = encoder.mapping["op_type"]
    return {op_type: float(shares[op_type]) for op_type in sorted(counts)}


def group_features(
    graph: OpGraph, groups: npt.NDArray[np.int32], table: Mapping[str, float]
) -> npt.NDArray[np.float64]:
    """Sums over each group.

    Args:
        graph: the graph.
        groups: shape [num_nodes], group of each node, -1 for none.
        table: encoding of each op type.

    Returns:
        Shape [num_groups, 3]: op-type encoding, tensor size in bytes, number of nodes.
    """
    inside = groups >= 0
    index = groups[inside]
    columns = (
        _encode(op_type_names(graph), table)[inside],
        graph.tensor_bytes[inside].astype(np.float64),
        np.ones(len(index)),
    )
    return np.stack([np.bincount(index, weights=column) for column in columns], axis=1)


def context_vector(graph: OpGraph, table: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """The whole graph, left-out nodes and remote ops included: log(1 + x) of `CONTEXT_NAMES`.

    Returns:
        Shape [9]; `op_types` and `remote_op_types` are sums of op-type encodings.
    """
    remote_encoding = sum(
        table.get(name, 0.0) * count for name, count in remote_names(graph).items()
    )
    values = [
        graph.num_nodes,
        graph.num_edges,
        graph.tensor_bytes.sum(dtype=np.float64),
        sum(ops.num_nodes for ops in graph.remote),
        sum(ops.tensor_bytes for ops in graph.remote),
        _encode(op_type_names(graph), table).sum(),
        remote_encoding,
        graph.sent_bytes,
        graph.received_bytes,
    ]
    return np.log1p(np.array(values, dtype=np.float64))


def unknown_op_types(graph: OpGraph, table: Mapping[str, float], *, remote: bool) -> dict[str, int]:
    """Number of ops of each type that the table lacks; remote ops count, too, if `remote`."""
    counts = Counter(op_type_names(graph))
    if remote:
        counts.update(remote_names(graph))
    return {op_type: counts[op_type] for op_type in sorted(counts) if op_type not in table}


def _encode(op_types: tuple[str, ...], table: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Encoding of each node; 0 for an op type that the table lacks."""
    return np.array([table.get(op_type, 0.0) for op_type in op_types], dtype=np.float64)
