"""Which checked runs are on clusters like an answer's, and why there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.answers.checked_runs import CheckedRun
from driple.answers.like_cluster import ClusterKind, runs_like, unlike_servers
from driple.cluster.setting import Setting
from driple.remarks import Remark
from tests.answers.checked import checked_run

RUNS = [
    checked_run("single", "V100", 5),
    checked_run("ring", "V100", 5, workers=4, link="PCIe3"),
    checked_run("ring", "V100", 5, workers=8, link="NVLink-V100"),
    checked_run("ring", "V100", 5, workers=16, several=True, link="25G"),
    checked_run("ring", "V100", 5, workers=32, several=True, link="10G"),
    checked_run("sharded", "A100", 5, workers=8, link="NVLink-A100"),
]
SERVERS = [
    checked_run("servers", "K80", 5, workers=4, servers=2, several=True, link="10G"),
    checked_run("servers", "K80", 5, workers=8, servers=1, several=True, link="1G"),
]


def kind_of(name: str, *, offloads: bool = False) -> ClusterKind:
    return ClusterKind.of(Setting.parse(name), offloads=offloads)


def like(name: str) -> tuple[list[CheckedRun], Remark | None]:
    return runs_like(RUNS, kind_of(name))


def code(remark: Remark | None) -> str | None:
    return None if remark is None else remark.code


@pytest.mark.parametrize(
    ("name", "runs", "reason"),
    [
        ("1xV100", [0], None),
        ("1xH100", [0], None),  # the device is looked at elsewhere
        ("4xV100/PCIe", [1, 2], None),
        ("8xV100/NVLink", [1, 2], None),
        ("8xH100/NVLink", [1, 2], None),  # any NVLink is like NVLink
        ("16xV100/NVLink", [], "more_devices"),
        ("2x8xV100/NVLink+25G", [3, 4], None),
        ("4x8xV100/NVLink+10G", [3, 4], None),
        ("2x8xV100/NVLink+40G", [], "faster_network"),
        ("8x8xV100/NVLink+10G", [], "more_devices"),
        ("8xA100/NVLink@fsdp", [5], None),
        ("8xA100/PCIe@fsdp", [], "other_links"),
        ("2x8xA100/NVLink+10G@fsdp", [], "no_run_on_machines"),
        ("8xH100/NVLink@tp2", [], "no_run_of_kind"),
    ],
)
def test_runs_like_a_cluster(name: str, runs: list[int], reason: str | None) -> None:
    alike, why = like(name)
    assert alike == [RUNS[i] for i in runs]
    assert code(why) == reason


def test_the_order_of_runs_does_not_matter() -> None:
    cluster = kind_of("2x8xV100/NVLink+25G")
    alike, _ = runs_like(RUNS[::-1], cluster)
    assert sorted(run.num_devices for run in alike) == [16, 32]
    assert runs_like([], cluster)[0] == []


def test_reasons_name_what_is_lacking() -> None:
    _, more = like("16xV100/NVLink")
    assert more is not None
    assert (more.values["num_devices"], more.values["most"]) == (16, 8)
    _, faster = like("2x8xV100/NVLink+40G")
    assert faster is not None
    assert (faster.values["link"], faster.values["fastest"]) == ("40G", "25G")
    _, links = like("8xA100/PCIe@fsdp")
    assert links is not None and links.values["families"] == ("NVLink",)
    _, none = runs_like(RUNS, kind_of("8xH100/NVLink@tp2"), compiled=True)
    assert none is not None and none.values["compiled"] is True


def test_a_cluster_is_what_its_setting_says() -> None:
    many = kind_of("2x8xV100/NVLink+25G")
    assert (many.kind, many.devices, many.num_workers, many.several_machines) == (
        "ring", ("V100",), 16, True)  # fmt: skip
    assert (many.link, many.link_bytes_per_s) == ("25G", pytest.approx(3.125e9))
    one_machine = many.one_machine
    assert one_machine is not None
    assert (one_machine.kind, one_machine.num_workers, one_machine.several_machines) == (
        "ring",
        8,
        False,
    )
    assert (
        one_machine.link.startswith("NVLink")
        and one_machine.link_bytes_per_s > many.link_bytes_per_s
    )
    single = kind_of("1xV100")
    assert single == ClusterKind(kind="single", devices=("V100",))
    assert kind_of("8xV100/NVLink").one_machine is None


def test_of_machines_with_one_device_each_one_is_a_device_alone() -> None:
    apart = kind_of("4x1xV100/25G")
    assert apart.one_machine == ClusterKind(kind="single", devices=("V100",))
    assert kind_of("V100-P1w2/ho-10G").one_machine is None


def test_a_job_that_keeps_states_on_its_host_is_like_no_run() -> None:
    for name in ("1xV100", "8xV100/NVLink"):
        cluster = kind_of(name, offloads=True)
        assert "offload" in cluster.kind
        assert code(runs_like(RUNS, cluster)[1]) == "no_run_of_kind"
    assert kind_of("8xV100/NVLink", offloads=True).num_workers == 8


def test_the_same_cluster_of_another_device() -> None:
    many = kind_of("2x8xV100/NVLink+25G")
    other = many.on("T4")
    assert other.devices == ("T4",)
    assert other.one_machine is not None and other.one_machine.devices == ("T4",)
    assert other.on("V100") == many


SERVED = ClusterKind(
    kind="servers", devices=("K80",), num_workers=4, num_servers=2, several_machines=True,
    link="10G", link_bytes_per_s=1.25e9,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"num_workers": 8}, None),
        ({"num_workers": 9}, "more_servers"),
        ({"num_servers": 3}, "more_servers"),
        ({"several_machines": False}, "servers_on_one_machine"),
        ({"link_bytes_per_s": 1.26e9}, "faster_network_of_servers"),
        ({"link_bytes_per_s": 1e8}, None),
    ],
)
def test_clusters_with_servers_beyond_the_published_ones(
    changes: dict[str, int | bool | float], reason: str | None
) -> None:
    assert code(unlike_servers(replace(SERVED, **changes), SERVERS)) == reason  # type: ignore[arg-type]
    assert code(unlike_servers(SERVED, [])) == "no_run_with_servers"
