"""Fusion groups of a compiled step: ops that `torch.compile` computes by one kernel.

    Record -> number of each node's group, -1 for none

The rules are Inductor's, as far as shapes decide them:
  1. Element-wise ops, copies, casts, fills and reductions (sums, norms, softmax, dropout) may join;
     matrix products, convolutions, attention, recurrent layers, sorts and scatters never do. A pool
     or a resized image is computed with what reads it, and never with what it reads.
  2. Two groups become one if the later reads the earlier and both run over the same elements, or
     over those that a reduction of the group leaves (the root of a variance). What few elements
     make, and what a move alone reads (a pad, a concatenation), is computed where it is read.
  3. Groups that read the same tensor and run over its elements become one.
  4. No group may wait for itself: there is no way from a member out of the group and back.
  5. Forward and backward pass are compiled apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from driple.graph.opkind import family_of
from driple.graph.signature import OpSignature
from driple.graph.torch.recorder import Record

__all__ = ["fusion_groups", "groups_of"]

_REDUCTIONS = frozenset(
    {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_logical",
     "reduce_norm", "reduce_variance", "bias_gradient", "softmax", "log_softmax",
     "softmax_gradient", "log_softmax_gradient"}
)  # fmt: skip
# Element-wise by family, and yet kernels of their own or taken from a library.
_ALONE = frozenset(
    {"sort", "top_k", "search_sorted", "bucketize", "nonzero", "random_choice", "permutation",
     "cumulative", "cumulative_logsumexp", "ctc_loss", "scatter_add", "scatter_write",
     "scatter_new", "embedding_gradient", "histogram", "fft", "real_fft", "cholesky", "lu", "qr",
     "svd", "eigen", "symmetric_eigen", "matrix_inverse", "solve", "solve_triangular", "other",
     "unique", "resize_linear_gradient", "resize_cubic_gradient", "resize_nearest_gradient",
     "image_transform", "extract_patches"}
)  # fmt: skip
_FUSED_FAMILIES = ("elementwise", "normalisation", "softmax")
# Kernels that read their input from memory, whoever made it.
_FIRST = frozenset({"max_pool", "avg_pool", "resize_nearest", "resize_linear", "resize_cubic"})
_MOVES = frozenset(
    {"pad", "concat", "slice", "stack", "roll", "reverse", "tile", "copy", "transpose"}
)
_MOST_JOINED = 8  # inputs of a concatenation that is computed element by element


@dataclass(slots=True)
class _Group:
    """Ops that one kernel computes.

    Attributes:
        phase: pass.
        sizes: elements that its ops run over, and those that its reductions leave.
        first: position of its first op.
        last: position of its last op.
        reduces: whether it has a reduction.
        before: groups that it reads from.
        after: groups that read from it.
    """

    phase: int
    sizes: set[int]
    first: int
    last: int
    reduces: bool
    before: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)


def fusion_groups(record: Record) -> Sequence[int]:
    """Number of the group of each node, -1 where it is a kernel of its own."""
    return groups_of(list(record.signatures), record.signature_of, record.edges, record.phases)


def groups_of(
    signatures: Sequence[OpSignature],
    signature_of: Sequence[int],
    edges: Iterable[tuple[int, int]],
    phases: Sequence[int],
) -> list[int]:
    """Number of the group of each node, -1 where it is a kernel of its own.

    Args:
        signatures: of ops, each once.
        signature_of: of each node its position there.
        edges: (node, node that reads its result).
        phases: of each node.
    """
    return _Fusion(signatures, signature_of, edges, phases).numbers()


class _Fusion:
    """Groups as they grow; a node that cannot be fused stays a group of its own."""

    def __init__(
        self,
        signatures: Sequence[OpSignature],
        signature_of: Sequence[int],
        edges: Iterable[tuple[int, int]],
        phases: Sequence[int],
    ) -> None:
        self._ops = [signatures[number] for number in signature_of]
        count = len(self._ops)
        self._read: list[list[int]] = [[] for _ in range(count)]
        self._readers: list[list[int]] = [[] for _ in range(count)]
        for source, target in sorted(edges):
            self._read[target].append(source)
            self._readers[source].append(target)
        self._fuses = [_can_fuse(op) for op in self._ops]
        self._elements = [_elements(op) for op in self._ops]
        self._made = [_made(op) for op in self._ops]
        self._parent = list(range(count))
        self._groups = {
            node: _Group(
                phases[node],
                {self._elements[node], *([self._made[node]] if _reduces(self._ops[node]) else [])},
                node,
                node,
                _reduces(self._ops[node]),
                set(self._read[node]),
                set(self._readers[node]),
            )
            for node in range(count)
        }

    def numbers(self) -> list[int]:
        """Groups of two ops and more, numbered from 0 in the order of their first op."""
        for node in range(len(self._ops)):
            for source in sorted(self._read[node], key=lambda one: -self._made[one]):
                if self._follows(source, node):
                    self._join(source, node)
        for node in range(len(self._ops)):
            self._join_readers(node)
        members: dict[int, list[int]] = {}
        for node in range(len(self._ops)):
            members.setdefault(self._root(node), []).append(node)
        found = [-1] * len(self._ops)
        kept = sorted(
            (some for some in members.values() if len(some) > 1), key=lambda some: some[0]
        )
        for number, some in enumerate(kept):
            for node in some:
                found[node] = number
        return found

    def _follows(self, source: int, node: int) -> bool:
        """Whether an op can be computed with one that it reads."""
        op = self._ops[node]
        if not (self._fuses[source] and self._fuses[node]) or op.kind in _FIRST:
            return False
        earlier, later = self._group(source), self._group(node)
        if earlier.phase != later.phase:
            return False
        elements = self._elements[node]
        if elements in earlier.sizes:
            return True
        if earlier.reduces or self._ops[source].kind in _FIRST:
            return False
        if self._made[source] < elements and op.kind not in _MOVES:
            return True
        alone = len(self._readers[source]) == 1
        return alone and op.kind in _MOVES and len(self._read[node]) <= _MOST_JOINED

    def _join_readers(self, node: int) -> None:
        """Join groups that read one tensor element by element."""
        some = [
            one
            for one in self._readers[node]
            if self._fuses[one]
            and self._elements[one] == self._made[node]
            and self._ops[one].kind not in _FIRST
        ]
        for one, other in pairwise(some):
            if self._group(one).phase == self._group(other).phase:
                self._join(one, other)

    def _join(self, one: int, other: int) -> None:
        """Make one group of two, unless it would wait for itself."""
        first, second = self._root(one), self._root(other)
        if first == second or self._leads_back(first, second) or self._leads_back(second, first):
            return
        kept, gone = self._groups[first], self._groups.pop(second)
        self._parent[second] = first
        kept.sizes |= gone.sizes
        kept.reduces |= gone.reduces
        kept.first, kept.last = min(kept.first, gone.first), max(kept.last, gone.last)
        for near in gone.before - {first}:
            after = self._groups[near].after
            after.discard(second)
            after.add(first)
        for near in gone.after - {first}:
            before = self._groups[near].before
            before.discard(second)
            before.add(first)
        kept.before |= gone.before - {first}
        kept.after |= gone.after - {first}
        kept.before.discard(second)
        kept.after.discard(second)

    def _leads_back(self, source: int, target: int) -> bool:
        """Whether a way leads from a group to another by a third."""
        last = self._groups[target].last
        todo = [one for one in self._groups[source].after if one != target]
        seen = set(todo)
        while todo:
            group = self._groups[todo.pop()]
            if group.first > last:
                continue
            if target in group.after:
                return True
            new = group.after - seen
            seen |= new
            todo.extend(new)
        return False

    def _root(self, node: int) -> int:
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def _group(self, node: int) -> _Group:
        return self._groups[self._root(node)]


def _can_fuse(op: OpSignature) -> bool:
    if op.kind in _FIRST:
        return True
    return op.kind not in _ALONE and family_of(op.kind) in _FUSED_FAMILIES


def _reduces(op: OpSignature) -> bool:
    return op.kind in _REDUCTIONS or family_of(op.kind) == "normalisation"


def _made(op: OpSignature) -> int:
    return max((one.elements for one in op.outputs), default=0)


def _elements(op: OpSignature) -> int:
    """Elements that the op's loop runs over: of its input if it is a reduction."""
    if _reduces(op):
        return max((one.elements for one in op.inputs), default=_made(op))
    return _made(op)
