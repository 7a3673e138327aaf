"""The update of 8-bit Adam (bitsandbytes), from the sizes of parameters alone.

elements and bytes of each parameter -> bytes of states, bytes moved, kernels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import OptimizerUpdate

__all__ = ["eight_bit_update", "with_eight_bit_adam"]

_NAME = "adam8bit"
# Smaller parameters keep full states; a block shares a scale of 4 bytes.
_LEAST, _BLOCK = 4096, 256


def eight_bit_update(elements: Sequence[int], nbytes: Sequence[int]) -> OptimizerUpdate:
    """One update of parameters: a kernel for each.

    Args:
        elements: shape [p], of each parameter.
        nbytes: shape [p], bytes of each parameter.
    """
    state_bytes = sum(
        2 * 4 * count if count < _LEAST else 2 * (count + 4 * ceil(count / _BLOCK))
        for count in elements
    )
    return OptimizerUpdate(
        optimizer=_NAME,
        state_bytes=state_bytes,
        moved_bytes=2 * state_bytes + 3 * sum(nbytes),
        num_kernels=len(elements),
    )


def with_eight_bit_adam(graph: OpGraph) -> OpGraph | None:
    """A PyTorch step that is updated by 8-bit Adam; None if its parameters do not tell how.

    Its memory is that of the same step read anew. What clips gradients, or scales a loss, is not
    in this update.

    Args:
        graph: of a step with another optimizer.
    """
    table = graph.parameters
    updated = sorted(set(table.gradients[:, 0].tolist()))
    if sum(ops.num_nodes for ops in graph.remote) != len(updated):
        return None
    update = eight_bit_update(
        [int(table.elements[number]) for number in updated],
        [int(table.nbytes[number]) for number in updated],
    )
    return replace(graph, update=update)
