"""Loops of a step whose turns nothing fixes: which they are, and what a user should know of them.

nodes, what runs, loops of unknown length -> those in the step -> a remark
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.tf.raw import RawNode
from driple.remarks import Remark, remark

__all__ = ["loops_in_step", "loops_remark"]

_MOST_NAMED = 3
_LONGEST_NAME = 60


def loops_in_step(
    nodes: Sequence[RawNode], runs: npt.NDArray[np.bool_], unknown: Sequence[str]
) -> tuple[str, ...]:
    """Those of some loops in which the step runs anything, each once.

    Args:
        nodes: all nodes.
        runs: shape [num_nodes], whether the step runs it.
        unknown: frames of Enter, or names of While nodes.
    """
    running = {
        name
        for i in np.flatnonzero(runs).tolist()
        for name in (nodes[i].name, nodes[i].frame, nodes[i].loop)
    }
    return tuple(dict.fromkeys(name for name in unknown if name in running))


def loops_remark(unknown: Sequence[str], loop_turns: int | None) -> Remark:
    """What a user should know of loops of unknown length.

    Args:
        unknown: names of these loops.
        loop_turns: turns that a user gave; None counts each as one turn.
    """
    return remark(
        "loops_of_unknown_length",
        num_loops=len(unknown),
        loops=tuple(name[:_LONGEST_NAME] for name in unknown[:_MOST_NAMED]),
        loop_turns=loop_turns,
    )
