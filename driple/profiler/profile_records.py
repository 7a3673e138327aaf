"""Content of the files of a stall profile, checked when it is read (`driple.codec`).

profile.json     ProfileRecord          step2.r0.json       LaunchRecord
launch/job.json  WorkerJob              launch/rank0.json   RankResult
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driple.checks import check_number, check_whole
from driple.codec import json_field
from driple.errors import ConfigError
from driple.profiler.steps import STEPS
from driple.trace.provenance import MeasuringHost

__all__ = [
    "FORMAT",
    "LaunchRecord",
    "PlanRecord",
    "ProfileRecord",
    "ProfiledHost",
    "RankResult",
    "SeenGradients",
    "WorkerJob",
]

FORMAT = 2
_MOST = 10**9  # processes, samples of a batch, batches of an epoch
_LONGEST_S = 1e9
_MAY_LACK, _OPTIONAL = json_field(may_lack=True), json_field(optional=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenGradients:
    """The gradients of one iteration on one device.

    Attributes:
        nbytes: bytes of each, in the order in which they were ready.
        ready_s: seconds from the start of the iteration until each was ready.
        step_s: iteration time, seconds.

    Raises:
        ConfigError: the number of sizes differs from the number of times, or a value is impossible.
    """

    nbytes: tuple[float, ...]
    ready_s: tuple[float, ...]
    step_s: float

    def __post_init__(self) -> None:
        if len(self.nbytes) != len(self.ready_s):
            raise ConfigError("gradients need as many nbytes as ready_s")
        for name, values in (("nbytes", self.nbytes), ("ready_s", self.ready_s)):
            for value in values:
                check_number(f"{name} of a gradient", value, least=0)
        check_number("step_s of the gradients", self.step_s, above=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerJob:
    """Input of a training process, in addition to its environment.

    Attributes:
        folder: folder of the results.
        synthetic: return one batch repeatedly.
        time_gradients: record the ready time of each gradient.
        cores: core numbers of each device of this machine; None leaves the placement to the system.
        first_rank: first rank of this machine.
        warmup: number of iterations before the timed ones.
        iterations: number of timed iterations.
        seed: random seed.
    """

    folder: str
    synthetic: bool
    time_gradients: bool
    cores: tuple[tuple[int, ...], ...] | None
    first_rank: int
    warmup: int
    iterations: int
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RankResult:
    """Measurements of one training process.

    Attributes:
        rank: rank of the process; None in its own file.
        batch_size: samples of a batch; None if the loader does not report it.
        batches_per_epoch: batches of an epoch; None if the script's loader has no length.
        iterations_s: seconds of each timed iteration.
        wrapped: whether the script uses DistributedDataParallel.
        bucket_mib: size of its buckets, MiB; None without it.
        meter_s: overhead of the timer per iteration, seconds.
        device: name of the GPU, or `CPU`.
        backend: backend of the exchange; None without one.
        gradients: gradients of one iteration; None if they were not recorded.
    """

    rank: int | None = field(default=None, metadata=_OPTIONAL)
    batch_size: int | None = field(default=None, metadata=_MAY_LACK)
    batches_per_epoch: int | None = field(default=None, metadata=_MAY_LACK)
    iterations_s: tuple[float, ...]
    wrapped: bool
    bucket_mib: float | None
    meter_s: float
    device: str
    backend: str | None
    gradients: SeenGradients | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchRecord:
    """Measurements of all ranks of one launch.

    Attributes:
        format: number of the format.
        iteration_s: mean seconds of an iteration of the slowest rank.
        ranks_s: mean seconds of an iteration of each rank.
        iterations_s: seconds of each iteration of rank 0.
        batch_size: samples of a batch; None if the loader does not report it.
        batches_per_epoch: batches of an epoch; None if the script's loader has no length.
        processes: number of ranks.
        wrapped: whether all ranks use DistributedDataParallel.
        bucket_mib: size of its buckets, MiB; None without it.
        device: name of the GPU, or `CPU`.
        backend: backend of the exchange; None without one.
        gradients: gradients of rank 0; None if they were not recorded.
        wall_s: duration of the launch, seconds.
        overhead_pct: upper bound on the profiler's share of the launch, percent.
        script: hash of the script; empty for a module.
        other_cores: cores used by other programs.
        stolen_cores: cores that the hypervisor gave to other machines.
        cleared: method by which caches were cleared before; None if they were not.

    Raises:
        ConfigError: a value is impossible.
    """

    format: int = field(default=FORMAT, metadata=_MAY_LACK)
    iteration_s: float
    ranks_s: tuple[float, ...] = field(default=(), metadata=_MAY_LACK)
    iterations_s: tuple[float, ...] = field(default=(), metadata=_MAY_LACK)
    batch_size: int | None
    batches_per_epoch: int | None
    processes: int
    wrapped: bool
    bucket_mib: float | None
    device: str | None = field(default=None, metadata=_MAY_LACK)
    backend: str | None = field(default=None, metadata=_MAY_LACK)
    gradients: SeenGradients | None
    wall_s: float | None = field(default=None, metadata=_MAY_LACK)
    overhead_pct: float
    script: str
    other_cores: float
    stolen_cores: float
    cleared: str | None

    def __post_init__(self) -> None:
        check_number("iteration_s", self.iteration_s, above=0, most=_LONGEST_S)
        check_whole("processes", self.processes, 1, _MOST)
        for name in ("batch_size", "batches_per_epoch"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 0, _MOST)
        if self.bucket_mib is not None:
            check_number("bucket_mib", self.bucket_mib, above=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRecord:
    """The part of a plan that must not change when a profile is continued; see `steps.Plan`.

    Raises:
        ConfigError: a value is impossible.
    """

    processes: int
    machines: int
    network_bits_per_s: float | None
    iterations: int
    warmup: int
    seed: int

    def __post_init__(self) -> None:
        check_whole("processes", self.processes, 1, _MOST)
        if self.network_bits_per_s is not None:
            check_number("network_bits_per_s", self.network_bits_per_s, above=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfiledHost(MeasuringHost):
    """The machine of a profile.

    Attributes:
        devices: number of its GPUs, or `CPU`.
    """

    devices: int | str = field(default="CPU", metadata=_MAY_LACK)

    @classmethod
    def of(cls, host: MeasuringHost, num_gpus: int) -> ProfiledHost:
        """A machine with this number of GPUs."""
        return cls(
            devices=num_gpus or "CPU",
            cpu=host.cpu,
            cores=host.cores,
            memory_gib=host.memory_gib,
            kernel=host.kernel,
            memory_write_bytes_per_s=host.memory_write_bytes_per_s,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileRecord:
    """Command, plan and machine of a profile.

    Attributes:
        format: number of the format.
        command: the script and its arguments.
        plan: number of processes, iterations and launches.
        data: files and folders that the script reads.
        host: the machine.
        created: start of the profile, ISO format; None if it is not recorded.
        left_out: reason for each step that this machine cannot run.

    Raises:
        ConfigError: a reason for a step that does not exist.
    """

    format: int = FORMAT
    command: tuple[str, ...]
    plan: PlanRecord
    data: tuple[str, ...]
    host: ProfiledHost
    created: str | None = field(default=None, metadata=_OPTIONAL)
    left_out: Mapping[int, str] = field(default_factory=dict, metadata=_MAY_LACK)

    def __post_init__(self) -> None:
        odd = [step for step in self.left_out if step not in STEPS]
        if odd:
            raise ConfigError(f"left_out gives a reason for step {odd[0]}, there are 1 to 5")
