"""Every byte that a host sends or receives counts once: a machine of files, and this one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from driple.errors import MeasureError
from driple.measure.record.network import find_network

PID = 7


def _machine(root: Path, interfaces: dict[str, tuple[int, int]], links: Iterable[str] = ()) -> Path:
    """Files of a machine: received and sent bytes by interface, and paths below each.

    Args:
        root: folder in which `proc` and `sys` lie.
        interfaces: received and sent bytes.
        links: such as `eth0/device`, `bond0/lower_eth0`, `ib0/type=32`.
    """
    table = "Inter-|   Receive |  Transmit\n face |bytes packets |bytes packets\n"
    for name, (rx, tx) in interfaces.items():
        table += f"{name:>6}: {rx:7} 1 0 0 0 0 0 0 {tx:8} 2 0 0 0 0 0 0\n"
        statistics = root / "sys/class/net" / name / "statistics"
        statistics.mkdir(parents=True)
        (statistics / "rx_bytes").write_text(f"{rx}\n")
    (root / f"proc/{PID}/net").mkdir(parents=True)
    (root / f"proc/{PID}/net/dev").write_text(table)
    for link in links:
        path, _, text = link.partition("=")
        (root / "sys/class/net" / path).write_text(text)
    return root


def _port(root: Path, device: str, sent: int, received: int, state: str = "4: ACTIVE") -> None:
    port = root / "sys/class/infiniband" / device / "ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text(state)
    (port / "counters/port_xmit_data").write_text(str(sent))
    (port / "counters/port_rcv_data").write_text(str(received))


def test_a_bond_and_loopback_do_not_count_twice(tmp_path: Path) -> None:
    """The bond repeats its two links; a bridge and the ends of containers repeat eth2."""
    names = {"lo": (9, 9), "eth0": (10, 1), "eth1": (20, 2), "bond0": (30, 3), "eth2": (40, 4)}
    names |= {"veth1": (5, 5), "docker0": (5, 5)}
    links = ("eth0/device", "eth1/device", "eth2/device", "bond0/lower_eth0", "docker0/lower_veth1")
    network = find_network(PID, root=_machine(tmp_path, names, links))
    assert network.names == ("eth0", "eth1", "eth2")
    assert (network.net_tx(), network.net_rx(), network.loopback()) == (7, 70, 9)


def test_infiniband_ports_count_in_units_of_four_bytes_and_replace_ipoib(tmp_path: Path) -> None:
    """IP over InfiniBand is part of what the port counts; a port that is down counts nothing."""
    names = {"lo": (0, 0), "eth0": (10, 1), "ib0": (4000, 400)}
    root = _machine(tmp_path, names, ("eth0/device", "ib0/device", "ib0/type=32"))
    _port(root, "mlx5_0", 100, 1000)
    _port(root, "mlx5_1", 7, 7, "1: DOWN")
    network = find_network(PID, root=root)
    assert network.names == ("eth0", "mlx5_0 port 1")
    assert (network.net_tx(), network.net_rx()) == (1 + 400, 10 + 4000)


def test_a_container_counts_what_it_sees(tmp_path: Path) -> None:
    """Its interface has no hardware; /sys shows the host's interfaces, which are not its own."""
    root = _machine(tmp_path, {"lo": (1, 1), "eth0": (50, 5)})
    (root / "sys/class/net/eno1/statistics").mkdir(parents=True)
    network = find_network(PID, root=root)
    assert network.names == ("eth0",)
    assert (network.net_tx(), network.net_rx()) == (5, 50)


def test_interfaces_may_be_named_and_unknown_names_are_refused(tmp_path: Path) -> None:
    """The error lists what there is."""
    root = _machine(tmp_path, {"lo": (1, 1), "eth0": (50, 5), "eth1": (60, 6)})
    assert find_network(PID, ["eth1"], root=root).net_tx() == 6
    with pytest.raises(MeasureError, match="no interface eth9 to count; there are lo, eth0, eth1"):
        find_network(PID, ["eth9"], root=root)
    with pytest.raises(MeasureError, match=r"cannot read .*No such file"):
        find_network(8, root=root)


def test_this_machine_is_read() -> None:
    """Counters of the machine that runs the test never go back."""
    network = find_network(os.getpid())
    before = (network.net_tx(), network.net_rx(), network.loopback())
    after = (network.net_tx(), network.net_rx(), network.loopback())
    assert all(low <= high for low, high in zip(before, after, strict=True))
