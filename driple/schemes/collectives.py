"""Time and bytes of collectives: rings and double binary trees with the protocols of NCCL.

    DeviceGroup (devices, machines, hops) + bytes -> fastest of ring and tree x LL, LL128, Simple

n devices on m machines exchange S bytes. A ring has n - 1 steps (an all-reduce twice as many), of
which m - 1 cross the network, and each device sends (n - 1) / n S (an all-reduce twice as much)
over the slowest hop. The two trees of an all-reduce halve the rate and replace the steps between
machines by 2 log2(m). In an all-to-all each device sends 1 / n of its S bytes to each other one:
what stays in the machine and what leaves it go at the same time. A protocol trades rate for
latency. NCCL predicts each combination and takes the fastest (`src/graph/tuning.cc`, NVIDIA/nccl at
5067397c); the constants here are rounded from the tables there.

No term falls when a hop becomes slower or bytes become more, and the minimum of such terms does
not either: a faster link never makes a collective slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.checks import check_choice, check_number, check_whole
from driple.errors import ConfigError
from driple.schemes.records import check_rate
from driple.units import counted

__all__ = ["COLLECTIVES", "CollectiveKind", "DeviceGroup", "Hop"]

FloatArray = npt.NDArray[np.float64]
CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
COLLECTIVES: tuple[str, ...] = get_args(CollectiveKind)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Protocol:
    """How NCCL passes data between two devices.

    Attributes:
        base_s: start of a collective, seconds.
        latency: of a step, as a share of that of the Simple protocol.
        ring_rate: share of a hop's rate that a ring reaches.
        tree_rate: share of a hop's rate that trees reach.
        in_order: whether it needs a hop that keeps 128 bytes together, as NVLink does.
    """

    base_s: float
    latency: float
    ring_rate: float
    tree_rate: float
    in_order: bool = False


_PROTOCOLS = (
    _Protocol(base_s=8.4e-6, latency=1.0, ring_rate=1.0, tree_rate=0.92),  # Simple
    _Protocol(base_s=6.7e-6, latency=0.2, ring_rate=0.5, tree_rate=0.92 / 3.8),  # LL: 8 bytes
    _Protocol(
        base_s=14e-6, latency=0.5, ring_rate=0.92, tree_rate=0.92 * 7 / 9, in_order=True
    ),  # LL128
)
# NCCL sums in the switch from so many devices on (NVLS needs more than two; with four it is no
# faster than a ring).
_LEAST_AT_SWITCH = 5
_SWITCH_S = 25e-6  # latency of a sum in the switch, as NCCL's table has it


@dataclass(frozen=True, kw_only=True, slots=True)
class Hop:
    """One step of a collective: from device to device, or from machine to machine.

    Attributes:
        bytes_per_s: rate of one direction: of a device within a machine, of all network adapters
            of a machine together between machines.
        latency_s: time of a step without data in the Simple protocol, seconds.
        in_order: whether it keeps 128 bytes together, as NVLink does.
        start: factor on the time in which a collective starts.
        own_part: share of its own part of a tensor that a device copies, beside what it sends; half
            of it in an all-reduce.
        switch_bytes_per_s: bytes/s of a tensor whose sum the switch computes (NVLink SHARP); 0
            without such a switch.

    Raises:
        ConfigError: a rate that is not above 0, or a negative time.
    """

    bytes_per_s: float
    latency_s: float
    in_order: bool = False
    start: float = 1.0
    own_part: float = 0.0
    switch_bytes_per_s: float = 0.0

    def __post_init__(self) -> None:
        check_rate("bytes_per_s of a hop", self.bytes_per_s)
        check_number("latency_s of a hop", self.latency_s, least=0)
        check_number("start of a hop", self.start, above=0)
        check_number("own_part of a hop", self.own_part, least=0)
        check_number("switch_bytes_per_s of a hop", self.switch_bytes_per_s, least=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceGroup:
    """Devices that exchange tensors.

    Attributes:
        count: how many there are.
        machines: on how many machines.
        within: hop within a machine; None if each machine has one device.
        between: hop between machines; None for one machine.

    Raises:
        ConfigError: a hop that is needed is missing, or more machines than devices.
    """

    count: int
    machines: int = 1
    within: Hop | None = None
    between: Hop | None = None

    def __post_init__(self) -> None:
        check_whole("count of a group", self.count, 1)
        check_whole("machines of a group", self.machines, 1, self.count)
        if (self.count > self.machines and self.within is None) or (
            self.machines > 1 and self.between is None
        ):
            raise ConfigError(
                f"{self.count} devices on {counted(self.machines, 'machine')} need a hop within "
                "machines if one has several, and one between machines if there are several"
            )

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The hops that are crossed."""
        within = self.within if self.count > self.machines else None
        between = self.between if self.machines > 1 else None
        return tuple(hop for hop in (within, between) if hop is not None)

    @property
    def per_machine(self) -> int:
        """Devices of the fullest machine."""
        return -(-self.count // self.machines)

    def sent_bytes(self, kind: CollectiveKind, sizes: FloatArray) -> FloatArray:
        """Bytes that a device sends, and receives, of each tensor; the mean over all devices.

        Args:
            kind: of collective.
            sizes: shape [num_tensors], bytes of each whole tensor; of an all-to-all what one device
                has before it.
        """
        check_choice("kind of a collective", kind, COLLECTIVES)
        turns = 2 if kind == "all_reduce" else 1
        sent: FloatArray = turns * (self.count - 1) / self.count * np.asarray(sizes, np.float64)
        return sent

    def seconds(self, kind: CollectiveKind, sizes: FloatArray) -> FloatArray:
        """Duration of each collective alone, seconds, shape [num_tensors]; 0 on one device.

        Args:
            kind: of collective.
            sizes: shape [num_tensors], bytes of each whole tensor: what is added up, what all
                devices have after an all-gather, or before a reduce-scatter; of an all-to-all what
                one device has before it.
        """
        check_choice("kind of a collective", kind, COLLECTIVES)
        sizes = np.asarray(sizes, dtype=np.float64)
        if self.count == 1:
            return np.zeros(sizes.shape)
        if kind == "all_to_all":
            return self._all_to_all_s(sizes)
        lines = _lines(self, kind)
        fastest: FloatArray = lines[0].seconds(sizes)
        for line in lines[1:]:
            fastest = np.minimum(fastest, line.seconds(sizes))
        return fastest

    def _all_to_all_s(self, sizes: FloatArray) -> FloatArray:
        """Messages within machines and between them, all at once, in the Simple protocol."""
        inside = self.per_machine
        latency_s = max(hop.latency_s for hop in self.hops)
        took_s = np.zeros(sizes.shape)
        if self.within is not None:
            took_s = sizes * (inside - 1) / self.count / self.within.bytes_per_s
        if self.between is not None and self.machines > 1:
            leaving = inside * sizes * (self.count - inside) / self.count
            took_s = np.maximum(took_s, leaving / self.between.bytes_per_s)
        whole: FloatArray = self._start_s(_PROTOCOLS[0]) + latency_s + took_s
        return whole

    def _is_usable(self, protocol: _Protocol) -> bool:
        return not protocol.in_order or all(hop.in_order for hop in self.hops)

    @property
    def _slowest_bytes_per_s(self) -> float:
        return min(hop.bytes_per_s for hop in self.hops)

    @property
    def _switch_bytes_per_s(self) -> float:
        """Bytes/s of a sum within the switch of one machine; 0 without one, or where none helps."""
        joined = self.within is not None and self.machines == 1 and self.count >= _LEAST_AT_SWITCH
        return self.within.switch_bytes_per_s if joined and self.within is not None else 0.0

    def _start_s(self, protocol: _Protocol) -> float:
        return protocol.base_s * max(hop.start for hop in self.hops)

    def _latency_s(self, within_steps: float, between_steps: float) -> float:
        """Seconds of steps within machines and between them."""
        within_s = self.within.latency_s if self.within is not None else 0.0
        between_s = self.between.latency_s if self.between is not None else 0.0
        return within_steps * within_s + between_steps * between_s

    def _ring(self, kind: CollectiveKind, protocol: _Protocol) -> _Line:
        turns = 2 if kind == "all_reduce" else 1
        between = self.machines - 1
        steps = turns * self._latency_s(self.count - 1 - between, between)
        return _Line(
            start_s=self._start_s(protocol) + protocol.latency * steps,
            sent=1.0 if kind == "broadcast" else turns * (self.count - 1) / self.count,
            copied=0.0 if kind == "broadcast" else max(hop.own_part for hop in self.hops),
            shares=(self.count, turns),
            bytes_per_s=protocol.ring_rate * self._slowest_bytes_per_s,
        )

    def _tree(self, kind: CollectiveKind, protocol: _Protocol) -> _Line:
        turns = 2 if kind == "all_reduce" else 1
        steps = turns * self._latency_s(self.per_machine - 1, log2(self.machines))
        return _Line(
            start_s=self._start_s(protocol) + protocol.latency * steps,
            sent=turns,
            bytes_per_s=protocol.tree_rate * self._slowest_bytes_per_s,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """Seconds of a collective by its bytes, in one protocol.

    Attributes:
        start_s: of nothing.
        sent: bytes that a device sends, over those of the tensor.
        copied: share of its own part that a device copies.
        shares: what its own part is divided by, in turn.
        bytes_per_s: of the slowest hop.
    """

    start_s: float
    sent: float
    copied: float = 0.0
    shares: tuple[int, int] = (1, 1)
    bytes_per_s: float

    def seconds(self, sizes: FloatArray) -> FloatArray:
        """Of each tensor."""
        moved = self.sent * sizes
        if self.copied:
            moved = moved + self.copied * sizes / self.shares[0] / self.shares[1]
        took_s: FloatArray = self.start_s + moved / self.bytes_per_s
        return took_s


@lru_cache(maxsize=1024)
def _lines(group: DeviceGroup, kind: CollectiveKind) -> tuple[_Line, ...]:
    """Of each protocol and algorithm that the group can take; the fastest is taken."""
    usable = [one for one in _PROTOCOLS if group._is_usable(one)]
    lines = [group._ring(kind, one) for one in usable]
    if kind in ("all_reduce", "broadcast"):
        lines += [group._tree(kind, one) for one in usable]
    if kind == "all_reduce" and group._switch_bytes_per_s:
        start_s = group._start_s(_PROTOCOLS[0]) + _SWITCH_S
        lines.append(_Line(start_s=start_s, sent=1.0, bytes_per_s=group._switch_bytes_per_s))
    return tuple(lines)
