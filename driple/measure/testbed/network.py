"""A small cluster network on one machine: a namespace per role, links with a set rate.

    role's namespace: eth0 --- veth pair --- dpl<role> on the host --- bridge dplbr

Both ends of each link are limited by a token bucket, so both directions have the rate. Bytes are
read at the host end, so nothing runs inside a role: what the host receives there the role sent.
Needs root and iproute2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from driple.errors import MeasureError
from driple.locks import take_lock

__all__ = ["ClusterNetwork", "Port"]

_BRIDGE = "dplbr"
_LOCK_FILE = "driple-measure.lock"
_SUBNET = "10.77.0"
_LATENCY = "20ms"
_CONGESTION = "net.ipv4.tcp_congestion_control"
_QUANTUM = 16_000  # quantum of a peer, bytes
_QUEUE_BYTES = 1_000_000  # maximum queue of a peer, packets


@dataclass(frozen=True, kw_only=True, slots=True)
class Port:
    """Queueing of packets at an end of a link.

    Attributes:
        congestion: TCP congestion control, by its Linux name.
        burst_kib: size of the token bucket, KiB.
        fair: one queue per peer, served round robin, in place of a single queue.
        in_order: receive a connection's packets on one core. Otherwise packets are reordered
            between cores, and TCP interprets that as loss and slows down.
    """

    congestion: str = "reno"
    burst_kib: int = 256
    fair: bool = False
    in_order: bool = False

    def commands(
        self, device: str, bits_per_s: float, end: str, addresses: Sequence[str]
    ) -> list[str]:
        """Arguments of `tc`.

        Args:
            device: end of the link.
            bits_per_s: its rate.
            end: `src` or `dst`: address field of a packet that holds the peer.
            addresses: of all peers.
        """
        burst = f"burst {self.burst_kib}kb"
        if not self.fair:
            return [
                f"qdisc add dev {device} root tbf rate {bits_per_s:.0f}bit {burst} "
                f"latency {_LATENCY}"
            ]
        whole = f"ceil {bits_per_s:.0f}bit {burst} cburst {self.burst_kib}kb"
        part = f"htb rate {bits_per_s / (len(addresses) + 1):.0f}bit {whole} quantum {_QUANTUM}"
        commands = [
            f"qdisc add dev {device} root handle 1: htb default 9",
            f"class add dev {device} parent 1: classid 1:1 htb rate {bits_per_s:.0f}bit {whole}",
            f"class add dev {device} parent 1:1 classid 1:9 {part}",
        ]
        for number, address in enumerate(addresses, 16):
            commands += [
                f"class add dev {device} parent 1:1 classid 1:{number:x} {part}",
                f"qdisc add dev {device} parent 1:{number:x} bfifo limit {_QUEUE_BYTES}",
                f"filter add dev {device} parent 1: protocol ip prio 1 u32 "
                f"match ip {end} {address}/32 flowid 1:{number:x}",
            ]
        return commands


class ClusterNetwork:
    """Creates the namespaces on entry and removes them on exit.

    Args:
        roles: names of the roles, at most 8 characters each; the i-th gets address 10.77.0.(i+1).
        bits_per_s: rate of each link in each direction.
        port: queueing of the links.
    """

    def __init__(
        self, roles: Sequence[str], bits_per_s: float, *, port: Port | None = None
    ) -> None:
        self.roles = tuple(roles)
        self.bits_per_s = bits_per_s
        self.port = port or Port()
        self._lock: int | None = None

    def __enter__(self) -> ClusterNetwork:
        """Create bridge, namespaces and links after removing those of a killed run."""
        if os.geteuid() != 0:
            raise MeasureError("network namespaces need root; run driple measure as root")
        for tool in ("ip", "tc", "nsenter"):
            if shutil.which(tool) is None:
                raise MeasureError(
                    f"'{tool}' not found; install iproute2 and util-linux to measure here"
                )
        self._lock = _lock_machine()
        self.remove()
        _run(f"ip link add {_BRIDGE} type bridge")
        _run(f"ip link set {_BRIDGE} up")
        for i, role in enumerate(self.roles):
            self._add(role, i)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove everything and release the lock."""
        self.close()

    def set_rate(self, bits_per_s: float) -> None:
        """Set the rate of every link in both directions."""
        self.bits_per_s = bits_per_s
        for role in self.roles:
            self._shape(role)

    def _shape(self, role: str) -> None:
        """Limit both ends of a role's link."""
        for tc, device, end in (
            (f"tc -n dpl_{role}", "eth0", "dst"),
            ("tc", self.link(role), "src"),
        ):
            _run(f"{tc} qdisc del dev {device} root", check=False)
            peers = [peer for peer in self.roles if peer != role]
            addresses = [self.address(peer, 0).partition(":")[0] for peer in peers]
            for command in self.port.commands(device, self.bits_per_s, end, addresses):
                _run(f"{tc} {command}")

    def close(self) -> None:
        """Remove everything and release the lock."""
        self.remove()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def address(self, role: str, port: int) -> str:
        """`host:port` of a role, as the other roles see it."""
        return f"{_SUBNET}.{self.roles.index(role) + 1}:{port}"

    def command_prefix(self, role: str) -> list[str]:
        """Prefix that runs a command in a role's namespace."""
        # `ip netns exec` would remount /sys and hide the cgroups.
        return ["nsenter", f"--net=/run/netns/dpl_{role}"]

    def counter_paths(self, role: str) -> dict[str, Path]:
        """Files that hold the bytes a role has sent (`net_tx`) and received (`net_rx`)."""
        statistics = Path(f"/sys/class/net/{self.link(role)}/statistics")
        return {"net_tx": statistics / "rx_bytes", "net_rx": statistics / "tx_bytes"}

    def link(self, role: str) -> str:
        """The host's end of a role's link."""
        return f"dpl{role}"

    def remove(self) -> None:
        """Remove namespaces, links and bridge, as far as they exist."""
        if self._lock is None:  # another run's network stays
            return
        for role in self.roles:
            _run(f"ip netns del dpl_{role}", check=False)
            _run(f"ip link del dpl{role}", check=False)
        _run(f"ip link del {_BRIDGE}", check=False)

    def _add(self, role: str, i: int) -> None:
        space, link = f"dpl_{role}", f"dpl{role}"
        for command in (
            f"ip netns add {space}",
            f"ip link add {link} type veth peer name eth0 netns {space}",
            f"ip link set {link} master {_BRIDGE}",
            f"ip link set {link} up",
            f"ip -n {space} addr add {_SUBNET}.{i + 1}/24 dev eth0",
            f"ip -n {space} link set eth0 up",
            f"ip -n {space} link set lo up",
            f"ip netns exec {space} sysctl -qw {_CONGESTION}={self.port.congestion}",
        ):
            _run(command)
        if self.port.in_order:
            all_cores = f"{(1 << (os.cpu_count() or 1)) - 1:x}"
            steer = "tee /sys/class/net/{}/queues/rx-0/rps_cpus"
            _run(steer.format(link), given=all_cores)
            _run(f"ip netns exec {space} {steer.format('eth0')}", given=all_cores)
        self._shape(role)


def _lock_machine() -> int:
    """Lock the machine, since two measuring runs would disturb each other.

    Raises:
        MeasureError: another run holds the lock, or another user owns the lock file.
    """
    return take_lock(
        Path(tempfile.gettempdir()) / _LOCK_FILE,
        error=MeasureError,
        held="another measuring run is on this machine; wait for it to end, then run again",
    )


def _run(command: str, *, check: bool = True, given: str | None = None) -> None:
    done = subprocess.run(command.split(), input=given, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise MeasureError(f"'{command}' failed: {done.stderr.strip()[:200]}")
