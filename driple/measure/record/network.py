"""Bytes that a host sends and receives: its interfaces and InfiniBand ports, each byte once.

    /proc/PID/net/dev, /sys/class/net, /sys/class/infiniband -> NetworkCounters -> readers

Loopback carries nothing between hosts and is read apart, for the period of steps. Interfaces on
top of others (bonds, bridges, VLANs) repeat what those below carry. Where there is hardware, only
hardware counts: the rest are ends of tunnels and of containers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.errors import MeasureError
from driple.measure.counters.sampler import Reader, open_counter

__all__ = ["NetworkCounters", "find_network"]

_LOOPBACK = "lo"
_IPOIB = "32"  # ARPHRD_INFINIBAND: what it carries, the port counts
_MAX_TABLE = 1 << 20
_LINE_BYTES = 250
_RECEIVED, _SENT = 0, 8  # columns of /proc/net/dev
# Counters of a port: sent, received, bytes of a unit.
_PORT_FILES = (
    ("counters/port_xmit_data", "counters/port_rcv_data", 4),
    ("hw_counters/tx_bytes", "hw_counters/rx_bytes", 1),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkCounters:
    """Readers of sent and received bytes.

    Attributes:
        net_tx: sent bytes.
        net_rx: received bytes.
        loopback: bytes within the host.
        names: interfaces and ports that count.
        num_ports: InfiniBand ports among them.
    """

    net_tx: Reader
    net_rx: Reader
    loopback: Reader
    names: tuple[str, ...]
    num_ports: int


def find_network(
    pid: int, wanted: Sequence[str] = (), *, root: Path = Path("/")
) -> NetworkCounters:
    """Counters of the network that a process sees.

    Args:
        pid: of the process; it may be in a container or a network namespace.
        wanted: names of interfaces to count, in place of the rule.
        root: folder in which `proc` and `sys` lie.

    Raises:
        MeasureError: no such interface, or no network to read.
    """
    table = root / "proc" / str(pid) / "net" / "dev"
    try:
        descriptor = os.open(table, os.O_RDONLY)
    except OSError as error:
        raise MeasureError(
            f"cannot read {table}: {error.strerror}; run as the user of the process, or as root"
        ) from error
    there = _names(os.pread(descriptor, _MAX_TABLE, 0))
    folder = root / "sys/class/net"
    is_own = _is_same(folder, there, descriptor)
    ports = _ports(root / "sys/class/infiniband") if not wanted else []
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise MeasureError(f"no interface {unknown[0]} to count; there are {', '.join(there)}")
    names = list(wanted) or (
        _carriers(folder, there, has_ports=bool(ports))
        if is_own
        else [name for name in there if name != _LOOPBACK]
    )
    table_readers = _TableReaders(descriptor)
    tx = [table_readers.column(name, _SENT) for name in names]
    rx = [table_readers.column(name, _RECEIVED) for name in names]
    loopback = [table_readers.column(_LOOPBACK, _SENT)] if _LOOPBACK in there else []
    tx += [_scaled(open_counter(str(path / files[0])), files[2]) for path, files in ports]
    rx += [_scaled(open_counter(str(path / files[1])), files[2]) for path, files in ports]
    return NetworkCounters(
        net_tx=_sum(tx),
        net_rx=_sum(rx),
        loopback=_sum(loopback),
        names=(*names, *(f"{path.parents[1].name} port {path.name}" for path, _ in ports)),
        num_ports=len(ports),
    )


def _names(table: bytes) -> list[str]:
    return [line.split(":")[0].strip() for line in table.decode().splitlines() if ":" in line]


def _is_same(folder: Path, names: Sequence[str], table: int) -> bool:
    """Whether /sys shows the interfaces of the table, and not those of another namespace."""
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != set(names):
        return False
    files = _files(folder / name / "statistics/rx_bytes" for name in names)
    rows = _TableReaders(table)
    columns = [rows.column(name, _RECEIVED) for name in names]
    before = [read() for read in files]
    between = [read() for read in columns]
    after = [read() for read in files]
    return all(low <= at <= high for low, at, high in zip(before, between, after, strict=True))


def _carriers(folder: Path, names: Sequence[str], *, has_ports: bool) -> list[str]:
    """The interfaces that count, so that every byte does so once."""
    lowest = [
        name
        for name in names
        if name != _LOOPBACK
        and not any(path.name.startswith("lower_") for path in (folder / name).iterdir())
        and not (has_ports and _text(folder / name / "type") == _IPOIB)
    ]
    hardware = [name for name in lowest if (folder / name / "device").exists()]
    return hardware or lowest


def _ports(folder: Path) -> list[tuple[Path, tuple[str, str, int]]]:
    """InfiniBand ports, and which files of each count."""
    return [
        (port, files)
        for port in sorted(folder.glob("*/ports/*"))
        for files in [next((one for one in _PORT_FILES if (port / one[0]).exists()), None)]
        if files is not None and _text(port / "state").startswith("4")  # 4: ACTIVE
    ]


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


class _TableReaders:
    """Readers of one table that share a read of it: the first of a row reads, the rest reuse."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._table = descriptor, b""
        self._room = 2 * len(os.pread(descriptor, _MAX_TABLE, 0)) + 4096  # numbers grow
        self._first: tuple[str, int] | None = None

    def column(self, name: str, number: int) -> Reader:
        """The reader of a column of one interface."""
        self._first = self._first or (name, number)
        is_first = self._first == (name, number)
        begins = (f"\n{name}:".encode(), f" {name}:".encode())

        def read() -> int:
            if is_first:
                self._table = os.pread(self._descriptor, self._room, 0)
            table = self._table
            for begin in begins:
                place = table.find(begin)
                if place >= 0:
                    words = table[place + len(begin) : place + _LINE_BYTES].split(None, number + 1)
                    return int(words[number])
            return 0

        return read


def _files(paths: Iterable[Path]) -> list[Reader]:
    return [open_counter(str(path)) for path in paths]


def _scaled(read: Reader, unit: int) -> Reader:
    return lambda: unit * read()


def _sum(readers: Sequence[Reader]) -> Reader:
    if len(readers) == 1:
        return readers[0]
    return lambda: sum(read() for read in readers)
