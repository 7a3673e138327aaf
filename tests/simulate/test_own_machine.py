"""A machine file's host, GPUs and links take the place of the usual ones, and of nothing else."""

from dataclasses import replace

import pytest

from driple.catalog.machine_file import Collective, MachineFile, MachineHost, MachineProcessor
from driple.catalog.rows import Row
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_rates import tuned_host
from driple.simulate.own_machine import machine_remarks, with_machine
from driple.simulate.processor import processor_pace
from tests.catalog.test_machine_file import H100, HOST, RING, WHOLE

NETWORK = replace(RING, machines=2, ranks=2, seconds=(2e-5, 2e-4, 2e-3))


def model() -> GpuModel:
    gpu_model = shipped_calibration().model
    assert isinstance(gpu_model, GpuModel)
    return gpu_model


def test_an_op_takes_the_host_as_long_as_measured() -> None:
    """`tuned_host` of the device is the measured time over that of published runs."""
    (device,) = with_machine(Setting.parse("1xH100"), WHOLE).cluster.devices
    assert tuned_host(device, model().host).op_s == pytest.approx(20e-6)
    assert device.find("tuned_half") == 0.9
    assert device.find("tuned_host_runs") == HOST.programs


def test_a_host_without_a_gpu_is_no_known_host() -> None:
    """Its launch is assumed, so that the answer's interval holds a slower host still."""
    alone = MachineFile(file="m.toml", host=replace(HOST, launch_us=9.0))
    (device,) = with_machine(Setting.parse("1xA100"), alone).cluster.devices
    assert tuned_host(device, model().host).op_s == pytest.approx(20e-6)
    assert device.find("tuned_host_runs") == 0
    codes = [one.code for one in machine_remarks(alone, Setting.parse("1xA100"))]
    assert codes == ["measured_host", "device_rates_assumed"]


def test_a_machine_of_another_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"measured on H100, and 1xA100 has A100; "):
        with_machine(Setting.parse("1xA100"), WHOLE)


def test_processors_take_what_was_measured_of_cores() -> None:
    """And the all-reduce between machines."""
    cores = MachineProcessor(
        flops_per_s=1e11, bytes_per_s=1e10, us_per_op=8.0, threads=1, programs=11, median_pct=5.0
    )
    slow = replace(NETWORK, seconds=tuple(1000 * second for second in NETWORK.seconds))
    own = MachineFile(file="m.toml", processor=cores, collectives=(slow,))
    setting = Setting.parse("2x1xCPU/400M")
    changed = with_machine(setting, own)
    pace = processor_pace(changed.worker)
    assert (pace.flops_per_s, pace.bytes_per_s) == (1e11, 1e10)
    assert pace.op_s == pytest.approx(8e-6)
    assert changed.cluster.network != setting.cluster.network
    codes = [one.code for one in machine_remarks(own, setting)]
    assert codes == ["measured_processor"]


def test_processors_without_cores_or_with_servers_are_refused() -> None:
    with pytest.raises(ConfigError, match="--calibrate"):
        with_machine(Setting.parse("CPU-P1w2"), WHOLE)
    with pytest.raises(ConfigError, match=r"has no \[processor\], and 2x1xCPU/400M"):
        with_machine(Setting.parse("2x1xCPU/400M"), WHOLE)


def test_of_unlike_devices_only_its_own_are_measured() -> None:
    setting = Setting.parse("2080Ti-P2w2/he-40G")
    kinds = list(dict.fromkeys(setting.cluster.devices))
    assert len(kinds) > 1
    row = Row(name=kinds[-1].name, values=H100.values, file="m", own=True)
    changed = with_machine(setting, MachineFile(file="m", rows=(row,), host=HOST))
    for device in changed.cluster.devices:
        assert (device.find("tuned_host") is not None) == (device.name == kinds[-1].name)


def test_runs_of_the_user_tell_of_the_host_before_small_programs_do() -> None:
    row = Row(name="H100", values={**H100.values, "tuned_host": 3.0}, file="m", own=True)
    (device,) = with_machine(
        Setting.parse("1xH100"), MachineFile(file="m", rows=(row,), host=HOST)
    ).cluster.devices
    assert device.find("tuned_host") == 3.0


def test_an_all_reduce_over_machines_is_that_of_the_network() -> None:
    """Within a machine its own table counts, and the network's between them."""
    both = replace(WHOLE, collectives=(RING, replace(NETWORK, ranks=16)))
    cluster = with_machine(Setting.parse("2x8xH100/NVLink+400G"), both).cluster
    assert cluster.network is not None and cluster.link is not None
    for link, table in (
        (cluster.link, both.collectives[0]),
        (cluster.network, both.collectives[1]),
    ):
        assert link.efficiency is not None
        reached = link.efficiency * link.bytes_per_s
        assert reached == pytest.approx(table.sustained_bytes_per_s, rel=0.03)
    joined = with_machine(Setting.parse("8xH100"), both).cluster
    assert joined.link is not None and joined.link.efficiency == pytest.approx(
        cluster.link.efficiency
    )


def test_a_burst_of_a_limited_network_is_not_its_rate() -> None:
    """A token bucket lets a small message through at once; the largest has the rate."""
    table = Collective(
        collective="all_reduce", backend="gloo", ranks=2, machines=2,
        sizes=(2.0**16, 2.0**18, 2.0**22, 2.0**24),
        seconds=(2.0**16 / 130e6, 2.0**18 / 30e6, 2.0**22 / 24e6, 2.0**24 / 23.9e6),
    )  # fmt: skip
    machine = MachineFile(file="m", collectives=(table,))
    network = with_machine(Setting.parse("2x1xH100/PCIe+200M"), machine).cluster.network
    assert network is not None and network.efficiency is not None
    assert network.efficiency * 25e6 == pytest.approx(23.9e6, rel=0.01)


