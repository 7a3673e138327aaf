"""One step of a device in time, and the twelve targets of it.

    device  |ffffff|bbbbbbbbbb|..|uu|     StepProfile --corrected--> StepProfile
    network        |--|  |--| |--|          --usage--> bursts, gaps --targets--> Targets

A burst is a time in which a resource is in use, an idle duration the time to the next burst. The
step repeats, so that a burst at its end goes on at its begin. All resources have the period of the
step: `num_bursts` bursts and gaps together last as long as the step, and burst amount times seconds
of bursts is the whole use of the step. Labels of recorded traces find bursts by 2-means instead
(`driple.trace.label`), which needs samples far shorter than a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.checks import check_choice, check_number
from driple.errors import ConfigError
from driple.step.phases import EXCHANGE, HOST, STEP_PHASES
from driple.trace.targets import FIGURES, RESOURCES, Targets

__all__ = ["Burst", "DeviceSpan", "LinkSpan", "StepProfile", "Usage"]

FloatArray = npt.NDArray[np.float64]

# A shorter gap does not end a burst, but lowers its amount: the share of a step that can be told
# apart in a picture of it.
_SHORTEST_GAP = 0.01
_ROUNDING = 1e-6  # of a step: sums of times


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceSpan:
    """A phase of the step on the device.

    Attributes:
        phase: one of `STEP_PHASES`.
        start_s: start in the step, seconds.
        end_s: end in the step, seconds.
        busy_share: share of the time in which a kernel runs.
        memory_share: share in which a kernel uses device memory.
        exchange_share: share in which the device waits for other devices; the rest it waits for
            its host.

    Raises:
        ConfigError: a phase that no step has, or shares that are not of one time.
    """

    phase: str
    start_s: float
    end_s: float
    busy_share: float
    memory_share: float
    exchange_share: float = 0.0

    def __post_init__(self) -> None:
        check_choice("phase of a step", self.phase, STEP_PHASES)
        shares = (self.memory_share, self.busy_share, self.exchange_share)
        more = self.busy_share + self.exchange_share
        if min(shares) < -_ROUNDING or max(more, self.memory_share) > 1 + _ROUNDING:
            raise ConfigError(
                f"shares of {self.phase} must be from 0 to 1, got {self.busy_share:.4g} of "
                f"kernels, {self.memory_share:.4g} of memory, {self.exchange_share:.4g} of waiting"
            )

    @property
    def length_s(self) -> float:
        """Seconds of the span."""
        return self.end_s - self.start_s

    @property
    def host_share(self) -> float:
        """Share in which the device waits for its host."""
        return max(1.0 - self.busy_share - self.exchange_share, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSpan:
    """A time in which a device sends or receives.

    Attributes:
        start_s: start in the step, seconds.
        end_s: end in the step, seconds.
        bytes_per_s: mean rate.
    """

    start_s: float
    end_s: float
    bytes_per_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Burst:
    """A time in which a resource is in use.

    Attributes:
        start_s: start in the step, seconds.
        end_s: end, seconds; past the end of the step if the burst goes on in the next one.
        amount: mean use, percent or MB/s.
    """

    start_s: float
    end_s: float
    amount: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """How one resource is used in a step.

    Attributes:
        bursts: in order; one of the whole step if the resource is always in use, none if never.
        step_s: seconds of the step.
    """

    bursts: tuple[Burst, ...]
    step_s: float

    @property
    def num_bursts(self) -> int:
        """Bursts of a step."""
        return len(self.bursts)

    @property
    def burst_s(self) -> float:
        """Mean duration of a burst, seconds."""
        return self._used_s / max(len(self.bursts), 1)

    @property
    def idle_s(self) -> float:
        """Mean duration of a gap, seconds."""
        return (self.step_s - self._used_s) / max(len(self.bursts), 1)

    @property
    def burst_amount(self) -> float:
        """Mean use in bursts, percent or MB/s."""
        return self._total / self._used_s if self._used_s else 0.0

    @property
    def mean(self) -> float:
        """Mean use over the step, percent or MB/s."""
        return self._total / self.step_s

    @property
    def _used_s(self) -> float:
        return min(sum(one.end_s - one.start_s for one in self.bursts), self.step_s)

    @property
    def _total(self) -> float:
        return sum(one.amount * (one.end_s - one.start_s) for one in self.bursts)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepProfile:
    """One step of one device.

    Attributes:
        step_s: seconds of the step.
        device: what the device does, in order; between spans it waits for other devices.
        tx: when it sends, in order.
        rx: when it receives, in order.
        kernels_exchange: whether kernels of the device exchange, as those of NCCL, which run while
            they wait for other devices; no copies through a host, as with parameter servers.

    Raises:
        ConfigError: a step that takes no time, or a span outside of it.
    """

    step_s: float
    device: tuple[DeviceSpan, ...]
    tx: tuple[LinkSpan, ...] = ()
    rx: tuple[LinkSpan, ...] = ()
    kernels_exchange: bool = False

    def __post_init__(self) -> None:
        check_number("step_s", self.step_s, above=0)
        allowed_s = _ROUNDING * self.step_s
        for spans in (self.device, self.tx, self.rx):
            now_s = 0.0
            for span in spans:
                if not now_s - allowed_s <= span.start_s <= span.end_s <= self.step_s + allowed_s:
                    raise ConfigError(
                        f"a span from {span.start_s:.4g} to {span.end_s:.4g} s does not follow "
                        f"{now_s:.4g} s in a step of {self.step_s:.4g} s"
                    )
                now_s = span.end_s

    def corrected(self, step_s: float) -> StepProfile:
        """The same step, as long as a better estimate says: all times by one factor.

        Shares of the device and bytes of the network stay, so that rates fall as times grow.

        Args:
            step_s: seconds of the corrected step.

        Raises:
            ConfigError: a time that is not above 0.
        """
        check_number("step_s", step_s, above=0)
        return self.corrected_by_phase(dict.fromkeys(STEP_PHASES, step_s / self.step_s))

    def corrected_by_phase(self, factors: Mapping[str, float]) -> StepProfile:
        """The same step with the times of each phase by a factor of its own.

        What the network does in a phase is stretched with it; its bytes stay.

        Args:
            factors: by phase (`STEP_PHASES`; `exchange` and `host` are the waits); 1 for others.

        Raises:
            ConfigError: a phase that no step has, or a factor that is not above 0.
        """
        for phase, factor in factors.items():
            check_choice("phase of a step", phase, STEP_PHASES)
            check_number(f"factor of {phase}", factor, above=0)
        old = [0.0]
        new = [0.0]
        device = []
        waits = factors.get(EXCHANGE, 1.0)
        for span in (*self.device, None):
            start_s = self.step_s if span is None else span.start_s
            new.append(new[-1] + waits * max(start_s - old[-1], 0.0))
            old.append(start_s)
            if span is not None:
                stretched, length = _stretched(span, factors, new[-1])
                device.append(stretched)
                new.append(new[-1] + length)
                old.append(span.end_s)
        clock = (np.array(old), np.array(new))
        return replace(
            self,
            step_s=new[-1],
            device=tuple(device),
            tx=_on_clock(self.tx, clock),
            rx=_on_clock(self.rx, clock),
        )

    def phases_s(self) -> dict[str, float]:
        """Seconds of each phase and of each wait, in the order of `STEP_PHASES`; they add up to
        the step.
        """
        by_phase = dict.fromkeys(STEP_PHASES, 0.0)
        for span in self.device:
            by_phase[span.phase] += span.busy_share * span.length_s
            by_phase[EXCHANGE] += span.exchange_share * span.length_s
            by_phase[HOST] += span.host_share * span.length_s
        by_phase[EXCHANGE] += max(self.step_s - sum(span.length_s for span in self.device), 0.0)
        return {name: seconds for name, seconds in by_phase.items() if seconds > 0}

    def counted_pct(self) -> tuple[float, float]:
        """Mean GPU and memory utilisation that NVML and `nvidia-smi` show, percent.

        Their windows (1/6 s) are longer than most steps, so that a reading is near the mean.
        Kernels of an exchange count as any other, also while they wait.
        """
        usage = self.usage()
        waits_s = self.phases_s().get(EXCHANGE, 0.0) if self.kernels_exchange else 0.0
        busy = usage["device_util"].mean + 100 * waits_s / self.step_s
        return min(busy, 100.0), usage["device_mem_util"].mean

    def usage(self) -> dict[str, Usage]:
        """How each resource is used, in the order of `RESOURCES`."""
        busy = [(one.start_s, one.end_s, 100 * one.busy_share) for one in self.device]
        memory = [(one.start_s, one.end_s, 100 * one.memory_share) for one in self.device]
        links = [
            [(one.start_s, one.end_s, one.bytes_per_s / 1e6) for one in spans]
            for spans in (self.tx, self.rx)
        ]
        spans = (busy, memory, *links)
        return {
            name: Usage(bursts=_bursts(own, self.step_s), step_s=self.step_s)
            for name, own in zip(RESOURCES, spans, strict=True)
        }

    def targets(self) -> Targets:
        """The twelve targets: mean burst amount, burst duration and idle duration by resource."""
        values = np.zeros((len(RESOURCES), len(FIGURES)))
        for row, usage in enumerate(self.usage().values()):
            values[row] = (usage.burst_amount, usage.burst_s, usage.idle_s)
        return Targets(values)


def _stretched(
    span: DeviceSpan, factors: Mapping[str, float], start_s: float
) -> tuple[DeviceSpan, float]:
    """A span whose kernels and waits take longer, and its seconds."""
    kernels = factors.get(span.phase, 1.0)
    waits = factors.get(EXCHANGE, 1.0) * span.exchange_share
    busy, memory = kernels * span.busy_share, kernels * span.memory_share
    whole = busy + waits + factors.get(HOST, 1.0) * span.host_share
    length_s = whole * span.length_s
    stretched = replace(
        span,
        start_s=start_s,
        end_s=start_s + length_s,
        busy_share=busy / whole,
        memory_share=memory / whole,
        exchange_share=waits / whole,
    )
    return stretched, length_s


def _on_clock(
    spans: Iterable[LinkSpan], clock: tuple[FloatArray, FloatArray]
) -> tuple[LinkSpan, ...]:
    """Transfers of the same bytes at the new times."""
    transfers = []
    for span in spans:
        start_s, end_s = np.interp([span.start_s, span.end_s], *clock).tolist()
        if end_s > start_s:
            rate = span.bytes_per_s * (span.end_s - span.start_s) / (end_s - start_s)
            transfers.append(LinkSpan(start_s=start_s, end_s=end_s, bytes_per_s=rate))
    return tuple(transfers)


def _bursts(spans: Iterable[tuple[float, float, float]], step_s: float) -> tuple[Burst, ...]:
    """Times of use, from spans (start, end, amount) in order; short gaps do not end a burst."""
    gap_s = _SHORTEST_GAP * step_s
    joined: list[list[float]] = []  # start, end, amount times seconds
    for start_s, end_s, amount in spans:
        if amount <= 0 or end_s <= start_s:
            continue
        used = amount * (end_s - start_s)
        if joined and start_s - joined[-1][1] <= gap_s:
            joined[-1][1] = end_s
            joined[-1][2] += used
        else:
            joined.append([start_s, end_s, used])
    if not joined:
        return ()
    around_s = joined[0][0] + step_s - joined[-1][1]
    if around_s <= gap_s and len(joined) == 1:
        joined[0][:2] = [0.0, step_s]
    elif around_s <= gap_s:
        first = joined.pop(0)
        joined[-1][1] = first[1] + step_s
        joined[-1][2] += first[2]
    return tuple(
        Burst(start_s=start_s, end_s=end_s, amount=used / (end_s - start_s))
        for start_s, end_s, used in joined
        if math.isfinite(used)
    )
