"""The shipped tables: numbers of before, complete, with sources, and plausible."""

import datetime
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from driple.catalog import (
    Device,
    Instance,
    list_devices,
    list_instances,
    list_links,
    shipped_catalog,
    shipped_hardware,
)
from driple.catalog.fields import DEVICE_FACTS, SIMULATION_FACTS
from driple.errors import CatalogError
from tests.catalog import frozen

CATALOG = shipped_catalog()
GPUS = {name: device for name, device in CATALOG.devices.items() if not device.is_cpu}
EARLIEST, TODAY = datetime.date(2022, 1, 1), datetime.date(2027, 1, 1)
# Facts that a row needs only where they apply.
OPTIONAL = {"host_link", "nvlink", "nvlink_peers", "default_setting", "bf16_flops", "tf32_flops",
            "fp8_flops", "fp4_flops", "ecc_in_memory"}  # fmt: skip


@pytest.mark.parametrize("name", frozen.DEVICES)
def test_devices_of_before_have_their_numbers(name: str) -> None:
    """To the last bit: every simulation and calibration rests on them."""
    device = CATALOG.devices[name]
    assert frozen.DEVICES[name] == (
        device.generation,
        device.fp32_flops,
        device.half_flops,
        device.tensor_cores,
        device.tf32_flops,
        device.bytes_per_s,
        device.memory_bytes,
        device.cache_bytes,
        device.multiprocessors,
    )


def test_codes_of_ecc_take_a_sixteenth_of_gddr_and_nothing_of_hbm() -> None:
    """As nvidia-smi shows them: 15,360 MiB of a T4, 46,068 of an L40S, 81,920 of an A100."""
    sizes = {name: CATALOG.devices[name].capacity_bytes / 2**20 for name in ("T4", "A100-80G")}
    assert sizes == {"T4": 15360, "A100-80G": 81920}
    assert CATALOG.devices["L40S"].capacity_bytes / 2**20 == pytest.approx(46068, rel=1e-3)
    measured = replace(
        CATALOG.devices["T4"], facts={**CATALOG.devices["T4"].facts, "memory_bytes": 15.84e9}
    )
    assert measured.capacity_bytes == 15.84e9


def test_aliases_and_links_of_before_are_the_same() -> None:
    for alias, name in frozen.ALIASES.items():
        assert CATALOG.device(alias).name == name
    for name, rate in frozen.LINKS.items():
        assert CATALOG.links[name].bytes_per_s == rate


@pytest.mark.parametrize("name", frozen.TOPOLOGY)
def test_links_of_the_devices_of_before_are_the_same(name: str) -> None:
    device = CATALOG.devices[name]
    pcie, nvlink, peers = frozen.TOPOLOGY[name]
    assert CATALOG.pcie_link(device).name == CATALOG.host_link(device).name == pcie
    assert (device.nvlink, device.pcie_peers) == (nvlink, peers)
    assert device.counter_window_s == 1 / 6


@pytest.mark.parametrize("name", frozen.INSTANCES)
def test_instances_of_before_are_the_same(name: str) -> None:
    instance = CATALOG.instances[name]
    prices = "; ".join(f"{price.per_hour} on {price.date}" for price in instance.prices)
    assert frozen.INSTANCES[name] == (
        instance.device,
        instance.num_devices,
        instance.interconnect,
        instance.network_gbps,
        instance.network_is_burst,
        instance.vcpus,
        instance.device_memory_gb,
        instance.memory_gb,
        prices,
    )


def test_distances_of_generations_are_those_of_before() -> None:
    """Orders between devices that were measured decide whose efficiency another takes."""
    order = {name: item.order for name, item in CATALOG.generations.items()}
    names = ("CPU", "Kepler", "Pascal", "Volta", "Turing", "Ampere", "Hopper")
    assert [order[name] for name in names] == [0, 1, 2, 3, 4, 5, 6]
    assert [order[name] for name in ("Maxwell", "Ada", "Blackwell")] == [1.5, 5.5, 7]
    sides = {name: item.tensor_sides for name, item in CATALOG.generations.items()}
    assert {name for name in sides if sides[name] == 8} == {"Volta", "Turing"}


