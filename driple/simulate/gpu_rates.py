"""What single GPUs reach of their peaks, and how fast hosts hand them ops.

    GpuShares (measured | generation | usual) -> what one device reaches
    HostPace, Runtime, number of ops -> seconds of the host

A device without published rows gets what the same chip with another memory reaches, or what its
generation does, or the usual shares. The host
enqueues ops at its own pace while the device runs earlier ones, also across steps: in the long run
a step takes the time of the slower of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, lru_cache
from math import isclose, log
from typing import Any

from driple.catalog import DEVICES, Device
from driple.catalog.fields import EARLIER_TRAINING, HOST_RUNS, TUNED
from driple.checks import check_number
from driple.codec import json_field
from driple.errors import CatalogError
from driple.remarks import Remark, remark
from driple.simulate.gpu_kernels import Runtime

__all__ = [
    "TENSOR_OPS",
    "GpuReached",
    "GpuShares",
    "HostPace",
    "balance_factor",
    "host_factor",
    "is_better",
    "is_tuned",
    "peaks",
    "tuned_host",
    "tuned_shares",
    "tuning_remarks",
    "with_host",
]

_MOST_DEVICES = 1024  # whose shares are kept
_ROUNDED = 0.1  # data sheets state peaks at clocks of their own
USUAL_BALANCE = 125.0  # FLOP/s of tensor cores for each byte/s of memory, a V100's
TENSOR_OPS = 2.3
"""How many ops' time of the host each trained tensor takes in a training step of PyTorch: adding up
its gradient, setting that to zero, the optimizer's lists. From 249 steps of two machines
that waited for their host: 60 us a tensor and 26 us an op, with or without a gradient (decision
0059)."""
REPLAYED_TENSOR_OPS = 0.45
"""The same in a step that CUDA graphs replay: adding up gradients, zeroing and the optimizer's
lists are left, 9.6 us where an op takes 21, by `driple measure --machine` (decision 0063)."""
_EARLIER_TRAINING = 1.5  # 1.6 on hosts to which 1.07 is left beside the time for each tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuShares:
    """What a device reaches, as factors on what kernels reach of its peaks.

    Attributes:
        half: of the tensor cores' peak in half precision.
        tf32: of their peak in single precision.
        plain: of the plain cores' peak.
        memory: of the memory's peak bytes/s.
    """

    half: float
    tf32: float
    plain: float
    memory: float

    def __post_init__(self) -> None:
        for share_field in fields(self):
            check_number(share_field.name, getattr(self, share_field.name), above=0)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GpuReached:
    """What all GPUs reach, measured or not.

    Tensor cores with more FLOP/s per byte/s of memory reach a smaller share of their peak;
    `tensor_fall` is the exponent.

    Attributes:
        measured: of each device with published rows, by its name in the catalogue.
        generations: by generation, for a device with `USUAL_BALANCE`.
        usual: of generations without rows, with `USUAL_BALANCE`.
        tensor_fall: share of the tensor cores' peak ~ (FLOP/s / byte/s) ** -tensor_fall.
    """

    measured: Mapping[str, GpuShares]
    generations: Mapping[str, GpuShares]
    usual: GpuShares
    tensor_fall: float

    def of(self, device: Device) -> tuple[GpuShares, str]:
        """What a device reaches, and its source: a device, its generation, or empty."""
        source = device if device.name in self.measured else self.twin_of(device)
        if source is not None:
            return self.measured[source.name], source.name
        known = device.generation in self.generations
        return _unmeasured(self, device), device.generation if known else ""

    def twin_of(self, device: Device) -> Device | None:
        """The device with rows that is the same chip as one without; None if there is none.

        Of several the one whose memory is nearest in bytes/s, such as an A100 of 40 or 80 GB.
        """
        return _twin(self, device)

    def memory_gain(self, device: Device) -> float:
        """Bytes/s in a clock of the chip, over those of the same chip with rows; 1 without one."""
        twin = self.twin_of(device)
        if twin is None:
            return 1.0
        clocks = device.fp32_flops / twin.fp32_flops
        return device.bytes_per_s / twin.bytes_per_s / clocks

    def of_generation(self, device: Device) -> GpuShares:
        """What a device without rows reaches, by its generation and the measured devices."""
        shares = self.generations.get(device.generation, self.usual)
        factor = balance_factor(device, self.tensor_fall)
        shares = replace(shares, half=shares.half * factor, tf32=shares.tf32 * factor)
        return self._between(device, shares)

    def _between(self, device: Device, shares: GpuShares) -> GpuShares:
        """Rates no lower than a measured device's that is worse in every field, and no higher
        than those of one that is better.
        """
        kept = {}
        known = [(DEVICES[name], own) for name, own in self.measured.items() if name in DEVICES]
        for pipe in fields(GpuShares):
            share, peak = getattr(shares, pipe.name), peaks(device)[pipe.name]
            for other, own in known:
                rate = getattr(own, pipe.name) * peaks(other)[pipe.name] / peak
                if is_better(device, other):
                    share = max(share, rate)
                elif is_better(other, device):
                    share = min(share, rate)
            kept[pipe.name] = share
        return GpuShares(**kept)


@lru_cache(maxsize=_MOST_DEVICES)
def _unmeasured(reached: GpuReached, device: Device) -> GpuShares:
    """What a device without rows reaches.

    It gets no lower rate than a device of another generation that is worse in every field. A sweep
    asks for it at every point.
    """
    kept = asdict(reached.of_generation(device))
    for other in DEVICES.values():
        if other.name in reached.measured or not _has_peaks(other) or not is_better(device, other):
            continue
        rates, own = peaks(other), asdict(reached.of_generation(other))
        for name, peak in peaks(device).items():
            kept[name] = max(kept[name], own[name] * rates[name] / peak)
    return GpuShares(**kept)


@lru_cache(maxsize=_MOST_DEVICES)
def _twin(reached: GpuReached, device: Device) -> Device | None:
    """See `GpuReached.twin_of`."""
    chip = None if device.name in reached.measured else _chip_of(device)
    if chip is None:
        return None
    known = [DEVICES[name] for name in sorted(reached.measured) if name in DEVICES]
    twins = [one for one in known if _is_same(chip, _chip_of(one))]
    return min(twins, key=lambda one: abs(log(one.bytes_per_s / device.bytes_per_s)), default=None)


@cache
def _chip_of(device: Device) -> tuple[str, int, float, float] | None:
    """What devices of one chip share, whatever their clocks and memory; None if a part is unknown.

    Generation, multiprocessors, and the peaks of the tensor cores over those of the plain ones.
    """
    if not _has_peaks(device) or device.find("multiprocessors") is None:
        return None
    half, single = (rate / device.fp32_flops for rate in (device.half_flops, device.matrix_flops))
    return device.generation, device.multiprocessors, half, single


def _is_same(
    chip: tuple[str, int, float, float], other: tuple[str, int, float, float] | None
) -> bool:
    """Whether two are one chip."""
    if other is None or chip[:2] != other[:2]:
        return False
    return all(isclose(a, b, rel_tol=_ROUNDED) for a, b in zip(chip[2:], other[2:], strict=True))


@cache
def _has_peaks(device: Device) -> bool:
    """Whether the catalogue states all rates of a GPU."""
    if device.is_cpu:
        return False
    try:
        peaks(device)
    except CatalogError:
        return False
    return True


@cache
def peaks(device: Device) -> Mapping[str, float]:
    """Peaks that each of `GpuShares` is a share of."""
    return {
        "half": device.half_flops,
        "tf32": device.matrix_flops,
        "plain": device.fp32_flops,
        "memory": device.bytes_per_s,
    }


@cache
def is_better(device: Device, other: Device) -> bool:
    """Whether a device has at least the other's rates, and more of one."""
    mine, its = peaks(device), peaks(other)
    at_least = all(mine[name] >= its[name] for name in mine)
    return at_least and mine != its


