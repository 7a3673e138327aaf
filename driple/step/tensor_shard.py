"""One device's share of a training step under tensor parallelism, as Megatron-LM splits it.

    OpGraph, degree -> StepShard: the graph of one device, and what its group adds up

Shoeybi et al. (2019): in each block of a transformer the first matrix of attention and of the MLP
is split by columns, the last one by rows, so that the heads and the hidden units between them are
shared out. Every product that reads a split matrix therefore turns a whole tensor into a shard, or
a shard into partial sums, which the group adds up: twice in the forward pass of a block and twice
in its backward pass. The largest embedding and the head of the same size are split by words.

Norms, residuals and the dropout beside them are split by tokens (sequence parallelism, Korthikanti
et al., 2022): sums are reduce-scattered, and gathered again where the next split matrix reads them,
which is an all-reduce's bytes. The gradient of a matrix that is split by columns gathers its input
anew, beside the product that goes before. Experts, routers and the down-projections of latent
attention (DeepSeek) are not split: a device has them whole and computes them on its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from driple.checks import check_whole
from driple.cluster.schemes import divisors_near
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature
from driple.graph.step_facts import Phase
from driple.step.blocks import block_name
from driple.step.shard_shapes import (
    ATTENTIONS,
    HEADS,
    axis_of,
    by_heads,
    divided,
    is_matrix,
    widens,
)
from driple.step.step_flow import PRODUCTS, GroupExchange, StepFlow, StepShard, changed_graph
from driple.step.token_shares import made_share, on_tokens

__all__ = ["tensor_shard"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_ROUTERS = frozenset({"gate", "router"})  # names of the module that chooses experts
# Names of the projections to latents, of which every head reads all, in transformers and DeepSeek's
# code. Megatron-LM has them duplicated, and so has vLLM.
_LATENT = frozenset({"q_a_proj", "kv_a_proj_with_mqa", "wq_a", "wkv_a"})
_ADDED_LATER = frozenset({"add", "add_n", "cast"})  # partial sums stay partial sums
_NO_BLOCKS = (
    "tensor parallelism splits the matrices of numbered transformer blocks, and {what}; use ddp or "
    "fsdp"
)


class _State(IntEnum):
    """What a device has of the tensors that a node makes."""

    WHOLE = 0
    SHARD = 1
    SUM = 2  # partial sums, still to be added up


def tensor_shard(graph: OpGraph, degree: int, order: IntArray) -> StepShard:
    """The share of one device of a tensor-parallel group.

    Args:
        graph: of the whole step, with named parameters.
        degree: devices of the group.
        order: of execution, shape [num_nodes].

    Raises:
        GraphError: no block has a matrix to split, the degree does not divide the matrices or the
            heads, or the graph is none that this split fits.
    """
    check_whole("tensor-parallel degree", degree, 1)
    if degree == 1:
        return StepShard(graph=graph, node_share=np.ones(graph.num_nodes), exchanges=())
    split = _Split(graph, degree)
    split.follow(order)
    return split.shard()


class _Split:
    """States of all nodes, followed in the order of execution."""

    def __init__(self, graph: OpGraph, degree: int) -> None:
        self.graph, self.degree = graph, degree
        self.flow = StepFlow(
            graph, f"tp{degree} splits the matrices of numbered transformer blocks,"
        )
        self.ops, self.sources = self.flow.ops, self.flow.sources
        self.vocabulary = self._vocabulary()
        self.matrices = self._matrices()
        if not any(self._block(one) for one in self.matrices.values()):
            raise GraphError(_NO_BLOCKS.format(what="this graph has none"))
        self.states = np.zeros(graph.num_nodes, dtype=np.int8)
        self.origin: dict[int, str] = {}  # block in which a node's shards began
        self.sum_bytes: dict[int, int] = {}  # of partial sums, in the type in which they travel
        self.by_columns: dict[int, bool] = {}  # how each split matrix is split
        self.to_reduce: dict[int, None] = {}
        self.changed: dict[int, OpSignature] = {}
        self.on_tokens: set[int] = set()  # nodes that are computed on shares of the tokens
        self.gathered: dict[int, int] = {}  # activations that a gradient gathers anew, and where

    def _vocabulary(self) -> int:
        """Elements of the table of words: as large as the head, or the largest; 0 without one."""
        elements = self.graph.parameters.elements
        tables: set[int] = set()
        heads: set[int] = set()
        for node in np.flatnonzero(self.graph.phases == Phase.FORWARD).tolist():
            op = self.ops[node]
            if op.kind == "embedding" or widens(op):
                sizes = {int(elements[one]) for one in self.flow.read(node) if not self._block(one)}
                (tables if op.kind == "embedding" else heads).update(sizes)
        return max(tables & heads or tables, default=0)

    def _matrices(self) -> dict[int, int]:
        """Node and split matrix of each product that reads one."""
        matrix_of = {}
        elements = self.graph.parameters.elements
        is_expert = self.flow.expert_parameters
        for node, op in enumerate(self.ops):
            if op.kind not in PRODUCTS:
                continue
            for parameter in self.flow.read(node):
                if is_expert[parameter] or self._is_router(parameter) or self._is_latent(parameter):
                    continue
                factors = [
                    tensor for tensor in op.inputs[:2] if is_matrix(tensor, elements[parameter])
                ]
                if factors and (self._block(parameter) or elements[parameter] == self.vocabulary):
                    if op.kind != "matmul":
                        raise GraphError(
                            _NO_BLOCKS.format(
                                what=f"{self.graph.parameters.names[parameter]} is read by "
                                f"{self.graph.op_types[node]}, such as in a mixture of experts"
                            )
                        )
                    matrix_of[node] = parameter
        return matrix_of

    def _block(self, parameter: int) -> str:
        return block_name(self.graph.parameters.names[parameter])

    def _is_router(self, parameter: int) -> bool:
        """Whether it is the matrix that chooses experts: of a module beside a stack of them."""
        owner, _, last = self.graph.parameters.names[parameter].rpartition(".")[0].rpartition(".")
        beside = {module.rpartition(".")[0] for module in self.flow.experts}
        return owner in beside and last in _ROUTERS

    def _is_latent(self, parameter: int) -> bool:
        """Whether it is the matrix of a projection to latents."""
        *_, module, _ = ("", *self.graph.parameters.names[parameter].split("."))
        return module in _LATENT

    def follow(self, order: IntArray) -> None:
        """Find the state of each node, and what becomes of its op."""
        for node in order.tolist():
            self._follow(node)

    def _follow(self, node: int) -> None:
        sources = [one for one in self.sources[node] if self.flow.only_weight(one) is None]
        shards = [one for one in sources if self.states[one] == _State.SHARD]
        sums = [one for one in sources if self.states[one] == _State.SUM]
        matrix, kind = self.matrices.get(node), self.ops[node].kind
        if sums and not shards and kind in _ADDED_LATER:
            # Gradients of queries, keys and values are added up first, as of one fused matrix.
            nbytes = self.ops[node].outputs[0].nbytes
            self._sum(node, min(nbytes, *(self.sum_bytes[one] for one in sums)))
            if len(sums) < len(sources):  # a residual: the sum is scattered before
                self._share_tokens(node)
            return
        self.to_reduce.update(dict.fromkeys(sums))
        self.states[sums] = _State.WHOLE
        if matrix is not None:
            self._product(node, matrix, shards)
        elif kind == "embedding" and self._reads_words(node):
            self._sum(node, self.ops[node].outputs[0].nbytes)
        elif kind == "embedding_gradient" and self._made(node) == self.vocabulary:
            self._shard(node, [])
        elif shards:
            self.origin[node] = next((self.origin[one] for one in shards if one in self.origin), "")
            self._shard(node, shards)
            if self._adds_heads(node):  # of the key that all heads share
                self._sum(node, self.ops[node].outputs[0].nbytes)
                self.changed[node] = replace(self.changed[node], outputs=self.ops[node].outputs)
        elif sums or any(one in self.on_tokens for one in sources):
            self._share_tokens(node)

    def _adds_heads(self, node: int) -> bool:
        """Whether a node adds up the heads that devices share out."""
        op = self.ops[node]
        if op.kind != "reduce_sum" or not op.inputs or not op.outputs:
            return False
        read, written = op.inputs[0].shape or (), op.outputs[0].shape or ()
        is_by_heads = len(read) == len(written) == HEADS + 3
        return is_by_heads and written[HEADS] == 1 < read[HEADS]

    def _share_tokens(self, node: int) -> None:
        """A node between two split matrices, which computes on a share of the tokens."""
        if self.graph.phases[node] != Phase.UPDATE:
            self.on_tokens.add(node)
            self.changed[node] = on_tokens(self.flow, node, self.degree)

    def _sum(self, node: int, nbytes: int) -> None:
        self.states[node], self.sum_bytes[node] = _State.SUM, nbytes

    def _made(self, node: int) -> int:
        """Elements of a node's first output."""
        outputs = self.ops[node].outputs
        return outputs[0].elements if outputs else 0

    def _reads_words(self, node: int) -> bool:
        elements = self.graph.parameters.elements
        return any(elements[one] == self.vocabulary for one in self.flow.read(node))

    def _product(self, node: int, matrix: int, shards: list[int]) -> None:
        """A product with a split matrix."""
        block = self._block(matrix)
        for shard in shards:
            if self.origin.get(shard, block) != block:
                name = self.graph.parameters.names[matrix]
                raise GraphError(
                    _NO_BLOCKS.format(what=f"{name} reads a tensor that another block shares out")
                )
        op, degree = self.ops[node], self.degree
        by_rows = self._by_rows(node, matrix, bool(shards))
        left, right, *bias = op.inputs
        inner = right.shape[-2] if right.shape is not None and len(right.shape) > 1 else 0
        if by_rows:
            self._sum(node, op.outputs[0].nbytes)
            self._check(matrix, inner)
            read = (divided(left, degree, -1), divided(right, degree, -2), *bias)
            self.changed[node] = replace(op, inputs=read)
            return
        self.states[node] = _State.SHARD
        self.origin[node] = block
        output = op.outputs[0]
        self._check(matrix, output.shape[-1] if output.shape else 0)
        read = (left, divided(right, degree, -1), *(divided(one, degree, -1) for one in bias))
        self.changed[node] = replace(op, inputs=read, outputs=(divided(output, degree, -1),))

    def _by_rows(self, node: int, matrix: int, has_shards: bool) -> bool:
        """Whether a product reads a shard; the backward pass mirrors the forward pass."""
        if self.graph.phases[node] != Phase.BACKWARD:
            self.by_columns.setdefault(matrix, not has_shards)
            return has_shards
        return self.by_columns.get(matrix, has_shards)

    def _check(self, matrix: int, size: int) -> None:
        """Refuse a side that the degree does not divide; words are filled up to a multiple."""
        if self._block(matrix) and size % self.degree:
            raise GraphError(
                f"tp{self.degree} does not divide a side of "
                f"{self.graph.parameters.names[matrix]}, which is {size}; "
                f"tp {divisors_near(size, self.degree)} does"
            )

    def _shard(self, node: int, shards: list[int]) -> None:
        """A node that computes on shards alone, or on shards and small whole tensors."""
        op, degree = self.ops[node], self.degree
        if any(one.elements > 1 for one in op.outputs):  # a loss is added up over words at once
            self.states[node] = _State.SHARD
        if op.kind in ATTENTIONS:
            heads = op.inputs[0].shape
            if heads is not None and len(heads) > HEADS and heads[HEADS] % degree:
                raise GraphError(
                    f"tp{degree} does not divide the {heads[HEADS]} heads of attention; "
                    f"tp {divisors_near(heads[HEADS], degree)} does"
                )
        whole = self._sizes(one for one in self.sources[node] if one not in shards)
        whole -= self._sizes(shards)
        if op.kind == "matmul":
            self.changed[node] = self._weight_gradient(op, whole)
            self._gather_again(node, shards)
            return
        axis, cut = axis_of(op), by_heads if op.kind in ATTENTIONS else divided
        self.changed[node] = replace(
            op,
            inputs=tuple(
                one if one.is_parameter or one.elements in whole else cut(one, degree, axis)
                for one in op.inputs
            ),
            outputs=tuple(cut(one, degree, axis) for one in op.outputs),
        )

    def _gather_again(self, node: int, shards: list[int]) -> None:
        """What the gradient of a matrix reads of the forward pass: kept as shares of the tokens."""
        for source in self.sources[node]:
            is_kept = source not in shards and self.graph.phases[source] != Phase.BACKWARD
            if is_kept and (source in self.on_tokens or source in self.to_reduce):
                self.gathered.setdefault(source, node)

    def _sizes(self, nodes: Iterable[int]) -> set[int]:
        """Elements of the tensors that some nodes make; views of parts of them are not among it."""
        return {tensor.elements for node in nodes for tensor in self.ops[node].outputs}

    def _weight_gradient(self, op: OpSignature, whole: set[int]) -> OpSignature:
        """The gradient of a split matrix: of the rows or columns that the device has."""
        left, right, *rest = op.inputs
        by_left = left.elements not in whole
        if by_left:
            left = divided(left, self.degree, -2)
        else:
            right = divided(right, self.degree, -1)
        output = divided(op.outputs[0], self.degree, -2 if by_left else -1)
        return replace(op, inputs=(left, right, *rest), outputs=(output,))

    def shard(self) -> StepShard:
        """The graph of one device."""
        graph, degree = self.graph, self.degree
        scale: FloatArray = np.where(self.states == _State.SHARD, 1 / degree, 1.0)
        share: FloatArray = np.where(self._split_parameters(), 1 / degree, 1.0)
        sent = scale[graph.traffic.senders]
        for node in self.on_tokens:
            scale[node] = made_share(self.ops[node], self.changed[node], degree)
        node_share = self._node_share(scale, share)
        return StepShard(
            graph=changed_graph(graph, self.changed, scale, share, sent),
            node_share=node_share,
            exchanges=tuple(self._exchanges()),
        )

    def _exchanges(self) -> list[GroupExchange]:
        """Sums, and inputs of columns that are gathered anew."""
        exchanges = []
        for node in sorted(self.to_reduce):
            nbytes = float(self.sum_bytes[node])
            for kind in ("reduce_scatter", "all_gather"):
                exchanges.append(GroupExchange(group="tensor", kind=kind, node=node, nbytes=nbytes))
        for source, node in self.gathered.items():
            exchanges.append(
                GroupExchange(
                    group="tensor",
                    kind="all_gather",
                    node=node,
                    nbytes=float(self.ops[source].outputs[0].nbytes),
                    is_hidden=True,
                )
            )
        return exchanges

    def _node_share(self, scale: FloatArray, share: FloatArray) -> FloatArray:
        """Share of what each node makes, such as of a parameter that it only casts or turns."""
        shares = scale.copy()
        for node in range(self.graph.num_nodes):
            parameter = self.flow.only_weight(node)
            if parameter is not None:
                shares[node] = share[parameter]
        return shares

    def _split_parameters(self) -> npt.NDArray[np.bool_]:
        """Which parameters a device has a share of: those whose gradient is a shard."""
        is_split = np.zeros(len(self.graph.parameters.names), dtype=np.bool_)
        for parameter, node in self.graph.parameters.gradients.tolist():
            is_split[parameter] |= self.states[node] == _State.SHARD
        return is_split
