"""Substitutes for devices and links without measurements, stated errors, and refusals."""

from __future__ import annotations

import json
from dataclasses import astuple, replace

import pytest

from driple.catalog import DEVICES, Device, Link, link_named
from driple.cluster.setting import Setting
from driple.codec import to_dict
from driple.errors import ConfigError, SettingError
from driple.schemes.links import TCP_EFFICIENCY, TCP_SHARES
from driple.schemes.nccl_links import SWITCHED
from driple.simulate.calibration import (
    Calibration,
    ClusterErrors,
    LinkEfficiency,
    is_cpu,
    link_kind,
    nearest_link,
    shipped_calibration,
)
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import Runtime
from driple.trace.provenance import TimeError
from tests.simulate.gpu_models import gpu_model
from tests.simulate.jobs import CALIBRATION

ON_GPUS = replace(CALIBRATION, model=gpu_model())
ETHERNET, PCIE3 = CALIBRATION.links["Ethernet"], CALIBRATION.links["PCIe3"]
V100 = DEVICES["V100"]


def like(device: Device, name: str = "mine", **facts: float) -> Device:
    """A device of its own with other facts."""
    return replace(device, name=name, facts={**device.facts, **facts})


def with_links(**links: LinkEfficiency) -> Calibration:
    """The calibration with these links alone; `_` stands for a hyphen."""
    return replace(CALIBRATION, links={name.replace("_", "-"): own for name, own in links.items()})


def share_of(calibration: Calibration, name: str) -> float:
    """What a link reaches of its rate."""
    return calibration.link(name).share


SLOW, MIDDLE, FAST = (
    LinkEfficiency(share, 1e-6 * latency_us, sharing)
    for share, latency_us, sharing in ((0.2, 50.0, 0.4), (0.5, 10.0, 0.9), (0.6, 20.0, 0.5))
)


@pytest.mark.parametrize(
    ("name", "least", "below"),
    [
        ("apply_s_per_byte", 0.0, -1e-12), ("jitter", 0.0, -0.01), ("bridge_bytes_per_s", 0.5, 0.0),
        ("memory_activity", 0.5, 0.0), ("role_copy_bytes_per_s", 0.5, 0.0),
    ],
)  # fmt: skip
def test_constants_out_of_range_are_refused(name: str, least: float, below: float) -> None:
    assert getattr(replace(CALIBRATION, **{name: least}), name) == least  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=name):
        replace(CALIBRATION, **{name: below})  # type: ignore[arg-type]


def test_a_device_by_its_name_is_that_of_the_catalogue() -> None:
    by_name, by_device = CALIBRATION.device("V100"), CALIBRATION.device(V100)
    assert by_name == by_device
    assert (by_name.spec, by_name.measured_on) == (V100, "V100")
    assert by_name.efficiency.memory_activity == CALIBRATION.memory_activity
    with pytest.raises(SettingError):
        CALIBRATION.device("V99")


def test_a_measured_link_has_its_own_efficiency() -> None:
    """Whether it is given by name or not; all rates of Ethernet are one."""
    assert CALIBRATION.link("PCIe3") == CALIBRATION.link(link_named("PCIe3")) == PCIE3
    assert CALIBRATION.link("10G") == CALIBRATION.link("400G") == ETHERNET


def test_a_share_that_the_user_states_counts_before_what_was_measured() -> None:
    """With the usual latency unless that is stated too, and no loss by sharing."""
    stated = replace(link_named("PCIe3"), efficiency=0.123)
    assert CALIBRATION.link(stated) == LinkEfficiency(0.123, PCIE3.latency_s, 0.0)
    both = replace(stated, latency_s=7e-6)
    assert CALIBRATION.link(both) == LinkEfficiency(0.123, 7e-6, 0.0)
    only_latency = replace(link_named("PCIe3"), latency_s=7e-6)
    assert CALIBRATION.link(only_latency) == PCIE3


def test_switched_links_have_what_nccl_reaches() -> None:
    assert CALIBRATION.link("NVLink-H100") == SWITCHED["NVLink-H100"]
    own = with_links(NVLink_H100=SLOW, Ethernet=ETHERNET)
    assert own.link("NVLink-H100") == SWITCHED["NVLink-H100"]


def test_networks_by_tcp_reach_the_median_of_published_shares() -> None:
    assert CALIBRATION.link("25G-TCP") == TCP_EFFICIENCY
    measured = replace(CALIBRATION, links={**CALIBRATION.links, "TCP": SLOW})
    assert measured.link("25G-TCP") == SLOW


