"""What of a setting decides a device's memory: scheme, shards, generation, capacity.

Setting -> MemoryPlace of its worker, or of each kind of its devices
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from driple.catalog import Device
from driple.cluster.cluster import Cluster, Machine, each_once
from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting, UnknownCluster
from driple.estimate import NEAREST_KIND_WIDER
from driple.jobs.job import Job
from driple.jobs.training_config.config import USUAL_REUSE_ELEMENTS
from driple.schemes.registry import registered_schemes, scheme_named
from driple.schemes.scheme import Sharding

__all__ = ["MemoryPlace", "gpu_kinds", "modelled_schemes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryPlace:
    """One device of a setting.

    Attributes:
        scheme: how the work is distributed.
        shards: devices that share out what the scheme shards.
        replicas: devices in all.
        generation: of the device.
        capacity_bytes: memory of the device; None on a processor.
        device: its name where the setting has unlike devices; empty where all are alike.
        per_machine: devices of its machine; 1 if the machines are not known.
        offload: what a job keeps on the host: `states`, `parameters`.
        host_capacity_bytes: memory of the host; None if it is not stated.
        bucket_elements: of a job's own buffer of gradients; None for that of its scheme.
        has_masters: whether a job's optimizer updates parameters in fp32 and copies them.
        degrees: how devices share out a replica.
        reuse_elements: of a job that states DeepSpeed's; None for its default.
        updates_in_backward: whether a gradient is freed as soon as its parameter is updated.
    """

    scheme: str
    shards: int = 1
    replicas: int = 1
    generation: str = ""
    capacity_bytes: float | None = None
    device: str = ""
    per_machine: int = 1
    offload: tuple[str, ...] = ()
    host_capacity_bytes: float | None = None
    bucket_elements: int | None = None
    has_masters: bool = False
    degrees: Degrees = field(default_factory=Degrees)
    reuse_elements: int | None = None
    updates_in_backward: bool = False

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
        if capacity_bytes is None and not setting.on_cpu:
            capacity_bytes = setting.worker.capacity_bytes
        return cls(
            scheme=setting.scheme.name,
            shards=_shards(setting, _first_machine(setting)),
            replicas=setting.num_workers,
            generation=setting.worker.generation,
            capacity_bytes=capacity_bytes,
            per_machine=_num_devices(_first_machine(setting)),
            host_capacity_bytes=_host_capacity(_first_machine(setting)),
            degrees=setting.scheme.degrees,
        )

    @classmethod
    def of_kinds(
        cls, setting: Setting, capacity_bytes: float | None = None
    ) -> tuple[MemoryPlace, ...]:
        """The places of a setting that may need unlike memory: one for each kind of device.

        Where a scheme shards within a machine, machines of unlike size count as unlike too.

        Args:
            setting: cluster and scheme.
            capacity_bytes: as for `of`; holds for the worker's kind of device.

        Returns:
            The worker's place alone where the other devices are not known, or all compute on
            processors; processors beside GPUs have no place.

        Raises:
            CatalogError: the catalogue does not state the memory of a device.
        """
        described = setting.described
        if isinstance(described, UnknownCluster):
            return (cls.of(setting, capacity_bytes),)
        kinds = gpu_kinds(described)
        if not kinds:
            return (cls.of(setting, capacity_bytes),)
        is_mixed = len({device for device, _ in kinds}) > 1
        places: dict[MemoryPlace, None] = {}
        for device, machine in kinds:
            own = capacity_bytes if device == setting.worker else None
            place = cls(
                scheme=setting.scheme.name,
                shards=_shards(setting, machine),
                replicas=setting.num_workers,
                generation=device.generation,
                capacity_bytes=device.capacity_bytes if own is None else own,
                device=device.name if is_mixed else "",
                per_machine=_num_devices(machine),
                host_capacity_bytes=machine.host.memory_bytes,
                degrees=setting.scheme.degrees,
            )
            places[place] = None
        return tuple(places)

    @classmethod
    def of_job(
        cls, job: Job, setting: Setting, capacity_bytes: float | None = None
    ) -> tuple[MemoryPlace, ...]:
        """The same for a job, which may keep a part of what a device holds on the host.

        Args:
            job: which.
            setting: cluster and scheme.
            capacity_bytes: as for `of`.

        Raises:
            CatalogError: as `of_kinds`.
        """
        return tuple(
            replace(
                place,
                offload=job.offload,
                bucket_elements=job.bucket_elements,
                has_masters=job.step is not None and job.step.has_masters,
                reuse_elements=job.reuse_elements,
                updates_in_backward=job.updates_in_backward,
            )
            for place in cls.of_kinds(setting, capacity_bytes)
        )

    @property
    def sharding(self) -> Sharding | None:
        """What the device holds of a model; None if the memory of the scheme is not modelled.

        A job with a buffer of its own is DeepSpeed's, which also keeps parameters gathered that are
        used again soon.

        Raises:
            SettingError: no such scheme.
        """
        sharding = scheme_named(self.scheme).sharding_of(self.degrees)
        if sharding is None:
            return None
        if not self.has_masters:
            sharding = replace(sharding, has_wide_gradients=False)
        changes = self.offload or self.has_masters or self.updates_in_backward
        if not changes and self.bucket_elements is None:
            return sharding
        reuse = USUAL_REUSE_ELEMENTS if self.reuse_elements is None else self.reuse_elements
        return replace(
            sharding,
            states_on_host="states" in self.offload,
            parameters_on_host="parameters" in self.offload and sharding.shards_parameters,
            bucket_elements=sharding.bucket_elements
            if self.bucket_elements is None
            else self.bucket_elements,
            has_wide_shards=self.has_masters and self.bucket_elements is None,
            reuse_elements=0 if self.bucket_elements is None else reuse,
            updates_in_backward=self.updates_in_backward,
        )

    @property
    def copies(self) -> int:
        """Devices that hold the same parameters, or shares of them."""
        return self.replicas // (self.degrees.tensor * self.degrees.pipeline)

    @property
    def error_kind(self) -> str:
        """Kind of published runs whose errors belong to it."""
        return scheme_named(self.scheme).runs_like(self.replicas).memory

    @property
    def is_nearest_kind(self) -> bool:
        """Whether these runs stand in, since none is of its own scheme."""
        return scheme_named(self.scheme).runs_like(self.replicas).is_nearest_memory

    @property
    def widening(self) -> float:
        """Factor on the logarithms of an interval's ends."""
        return NEAREST_KIND_WIDER if self.is_nearest_kind else 1.0

    @property
    def kind(self) -> str:
        """How the work is distributed, as published runs are told apart."""
        return scheme_named(self.scheme).runs_like(self.replicas).times

    @property
    def exchanges(self) -> bool:
        """Whether devices exchange tensors directly, so that NCCL has buffers."""
        return self.replicas > 1 and not scheme_named(self.scheme).uses_servers

    @property
    def is_replicated(self) -> bool:
        """Whether each device holds as much on any number of devices above one."""
        sharding = self.sharding
        return sharding is not None and (self.replicas < 2 or sharding.is_whole)


