"""Gradients of embeddings that are sparse: the rows that a batch reads, not the whole table.

    nn.Embedding(..., sparse=True), tokens [b, t] -> gradient [b * t, width] and b * t row numbers

PyTorch hands a sparse gradient on as it comes, without adding up rows that are read twice. A tensor
without values cannot be sparse, so the rows that are read become a leaf of their own here, whose
gradient is what the sparse one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["SparseRows", "sparse_rows"]

_INDEX_BYTES = 8


@dataclass(slots=True)
class SparseRows:
    """What is read of tables with sparse gradients, in one step.

    Attributes:
        leaves: of each table, by its `id`, the rows that are read.
        counts: of each table, how many rows.
    """

    leaves: dict[int, list[Tensor]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def gradient_of(self, table: Tensor) -> Tensor | None:
        """The last gradient of a table's rows; None if it is dense, or has none."""
        known = [one.grad for one in self.leaves.get(id(table), ()) if one.grad is not None]
        return known[-1] if known else None

    def sent_bytes(self, table: Tensor) -> int:
        """Bytes of a table's gradient: of a sparse one values and row numbers."""
        rows = self.counts.get(id(table))
        if rows is None:
            return table.nbytes
        return rows * (table.nbytes // max(table.shape[0], 1) + _INDEX_BYTES)

    def as_updated(self, table: nn.Parameter) -> nn.Parameter:
        """The part of a parameter that an update reads and writes."""
        rows = self.counts.get(id(table))
        if rows is None:
            return table
        return nn.Parameter(table.new_empty(min(rows, table.shape[0]), *table.shape[1:]))


@contextmanager
def sparse_rows() -> Iterator[SparseRows]:
    """Within the block, embeddings with sparse gradients on the meta device are read by rows."""
    rows = SparseRows()
    with (
        patch.object(functional, "embedding", _by_rows(functional.embedding, rows)),
        patch.object(functional, "embedding_bag", _by_rows(functional.embedding_bag, rows)),
    ):
        yield rows


def _by_rows(known: Callable[..., Tensor], rows: SparseRows) -> Callable[..., Tensor]:
    """An embedding of which a sparse table gets its gradient through the rows that are read."""
    sparse_at = 6 if known.__name__ == "embedding" else 7

    def embedding(  # torch names them so
        input: Tensor,  # noqa: A002
        weight: Tensor,
        *args: Any,
        **named: Any,
    ) -> Tensor:
        position = sparse_at - 2
        sparse = named.get("sparse", args[position] if len(args) > position else False)
        trains = torch.is_grad_enabled() and weight.requires_grad
        if not sparse or not trains or weight.device.type != "meta":
            return known(input, weight, *args, **named)
        named.pop("sparse", None)
        args = (*args[:position], False, *args[position + 1 :]) if len(args) > position else args
        with torch.no_grad():
            read = known(input, weight, *args, **named)
        leaf = read.detach().requires_grad_()
        rows.leaves.setdefault(id(weight), []).append(leaf)
        rows.counts[id(weight)] = rows.counts.get(id(weight), 0) + input.numel()
        return leaf

    return embedding
