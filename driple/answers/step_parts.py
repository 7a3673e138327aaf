"""Where the time of a step goes: computing by kind of op, waiting for the host, and for exchanges.

ReadyJob, Place, seconds of a step -> StepParts -> Bottleneck
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from driple.catalog import shipped_hardware
from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology
from driple.graph.opkind import CONVOLUTION_FAMILIES, family_of
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from driple.step.exchange import passes_of
from driple.step.phases import EXCHANGE, HOST
from driple.units import counted

if TYPE_CHECKING:
    from driple.answers.ready_job import ReadyJob
    from driple.simulate.place import Place
    from driple.step.profile import StepProfile

__all__ = ["Alone", "Bottleneck", "StepParts", "alone_of", "parts_of"]

_HOST = "the host, which starts kernels"
_UPDATE = "optimizer update"
_COMPUTING = "computing"
_HOST_UPDATES = "the host, which updates parameters, and links"
_WORDS = {
    **dict.fromkeys(CONVOLUTION_FAMILIES, "convolutions"),
    "matmul": "matrix products",
    "elementwise": "element-wise ops",
    "control": "element-wise ops",
    "lists": "element-wise ops",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bottleneck:
    """What takes most of a step.

    Attributes:
        part: its name, such as `matrix products`.
        pct: percent of the step.
    """

    part: str
    pct: float

    @property
    def is_host(self) -> bool:
        """Whether the device waits for its host most of all."""
        return self.part == _HOST


@dataclass(frozen=True, kw_only=True, slots=True)
class StepParts:
    """What a step of one device is made of; the parts add up to the step.

    Attributes:
        computing_s: seconds of the device by kind of op, the longest first.
        host_s: seconds in which the device waits for the host to start kernels.
        exchange_s: seconds that exchanges add, as far as computing does not cover them.
        exchange: what is waited for, in words; empty for a device alone.
    """

    computing_s: Mapping[str, float]
    host_s: float
    exchange_s: float = 0.0
    exchange: str = ""

    @property
    def step_s(self) -> float:
        """All parts."""
        return sum(self.computing_s.values()) + self.host_s + self.exchange_s

    def scaled(self, step_s: float) -> StepParts:
        """The same parts, so that they add up to a step."""
        factor = step_s / self.step_s if self.step_s > 0 else 1.0
        return replace(
            self,
            computing_s={name: factor * seconds for name, seconds in self.computing_s.items()},
            host_s=factor * self.host_s,
            exchange_s=factor * self.exchange_s,
        )

    def with_exchange(self, step_s: float, exchange: str) -> StepParts:
        """The parts of a step of several devices, each of which computes as one alone does.

        Devices that share out the update have less of it, so a step may be shorter than alone.

        Args:
            step_s: seconds of a step of all devices.
            exchange: what they wait for, in words.
        """
        added_s = step_s - self.step_s
        if added_s >= 0:
            return replace(self, exchange_s=added_s, exchange=exchange)
        computing = dict(self.computing_s)
        computing[_UPDATE] = max(computing.get(_UPDATE, 0.0) + added_s, 0.0)
        return replace(self, computing_s=computing, exchange=exchange).scaled(step_s)

    def rows(self) -> list[tuple[str, float, float]]:
        """Part, seconds and percent of the step, in the order computing, host, exchange."""
        longest = sorted(self.computing_s.items(), key=lambda item: (-item[1], item[0]))
        parts = [*longest, ("waiting for the host", self.host_s)]
        if self.exchange:
            parts.append((f"waiting for {self.exchange}", self.exchange_s))
        whole = self.step_s
        return [(name, seconds, 100 * seconds / whole if whole else 0.0) for name, seconds in parts]

    @property
    def host_pct(self) -> float:
        """Percent of the step in which the device waits for its host; 0 without time."""
        whole = self.step_s
        return 100 * self.host_s / whole if whole > 0 else 0.0

    @property
    def bottleneck(self) -> Bottleneck | None:
        """The largest part of a step; None of a step without time."""
        parts = {**self.computing_s, _HOST: self.host_s}
        if self.exchange:
            parts[self.exchange] = self.exchange_s
        whole = self.step_s
        if whole <= 0:
            return None
        name = max(sorted(parts), key=lambda part: parts[part])
        return Bottleneck(part=name, pct=100 * parts[name] / whole)


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """A step of one device by itself.

    Attributes:
        step_s: its seconds.
        parts: what it is made of.
    """

    step_s: float
    parts: StepParts


def alone_of(ready: ReadyJob, place: Place) -> Alone:
    """A step of one device of a place by itself; worked out once for each device.

    Raises:
        GraphError: a graph that cannot be simulated, or whose steps take no time.
    """
    device, known = place.setting.worker, ready.alone
    key = (device.name, id(place.calibration))
    if key not in known:
        setting = machines_setting(shipped_hardware(), device)
        job = ready.prepared.without_offload()
        step_s = simulated_step_s(job, setting, place.calibration)
        parts = _device_parts(job, setting, place.calibration).scaled(step_s)
        known[key] = Alone(step_s=step_s, parts=parts)
    return known[key]


def parts_of(
    ready: ReadyJob, place: Place, step_s: float, *, profile: StepProfile | None = None
) -> StepParts | None:
    """The parts of a step on a place; None on processors, with servers, or of a split model.

    Args:
        ready: the job.
        place: machines and their calibration.
        step_s: seconds of a step of all devices.
        profile: of that step, which shows how a split model waits.

    Raises:
        GraphError: a graph that cannot be simulated, or whose steps take no time.
    """
    topology = place.topology
    if place.setting.on_cpu or topology.server_machine:
        return None
    if topology.degrees.is_split:
        return None if profile is None else _split_parts(ready, topology, profile).scaled(step_s)
    parts = alone_of(ready, place).parts
    if ready.job.offload:
        return parts.with_exchange(step_s, _HOST_UPDATES)
    if len(topology.workers) == 1:
        return parts.scaled(step_s)
    return parts.with_exchange(step_s, _exchange_words(topology))


def _split_parts(ready: ReadyJob, topology: Topology, profile: StepProfile) -> StepParts:
    """The parts of a step of a device of the first stage, whose kernels are not told apart.

    A pipeline of p devices with v stages each and m micro-batches is idle for p - 1 of its
    v m + p - 1 turns, its bubble (Narayanan et al., SC 2021); what a device waits for beyond that
    are links.
    """
    phases_s = profile.phases_s()
    waits_s, host_s = phases_s.pop(EXCHANGE, 0.0), phases_s.pop(HOST, 0.0)
    stages, passes = topology.degrees.pipeline, passes_of(ready.prepared.graph)
    turns = passes * topology.degrees.virtual
    bubble_s = profile.step_s * (stages - 1) / (turns + stages - 1)
    words = _exchange_words(topology)
    if 2 * bubble_s > waits_s:
        words = (
            f"other stages, the bubble of a pipeline of {stages} stages with "
            f"{counted(passes, 'micro-batch')}"
        )
    return StepParts(
        computing_s={_COMPUTING: sum(phases_s.values())},
        host_s=host_s,
        exchange_s=waits_s,
        exchange=words,
    )


def _device_parts(job: PreparedJob, setting: Setting, calibration: Calibration) -> StepParts:
    """The parts of a step of one device by itself."""
    device = calibration.device(setting.worker)
    times = job.times(device)
    families = [family_of(op.kind) for op in job.graph.signatures]
    names = [_WORDS.get(family, family) for family in families]
    known, which = np.unique(np.array(names, dtype=str), return_inverse=True)
    by_signature = np.array(which)[job.graph.signature_of]
    sums = np.bincount(by_signature, weights=times.busy_s, minlength=len(known))
    computing = {str(name): float(seconds) for name, seconds in zip(known, sums, strict=True)}
    update_s = job.update_seconds(device)
    if update_s:
        computing[_UPDATE] = update_s
    ordered = sorted(computing.items(), key=lambda item: (-item[1], item[0]))
    return StepParts(
        computing_s={name: seconds for name, seconds in ordered if seconds > 0},
        host_s=float((times.duration_s - times.busy_s).sum()),
    )


def _exchange_words(topology: Topology) -> str:
    """What an exchange of a cluster crosses, in words; empty for a device alone."""
    if len(topology.workers) < 2:
        return ""
    link = topology.between if topology.between is not None else topology.within
    within = topology.within
    if topology.degrees.is_split and topology.between is not None and within is not None:
        return f"the links within and between machines ({within.name}, {topology.between.name})"
    where = "the network" if topology.between is not None else "the links between devices"
    return where if link is None else f"{where} ({link.name})"
