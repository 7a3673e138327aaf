"""What the catalogue knows: generations, devices, links, instances and their prices.

A device keeps its facts by name. A fact that no source states is missing, and asking for it is an
error that names the device and the fact: nothing here has a default.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driple.catalog.fields import FORMATS, SIMULATION_FACTS
from driple.errors import CatalogError

__all__ = [
    "ETHERNET",
    "MOST_EFFICIENCY",
    "RDMA",
    "TCP",
    "Device",
    "Fact",
    "Generation",
    "Instance",
    "Link",
    "Price",
]

Fact = float | int | bool | str
ETHERNET = "Ethernet"  # kind of networks of any rate
TCP, RDMA = "TCP", "RDMA"  # kinds of networks of which it is known how data crosses them
MOST_EFFICIENCY = 2.0  # of a link: trees over two machines, and sums in switches, reach twice
_GB, _GIB = 1e9, 2.0**30
_WITHOUT_CODES = 15 / 16  # NVIDIA, CUDA C++ Best Practices Guide: ECC takes 6.25 % of GDDR memory
_NO_DATE = datetime.date.max
_NOT_OF_SPEED = {"memory_bytes", "ecc_in_memory", "default_setting"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """An architecture of one maker.

    Attributes:
        name: such as `Volta`; a device names its generation.
        maker: such as `NVIDIA`.
        order: position in time, comparable between makers; the distance of two generations is the
            difference of their orders.
        datacentre_names: regular expression for names of its data-centre devices, in lower case
            without blanks, dashes and underscores; empty if there is no such pattern.
        other_names: the same for all its other devices.
        tensor_sides: the libraries of this generation use tensor cores only for matrix sides that
            are multiples of this number; 1 where they fill up the sides.
        source: document with these facts.
        date: when they were checked; None in a user's file that does not say.
    """

    name: str
    maker: str
    order: float
    datacentre_names: str = ""
    other_names: str = ""
    tensor_sides: int = 1
    source: str = ""
    date: datetime.date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One GPU as its maker describes it, or a share of a processor's core.

    Attributes:
        name: its name in names of settings.
        architecture: its generation, with order and maker.
        aliases: other names, such as those that `torch.cuda.get_device_name` returns.
        facts: by name of the field; a missing format of the matrix units means that they do not
            have it, any other missing fact is not known.
        unknown: fields that the row lists as not known: no source states them.
        origin: file of the row, which an error names.
        source: documents with these facts.
        date: when they were checked; None in a user's file that does not say.
    """

    name: str
    architecture: Generation
    aliases: tuple[str, ...] = ()
    facts: Mapping[str, Fact]
    unknown: frozenset[str] = frozenset()
    origin: str
    source: str
    date: datetime.date | None = None

    def __hash__(self) -> int:
        """By the name alone: a cluster has thousands of devices, and few kinds."""
        return hash(self.name)

    def find(self, name: str) -> Fact | None:
        """The fact of this name, None if it is not known."""
        return self.facts.get(name)

    def require(self, name: str) -> Fact:
        """The fact of this name.

        Raises:
            CatalogError: the row of the device does not state it.
        """
        fact = self.facts.get(name)
        if fact is None:
            raise self._lacks(name)
        return fact

    def is_as_fast_as(self, other: Device) -> bool:
        """Whether another device is alike in all but the size of its memory."""
        names = ({*self.facts, *other.facts}) - _NOT_OF_SPEED
        return self.architecture == other.architecture and all(
            self.facts.get(name) == other.facts.get(name) for name in names
        )

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Which of these facts are not known."""
        return tuple(name for name in names if name not in self.facts)

    def _lacks(self, name: str) -> CatalogError:
        """The error of a fact that is not known; it names all others that a simulation needs."""
        others = () if self.is_cpu else self.missing(SIMULATION_FACTS)
        if "host_link" in self.facts:
            others = tuple(one for one in others if not one.startswith("pcie_"))
        names = list(dict.fromkeys((name, *others)))
        it = "it" if len(names) == 1 else "them"
        reason = f"its row in {self.origin} does not state {it}"
        if self.unknown.issuperset(names):
            reason = f"no source states {it}"
        row = ", ".join([f"name = '{self.name}'", *(f"{one} = ..." for one in names)])
        return CatalogError(
            f"{self.name} has no {', '.join(names)} in the catalogue ({reason}); add {it} in a "
            f"catalogue file of your own: [[devices]] {row}"
        )

    def _number(self, name: str) -> float:
        return float(self.require(name))

    def _format(self, name: str) -> float:
        """Peak in a format, 0 if the device does not have it; an error if it is not known."""
        if name in self.unknown:
            raise self._lacks(name)
        return float(self.facts.get(name, 0.0))

    @property
    def generation(self) -> str:
        """Name of its generation, such as `Volta`."""
        return self.architecture.name

    @property
    def maker(self) -> str:
        """Such as `NVIDIA`."""
        return self.architecture.maker

    @property
    def is_cpu(self) -> bool:
        """Whether it is a share of a processor's core."""
        return self.architecture.maker == "CPU"

    @property
    def fp32_flops(self) -> float:
        """Peak of single precision on the plain cores, FLOP/s."""
        return self._number("fp32_flops")

    @property
    def half_flops(self) -> float:
        """Peak of half precision with single-precision sums, FLOP/s.

        On tensor cores where there are any, else on the plain cores.
        """
        return self._number("fp16_flops")

    @property
    def bf16_flops(self) -> float:
        """Peak of bfloat16 products, FLOP/s; 0 if the device does not have the format."""
        return self._format("bf16_flops")

    @property
    def tf32_flops(self) -> float:
        """Peak of single-precision products on tensor cores, FLOP/s; 0 without the format."""
        return self._format("tf32_flops")

    @property
    def fp8_flops(self) -> float:
        """Peak of products of 8-bit floating point, FLOP/s; 0 without the format."""
        return self._format("fp8_flops")

    @property
    def fp4_flops(self) -> float:
        """Peak of products of 4-bit floating point, FLOP/s; 0 without the format."""
        return self._format("fp4_flops")

    @property
    def tf32(self) -> bool:
        """Whether tensor cores compute single-precision products, as libraries use them."""
        return self.tf32_flops > 0

    @property
    def matrix_flops(self) -> float:
        """Peak of single-precision matrix products, FLOP/s."""
        return self.tf32_flops or self.fp32_flops

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats of its matrix products, such as `("fp32", "fp16", "bf16")`."""
        return tuple(name for name in FORMATS if f"{name}_flops" in self.facts)

    @property
    def tensor_cores(self) -> bool:
        """Whether it has matrix units: tensor cores, or AMD's matrix cores."""
        return bool(self.require("tensor_cores"))

    @property
    def datacentre(self) -> bool:
        """Whether it is made for data centres."""
        return bool(self.require("datacentre"))

    @property
    def bytes_per_s(self) -> float:
        """Peak rate of its memory, bytes/s."""
        return self._number("bytes_per_s")

    @property
    def memory_bytes(self) -> float:
        """Size of its memory as its maker states it."""
        return self._number("memory_bytes")

    @property
    def capacity_bytes(self) -> float:
        """Bytes of its memory: makers write GB where memory comes in GiB, so that 40e9 is 40 GiB.

        Codes of ECC are not counted. A number that is no whole number of GB is taken as it is.
        """
        gigabytes, rest = divmod(self.memory_bytes, _GB)
        return self.memory_bytes if rest else gigabytes * _GIB * self.share_without_codes

    @property
    def share_without_codes(self) -> float:
        """Share of its memory that holds no codes of ECC, by default."""
        return _WITHOUT_CODES if self.find("ecc_in_memory") else 1.0

    @property
    def cache_bytes(self) -> float:
        """Size of its last-level cache."""
        return self._number("cache_bytes")

    @property
    def multiprocessors(self) -> int:
        """Streaming multiprocessors or compute units; a wave of blocks fills them all."""
        return int(self._number("multiprocessors"))

    @property
    def pcie_generation(self) -> int:
        """Generation of its PCI Express connection."""
        return int(self._number("pcie_generation"))

    @property
    def pcie_lanes(self) -> int:
        """Lanes of its PCI Express connection."""
        return int(self._number("pcie_lanes"))

    @property
    def pcie_peers(self) -> bool:
        """Whether two of them copy to each other over PCIe without the host's memory."""
        return bool(self.require("pcie_peers"))

    @property
    def counter_window_s(self) -> float:
        """Window of its utilisation counter, seconds."""
        return self._number("counter_window_s")

    @property
    def known_window_s(self) -> float | None:
        """Window of its utilisation counter, seconds; None where no source states it."""
        return None if self.find("counter_window_s") is None else self.counter_window_s

    @property
    def nvlink(self) -> str | None:
        """Name of the link that joins such devices (NVLink, Infinity Fabric); None if none does."""
        name = self.facts.get("nvlink")
        return None if name is None else str(name)

    @property
    def nvlink_peers(self) -> int:
        """How many devices that link joins in the maker's own system, itself included."""
        return int(self._number("nvlink_peers"))

    @property
    def default_setting(self) -> str | None:
        """Name of the setting that the bare device name stands for; None if there is none."""
        name = self.facts.get("default_setting")
        return None if name is None else str(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One direction of one connection.

    Attributes:
        name: its name in names of settings.
        kind: links of one kind share their behaviour: `PCIe`, `NVLink`, `Ethernet`, `InfiniBand`,
            `EFA` and so on.
        bytes_per_s: nominal rate of one direction.
        within_machine: whether it joins devices of one machine; otherwise it joins machines.
        through_host: whether copies go through the host's memory.
        generation: generation of its kind, such as `3`; None if it has none.
        aliases: other names.
        efficiency: share of that rate which the bus bandwidth of a large all-reduce reaches, as
            the user states it; None leaves it to the calibration.
        latency_s: of a step of a collective without data, seconds, from the user's own
            measurement; None leaves it to the calibration.
        source: document with these facts.
        date: when they were checked; None in a user's file that does not say.
    """

    name: str
    kind: str
    bytes_per_s: float
    within_machine: bool
    through_host: bool = False
    generation: str | None = None
    aliases: tuple[str, ...] = ()
    efficiency: float | None = None
    latency_s: float | None = None
    source: str
    date: datetime.date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What an hour of an instance costs.

    Attributes:
        per_hour: in US dollars, or in the currency of the user's file.
        date: day of the price; None for a price of the user's own, which always counts.
        region: the provider's region; None if the source does not name one.
        source: document with the price.
        spot: whether the provider may take the machine back; otherwise the price is on demand.
    """

    per_hour: float
    date: datetime.date | None
    region: str | None = None
    source: str
    spot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """A machine to rent.

    Attributes:
        name: the name that its provider uses.
        provider: such as `AWS`; empty if the user's file does not say.
        device: name in the catalogue of devices.
        num_devices: devices of the machine.
        interconnect: what joins its devices: `PCIe`, `NVLink`, or a link of the catalogue.
        network_gbps: rate of its network, Gbit/s; None if it is not known.
        network_is_burst: whether the network is sold as up to that rate.
        rdma: whether what devices send between machines bypasses the hosts' TCP (EFA, InfiniBand,
            RoCE, GPUDirect-TCPX).
        cpu: its processor, or the generation of it; empty if it is not known.
        vcpus: virtual CPUs; None if they are not known.
        device_memory_gb: memory of all devices together; None if it is not known.
        memory_gb: main memory; None if it is not known.
        prices: all known prices.
        source: document with the specification.
        date: when it was checked; None in a user's file that does not say.
    """

    name: str
    provider: str = ""
    device: str
    num_devices: int
    interconnect: str
    network_gbps: float | None = None
    network_is_burst: bool = False
    rdma: bool = False
    cpu: str = ""
    vcpus: float | None = None
    device_memory_gb: float | None = None
    memory_gb: float | None = None
    prices: tuple[Price, ...] = ()
    source: str = ""
    date: datetime.date | None = None

    def price(
        self,
        date: datetime.date | None = None,
        region: str | None = None,
        *,
        spot: bool = False,
    ) -> Price | None:
        """The newest price, or the newest up to a date; the user's own before all others.

        Args:
            date: last day that counts; the newest price by default.
            region: only prices of this region; any by default.
            spot: the price of spot machines in place of that on demand.

        Returns:
            None if no price is known.
        """
        of_kind = [price for price in self.prices if price.spot is spot]
        own = [price for price in of_kind if price.date is None]
        if own:
            return own[-1]
        limit = date or _NO_DATE
        known = [
            price
            for price in of_kind
            if (price.date or _NO_DATE) <= limit and region in {None, price.region}
        ]
        return max(known, key=lambda price: price.date or _NO_DATE, default=None)