def test_a_rate_that_the_named_network_cannot_have_is_refused() -> None:
    machine = MachineFile(file="m.toml", collectives=(NETWORK,))
    with pytest.raises(ConfigError, match=r"^m\.toml: .* times what 1G of"):
        with_machine(Setting.parse("2x1xH100/PCIe+1G"), machine)


def test_a_pace_that_no_host_has_is_refused() -> None:
    slow = MachineHost(us_per_op=1e5, low_us=1.0, high_us=1e5, us_per_tensor=1.0, programs=3)
    with pytest.raises(ConfigError, match="the host's pace"):
        with_machine(Setting.parse("1xH100"), MachineFile(file="m", host=slow))


def test_one_device_has_no_link_to_measure() -> None:
    setting = with_machine(Setting.parse("1xH100"), WHOLE)
    assert setting.cluster.link == Setting.parse("1xH100").cluster.link


def codes(machine: MachineFile, setting: str) -> list[str]:
    """What a machine file leaves open of a setting."""
    return [one.code for one in machine_remarks(machine, Setting.parse(setting))]


def test_remarks_state_what_was_measured() -> None:
    launched = replace(HOST, launch_us=9.0)
    (host,) = machine_remarks(replace(WHOLE, host=launched), Setting.parse("1xH100"))
    assert dict(host.values) == {
        "file": "machine.toml", "us_per_op": 20.0, "low_us": 11.0, "high_us": 30.0,
        "launch_us": 9.0,
    }  # fmt: skip
    cores = MachineProcessor(
        flops_per_s=1e11, bytes_per_s=2e10, us_per_op=8.0, threads=3, programs=11, median_pct=5.0
    )
    (processor,) = machine_remarks(MachineFile(file="m.toml", processor=cores),
                                   Setting.parse("1x1xCPU"))  # fmt: skip
    assert dict(processor.values) == {
        "file": "m.toml", "gflops": 100.0, "gb_per_s": 20.0, "us_per_op": 8.0, "threads": 3,
    }  # fmt: skip


def test_a_busy_machine_and_unknown_rates_are_remarked() -> None:
    assert WHOLE.machine is not None
    busy = replace(WHOLE, machine=replace(WHOLE.machine, disturbed=True, busy_cores=2.5))
    remarks = machine_remarks(busy, Setting.parse("1xH100"))
    assert [one.code for one in remarks] == ["measured_host", "measured_while_busy"]
    assert dict(remarks[1].values) == {"file": "machine.toml", "busy_cores": 2.5}
    assert codes(replace(WHOLE, host=None), "1xH100") == []
    untuned = Row(name="H100", values={"fp32_flops": 1e13}, file="m", own=True)
    (remark,) = machine_remarks(MachineFile(file="m", rows=(untuned,)), Setting.parse("1xH100"))
    assert (remark.code, remark.values["device"]) == ("device_rates_assumed", "H100")


@pytest.mark.parametrize(
    ("setting", "tables", "code"),
    [
        ("8xH100", (RING,), None),
        ("8xH100", (replace(RING, collective="all_gather"),), "link_of_machine_not_measured"),
        ("8xH100", (NETWORK,), "link_of_machine_not_measured"),
        ("8xH100", (), "link_of_machine_not_measured"),
        ("8xH100", (replace(RING, backend="gloo"),), "measured_by_gloo"),
        ("2x8xH100/NVLink+400G", (RING,), "link_of_machine_not_measured"),
        ("2x8xH100/NVLink+400G", (RING, NETWORK), None),
        ("2x8xH100/NVLink+400G", (replace(RING, backend="gloo"), NETWORK), None),
        ("1xH100", (), None),
    ],
)
def test_links_that_were_not_measured_are_remarked(
    setting: str, tables: tuple[Collective, ...], code: str | None
) -> None:
    """By all-reduces over as many machines as the setting has: one, or several."""
    machine = replace(WHOLE, host=None, collectives=tables)
    assert codes(machine, setting) == ([] if code is None else [code])


def test_only_all_reduces_of_links_between_devices_count() -> None:
    """A gather changes nothing, nor does a table of a link that the setting has none of."""
    for tables, setting in (
        ((replace(RING, collective="all_gather"),), "8xH100"),
        ((RING,), "2x1xH100/PCIe+400G"),
        ((NETWORK,), "8xH100"),
    ):
        plain = Setting.parse(setting)
        changed = with_machine(plain, MachineFile(file="m", host=HOST, collectives=tables))
        assert changed.cluster.link == plain.cluster.link
        assert changed.cluster.network == plain.cluster.network
    changed = with_machine(Setting.parse("8xH100"), MachineFile(file="m", collectives=(RING,)))
    assert changed.cluster.link != Setting.parse("8xH100").cluster.link


def test_all_devices_have_the_rows_facts_and_the_files_name() -> None:
    """Of a row only what is a fact of a device; other devices' rows do not count."""
    other = Row(name="A100", values={"tuned_half": 0.1}, file="m", own=True)
    machine = MachineFile(file="m.toml", rows=(other, H100))
    setting = with_machine(Setting.parse("8xH100"), machine)
    for device in (*setting.cluster.devices, setting.worker):
        assert (device.find("tuned_half"), device.find("tuned_memory")) == (0.9, 1.1)
        assert device.origin == "m.toml"
        assert "source" not in device.facts
        assert device.find("tuned_host") is None
    plain = with_machine(Setting.parse("1xH100"), MachineFile(file="m", host=HOST))
    assert plain.worker.find("tuned_half") is None
    assert plain.worker.find("tuned_host_runs") == 12
