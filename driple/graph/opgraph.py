"""`OpGraph`: the graph of one training step as plain arrays (paper, section 3.1.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driple.graph.signature import OpSignature

__all__ = ["OpGraph", "ReadReport", "RemoteOps", "Traffic"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadReport:
    """What the reader met that it could not take at face value; nothing here is an error.

    Attributes:
        nodes_in_file: nodes of the file, before inlining and before any was left out.
        nodes_inlined: nodes that came out of the function library.
        nodes_without_shape: kept nodes none of whose outputs has a known rank.
        unknown_dimensions: dimensions given as -1; each counted as 1 in the tensor sizes.
        nodes_without_device: nodes of the file that name no device.
        dangling_inputs: inputs that name a node which is not in the file.
        loops_of_unknown_length: while-loops whose turns the graph does not fix; each counts one.
        unresolved_functions: names of called functions that the library does not hold.
        notes: one sentence for each thing a user should know, for stderr.
    """

    nodes_in_file: int = 0
    nodes_inlined: int = 0
    nodes_without_shape: int = 0
    unknown_dimensions: int = 0
    nodes_without_device: int = 0
    dangling_inputs: int = 0
    loops_of_unknown_length: int = 0
    unresolved_functions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteOps:
    """All nodes of one op type that were left out, since they run elsewhere.

    Attributes:
        op_type: op type, such as `ApplyAdam`.
        num_nodes: how many there are.
        tensor_bytes: bytes of all their outputs together.
    """

    op_type: str
    num_nodes: int
    tensor_bytes: int


def _no_int32() -> npt.NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32)


def _no_int64() -> npt.NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)


def _no_pairs() -> npt.NDArray[np.int32]:
    return np.zeros((0, 2), dtype=np.int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """What data edges carry between the worker's compute device and all others in one step.

    A node counts once, with all its outputs, however many read it.

    Attributes:
        received_bytes: shape [r], int64, bytes of each node elsewhere that kept nodes read.
        readers: shape [e, 2], int32, (position in `received_bytes`, kept node that reads it).
        sent_bytes: shape [s], int64, bytes of each kept node that others read.
        senders: shape [s], int32, position of that node.
    """

    received_bytes: npt.NDArray[np.int64] = field(default_factory=_no_int64)
    readers: npt.NDArray[np.int32] = field(default_factory=_no_pairs)
    sent_bytes: npt.NDArray[np.int64] = field(default_factory=_no_int64)
    senders: npt.NDArray[np.int32] = field(default_factory=_no_int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpGraph:
    """Nodes and edges of the ops that run on the worker's compute device.

    Attributes:
        names: node names, unique.
        op_types: op type of each node, such as `Conv2D`.
        devices: device string of each node, as in the file; empty if it has none.
        edges: shape [num_edges, 2], int32, (source, destination) positions in `names`.
        is_control: shape [num_edges], bool, true for control edges.
        tensor_elements: shape [num_nodes], int64, elements of all outputs of the node together.
        tensor_bytes: shape [num_nodes], int64, bytes of all outputs of the node together.
        remote: what was left out, by op type, sorted by op type: optimizers and variables on the
            parameter servers, gradient accumulators of synchronous training, input pipelines.
        traffic: what crosses to and from other devices.
        report: what the reader met on the way.
        signatures: what nodes compute on, each once; empty in a graph that does not tell.
        signature_of: shape [num_nodes], int32, position of each node's signature.
        executions: shape [num_nodes], int64, runs of each node in a step: 1 outside of loops.
    """

    names: tuple[str, ...]
    op_types: tuple[str, ...]
    devices: tuple[str, ...]
    edges: npt.NDArray[np.int32]
    is_control: npt.NDArray[np.bool_]
    tensor_elements: npt.NDArray[np.int64]
    tensor_bytes: npt.NDArray[np.int64]
    remote: tuple[RemoteOps, ...] = ()
    traffic: Traffic = field(default_factory=Traffic)
    report: ReadReport = ReadReport()
    signatures: tuple[OpSignature, ...] = ()
    signature_of: npt.NDArray[np.int32] = field(default_factory=_no_int32)
    executions: npt.NDArray[np.int64] = field(default_factory=_no_int64)

    @property
    def sent_bytes(self) -> int:
        """Bytes that leave in one step: with parameter servers, the gradients."""
        return sum(self.traffic.sent_bytes.tolist())

    @property
    def received_bytes(self) -> int:
        """Bytes that come in in one step: with parameter servers, the parameters."""
        return sum(self.traffic.received_bytes.tolist())

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """Number of edges, data and control."""
        return len(self.edges)

    def op_type_counts(self) -> Counter[str]:
        """How often each op type occurs."""
        return Counter(self.op_types)
