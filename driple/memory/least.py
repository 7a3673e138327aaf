"""The least memory that a training step needs on a device.

OpGraph -> LeastMemory (parameters, gradients, optimizer states, largest tensor)

Every job needs at least this much; the activations that wait for the backward pass come on top.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from driple.graph.opgraph import OpGraph

__all__ = ["LeastMemory", "least_memory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeastMemory:
    """Bytes of a device that a step needs at least.

    Attributes:
        parameters_bytes: of all trained parameters.
        gradients_bytes: of their gradients.
        states_bytes: of what the optimizer keeps of each; 0 if the graph does not show it.
        largest_tensor_bytes: of the largest output of an op.
    """

    parameters_bytes: int
    gradients_bytes: int
    states_bytes: int
    largest_tensor_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of these at once."""
        return sum(asdict(self).values())


def least_memory(graph: OpGraph) -> LeastMemory:
    """A lower bound for one device that holds a whole model, as in data-parallel training."""
    traffic = graph.traffic.without_states()
    parameters_bytes = sum(traffic.received_bytes.tolist())
    outputs = [tensor.nbytes for op in graph.signatures for tensor in op.outputs]
    return LeastMemory(
        parameters_bytes=parameters_bytes,
        gradients_bytes=sum(traffic.sent_bytes.tolist()),
        states_bytes=graph.update.state_bytes,
        largest_tensor_bytes=max(outputs, default=0),
    )