def test_fewer_than_three_relatives_leave_the_nearest_one() -> None:
    """By the ratio of the rates: of 15.75 and 63, 31.5 GB/s is as near to both, 121 to the last."""
    two = with_links(PCIe3=SLOW, PCIe5=FAST, Ethernet=ETHERNET)
    assert two.link("PCIe6") == FAST
    assert two.link("PCIe3x8") == SLOW
    assert two.link("PCIe4-host") == ETHERNET  # of another family
    assert two.link("InfiniBand-EDR") == ETHERNET


def test_of_three_relatives_or_more_the_median_counts() -> None:
    three = with_links(PCIe3=SLOW, PCIe5=FAST, PCIe4=MIDDLE, Ethernet=ETHERNET)
    reached = three.link("PCIe6")
    assert astuple(reached) == pytest.approx(astuple(LinkEfficiency(0.5, 20e-6, 0.5)))
    hosts = with_links(PCIe3=SLOW, PCIe5=FAST, PCIe4_host=MIDDLE, Ethernet=ETHERNET)
    assert hosts.link("PCIe6") == FAST


def test_a_link_without_a_relative_and_without_ethernet_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"stand in for EFA-v1.*\(PCIe3\)"):
        with_links(PCIe3=SLOW).link("EFA-v1")
    with pytest.raises(ConfigError, match=r"\(none\)"):
        with_links().link("EFA-v1")


@pytest.mark.parametrize(
    ("link", "kinds", "nearest"),
    [
        ("PCIe3", ("PCIe5", "PCIe3"), "PCIe3"),
        ("PCIe6", ("PCIe3", "PCIe5", "Ethernet"), "PCIe5"),
        ("PCIe3x8", ("PCIe5", "PCIe3", "Ethernet"), "PCIe3"),
        ("PCIe3-host", ("PCIe3", "PCIe5-host"), "PCIe5-host"),
        ("InfinityFabric-MI300X", ("PCIe3", "NVLink-V100"), "NVLink-V100"),
        ("400G-RDMA", ("InfiniBand-FDR", "InfiniBand-NDR", "NVLink-V100"), "InfiniBand-NDR"),
        ("azure-Ethernet", ("PCIe3",), "Ethernet"),
        ("10G", ("PCIe3",), "Ethernet"),
        ("EFA-v1", ("PCIe3", "Ethernet"), "Ethernet"),
    ],
)
def test_the_nearest_link_is_of_the_same_family_and_has_the_nearest_rate(
    link: str, kinds: tuple[str, ...], nearest: str
) -> None:
    for order in (kinds, kinds[::-1]):
        assert nearest_link(link, order) == nearest
        assert nearest_link(link_named(link), order) == nearest


def test_kinds_of_links() -> None:
    names = {"10G": "Ethernet", "25G-TCP": "TCP", "PCIe4": "PCIe4", "400G-RDMA": "400G-RDMA"}
    for name, kind in names.items():
        assert link_kind(name) == link_kind(link_named(name)) == kind


def host_op_s(calibration: Calibration) -> float:
    """Seconds of the host for an op."""
    assert isinstance(calibration.model, GpuModel)
    return calibration.model.host.op_s


@pytest.mark.parametrize(("runtime", "factor"), [(Runtime(), 4.0), (Runtime(compiled=True), 8.0)])
def test_a_host_of_a_known_speed_is_as_much_slower_in_all(runtime: Runtime, factor: float) -> None:
    """Its pace is 5 us for an op and 2.5 us for a compiled kernel."""
    changed = ON_GPUS.with_host(20e-6, runtime)
    assert host_op_s(changed) == pytest.approx(factor * host_op_s(ON_GPUS))
    assert isinstance(changed.model, GpuModel)
    assert changed.model.host.each_s(runtime) == pytest.approx(20e-6)
    assert changed.links == ON_GPUS.links


def test_hosts_are_for_gpus_and_take_time() -> None:
    with pytest.raises(ConfigError, match="for GPUs"):
        CALIBRATION.with_host(1e-5, Runtime())
    with pytest.raises(ConfigError, match="host_us_per_op"):
        ON_GPUS.with_host(0.0, Runtime())
    assert host_op_s(ON_GPUS.with_host(0.5e-6, Runtime())) == pytest.approx(0.5e-6)


def remarks_of(
    *things: Device | Link, calibration: Calibration = CALIBRATION
) -> list[dict[str, object]]:
    """Codes and values of what is assumed of devices and links."""
    devices = [one for one in things if isinstance(one, Device)]
    links = [one for one in things if isinstance(one, Link)]
    remarks = calibration.assumptions(devices, links)
    return [{"code": one.code, **one.values} for one in remarks]