def test_the_tables_have_their_sizes() -> None:
    assert len(CATALOG.devices) >= 60
    assert len(CATALOG.instances) >= 60
    assert sum(bool(item.prices) for item in CATALOG.instances.values()) >= 35
    providers = Counter(item.provider for item in CATALOG.instances.values())
    assert set(providers) == {"AWS", "Google Cloud", "Azure", "Lambda"}
    kinds = {(item.kind, item.generation) for item in CATALOG.links.values()}
    assert {("NVLink", str(n)) for n in range(1, 6)} <= kinds
    assert {("PCIe", str(n)) for n in range(3, 7)} <= kinds
    rates = ("FDR", "EDR", "HDR", "NDR", "XDR")
    assert {("InfiniBand", name) for name in rates} <= kinds
    assert {("EFA", f"v{n}") for n in range(1, 5)} <= kinds
    assert CATALOG.links["800G"].bytes_per_s == 100e9


def test_every_row_has_source_and_date() -> None:
    for table in (CATALOG.generations, CATALOG.devices, CATALOG.links, CATALOG.instances):
        for row in table.values():
            assert len(row.source) > 10, row.name
            assert row.date is not None, row.name
            assert EARLIEST < row.date < TODAY, row.name


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_every_gpu_has_every_fact_or_lists_it_as_unknown(device: Device) -> None:
    """What a command needs of a device is there, or its absence is on purpose."""
    for name in DEVICE_FACTS:
        if name in OPTIONAL:
            continue
        assert (device.find(name) is None) == (name in device.unknown), name
    for name in device.unknown:
        with pytest.raises(CatalogError, match=rf"{device.name} has no {name}[ ,].*no source"):
            device.require(name)


def test_what_stays_unknown_is_this() -> None:
    """A fact that is found later must be taken off this list, and one that is lost shows."""
    unknown = {name: sorted(item.unknown) for name, item in GPUS.items() if item.unknown}
    pcie = ["pcie_generation", "pcie_lanes", "pcie_peers"]
    amd = ["MI100", "MI210", "MI250", "MI250X", "MI300X", "MI325X", "MI355X"]
    assert unknown == {
        "V100": ["nvlink_peers"],
        "V100-PCIe-32G": ["nvlink_peers"],
        "L40S": ["cache_bytes"],
        "GH200": ["nvlink_peers", *pcie],
        "B300": ["cache_bytes", "fp4_flops"],
        "GB200": pcie,
        "GB300": ["cache_bytes", *pcie],
        **{name: ["counter_window_s"] for name in amd},
    }


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_numbers_are_of_a_gpu(device: Device) -> None:
    """Units: a slip of a thousand would show; balance of compute and memory as GPUs have it."""
    assert 1e12 <= device.fp32_flops <= device.half_flops <= 3e15
    assert 4 <= device.fp32_flops / device.bytes_per_s <= 120
    assert 100e9 < device.bytes_per_s < 10e12
    assert 5e9 < device.memory_bytes < 300e9
    if "multiprocessors" not in device.unknown:
        assert 5 < device.multiprocessors < 310
    if device.tensor_cores:
        assert device.half_flops >= 1.9 * device.fp32_flops


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_formats_are_those_of_the_generation(device: Device) -> None:
    """BF16 and TF32 since Ampere, FP8 since Ada and Hopper, FP4 since Blackwell; rates double."""
    order, nvidia = device.architecture.order, device.maker == "NVIDIA"
    assert bool(device.facts.get("bf16_flops")) == (order >= 5 and device.tensor_cores)
    if not nvidia:
        return
    assert bool(device.tf32_flops) == (order >= 5)
    assert bool(device.fp8_flops) == (order >= 5.5)
    assert ("fp4_flops" in device.facts or "fp4_flops" in device.unknown) == (order >= 7)
    if order >= 5:
        assert device.tf32_flops == pytest.approx(device.half_flops / 2, rel=0.02)
        assert device.bf16_flops == device.half_flops
    if order >= 5.5:
        assert device.fp8_flops == pytest.approx(2 * device.half_flops, rel=0.02)