def balance_factor(device: Device, fall: Any) -> Any:
    """Correction of the tensor cores' shares for the device's compute-to-memory ratio."""
    return (device.half_flops / device.bytes_per_s / USUAL_BALANCE) ** -fall


@dataclass(frozen=True, kw_only=True, slots=True)
class HostPace:
    """Seconds of the host to hand work to a device.

    Attributes:
        op_s: for an op of PyTorch 2.
        torch1_op_s: for one of PyTorch 1.
        tensorflow_op_s: for one of TensorFlow.
        compiled_s: for a kernel of a compiled step.
        update_s: for a kernel of the optimizer's update.
        step_s: for what happens once in a step.
        sharpness: exponent with which the times of host and device meet, as in `smooth_max`.
        fastest: how many times as long the fastest known host takes.
        slowest: how many times as long the slowest known host takes.
    """

    op_s: float
    torch1_op_s: float
    tensorflow_op_s: float
    compiled_s: float
    update_s: float
    step_s: float
    sharpness: float
    fastest: float = field(default=1.0, metadata=json_field(optional=True))
    slowest: float = field(default=1.0, metadata=json_field(optional=True))

    def __post_init__(self) -> None:
        for pace_field in fields(self):
            check_number(pace_field.name, getattr(self, pace_field.name), above=0)

    def each_s(self, runtime: Runtime) -> float:
        """Seconds for one op, or one kernel of a compiled step."""
        eager = {"torch1": self.torch1_op_s, "tensorflow": self.tensorflow_op_s}
        return self.compiled_s if runtime.compiled else eager.get(runtime.library, self.op_s)

    def of_step(
        self, runtime: Runtime, *, launches: float, runs: float, updates: int, tensors: int
    ) -> float:
        """Seconds of the host for a step.

        A compiler hands over no later than the ops one by one would be; CUDA graphs replay all
        kernels but those of the update at once.

        Args:
            runtime: software that runs the step.
            launches: kernels that are started.
            runs: executions of ops.
            updates: kernels of the optimizer's update.
            tensors: trained ones, whose gradients a program in Python hands on one by one.
        """
        eager = replace(runtime, compiled=False, cuda_graphs=False)
        op_s, rest_s = self.each_s(eager), self.step_s + updates * self.update_s
        if runtime.cuda_graphs:
            return tensors * REPLAYED_TENSOR_OPS * op_s + rest_s
        each_s = min(launches * self.each_s(runtime), runs * op_s)
        return each_s + tensors * TENSOR_OPS * op_s + rest_s

    def slower(self, factor: float) -> HostPace:
        """A host that takes `factor` times as long."""
        paces = {
            one.name: getattr(self, one.name) * factor
            for one in fields(self)
            if one.name.endswith("_s")
        }
        return replace(self, **paces)


