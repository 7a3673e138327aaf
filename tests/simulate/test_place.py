"""Where a job runs: what is unknown is refused before a graph is read, and known once."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import CatalogError, SettingError
from driple.simulate.calibration import shipped_calibration
from driple.simulate.place import place_of


@pytest.mark.parametrize("name", ["8xH100", "2xCPU", "V100-P1w2/ho-PCIe"])
def test_a_place_is_the_machines_of_its_setting(name: str) -> None:
    setting = Setting.parse(name)
    place = place_of(setting)
    assert place.setting == setting
    assert place.topology == topology_of(setting)
    assert place.calibration is shipped_calibration(setting)
    assert place_of(Setting.parse(name)) is place


def test_unknown_machines_are_refused() -> None:
    with pytest.raises((SettingError, CatalogError)):
        place_of(Setting.parse("H100-P3w3/he-10G"))