# Single-precision FLOP per clock and multiprocessor, and clocks (GHz) that GPUs have.
PER_CLOCK = {"Kepler": 384, "Maxwell": 256, "Pascal": 256, "Volta": 128, "Turing": 128,
             "Ampere": 256, "Ada": 256, "Hopper": 256, "Blackwell": 256, "CDNA": 128,
             "CDNA2": 128, "CDNA3": 256, "CDNA4": 256}  # fmt: skip
OTHER = {"P100": 128, "P100-SXM2": 128, "A100": 128, "A100-80G": 128, "A100-PCIe-80G": 128,
         "A800": 128, "A800-PCIe": 128, "A30": 128}  # fmt: skip


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_single_precision_is_cores_times_clock(device: Device) -> None:
    """Multiprocessors and peak fit to each other: the clock that they imply is that of a GPU."""
    if "multiprocessors" in device.unknown:
        pytest.skip("no source states its multiprocessors")
    per_clock = OTHER.get(device.name, PER_CLOCK[device.generation])
    clock_ghz = device.fp32_flops / device.multiprocessors / per_clock / 1e9
    assert 0.8 < clock_ghz < 3.0


@pytest.mark.parametrize("instance", CATALOG.instances.values(), ids=CATALOG.instances)
def test_instances_are_plausible(instance: Instance) -> None:
    """Memory in all is that of the devices; every price has region, date and source."""
    device = CATALOG.devices[instance.device]
    if instance.device_memory_gb is not None:
        each = instance.device_memory_gb / instance.num_devices
        assert each == pytest.approx(device.memory_bytes / 1e9, rel=0.06)
    assert 1 <= instance.num_devices <= 16
    for price in instance.prices:
        assert price.region
        assert price.date is not None
        assert EARLIEST < price.date < TODAY
        assert len(price.source) > 20
        assert 0.3 < price.per_hour / instance.num_devices < 20


def test_every_gpu_instance_can_be_simulated() -> None:
    lacking = {
        item.device
        for item in CATALOG.instances.values()
        if CATALOG.missing_for_simulation(CATALOG.devices[item.device])
    }
    assert not lacking
    needed = set(SIMULATION_FACTS)
    assert needed <= set(DEVICE_FACTS)


def test_listings_have_a_row_for_everything() -> None:
    devices = list_devices(CATALOG)
    assert [row.name for row in devices] == list(CATALOG.devices)
    h100 = next(row for row in devices if row.name == "H100")
    assert h100.formats == ("fp32", "fp16", "bf16", "tf32", "fp8")
    assert (h100.maker, h100.memory_bytes, h100.nvlink) == ("NVIDIA", 80 * 2**30, "NVLink-H100")
    gb300 = next(row for row in devices if row.name == "GB300")
    assert "cache_bytes" in gb300.unknown
    assert [row.name for row in list_links(CATALOG)] == list(CATALOG.links)
    rows = {row.name: row for row in list_instances(CATALOG, datetime.date(2022, 12, 31))}
    assert len(rows) == len(CATALOG.instances)
    assert rows["p4d.24xlarge"].price_per_hour == 32.7726
    assert rows["p4d.24xlarge"].price_region == "us-east-1"
    assert rows["gpu_8x_h100_sxm5"].price_per_hour is None


def test_the_hardware_alone_is_the_same_without_instances() -> None:
    hardware = shipped_hardware()
    assert hardware.devices == CATALOG.devices
    assert hardware.links == CATALOG.links
    assert not hardware.instances


def test_instances_name_their_processors() -> None:
    """Most do; sizes of one family share one, and a source says which it is."""
    named = [item for item in CATALOG.instances.values() if item.cpu]
    assert len(named) >= 80
    families = defaultdict(set)
    for instance in CATALOG.instances.values():
        if instance.provider == "AWS":
            families[instance.name.partition(".")[0]].add(instance.cpu)
    assert all(len(cpus) == 1 for name, cpus in families.items() if name != "p5")
    makers = ("AMD EPYC", "Intel Xeon", "NVIDIA Grace")
    assert all(item.cpu.startswith(makers) and item.source for item in named)
