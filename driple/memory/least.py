"""The least memory that a training step needs on a device, to refuse devices that are too small.

OpGraph -> LeastMemory (parameters, gradients, optimizer states, largest tensor)

Every job needs at least this much. The activations that wait for the backward pass come on top, so
a job that is not refused may still not fit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from driple.catalog import Catalog, Instance, shipped_hardware
from driple.graph.opgraph import OpGraph

__all__ = ["LeastMemory", "device_memory_bytes", "least_memory"]

_GB, _GIB = 1e9, 2**30


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

    def sentence(self) -> str:
        """For a user."""
        return (
            f"at least {self.total_bytes / _GB:.3g} GB (parameters "
            f"{self.parameters_bytes / _GB:.2g}, gradients {self.gradients_bytes / _GB:.2g}, "
            f"optimizer states {self.states_bytes / _GB:.2g}, largest tensor "
            f"{self.largest_tensor_bytes / _GB:.2g})"
        )


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


def device_memory_bytes(instance: Instance, catalog: Catalog | None = None) -> float:
    """Memory of each device of an instance, as its provider states it, else as the maker does.

    Both write GB where memory comes in GiB (a V100 of 16 GB has 16 GiB), so GiB are taken: a
    device is refused only if it is too small either way.

    Args:
        instance: to rent.
        catalog: devices; as installed by default.
    """
    in_all = instance.device_memory_gb
    if in_all is None:
        return (catalog or shipped_hardware()).device(instance.device).memory_bytes / _GB * _GIB
    return in_all / instance.num_devices * _GIB
