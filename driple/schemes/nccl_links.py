"""What NCCL reaches over NVLink, by its generation.

    Link -> LinkEfficiency of its generation, or None

Fitted to all-reduces, all-gathers and reduce-scatters of 512 bytes to 512 MB on 2, 4 and 8 devices
(`datasets/runs/kernels/collectives.csv.xz`, NCCL 2.27 to 2.29; `python -m scripts.fits.nccl`,
decision 0065): 5 to 8 % off in the median where one share of all NVLinks was 12 to 26 % off.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.catalog import Link
from driple.schemes.links import LinkEfficiency

__all__ = ["SWITCHED", "nccl_efficiency"]

_THIRD = LinkEfficiency(share=0.713, latency_s=5.39e-6, sharing=0.0, start=1.4, own_part=0.532)
_FOURTH = LinkEfficiency(
    share=0.823, latency_s=4.3e-6, sharing=0.0, start=0.73, own_part=0.662, switch_share=0.522
)
_FIFTH = LinkEfficiency(share=0.767, latency_s=6.26e-6, sharing=0.0, start=1.171, own_part=0.631)
SWITCHED: Mapping[str, LinkEfficiency] = MappingProxyType({
    "NVLink-A100": _THIRD, "NVLink-A800": _THIRD, "NVLink-H100": _FOURTH, "NVLink-H800": _FOURTH,
    "NVLink-B200": _FIFTH,
})  # fmt: skip
"""By name: generations of A100, of H100 and H200, of B200 to GB300, that a switch joins.

Bridges of two cards have no switch. PCIe stays as it is fitted to training: eight RTX PRO 6000 on
PCIe 5 reach half of it, which would make PCIe 4 and 5 slower than PCIe 3."""


def nccl_efficiency(link: Link) -> LinkEfficiency | None:
    """What NCCL reaches over a link; None of one whose generation was not measured."""
    return SWITCHED.get(link.name)
