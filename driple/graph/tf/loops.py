"""Executions of each node in a step: one, or as many as the loops around it have turns.

    Enter -> Merge -> Switch -> body -> NextIteration -> Merge ...        Switch -> Exit
              `-> Less(counter, length) -> LoopCond

    While(start) with cond(counter) = Less(counter, length), body(counter) = (counter + 1, ...)

The nodes between Enter and Exit of the same frame name are one loop; so are those of the functions
of a While, once they are inlined. The number of turns follows from the condition where it compares
a counter with a number that the graph fixes, or with what another loop counted up to, as the loops
of a backward pass do. Where several conditions must hold, the first that fails ends the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.loop_lengths import Frames, Lengths
from driple.graph.tf.raw import RawNode
from driple.graph.tf.shape_call import Key
from driple.remarks import Remark, remark

__all__ = ["Executions", "count_executions"]

_MOST = 10**9  # turns of all loops around a node


@dataclass(frozen=True, kw_only=True, slots=True)
class Executions:
    """Executions of nodes.

    Attributes:
        count: shape [num_nodes], int64, 1 outside of loops.
        num_loops: loops in the graph.
        unknown: names of the loops whose length does not follow from the graph.
        notes: on loops whose turns are steps.
    """

    count: npt.NDArray[np.int64]
    num_loops: int
    unknown: tuple[str, ...]
    notes: tuple[Remark, ...] = ()


def count_executions(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    edges: npt.NDArray[np.int32],
    order: Iterable[int],
    *,
    values: Mapping[Key, tuple[tuple[int, ...], tuple[int | float, ...]]] | None = None,
    loop_turns: int | None = None,
    step_loops: frozenset[str | int] = frozenset(),
) -> Executions:
    """Executions of each node in one step.

    Args:
        nodes: all nodes.
        inputs: what each of them reads.
        edges: shape [num_edges, 2], data and control.
        order: positions, a node after all that it reads, but for the edges back of loops.
        values: small tensors that are known (`Inferred.values`).
        loop_turns: turns of each loop whose length does not follow; one if None.
        step_loops: loops whose turns are steps, of which one counts: names of Whiles, numbers of
            frames.
    """
    count = np.ones(len(nodes), dtype=np.int64)
    order = list(order)
    whiles = {nodes[i].name: i for i in order if nodes[i].starts}
    if not whiles and not any(node.op in ("Enter", "RefEnter") for node in nodes):
        return Executions(count=count, num_loops=0, unknown=())
    frames = Frames(nodes, edges, order)
    lengths = Lengths(nodes, inputs, frames, whiles, values or {})
    for i in order:  # a loop after those that it waits for
        if nodes[i].op == "LoopCond":
            lengths.of_frame(frames.of[i])
        elif nodes[i].starts:
            lengths.of_while(nodes[i].name)
    other = loop_turns or 1
    unknown = []
    turns = [1]
    steps: list[int | None] = []
    for frame in range(1, len(frames.parent)):  # a frame comes after the one around it
        length = lengths.of_frame(frame)
        if frame in step_loops:
            steps.append(length)
            length = 1
        if length is None:
            unknown.append(frames.names[frame])
        here = other if length is None else max(1, length)
        turns.append(min(here * turns[frames.parent[frame]], _MOST))
    steps += [lengths.of_while(name) for name in whiles if name in step_loops]
    total = _while_turns(nodes, whiles, lengths, other, step_loops)
    unknown += [
        name for name in whiles if name not in step_loops and lengths.of_while(name) is None
    ]
    for i, frame in enumerate(frames.of):
        count[i] = min(turns[frame] * total.get(nodes[i].loop, 1), _MOST)
    return Executions(
        count=count,
        num_loops=len(turns) - 1 + len(whiles),
        unknown=tuple(unknown),
        notes=_step_notes(steps, loop_turns),
    )


def _while_turns(
    nodes: Sequence[RawNode],
    whiles: Mapping[str, int],
    lengths: Lengths,
    other: int,
    step_loops: frozenset[str | int],
) -> dict[str, int]:
    """Turns of the body of each While in a step, those of the loops around it included."""
    total: dict[str, int] = {}
    for name in whiles:
        around = [name]
        while (outer := nodes[whiles[around[-1]]].loop) in whiles and outer not in total:
            around.append(outer)
        for each in reversed(around):
            length = 1 if each in step_loops else lengths.of_while(each)
            here = other if length is None else max(1, length)
            total[each] = min(here * total.get(nodes[whiles[each]].loop, 1), _MOST)
    return total


def _step_notes(steps: Sequence[int | None], loop_turns: int | None) -> tuple[Remark, ...]:
    """Notes for the user on loops whose turns are steps, from their lengths."""
    if not steps:
        return ()
    number = 1
    for length in steps:
        if length is None and loop_turns is None:
            return (remark("steps_per_call_unknown"),)
        number = min(number * max(1, length or loop_turns or 1), _MOST)
    return (remark("steps_per_call", num_steps=number),)