def test_measured_devices_and_links_need_no_assumption() -> None:
    assert remarks_of(V100, link_named("PCIe3"), link_named("10G"), link_named("NVLink-H100")) == []


def test_unmeasured_devices_say_what_stands_in() -> None:
    """A generation, the usual device, or the same chip with another memory."""
    on_volta, unknown = like(V100, "volta"), like(DEVICES["T4"], "turing")
    known: dict[str, object] = {
        "code": "device_not_measured", "is_same_chip": False, "source_bytes_per_s": None,
        "bytes_per_s": None,
    }  # fmt: skip
    assert remarks_of(on_volta, on_volta, unknown) == [
        {**known, "device": "volta", "source": "Volta"},
        {**known, "device": "turing", "source": ""},
    ]
    same = {**known, "is_same_chip": True, "source": "V100"}
    assert remarks_of(on_volta, calibration=ON_GPUS) == [{**same, "device": "volta"}]
    faster = like(V100, "faster", bytes_per_s=1e12)
    assert remarks_of(faster, calibration=ON_GPUS) == [
        {**same, "device": "faster", "source_bytes_per_s": 900e9, "bytes_per_s": 1e12}
    ]


def test_a_tuned_device_says_so() -> None:
    tuned = like(V100, "V100", tuned_half=2.0)
    assert [one["code"] for one in remarks_of(tuned)] == ["tuned_device"]


def test_unmeasured_links_say_what_stands_in() -> None:
    stated = replace(link_named("PCIe3"), efficiency=0.25, latency_s=3e-6)
    tcp = link_named("25G-TCP")
    links = (stated, tcp, link_named("PCIe4"), link_named("PCIe4"), link_named("EFA-v1"))
    assert remarks_of(*links) == [
        {"code": "link_stated", "link": "PCIe3", "bytes_per_s": 15.75e9 / 4, "share": 0.25,
         "latency_s": 3e-6},
        {"code": "link_by_tcp", "link": "25G-TCP", "share": 0.46, "low": 0.11, "high": 0.97,
         "count": len(TCP_SHARES)},
        {"code": "link_not_measured", "link": "PCIe4", "like": "PCIe3"},
        {"code": "link_not_measured", "link": "EFA-v1", "like": "Ethernet"},
    ]  # fmt: skip
    both = replace(tcp, efficiency=0.5)
    assert [one["code"] for one in remarks_of(both)] == ["link_stated"]


NEW = TimeError(rows=5, median_pct=20.0, p90_pct=40.0, devices=("P100", "T4"))
OWN = TimeError(rows=2, median_pct=1.0, p90_pct=2.0)
SERVERS, MEASURED = "V100-P1w4/ho-PCIe", "V100-P1w2/ho-PCIe"
RING, SINGLE = "V100-R4/ho-PCIe", "1xV100"


def errors_of(
    rows: int, p90_pct: float, *devices: str, new: TimeError | None = NEW
) -> ClusterErrors:
    """Errors of one kind of cluster."""
    return ClusterErrors(
        rows=rows, median_pct=p90_pct / 2, p90_pct=p90_pct, devices=devices, new_device=new
    )


KNOWN = replace(
    CALIBRATION,
    errors={
        "servers": replace(errors_of(7, 10.0, "V100"), settings={MEASURED: OWN}),
        "ring": errors_of(8, 12.0, "V100"),
        "single": errors_of(9, 14.0, "V100"),
    },
)


def test_errors_are_by_default_of_no_device() -> None:
    plain = ClusterErrors(rows=3, median_pct=4.0, p90_pct=5.0)
    assert plain == ClusterErrors(rows=3, median_pct=4.0, p90_pct=5.0, devices=(), new_device=None,
                                  settings={})  # fmt: skip
    assert plain.error() == TimeError(rows=3, median_pct=4.0, p90_pct=5.0)
    assert errors_of(3, 5.0, "T4").error().devices == ("T4",)
    stated = {"rows": 3, "median_pct": 4.0, "p90_pct": 5.0}
    content = to_dict(CALIBRATION, where="calibration") | {"errors": {"single": stated}}
    read = Calibration.from_json(json.dumps({"format": 2, **content}))
    assert read.errors["single"] == plain


@pytest.mark.parametrize(
    ("setting", "link", "rows"), [(SERVERS, "PCIe3", 7), (RING, "PCIe3", 8), (SINGLE, "PCIe3", 9)]
)
def test_the_error_of_a_known_device_is_that_of_its_kind_of_cluster(
    setting: str, link: str, rows: int
) -> None:
    error = KNOWN.error_of(Setting.parse(setting), link)
    assert error is not None
    assert (error.rows, error.new_device, error.one_device) == (rows, False, False)
    assert error.devices == ("V100",)


