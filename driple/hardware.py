"""Catalogue of compute devices and links: what their makers publish, each with its source.

device_named("V100") -> Device (peak rates, memory)        link_named("40G") -> Link (bytes/s)

Peak rates are those at the boost clock, without sparsity. What a training job reaches of them is
not in here: that is fitted to measurements by `driple.simulate`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.errors import SettingError

__all__ = [
    "DEVICES",
    "LINKS",
    "Device",
    "Link",
    "device_named",
    "find_device",
    "find_link",
    "link_named",
    "nearest_devices",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One GPU, as its maker describes it; or a share of a processor's core.

    Attributes:
        name: as in names of settings.
        generation: of its architecture, such as `Volta`; relatives share their efficiencies.
        fp32_flops: peak of single precision, FLOP/s.
        half_flops: peak of half precision with single-precision sums, FLOP/s: on tensor cores where
            there are any, else on the plain cores.
        tensor_cores: whether there are tensor cores.
        tf32_flops: peak of single-precision matrix products on tensor cores (TF32); 0 if they
            have no such format.
        bytes_per_s: peak of device memory.
        memory_bytes: size of device memory.
        cache_bytes: size of the last-level cache.
        multiprocessors: streaming multiprocessors; a wave of blocks fills them all.
        source: document with these numbers.
    """

    name: str
    generation: str
    fp32_flops: float
    half_flops: float
    tensor_cores: bool
    tf32_flops: float
    bytes_per_s: float
    memory_bytes: float
    cache_bytes: float
    multiprocessors: int
    source: str

    @property
    def tf32(self) -> bool:
        """Whether tensor cores do single-precision matrix products, as libraries have them do."""
        return self.tf32_flops > 0

    @property
    def matrix_flops(self) -> float:
        """Peak of single-precision matrix products, FLOP/s."""
        return self.tf32_flops or self.fp32_flops


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One direction of one connection.

    Attributes:
        name: as in names of settings.
        bytes_per_s: nominal rate of one direction.
        source: document with this number.
    """

    name: str
    bytes_per_s: float
    source: str


_VOLTA = "NVIDIA Tesla V100 data sheet, January 2020"
_TURING = "NVIDIA Turing GPU architecture whitepaper WP-09183, appendix"
_PASCAL = "NVIDIA Pascal GP100 whitepaper WP-08019"
_AMPERE = "NVIDIA A100 data sheet, June 2021; A100 whitepaper v1.0"
_GA102 = "NVIDIA Ampere GA102 whitepaper v2.1, appendix"
_HOPPER = "NVIDIA H100 data sheet; H100 whitepaper v1.04"


def _gpu(
    name: str,
    generation: str,
    numbers: tuple[float, float, float, float, int, float],
    source: str,
    *,
    tensor_cores: bool = True,
    tf32: float = 0.0,
) -> Device:
    """A device from TFLOP/s in both precisions, GB/s, GB, multiprocessors, MB of cache, TF32."""
    single, half, rate, memory, multiprocessors, cache = numbers
    return Device(
        name=name,
        generation=generation,
        fp32_flops=single * 1e12,
        half_flops=half * 1e12,
        tensor_cores=tensor_cores,
        tf32_flops=tf32 * 1e12,
        bytes_per_s=rate * 1e9,
        memory_bytes=memory * 1e9,
        cache_bytes=cache * 1e6,
        multiprocessors=multiprocessors,
        source=source,
    )


def _cpu(name: str, share: float) -> Device:
    """A share of one core of the machine that the CPU settings were measured on."""
    return Device(
        name=name,
        generation="CPU",
        fp32_flops=share * _CORE_FLOPS,
        half_flops=share * _CORE_FLOPS,
        tensor_cores=False,
        tf32_flops=0.0,
        bytes_per_s=share * _CORE_BYTES_PER_S,
        memory_bytes=24e9,
        cache_bytes=share * 16e6,
        multiprocessors=1,
        source=_CORE,
    )


# A core of the AMD EPYC of datasets/README.md: half of what oneDNN makes of two in a matrix product
# (docs/decisions/0003), and a copy of an array that no cache holds (scripts/bench/core.py).
_CORE = "measured here: docs/decisions/0003, scripts/bench/core.py"
_CORE_FLOPS, _CORE_BYTES_PER_S = 191e9, 39.6e9

_CATALOGUE = (
    _gpu("K80", "Kepler", (4.37, 4.37, 240, 12, 13, 1.5),
         "NVIDIA Tesla K80 board specification BD-07317, one of its two GPUs", tensor_cores=False),
    _gpu("P100", "Pascal", (9.3, 18.7, 732, 16, 56, 4), f"{_PASCAL}; P100 PCIe data sheet",
         tensor_cores=False),
    _gpu("P100-SXM2", "Pascal", (10.6, 21.2, 732, 16, 56, 4), _PASCAL, tensor_cores=False),
    _gpu("P40", "Pascal", (11.76, 11.76, 346, 24, 30, 3), "NVIDIA Tesla P40 data sheet",
         tensor_cores=False),
    _gpu("GTX1060", "Pascal", (4.4, 4.4, 192, 6, 10, 1.5),
         "NVIDIA GeForce GTX 1060 specifications, 6 GB", tensor_cores=False),
    _gpu("GTX1080Ti", "Pascal", (11.3, 11.3, 484, 11, 28, 2.75),
         "NVIDIA GeForce GTX 1080 Ti specifications", tensor_cores=False),
    _gpu("V100", "Volta", (14.0, 112, 900, 16, 80, 6), f"{_VOLTA}, PCIe"),
    _gpu("V100-SXM2", "Volta", (15.7, 125, 900, 16, 80, 6), f"{_VOLTA}, SXM2"),
    _gpu("V100-SXM3", "Volta", (16.4, 131, 981, 32, 80, 6),
         "NVIDIA DGX-2 user guide: boost clock 1,597 MHz, memory clock 958 MHz"),
    _gpu("TitanV", "Volta", (14.9, 110, 653, 12, 80, 4.5), "NVIDIA Titan V specifications"),
    _gpu("T4", "Turing", (8.1, 65, 320, 16, 40, 4), "NVIDIA T4 data sheet, March 2019"),
    _gpu("2080Ti", "Turing", (13.4, 53.8, 616, 11, 68, 5.5), f"{_TURING}, reference clocks"),
    _gpu("TitanRTX", "Turing", (16.3, 130.5, 672, 24, 72, 6),
         "NVIDIA Titan RTX specifications"),
    _gpu("RTX4000", "Turing", (7.1, 57, 416, 8, 36, 4), "NVIDIA Quadro RTX 4000 data sheet"),
    _gpu("RTX6000", "Turing", (16.3, 130.5, 672, 24, 72, 6), _TURING),
    _gpu("RTX8000", "Turing", (16.3, 130.5, 672, 48, 72, 6),
         "NVIDIA Quadro RTX 8000 data sheet"),
    _gpu("3090", "Ampere", (35.6, 71, 936, 24, 82, 6), _GA102, tf32=35.6),
    _gpu("A6000", "Ampere", (38.7, 154.8, 768, 48, 84, 6), _GA102, tf32=77.4),
    _gpu("A100", "Ampere", (19.5, 312, 1555, 40, 108, 40), f"{_AMPERE}, 40 GB", tf32=156),
    _gpu("A100-80G", "Ampere", (19.5, 312, 2039, 80, 108, 40), f"{_AMPERE}, 80 GB SXM",
         tf32=156),
    _gpu("H100", "Hopper", (67, 989, 3350, 80, 132, 50), f"{_HOPPER}, SXM", tf32=494),
    _gpu("H200", "Hopper", (67, 989, 4800, 141, 132, 50), "NVIDIA H200 data sheet, SXM",
         tf32=494),
    _cpu("CPU", 0.4), _cpu("CPU25", 0.25),
)  # fmt: skip
DEVICES: Mapping[str, Device] = MappingProxyType({item.name: item for item in _CATALOGUE})

# Other names, without case, blanks, dashes and underscores.
_ALIASES = {
    "rtx2080ti": "2080Ti", "geforcertx2080ti": "2080Ti", "rtx3090": "3090", "rtxa6000": "A6000",
    "quadrortx4000": "RTX4000", "quadrortx6000": "RTX6000", "quadrortx8000": "RTX8000",
    "1060": "GTX1060", "1080ti": "GTX1080Ti", "v100pcie": "V100", "v100pcie16gb": "V100",
    "v100pcie32gb": "V100", "v100sxm216gb": "V100-SXM2", "v100sxm232gb": "V100-SXM2",
    "v100sxm332gb": "V100-SXM3", "p100pcie16gb": "P100", "p100pcie": "P100",
    "a100pcie40gb": "A100", "a10040gb": "A100", "a100sxm4": "A100", "a100sxm440gb": "A100",
    "a10080gb": "A100-80G",
}  # fmt: skip

_PCIE = "PCI Express base specification: 8, 16 or 32 GT/s a lane, 128b/130b, 16 lanes"
_IEEE = "IEEE 802.3 line rate"
_INFINIBAND = "InfiniBand architecture specification, 4 lanes"
_LINKS = (
    Link(name="PCIe", bytes_per_s=15.75e9, source=_PCIE),
    Link(name="PCIe3", bytes_per_s=15.75e9, source=_PCIE),
    Link(name="PCIe4", bytes_per_s=31.5e9, source=_PCIE),
    Link(name="PCIe5", bytes_per_s=63e9, source=_PCIE),
    Link(name="PCIe3-host", bytes_per_s=15.75e9, source=f"{_PCIE}; copies through host memory"),
    Link(name="PCIe4-host", bytes_per_s=31.5e9, source=f"{_PCIE}; copies through host memory"),
    Link(name="NVLink-P100", bytes_per_s=80e9, source=f"{_PASCAL}: 160 GB/s both ways"),
    Link(name="NVLink-V100", bytes_per_s=150e9, source=f"{_VOLTA}: 300 GB/s both ways"),
    Link(name="NVLink-Turing", bytes_per_s=50e9, source=f"{_TURING}: 100 GB/s both ways"),
    Link(name="NVLink-A100", bytes_per_s=300e9, source=f"{_AMPERE}: 600 GB/s both ways"),
    Link(
        name="NVLink-GA102",
        bytes_per_s=56.25e9,
        source="NVIDIA GA102 whitepaper: 112.5 GB/s both ways",
    ),
    Link(name="NVLink-H100", bytes_per_s=450e9, source=f"{_HOPPER}: 900 GB/s both ways"),
    Link(name="azure-Ethernet", bytes_per_s=5e9, source="not stated; 40 Gbit/s assumed"),
    Link(name="InfiniBand-FDR", bytes_per_s=6.8e9, source=_INFINIBAND),
    Link(name="InfiniBand-EDR", bytes_per_s=12.1e9, source=_INFINIBAND),
    Link(name="InfiniBand-HDR", bytes_per_s=24.2e9, source=_INFINIBAND),
)
LINKS: Mapping[str, Link] = MappingProxyType({item.name: item for item in _LINKS})


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


_DEVICE_OF = {
    **{_plain(known): device for known, device in DEVICES.items()},
    **{alias: DEVICES[known] for alias, known in _ALIASES.items()},
}
_LINK_OF = {_plain(known): link for known, link in LINKS.items()}
_ETHERNET = re.compile(r"(\d+(?:\.\d+)?)([MG])", re.IGNORECASE)


def find_device(name: str) -> Device | None:
    """The device of this name, as `device_named` reads names; None if none is called so."""
    return _DEVICE_OF.get(_plain(name))


def device_named(name: str) -> Device:
    """The device of this name; case, blanks, dashes and usual prefixes do not matter.

    Raises:
        SettingError: none is called so; the message offers the nearest names.
    """
    found = find_device(name)
    if found is None:
        raise SettingError(
            f"no device in the catalogue is called '{name}'; did you mean "
            f"{', '.join(nearest_devices(name))}?"
        )
    return found


# Generations in order of age, those without a device of the catalogue included, and what names of
# their devices look like: data-centre GPUs, then all others.
_GENERATIONS: tuple[tuple[str, str, str], ...] = (
    ("Kepler", r"k\d+.*", r"gtx?7\d0.*"),
    ("Maxwell", r"m\d+.*", r"(gtx)?9\d0.*|titanx"),
    ("Pascal", r"p\d+.*", r"(gtx)?10\d0.*|titanxp|quadrop.*"),
    ("Volta", r"v\d+.*", r"titanv"),
    ("Turing", r"t\d+.*", r"(gtx)?16\d0.*|(rtx)?20\d0.*|(quadro)?rtx[3-8]000|titanrtx"),
    ("Ampere", r"a\d+.*", r"(rtx)?30\d0.*|rtxa\d+"),
    ("Ada", r"l\d+.*", r"(rtx)?40\d0.*|rtx\d000ada"),
    ("Hopper", r"g?h\d+.*", r"$^"),
    ("Blackwell", r"g?b\d+.*", r"(rtx)?50\d0.*|rtxpro.*"),
)
_AGE = {name: age for age, (name, _, _) in enumerate(_GENERATIONS)}
_ALIKE = 0.75  # least similarity of a name that is misspelt, from 0 to 1
_OTHER_GPU = re.compile(r"(nvidia|geforce|tesla|quadro(?=p|rtx))")


def nearest_devices(name: str, most: int = 3) -> tuple[str, ...]:
    """The devices that come closest to a name that is in no catalogue.

    A GPU is offered GPUs: of the nearest generation, then of the same class (data centre or not),
    then of the most similar name. A name without a generation is offered what is spelt like it,
    else the newest GPUs.
    """
    plain = _plain(name)
    if plain.startswith("cpu"):
        return tuple(item.name for item in _CATALOGUE if item.generation == "CPU")[:most]
    kind = _kind_of(plain)
    spelt = difflib.get_close_matches(plain, _DEVICE_OF, n=most, cutoff=_ALIKE)
    if kind is None and spelt:
        return tuple(dict.fromkeys(_DEVICE_OF[word].name for word in spelt))
    wanted_age, wanted_centre = kind or (len(_GENERATIONS), True)

    def distance(item: Device) -> tuple[int, bool, float, float]:
        known = _plain(item.name)
        age, in_centre = _kind_of(known) or (_AGE[item.generation], False)
        alike = difflib.SequenceMatcher(None, plain, known).ratio()
        return abs(age - wanted_age), in_centre != wanted_centre, -alike, -item.bytes_per_s

    gpus = sorted((item for item in _CATALOGUE if item.generation != "CPU"), key=distance)
    return tuple(item.name for item in gpus[:most])


def _kind_of(plain: str) -> tuple[int, bool] | None:
    """Age of a GPU's generation, and whether it is made for data centres, by its plain name."""
    bare = _OTHER_GPU.sub("", plain)
    for age, (_, centre, other) in enumerate(_GENERATIONS):
        for pattern, in_centre in ((centre, True), (other, False)):
            if re.fullmatch(pattern, bare):
                return age, in_centre
    return None


def find_link(name: str) -> Link | None:
    """The link of this name, as `link_named` reads names; None if none is called so."""
    rate = _ETHERNET.fullmatch(name)
    if rate is not None:
        bits_per_s = float(rate[1]) * (1e9 if rate[2].upper() == "G" else 1e6)
        return Link(name=name.upper(), bytes_per_s=bits_per_s / 8, source=_IEEE)
    return _LINK_OF.get(_plain(name))


def link_named(name: str) -> Link:
    """The link of this name; `40G` and `200M` are Ethernet of that rate in bit/s.

    Raises:
        SettingError: none is called so.
    """
    found = find_link(name)
    if found is None:
        raise SettingError(
            f"no link in the catalogue is called '{name}'; give a rate such as 40G, or one of "
            f"{', '.join(LINKS)}"
        )
    return found
