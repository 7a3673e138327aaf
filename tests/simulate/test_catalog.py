"""Links, counter windows and generations in the simulator are those of the catalogue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import DEVICES, Device
from driple.cluster.setting import Setting
from driple.cluster.topology import copy_s_per_byte, topology_of
from driple.errors import CatalogError
from driple.runs.tensorflow_runs import DEVICES_OF_RUNS
from driple.simulate.calibration import (
    link_kind,
    nearest_link,
    shipped_calibration,
)
from driple.simulate.run import simulate
from tests.simulate.jobs import net


def without(device: Device, *names: str) -> Device:
    """The device without some of its facts."""
    return replace(
        device, facts={name: fact for name, fact in device.facts.items() if name not in names}
    )


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("5090-R4/ho-PCIe", "PCIe5-host"),
        ("5090-P1w2/ho-PCIe", "PCIe5"),
        ("4060Ti-P1w2/ho-PCIe", "PCIe4x8"),
        ("A2-R2/ho-PCIe", "PCIe4x8"),
        ("P4-R2/ho-PCIe", "PCIe3"),
        ("B300-R2/ho-PCIe", "PCIe6"),
        ("B200-R8/ho-NVLink", "NVLink-B200"),
        ("A800-R8/ho-NVLink", "NVLink-A800"),
        ("MI300X-R8/ho-InfinityFabric-MI300X", "InfinityFabric-MI300X"),
        ("8xMI300X", "InfinityFabric-MI300X"),
        ("2xMI325X", "InfinityFabric-MI325X"),
        ("16xMI300X", "PCIe5"),
    ],
)
def test_links_are_those_of_the_device(name: str, link: str) -> None:
    """Generation, lanes and peers are fields of its row; all are within one machine."""
    topology = topology_of(Setting.parse(name))
    assert (topology.link, topology.num_machines) == (link, 1)


def test_efa_joins_machines() -> None:
    assert topology_of(Setting.parse("H100-R4/ho-EFA-v2")).num_machines == 4


def test_a_device_without_pcie_is_refused_with_the_fact_that_it_lacks() -> None:
    """PCIe 3 was a silent default."""
    with pytest.raises(CatalogError, match="GB200 has no pcie_peers"):
        topology_of(Setting.parse("GB200-R4/ho-PCIe"))
    with pytest.raises(CatalogError, match="T4 has no pcie_generation"):
        copy_s_per_byte(without(DEVICES["T4"], "pcie_generation"))


def test_copies_to_a_superchip_take_its_own_link() -> None:
    assert copy_s_per_byte(DEVICES["GH200"]) == 1 / 450e9
    assert copy_s_per_byte(DEVICES["CPU"]) == 0.0


@pytest.mark.parametrize("name", ["MI300X-R1/ho-PCIe", "8xMI300X", "MI300X-P1w2/ho-PCIe"])
def test_a_device_without_a_counter_window_has_the_targets_of_one_step(name: str) -> None:
    setting = Setting.parse(name)
    simulation = simulate(net(8), setting, shipped_calibration(setting), num_steps=5)
    assert simulation.step is not None
    assert np.array_equal(simulation.targets.values, simulation.step.targets().values)
    assert simulation.targets.values.max() > 0


def test_new_links_take_the_efficiency_of_their_kind() -> None:
    links = shipped_calibration().links
    assert nearest_link("NVLink-B200", links).startswith("NVLink")
    assert nearest_link("PCIe5x8-host", links) == "PCIe4-host"
    assert nearest_link("InfiniBand-NDR", links) == "InfiniBand-HDR"
    assert nearest_link("EFA-v4", links) == link_kind("800G") == link_kind("35G") == "Ethernet"
    assert link_kind("azure-Ethernet") == "azure-Ethernet"


def test_devices_of_published_runs_are_measured_and_known() -> None:
    """Every GPU of TensorFlow's runs is in the fit, and the catalogue has more than the fit."""
    measured = set(shipped_calibration().model.devices.measured)
    assert DEVICES_OF_RUNS - {"GTX1060"} <= measured < set(DEVICES)  # a worker of servers alone
