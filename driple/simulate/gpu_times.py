"""Times of a graph's ops on a GPU: its kernels one after another, and the host that starts them.

    OpKinds, Device, GpuEfficiency, Runtime -> OpTimes

The device runs kernels in order; the host enqueues them ahead. What the host takes longer than the
device is spread over the ops in which it was busy, so a step bound by the host shows the device
idle between kernels.

The seconds that every kernel takes at least (`GpuKernels.start_s`) are fitted to whole steps: they
hold an empty kernel (`EMPTY_KERNEL_S`) and its launch. Where the device has work waiting, a
launch is hidden and its seconds are those of kernels; where the host is the slower one, they are a
gap in which no kernel runs. No time of a step depends on this division. Kernels of PyTorch's
present libraries have seconds of their own by kind of op (`PresentKernels`), and launches
`LAUNCH_GAP_S` beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.graph.step_facts import OptimizerUpdate
from driple.simulate.fused import FusedOps
from driple.simulate.gpu_kernels import (
    GpuKernels,
    Runtime,
    channel_rows,
    kernel_seconds,
    shares_with,
    smooth_max,
)
from driple.simulate.gpu_rates import GpuShares, HostPace
from driple.simulate.inner_kernels import INNER_OPS, runs_beside
from driple.simulate.kernels import emulated_ops, unit_times
from driple.simulate.low_products import CAST_KERNELS, low_products
from driple.simulate.op_facts import OpFacts
from driple.simulate.optable import OpTable
from driple.simulate.present_kernels import PresentKernels, is_present
from driple.simulate.product_shares import ProductShares
from driple.step.plan import OpTimes

__all__ = [
    "GpuEfficiency",
    "OpStarts",
    "PeakSeconds",
    "gpu_op_times",
    "inner_starts",
    "most_shares",
    "peak_seconds",
    "update_seconds",
]

FloatArray = npt.NDArray[np.float64]
PIPES = ("half", "tf32", "plain")  # units that multiply, as `GpuShares` names them
_MOST_OF_TENSOR_CORES = 0.95
# Seconds of a kernel that computes nothing: PyTorch's profiler shows fills and small element-wise
# kernels of an H100 at 0.8 to 1.4 us.
EMPTY_KERNEL_S = 1.5e-6
LAUNCH_GAP_S = 1e-6
"""Seconds from the end of a kernel to the begin of the next where both wait in the queue."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuEfficiency:
    """How a GPU's kernels fall short of its peaks, and how fast its host is.

    Attributes:
        kernels: what holds for every GPU.
        shares: what this one reaches.
        host: pace of the host.
        memory_activity: how much longer memory is seen in use than its bytes take at the rate that
            kernels reach.
        memory_gain: bytes/s of the memory over those of the device whose runs stand for it.
        present: kernels of PyTorch's present libraries; None takes them for earlier ones.
        products: what products in half precision reach over the device's own shares, where no step
            of the device was published; None where one was.
    """

    kernels: GpuKernels
    shares: GpuShares
    host: HostPace
    memory_activity: float = 1.0
    memory_gain: float = 1.0
    present: PresentKernels | None = None
    products: ProductShares | None = None

    def kernel_shares(self, facts: OpFacts, runtime: Runtime) -> FloatArray:
        """Shares of the peak FLOP/s and bytes/s that kernels reach, before the device's own."""
        shares = self.kernels.shares(facts, runtime)
        if self.present is not None and is_present(runtime):
            factors = self.present.factors(facts)
            if runtime.compiled:  # a compiler takes no slower kernel than the one without it
                plain = replace(runtime, compiled=False, cuda_graphs=False)
                eager = self.kernels.shares(facts, plain)
                shares = np.maximum(shares, eager * factors)
            else:
                shares = shares * factors
        if self.memory_gain != 1.0:
            shares = shares_with(shares, self.memory_gain)
        return shares if self.products is None else self.products.put_into(shares, facts)

    def op_starts(self, table: OpTable, facts: OpFacts, runtime: Runtime) -> OpStarts:
        """What each op of a table takes beside its work.

        Args:
            table: the ops.
            facts: of them on the device.
            runtime: software that runs them.
        """
        _, apart = inner_starts(table, runtime)
        if self.present is None or not is_present(runtime):
            each_s = self.kernels.start_s
            return OpStarts(
                start_s=np.full(len(apart), each_s),
                gap_s=np.full(len(apart), max(each_s - EMPTY_KERNEL_S, 0.0)),
                apart_s=apart * each_s,
                turns_s=np.zeros(len(apart)),
            )
        most_s = self.kernels.start_s if runtime.compiled else np.inf
        start_s = np.minimum(self.present.starts_s(facts) + LAUNCH_GAP_S, most_s)
        return OpStarts(
            start_s=start_s,
            gap_s=np.minimum(LAUNCH_GAP_S, start_s),
            apart_s=apart * min(self.present.sort_s, most_s),
            turns_s=self.present.turns_s(facts) * (not runtime.compiled),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OpStarts:
    """What ops take beside their work; arrays of length n.

    Attributes:
        start_s: seconds to start an op that is not fused into another.
        gap_s: of these, those in which no kernel runs where the host is the slower one.
        apart_s: seconds of kernels from within a library that are no other op's.
        turns_s: seconds at least of kernels that follow one another.
    """

    start_s: FloatArray
    gap_s: FloatArray
    apart_s: FloatArray
    turns_s: FloatArray


@dataclass(frozen=True, kw_only=True, slots=True)
class PeakSeconds:
    """Seconds of ops at the peaks of a device; arrays of length n.

    Attributes:
        compute_s: of the multiply-adds, in whole tiles and waves where they are a product.
        memory_s: of the bytes.
        pipes: position in `PIPES` of the units that multiply.
        channel_elements: of `OpTable`.
        channel_rows: position in `CHANNEL_RATES` of what moves them.
        facts: of the ops; those in a format that the device lacks count as in single precision.
        cast_s: of the casts of products in few bits; None without such products.
    """

    compute_s: FloatArray
    memory_s: FloatArray
    pipes: npt.NDArray[np.int64]
    channel_elements: FloatArray
    channel_rows: npt.NDArray[np.int64]
    facts: OpFacts
    cast_s: FloatArray | None = None

    def channel_s(self, kernels: GpuKernels, runtime: Runtime) -> FloatArray:
        """Seconds of the block of one channel, which a compiler's kernels lack, and of casts."""
        seconds: FloatArray = self.channel_elements / kernels.channel_rates[self.channel_rows]
        if runtime.compiled:
            seconds = np.zeros_like(self.channel_elements)
        return seconds if self.cast_s is None else seconds + self.cast_s


def peak_seconds(table: OpTable, device: Device) -> PeakSeconds:
    """Seconds of ops at the peaks of a device."""
    units = unit_times(table, device)
    is_product = table.sides[:, 3] > 0
    compute_s = np.where(is_product, units.product_s, table.flops / device.fp32_flops)
    pipes = np.where(units.tensor, np.where(table.half, 0, 1), 2)
    emulated = emulated_ops(table, device)
    facts = table.facts.in_single_precision(emulated) if emulated.any() else table.facts
    memory_s, cast_s = units.memory_s, None
    low = low_products(table, device)
    if low is not None:
        memory_s, cast_s = memory_s.copy(), np.zeros(len(memory_s))
        compute_s[low.rows] *= low.faster
        memory_s[low.rows], cast_s[low.rows] = low.memory_s, low.cast_s
    return PeakSeconds(
        compute_s=compute_s,
        memory_s=memory_s,
        pipes=pipes,
        channel_elements=table.channel_elements,
        channel_rows=channel_rows(facts),
        facts=facts,
        cast_s=cast_s,
    )


def most_shares(pipes: npt.NDArray[np.int64]) -> FloatArray:
    """The largest shares of the peak FLOP/s: tensor cores save no multiplications."""
    return np.where(pipes == PIPES.index("plain"), np.inf, _MOST_OF_TENSOR_CORES)


def gpu_op_times(  # noqa: PLR0917
    table: OpTable,
    kind_of: npt.NDArray[np.integer],
    executions: npt.NDArray[np.int64],
    fused: FusedOps | None,
    update: OptimizerUpdate | None,
    device: Device,
    efficiency: GpuEfficiency,
    runtime: Runtime,
    tensors: int,
) -> OpTimes:
    """How long each op of a graph keeps a device, all its turns together.

    Args:
        table: of the kinds of ops.
        kind_of: shape [num_nodes], row of each node in the table.
        executions: shape [num_nodes], turns of each node in a step.
        fused: which ops a compiler fuses.
        update: of the optimizer, during which the host also runs ahead; None if the device makes
            none.
        device: that runs them.
        efficiency: what it reaches of its peaks.
        runtime: software that runs them.
        tensors: trained ones, which take time of the host.
    """
    peaks = peak_seconds(table, device)
    shares = efficiency.kernel_shares(peaks.facts, runtime)
    own = np.array([getattr(efficiency.shares, pipe) for pipe in PIPES])[peaks.pipes]
    reached = np.minimum(shares[:, 0] * own, most_shares(peaks.pipes))
    compute_s = (peaks.compute_s / reached)[kind_of]
    memory_s = (peaks.memory_s / (shares[:, 1] * efficiency.shares.memory))[kind_of]
    starts = np.ones(len(kind_of))
    if fused is not None:
        memory_s, starts = memory_s * fused.bytes_share, fused.starts.astype(np.float64)
    runs = executions * (table.moved > 0)[kind_of]
    kernels = efficiency.kernels
    inner, _ = inner_starts(table, runtime)
    own_starts = efficiency.op_starts(table, peaks.facts, runtime)
    busy_s = runs * kernel_seconds(
        compute_s,
        memory_s,
        starts * own_starts.start_s[kind_of] + own_starts.apart_s[kind_of],
        peaks.channel_s(kernels, runtime)[kind_of],
        own_starts.turns_s[kind_of],
        sharpness=kernels.sharpness,
        xp=np,
    )
    launches, handed = runs * starts, runs * inner[kind_of]
    host = efficiency.host
    host_s = host.of_step(
        runtime,
        launches=float((launches + handed).sum()),
        runs=float((runs + handed).sum()),
        updates=0 if update is None else update.num_kernels,
        tensors=tensors,
    )
    device_s = busy_s.sum()
    if update is not None:
        device_s += update_seconds(update, device, efficiency)
    idle_s = float(smooth_max(device_s, host_s, host.sharpness, np)) - device_s
    waits_s = max(idle_s, 0.0) * launches / max(launches.sum(), 1.0)
    duration_s = busy_s + waits_s
    gaps_s = launches * own_starts.gap_s[kind_of]
    busy_s = busy_s - gaps_s * _seen_share(device_s, host_s, float(gaps_s.sum()), host.sharpness)
    active_s = np.minimum(runs * memory_s * efficiency.memory_activity, busy_s)
    return OpTimes(duration_s=duration_s, busy_s=busy_s, memory_s=active_s)


def _seen_share(device_s: float, host_s: float, gaps_s: float, sharpness: float) -> float:
    """Share of the launches' seconds in which the device waits for them.

    One half where kernels alone take as long as the host with its launches; it rises to 1 with a
    slower host and falls to 0 with a faster one, with the exponent with which both times meet.

    Args:
        device_s: seconds of kernels with their launches.
        host_s: seconds of the host without them.
        gaps_s: seconds of the launches.
        sharpness: exponent.
    """
    kernels_s = device_s - gaps_s
    whole_s = host_s + gaps_s
    if gaps_s <= 0:
        return 0.0
    return float(1.0 / (1.0 + (kernels_s / whole_s) ** sharpness))


def inner_starts(table: OpTable, runtime: Runtime) -> tuple[FloatArray, FloatArray]:
    """Kernels from within a library, of each op of a table: in ops of the host, and those apart."""
    if runtime.library == "tensorflow":
        nothing = np.zeros_like(table.inner_kernels)
        return nothing, nothing
    apart = np.array([runs_beside(kind) for kind in table.facts.kinds], dtype=np.bool_)
    casts = np.where(table.low > 0, CAST_KERNELS, 0.0)
    handed = INNER_OPS * table.inner_kernels + casts
    return handed, np.where(apart, table.inner_kernels, 0.0) + casts


def update_seconds(update: OptimizerUpdate, device: Device, efficiency: GpuEfficiency) -> float:
    """Seconds of a device for the optimizer's update of all parameters."""
    rate = device.bytes_per_s * efficiency.shares.memory * efficiency.kernels.update_share
    return update.moved_bytes / rate + update.num_kernels * efficiency.kernels.start_s