def test_a_setting_that_was_measured_has_its_own_error() -> None:
    error = KNOWN.error_of(Setting.parse(MEASURED), "PCIe3")
    assert error == replace(OWN, setting=MEASURED)


def test_kinds_of_clusters_without_runs_have_no_error() -> None:
    none = replace(CALIBRATION, errors={})
    assert none.error_of(Setting.parse(SERVERS), "PCIe3") is None
    assert none.error_of(Setting.parse(RING), "PCIe3") is None


@pytest.mark.parametrize("setting", [RING, SINGLE])
def test_a_new_device_has_the_error_of_devices_that_were_left_out(setting: str) -> None:
    new = KNOWN.error_of(Setting.parse(setting.replace("V100", "2080Ti")), "PCIe3")
    assert new == replace(NEW, new_device=True)


def test_a_ring_over_a_new_link_counts_as_new() -> None:
    """Over another link it is new, with servers the link does not count."""
    assert KNOWN.error_of(Setting.parse(RING), "NVLink-V100") == replace(NEW, new_device=True)
    servers = KNOWN.error_of(Setting.parse(SERVERS), "NVLink-V100")
    assert servers is not None and not servers.new_device
    single = KNOWN.error_of(Setting.parse(SINGLE), "NVLink-V100")
    assert single is not None and not single.new_device


def test_without_fits_that_leave_devices_out_a_new_device_has_the_usual_error() -> None:
    plain = replace(CALIBRATION, errors={"single": errors_of(9, 14.0, "V100", new=None)})
    error = plain.error_of(Setting.parse("1xT4"), "PCIe3")
    assert error is not None and not error.new_device and error.rows == 9


@pytest.mark.parametrize(("p90_pct", "alone"), [(41.0, True), (40.0, False), (39.0, False)])
def test_servers_of_a_new_device_are_at_least_as_far_off_as_one_device(
    p90_pct: float, alone: bool
) -> None:
    """A cluster's step holds a step of one device, so the larger of both errors counts."""
    single = errors_of(9, p90_pct, "2080Ti")
    known = replace(KNOWN, errors={**KNOWN.errors, "single": single})
    error = known.error_of(Setting.parse("2080Ti-P1w4/ho-PCIe"), "PCIe3")
    expected = replace(single.error(), one_device=True) if alone else replace(NEW, new_device=True)
    assert error == expected
    no_single = replace(KNOWN, errors={"servers": KNOWN.errors["servers"]})
    new = no_single.error_of(Setting.parse("2080Ti-P1w4/ho-PCIe"), "PCIe3")
    assert new == replace(NEW, new_device=True)


def test_a_known_device_with_servers_keeps_its_error_whatever_single_devices_have() -> None:
    known = replace(KNOWN, errors={**KNOWN.errors, "single": errors_of(9, 99.0, "V100")})
    error = known.error_of(Setting.parse(SERVERS), "PCIe3")
    assert error is not None and error.rows == 7


def test_a_calibration_is_its_own_file() -> None:
    text = json.dumps(CALIBRATION.to_dict())
    assert Calibration.from_json(text) == CALIBRATION
    content = CALIBRATION.to_dict()
    assert content["format"] == 2
    del content["role_copy_bytes_per_s"]
    read = Calibration.from_json(json.dumps(content))
    assert read.role_copy_bytes_per_s == float("inf")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"format": 2', '"format": 1', "fit it again"),
        ('"measured": {"V100"', '"measured": {"V99"', "outside the catalogue: V99"),
        ('"Ethernet": {', '"10G": {', "no Ethernet"),
    ],
)
def test_files_that_are_no_calibration_are_refused(old: str, new: str, words: str) -> None:
    text = json.dumps(CALIBRATION.to_dict())
    assert text.count(old) == 1
    with pytest.raises(ConfigError, match=words):
        Calibration.from_json(text.replace(old, new))


def test_processors_and_gpus_have_calibrations_of_their_own() -> None:
    usual, cpu, gpu = (
        shipped_calibration(setting)
        for setting in (None, Setting.parse("CPU-P1w2"), Setting.parse("1xV100"))
    )
    assert usual is gpu
    assert isinstance(gpu.model, GpuModel)
    assert not isinstance(cpu.model, GpuModel)
    processor = next(name for name, device in DEVICES.items() if device.is_cpu)
    assert is_cpu(processor)
    assert not is_cpu("V100")
