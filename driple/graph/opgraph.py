"""`OpGraph`: the graph of one training step as plain arrays (paper, section 3.1.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.signature import OpSignature
from driple.graph.step_facts import OptimizerUpdate, ParameterTable, TensorLifetimes
from driple.graph.tf.op_kinds import kind_of_op_type
from driple.remarks import Remark, remark

__all__ = [
    "FRAMEWORKS",
    "LAYOUTS",
    "Framework",
    "Layout",
    "OpGraph",
    "ReadReport",
    "RemoteOps",
    "Traffic",
    "require_training",
]

# Ops of synchronous training: sums of gradients, and tokens for the other workers.
_WAITS = frozenset({"gradient_accumulator", "take_gradient", "queue_enqueue"})
# What a graph says of servers: it names some; no device at all; one machine; an all-reduce.
# A PyTorch model is the step of one device, which every scheme distributes.
Layout = Literal["servers", "unplaced", "one_machine", "all_reduce", "one_device"]
LAYOUTS: tuple[str, ...] = get_args(Layout)
# Whose op types a graph's nodes have.
Framework = Literal["tensorflow", "pytorch", "onnx"]
FRAMEWORKS: tuple[str, ...] = get_args(Framework)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadReport:
    """Remarks of the reader on a graph; none of them is an error.

    Attributes:
        nodes_in_file: nodes of the file, before inlining and before any was left out.
        nodes_inlined: nodes that came out of the function library.
        nodes_without_shape: kept nodes none of whose outputs has a known rank.
        unknown_dimensions: kept nodes with a dimension that the graph leaves open; it counts as 1.
        nodes_without_device: nodes of the file that name no device.
        dangling_inputs: inputs that name a node which is not in the file.
        loops_of_unknown_length: while-loops whose turns the graph does not fix; each counts one.
        unknown_turns: names of those of them that run in the step and whose turns the user did not
            give either; each counts as one turn.
        unresolved_functions: names of called functions that the library does not hold.
        unknown_share: share of the kept nodes that such dimensions affect; sizes that only data
            decide are a note.
        train_ops: names of the train ops in the graph, the largest step first.
        target: name of the train op whose step this is; empty if the graph has none.
        left_out: number of nodes that no step runs, by reason.
        state_bytes: bytes of the variables that hold the states of an optimizer whose update is
            written as arithmetic.
        samples_share: share of the inputs' samples that the kept device computes; below 1 where the
            graph splits them over several.
        batch_size: samples of the inputs, as the graph or the user's options fix it; None if it is
            open, or inputs differ.
        notes: what a user should know; the `doubts` come first.
    """

    nodes_in_file: int = 0
    nodes_inlined: int = 0
    nodes_without_shape: int = 0
    unknown_dimensions: int = 0
    nodes_without_device: int = 0
    dangling_inputs: int = 0
    loops_of_unknown_length: int = 0
    unknown_turns: tuple[str, ...] = ()
    unresolved_functions: tuple[str, ...] = ()
    unknown_share: float = 0.0
    train_ops: tuple[str, ...] = ()
    target: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    samples_share: float = 1.0
    batch_size: int | None = None
    notes: tuple[Remark, ...] = ()

    @property
    def has_unknown(self) -> bool:
        """Whether sizes or turns count as 1 since nothing fixes them: then no price or advice."""
        return self.unknown_share > 0 or bool(self.unknown_turns)

    @property
    def doubts(self) -> tuple[Remark, ...]:
        """The notes about these, with the options that set them."""
        return self.notes[: (self.unknown_share > 0) + bool(self.unknown_turns)]

    @property
    def unknown(self) -> Remark | None:
        """Unknown sizes and turns; None if there are none."""
        if not self.has_unknown:
            return None
        return remark(
            "unknown",
            unknown_share=self.unknown_share,
            loops=tuple(name[:60] for name in self.unknown_turns[:3]),
            num_loops=len(self.unknown_turns),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteOps:
    """All nodes of one op type that were left out, since they run elsewhere.

    Attributes:
        op_type: the framework's op type, such as `ApplyAdam`.
        kind: kind of op, such as `update_adam`.
        num_nodes: how many there are.
        tensor_bytes: bytes of all their outputs together.
    """

    op_type: str
    kind: str
    num_nodes: int
    tensor_bytes: int

    @classmethod
    def of_op_type(cls, op_type: str, *, num_nodes: int, tensor_bytes: int) -> RemoteOps:
        """Those of an op type of TensorFlow, such as `ApplyAdam`."""
        kind = kind_of_op_type(op_type)
        return cls(op_type=op_type, kind=kind, num_nodes=num_nodes, tensor_bytes=tensor_bytes)


def _no_int8() -> npt.NDArray[np.int8]:
    return np.zeros(0, dtype=np.int8)


def _no_int32() -> npt.NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32)


def _no_int64() -> npt.NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)


def _no_bool() -> npt.NDArray[np.bool_]:
    return np.zeros(0, dtype=np.bool_)


def _no_pairs() -> npt.NDArray[np.int32]:
    return np.zeros((0, 2), dtype=np.int32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """Traffic of data edges between the worker and other machines in one step.

    One output of one node crosses once for each device that reads it.

    Attributes:
        received_bytes: shape [r], int64, bytes of each tensor that comes in.
        readers: shape [e, 2], int32, (position in `received_bytes`, kept node that reads it).
        sent_bytes: shape [s], int64, bytes of each tensor that leaves.
        senders: shape [s], int32, kept node that made it.
        received_states: shape [r], bool, tensors that are states of an optimizer whose update is
            arithmetic on the worker; empty if none is.
        sent_states: shape [s], bool, the same of tensors that leave.
    """

    received_bytes: npt.NDArray[np.int64] = field(default_factory=_no_int64)
    readers: npt.NDArray[np.int32] = field(default_factory=_no_pairs)
    sent_bytes: npt.NDArray[np.int64] = field(default_factory=_no_int64)
    senders: npt.NDArray[np.int32] = field(default_factory=_no_int32)
    received_states: npt.NDArray[np.bool_] = field(default_factory=_no_bool)
    sent_states: npt.NDArray[np.bool_] = field(default_factory=_no_bool)

    def without_states(self) -> Traffic:
        """Parameters and gradients alone, for workers that update variables themselves."""
        traffic = self
        if self.received_states.any():
            stays = ~self.received_states
            number = np.cumsum(stays) - 1
            readers = self.readers[stays[self.readers[:, 0]]].copy()
            readers[:, 0] = number[readers[:, 0]]
            traffic = replace(
                traffic,
                received_bytes=self.received_bytes[stays],
                readers=readers,
                received_states=_no_bool(),
            )
        if self.sent_states.any():
            stays = ~self.sent_states
            traffic = replace(
                traffic,
                sent_bytes=self.sent_bytes[stays],
                senders=self.senders[stays],
                sent_states=_no_bool(),
            )
        return traffic


@dataclass(frozen=True, kw_only=True, slots=True, weakref_slot=True, eq=False, repr=False)
class OpGraph:
    """Nodes and edges of the ops that run on the worker's compute device.

    Attributes:
        names: node names, unique.
        op_types: the framework's own op type of each node: TensorFlow's `Conv2D`, PyTorch's
            `aten::convolution`, ONNX's `Conv`. What an op does is in its signature's kind.
        devices: device string of each node, as in the file; empty if it has none.
        edges: shape [num_edges, 2], int32, (source, destination) positions in `names`.
        is_control: shape [num_edges], bool, true for control edges.
        tensor_elements: shape [num_nodes], int64, elements of all outputs of the node together.
        tensor_bytes: shape [num_nodes], int64, bytes of all outputs of the node together.
        remote: what the step runs elsewhere, sorted by op type: optimizers and variables on the
            parameter servers, gradient accumulators of synchronous training, input pipelines.
        traffic: what crosses to and from other machines; with variables on servers, whatever the
            layout.
        report: what the reader met on the way.
        signatures: what nodes compute on, each once; empty in a graph without this information.
        signature_of: shape [num_nodes], int32, position of each node's signature.
        executions: shape [num_nodes], int64, runs of each node in a step: 1 outside of loops.
        is_training: whether it is a training step, with gradients.
        layout: what the graph says of servers.
        framework: whose names `op_types` are.
        parameters: parameters, who reads them and who computes their gradients.
        update: the optimizer's update.
        phases: shape [num_nodes], int8, a `Phase` each; empty if unknown.
        modules: paths of the model's modules, such as `layer1.0.conv1`.
        module_of: shape [num_nodes], int32, position in `modules`, -1 for none; empty if unknown.
        lifetimes: allocations of the step; empty if unknown.
        fusion_of: shape [num_nodes], int32, number of the compiled kernel that computes the node
            together with others, -1 for none; empty if nothing is fused.
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
    is_training: bool = True
    layout: Layout = "servers"
    framework: Framework = "tensorflow"
    parameters: ParameterTable = field(default_factory=ParameterTable)
    update: OptimizerUpdate = field(default_factory=OptimizerUpdate)
    phases: npt.NDArray[np.int8] = field(default_factory=_no_int8)
    modules: tuple[str, ...] = ()
    module_of: npt.NDArray[np.int32] = field(default_factory=_no_int32)
    lifetimes: TensorLifetimes = field(default_factory=TensorLifetimes)
    fusion_of: npt.NDArray[np.int32] = field(default_factory=_no_int32)

    def __repr__(self) -> str:
        return f"<OpGraph of {self.framework}: {self.num_nodes} nodes, {self.num_edges} edges>"

    @property
    def sent_bytes(self) -> int:
        """Bytes that leave in one step: with parameter servers, the gradients."""
        return sum(self.traffic.sent_bytes.tolist())

    @property
    def received_bytes(self) -> int:
        """Bytes that arrive in one step: with parameter servers, the parameters."""
        return sum(self.traffic.received_bytes.tolist())

    @property
    def placed_bytes(self) -> tuple[int, int]:
        """Bytes sent and received in one step as the graph places its ops: on one machine none."""
        if self.layout in ("one_machine", "one_device"):
            return 0, 0
        return self.sent_bytes, self.received_bytes

    @property
    def is_synchronous(self) -> bool:
        """Whether a step waits for all workers.

        Gradients of all workers are added up before they are applied, or a worker puts tokens into
        the others' queues when its updates are done, as tf_cnn_benchmarks does. (Queues of inputs
        are filled by threads of their own, not by a step.)
        """
        return self.layout == "all_reduce" or any(ops.kind in _WAITS for ops in self.remote)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """Number of edges, data and control."""
        return len(self.edges)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each node.

        Raises:
            GraphError: the graph lacks the signatures of its ops, as in the public Driple data.
        """
        self.require_signatures()
        kinds = [op.kind for op in self.signatures]
        return tuple(kinds[number] for number in self.signature_of.tolist())

    def nodes_of(self, kinds: Container[str]) -> npt.NDArray[np.bool_]:
        """Whether each node is of one of some kinds, shape [num_nodes].

        Raises:
            GraphError: the graph lacks the signatures of its ops.
        """
        self.require_signatures()
        fits = np.array([op.kind in kinds for op in self.signatures], dtype=np.bool_)
        return fits[self.signature_of]

    def require_signatures(self) -> None:
        """Refuse a graph that lacks the signatures of its ops, as in the public Driple data.

        Raises:
            GraphError: it lacks them.
        """
        if len(self.signature_of) != self.num_nodes:
            raise GraphError(
                "graph holds no shapes of its ops' inputs, which their cost depends on; read it "
                "from its GraphDef again"
            )

    def op_type_counts(self) -> Counter[str]:
        """Number of nodes of each op type."""
        return Counter(self.op_types)


def require_training(graph: OpGraph) -> None:
    """Refuse a graph without a training step: no prediction can be made of it.

    Raises:
        GraphError: no gradient is computed in it, or none is applied.
    """
    if not graph.is_training:
        raise GraphError(
            "graph has no training step: it computes no gradients and updates no variables; export "
            "the graph that holds the train op (Keras 3: "
            "driple.tensorflow.training_graph(model, batch) writes it; TensorFlow 2: the concrete "
            "function of a tf.function that applies gradients; TensorFlow 1: "
            "tf.train.export_meta_graph or tf.io.write_graph after optimizer.minimize). "
            "driple inspect describes it as it is"
        )
