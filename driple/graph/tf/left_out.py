"""Nodes that a step leaves out, counted by purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.tf.links import GraphLinks
from driple.graph.tf.step_ops import StepOps

__all__ = ["leads_only_to", "left_out"]

BoolArray = npt.NDArray[np.bool_]


def left_out(ops: StepOps, links: GraphLinks, runs: BoolArray) -> dict[str, int]:
    """Number of nodes that do not run, by reason; each counts once, for the first that holds.

    Args:
        ops: what the ops do.
        links: who reads what.
        runs: shape [num_nodes], what runs.
    """
    rest = ~runs
    reasons = {
        "savers": _with_all_after(links, ops.savers & rest, rest),
        "summaries": leads_only_to(links, ops.summaries & rest, rest),
        "initial broadcasts": _with_all_after(links, ops.broadcasts & rest, rest),
        "other updates": leads_only_to(links, (ops.applies | ops.others) & rest, rest)
        & ~ops.variables,
        "initialisers": leads_only_to(links, ops.assigns & rest, rest) & ~ops.variables,
        "unused variables": ops.variables,
        "gradients that nobody reads": ops.gradients(),
        "not needed by an update": rest,
    }
    counts: dict[str, int] = {}
    for reason, mask in reasons.items():
        number = int((mask & rest).sum())
        if number:
            counts[reason] = number
        rest = rest & ~mask
    return counts


def leads_only_to(links: GraphLinks, ends: BoolArray, among: BoolArray) -> BoolArray:
    """Some nodes, and those of `among` all of whose readers are such nodes."""
    taken = ends.copy()
    unread = [len(readers) for readers in links.readers]
    todo = np.flatnonzero(ends).tolist()
    while todo:
        i = todo.pop()
        for source in (*links.data[i], *links.control[i]):
            unread[source] -= 1
            if not unread[source] and among[source] and not taken[source]:
                taken[source] = True
                todo.append(source)
    return taken


def _with_all_after(links: GraphLinks, starts: BoolArray, among: BoolArray) -> BoolArray:
    """The same, with all nodes of `among` that come after them."""
    after = starts.copy()
    todo = np.flatnonzero(starts).tolist()
    while todo:
        for reader in links.readers[todo.pop()]:
            if among[reader] and not after[reader]:
                after[reader] = True
                todo.append(reader)
    return leads_only_to(links, after, among)