def is_tuned(device: Device) -> bool:
    """Whether a catalogue file states what the user's own runs on the device reach."""
    return any(f"tuned_{name}" in device.facts for name in TUNED)


def tuned_shares(device: Device, shares: GpuShares) -> GpuShares:
    """What the device reaches in the user's own runs, where a catalogue file states it."""
    factors = {field.name: _tuned(device, field.name) for field in fields(GpuShares)}
    if all(factor == 1.0 for factor in factors.values()):
        return shares
    return GpuShares(**{name: getattr(shares, name) * by for name, by in factors.items()})


def tuned_host(device: Device, host: HostPace) -> HostPace:
    """The pace of the host in the user's own runs, where a catalogue file states it."""
    factor = host_factor(device, host)
    return host if factor == 1.0 else host.slower(factor)


def host_factor(device: Device, host: HostPace) -> float:
    """How many times as long as usual the host takes in the user's own runs; 1 without them.

    Files of earlier versions state how many times as long as the fastest one, which was the usual
    one then. They have a factor of training steps too, in place of time for each tensor: in the
    mean of such runs it was `_EARLIER_TRAINING`.
    """
    factor, (training, runs) = _tuned(device, "host"), map(device.find, EARLIER_TRAINING)
    if device.find("tuned_host") is None or (
        training is None and device.find(HOST_RUNS) is not None
    ):
        return factor
    over_training = 1.0 if training is None or runs == 0 else float(training) / _EARLIER_TRAINING
    return factor * over_training * host.fastest


def with_host(device: Device, factor: float) -> Device:
    """The device with a host that takes `factor` times as long as the usual one."""
    kept = {name: fact for name, fact in device.facts.items() if name not in EARLIER_TRAINING}
    runs = device.find(HOST_RUNS) or 1  # 0 would mean a file of an earlier version
    return replace(device, facts={**kept, "tuned_host": factor, HOST_RUNS: runs})


def tuning_remarks(device: Device) -> tuple[Remark, ...]:
    """How the device was tuned; nothing if it was not."""
    if not is_tuned(device):
        return ()
    tuned = tuple(name for name in TUNED if f"tuned_{name}" in device.facts)
    facts = {name: device.find(f"tuned_{name}") for name in ("runs", "median_pct", "p90_pct")}
    return (
        remark(
            "tuned_device",
            device=device.name,
            file=device.origin,
            names=tuned,
            factors=tuple(_tuned(device, name) for name in tuned),
            num_runs=facts["runs"],
            median_pct=facts["median_pct"],
            p90_pct=facts["p90_pct"],
        ),
    )


def _tuned(device: Device, name: str) -> float:
    return float(device.find(f"tuned_{name}") or 1.0)