def modelled_schemes() -> tuple[str, ...]:
    """Names of the schemes whose memory is modelled."""
    return tuple(scheme.name for scheme in registered_schemes() if scheme.sharding is not None)


def gpu_kinds(cluster: Cluster) -> tuple[tuple[Device, Machine], ...]:
    """Each kind of GPU, with a machine of each size that has it, in the order of the cluster."""
    kinds: dict[tuple[Device, int], Machine] = {}
    for machine in each_once(cluster.machines):
        for device in each_once(machine.devices):
            if not device.is_cpu:
                kinds.setdefault((device, len(machine.devices)), machine)
    return tuple((device, machine) for (device, _), machine in kinds.items())


def _num_devices(machine: Machine | None) -> int:
    return 1 if machine is None else len(machine.devices)


def _host_capacity(machine: Machine | None) -> float | None:
    return None if machine is None else machine.host.memory_bytes


def _first_machine(setting: Setting) -> Machine | None:
    """The worker's machine; None if the machines are not known."""
    described = setting.described
    return None if isinstance(described, UnknownCluster) else described.machines[0]


def _shards(setting: Setting, machine: Machine | None) -> int:
    """Devices that share out what the scheme shards: those of a machine, or all."""
    degrees = setting.scheme.degrees
    count = setting.num_workers // (degrees.tensor * degrees.pipeline)
    sharding = scheme_named(setting.scheme.name).sharding_of(degrees)
    return (
        count
        if sharding is None or machine is None
        else sharding.num_shards(count, len(machine.devices))
    )
