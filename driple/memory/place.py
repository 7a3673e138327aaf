"""What of a setting decides a device's memory: scheme, shards, generation, capacity.

Setting -> MemoryPlace
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.catalog import Device
from driple.cluster.schemes import FSDP, HIERARCHICAL, HSDP, PS, SPLIT, ZERO1, ZERO2
from driple.cluster.setting import Setting, UnknownCluster

__all__ = ["MemoryPlace", "usable_bytes"]

_GB, _GIB = 1e9, 2.0**30
_SINGLE, _REPLICAS = "single", "ddp"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryPlace:
    """One device of a setting.

    Attributes:
        scheme: how the work is distributed.
        shards: devices that share out what the scheme shards.
        replicas: devices in all.
        generation: of the device.
        capacity_bytes: memory of the device; None on a processor.
    """

    scheme: str
    shards: int = 1
    replicas: int = 1
    generation: str = ""
    capacity_bytes: float | None = None

    @classmethod
    def of(cls, setting: Setting, capacity_bytes: float | None = None) -> MemoryPlace:
        """The place of a setting's worker.

        Args:
            setting: cluster and scheme.
            capacity_bytes: memory of the device where it is known better, as for an instance;
                the catalogue's by default.

        Raises:
            CatalogError: the catalogue does not state the memory of the device.
        """
        name, count = setting.scheme.name, setting.num_workers
        if capacity_bytes is None and not setting.on_cpu:
            capacity_bytes = catalogued_bytes(setting.worker)
        return cls(
            scheme=name,
            shards=_within(setting) if name == HSDP else count,
            replicas=count,
            generation=setting.worker.generation,
            capacity_bytes=capacity_bytes,
        )

    @property
    def error_kind(self) -> str:
        """Kind of published runs whose errors belong to it."""
        if self.replicas < 2 or self.scheme in (PS, SPLIT):
            return _SINGLE
        if self.scheme in (FSDP, HSDP):
            return FSDP
        return _REPLICAS

    @property
    def exchanges(self) -> bool:
        """Whether devices exchange tensors directly, so that NCCL has buffers."""
        return self.replicas > 1 and self.scheme != PS

    @property
    def shares_states(self) -> bool:
        """Whether more devices need less memory each."""
        return self.replicas > 1 and self.scheme in (ZERO1, ZERO2, FSDP, HSDP)

    @property
    def is_replicated(self) -> bool:
        """Whether each device holds a whole model with gradients and states."""
        return not self.shares_states and self.scheme not in (HIERARCHICAL, SPLIT)


def catalogued_bytes(device: Device) -> float:
    """Memory of a device; makers write GB where memory comes in GiB.

    Raises:
        CatalogError: the catalogue does not state it.
    """
    return device.memory_bytes / _GB * _GIB


def usable_bytes(capacity_bytes: float, usable_share: float) -> float:
    """Memory that a process can have, without what the driver reserves."""
    return capacity_bytes * usable_share


def _within(setting: Setting) -> int:
    """Devices of the worker's machine."""
    if isinstance(setting.described, UnknownCluster):
        return setting.num_workers
    return len(setting.described.machines[0].devices)
