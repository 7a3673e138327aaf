"""Collectives between processes: alone on this machine, and over links of a set rate."""

from pathlib import Path

import pytest

from driple.catalog.machine_file import COLLECTIVES, read_machine
from driple.errors import MeasureError
from driple.measure.machine.link_process import local_links
from driple.measure.machine.links import ranks_of_environment
from scripts.pages.own_machine import measure_pair
from tests.measure.testbed.test_cluster import needs_cluster


@pytest.mark.slow
def test_two_processes_of_this_machine_time_all_collectives() -> None:
    collectives = local_links(2)
    assert [one.collective for one in collectives] == list(COLLECTIVES)
    assert all(one.ranks == 2 and one.machines == 1 for one in collectives)
    assert all(one.sustained_bytes_per_s > 1e7 for one in collectives)


@needs_cluster
@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("bits_per_s", [200e6, 1e9])
def test_links_of_two_machines_have_the_set_rate(bits_per_s: float, tmp_path: Path) -> None:
    """`measure --machine` on two processes, each in a namespace, is within 10 % of the rate."""
    file = tmp_path / "machine.toml"
    measure_pair(file, bits_per_s, "--set", "parts=links", "--set", "quiet_wait=0")
    rates = {one.collective: one for one in read_machine(file).collectives}
    for name in ("all_reduce", "send"):
        assert rates[name].machines == 2
        assert rates[name].sustained_bytes_per_s == pytest.approx(bits_per_s / 8, rel=0.1)


def test_half_an_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(MeasureError, match="RANK, MASTER_ADDR, MASTER_PORT") as refused:
        ranks_of_environment()
    assert "torchrun" in str(refused.value)


def test_one_process_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert ranks_of_environment() is None
