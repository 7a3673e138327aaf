"""Loops of a step whose turns nothing fixes: which they are, and what a user should know of them.

nodes, what runs, loops of unknown length -> those in the step -> one sentence
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.tf.raw import RawNode

__all__ = ["loop_words", "loops_in_step"]

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


def loop_words(unknown: Sequence[str], loop_turns: int | None) -> str:
    """One sentence for a user; empty without loops of unknown length.

    Args:
        unknown: names of these loops.
        loop_turns: turns that a user gave; None counts each as one turn.
    """
    if not unknown:
        return ""
    named = ", ".join(name[:_LONGEST_NAME] for name in unknown[:_MOST_NAMED])
    named += ", ..." if len(unknown) > _MOST_NAMED else ""
    begin = f"{len(unknown)} loop(s) of unknown length ({named})"
    if loop_turns is not None:
        return f"{begin} turn {loop_turns} times"
    return (
        f"{begin} count as one turn, so that times are too short; set their turns with "
        "--set loop_turns=N"
    )
