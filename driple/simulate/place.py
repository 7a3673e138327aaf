"""Where a job runs: a setting with its machines and what they reach.

Setting --place_of--> Place
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.simulate.calibration import Calibration, shipped_calibration

__all__ = ["Place", "place_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A setting with its machines and what they reach.

    Attributes:
        setting: cluster and scheme.
        topology: its machines, workers, servers and links.
        calibration: what devices and links reach of their peaks.
    """

    setting: Setting
    topology: Topology
    calibration: Calibration


@lru_cache(maxsize=256)
def place_of(setting: Setting) -> Place:
    """The machines of a setting; refuses what is unknown before a large graph is read.

    Raises:
        SettingError: an unknown device or link.
        CatalogError: the catalogue lacks a fact about a device.
    """
    known = shipped_calibration(setting)
    place = Place(setting=setting, topology=topology_of(setting), calibration=known)
    for device in place.topology.kinds:
        known.device(device)
    return place
