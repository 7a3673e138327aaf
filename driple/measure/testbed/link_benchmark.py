"""Link benchmark of a platform: goodput of a link and parsing overhead of received tensors.

bytes over a socket from role to role           -> goodput of a link, bytes/s
tensors one by one, their packets, their record -> seconds from the last packet until TensorFlow
                                                   could use each (Li et al., section 3.2.1)
                                                -> Platform
"""

from __future__ import annotations

import datetime
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.async_sgd.origin import PlatformRecord
from driple.async_sgd.overhead import OverheadFit, fit_overhead
from driple.errors import MeasureError, TraceError
from driple.measure.testbed.async_cluster import TurnCluster
from driple.measure.testbed.metadata import transfer_spans
from driple.measure.testbed.processes import ANSWER_S

__all__ = ["Platform", "measure_platform"]

FloatArray = npt.NDArray[np.float64]

_SIZES = tuple(4 * 2**power for power in (8, 12, 14, 16, 17, 18, 19, 20, 21))  # 1 KiB to 8 MiB
_REPEATS = 12
_SOCKET_S = 3.0
_SOCKET_PORT = 5999
_ETHERNET = 0x0003  # every protocol
_SO_TIMESTAMPNS = 35
_STREAM = """
import socket, sys, time
seconds = float(sys.argv[3])
if sys.argv[1] == "take":
    with socket.create_server(("", int(sys.argv[2]))) as server:
        print("up", flush=True)
        link = server.accept()[0]
        total, begin, end = 0, None, 0.0
        while data := link.recv(1 << 20):
            end = time.monotonic()
            begin = begin or end + seconds / 10  # slow start is over then
            total += len(data) if end > begin else 0
        print(total / (end - begin))
else:
    host, port = sys.argv[2].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as link:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            link.sendall(bytes(1 << 18))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Platform:
    """Measurements of one platform.

    Attributes:
        bits_per_s: nominal rate of a link.
        bytes_per_s: goodput of a TCP connection over it.
        fit: line of the parsing overhead.
        sizes: bytes of each tensor that was fetched.
        overhead_s: seconds from its last packet until TensorFlow could use it.
    """

    bits_per_s: float
    bytes_per_s: float
    fit: OverheadFit
    sizes: FloatArray
    overhead_s: FloatArray

    def record(self) -> PlatformRecord:
        """The content of a platform file."""
        return PlatformRecord(
            bits_per_s=self.bits_per_s,
            bytes_per_s=self.bytes_per_s,
            overhead=self.fit.overhead,
            r_squared=self.fit.r_squared,
            sizes=tuple(self.sizes.astype(int).tolist()),
            overhead_s=tuple(self.overhead_s.round(6).tolist()),
            measured=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )


def measure_platform(cluster: TurnCluster, bits_per_s: float, share: float) -> Platform:
    """Measure the goodput of a link and the parsing overhead of a role.

    Args:
        cluster: a cluster with a server and a worker.
        bits_per_s: rate of the links.
        share: cores of server and worker.

    Raises:
        MeasureError: a role failed, or no packets were seen.
        TraceError: too few transfers were recorded.
    """
    cluster.network.set_rate(bits_per_s)
    per_s = _through_socket(cluster)
    wanted = [*_SIZES] * _REPEATS
    with tempfile.TemporaryDirectory(prefix="driple-platform-") as name:
        with _Packets(cluster.network.link("w0")) as packets:
            cluster.fetch_tensors(wanted, Path(name), share)
        spans = [_longest(file.read_bytes()) for file in sorted(Path(name).glob("*.pb"))]
    ends = packets.times_s()
    sizes, seconds = [], []
    for nbytes, (begin_s, end_s) in zip(wanted, spans, strict=True):
        mine = ends[(ends > begin_s) & (ends <= end_s)]
        if len(mine):
            sizes.append(nbytes)
            seconds.append(end_s - mine[-1])
    if not sizes:
        raise MeasureError("no packet of a tensor was seen on the worker's link; run again")
    message_sizes, took = np.array(sizes, dtype=np.float64), np.array(seconds)
    return Platform(
        bits_per_s=bits_per_s,
        bytes_per_s=per_s,
        fit=fit_overhead(*_typical(message_sizes, took)),
        sizes=message_sizes,
        overhead_s=took,
    )


def _typical(sizes: FloatArray, seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower quartile of the times of each size, which excludes waiting for a core."""
    each = np.unique(sizes)
    return each, np.array([np.quantile(seconds[sizes == size], 0.25) for size in each])


def _through_socket(cluster: TurnCluster) -> float:
    """Goodput of one connection from the server to the worker, bytes/s."""
    network = cluster.network
    port = str(_SOCKET_PORT)
    address = network.address("w0", _SOCKET_PORT)
    code = [sys.executable, "-c", _STREAM]
    with subprocess.Popen(
        [*network.command_prefix("w0"), *code, "take", port, str(_SOCKET_S)],
        stdout=subprocess.PIPE,
        text=True,
    ) as taker:
        if taker.stdout is None or not taker.stdout.readline():
            raise MeasureError("the socket test did not start; run again")
        subprocess.run(
            [*network.command_prefix("ps0"), *code, "give", address, str(_SOCKET_S)],
            check=True,
            timeout=ANSWER_S,
        )
        return float(taker.stdout.readline())


def _longest(metadata: bytes) -> tuple[float, float]:
    """Start and end of the longest transfer of a step.

    Raises:
        TraceError: the step has no transfer.
    """
    spans = transfer_spans(metadata)
    if not spans:
        raise TraceError("TensorFlow recorded no transfer; run again")
    return max(spans, key=lambda span: span[1] - span[0])


class _Packets:
    """Times of the data packets that leave a link of the host; a context manager."""

    def __init__(self, link: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERNET))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
        self._socket.bind((link, _ETHERNET))
        self._socket.settimeout(0.2)
        self._found: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Packets:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def times_s(self) -> FloatArray:
        """Seconds since the epoch, in order."""
        return np.sort(np.array(self._found))

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                _, extra, flags, sender = self._socket.recvmsg(64, 64, socket.MSG_TRUNC)
            except TimeoutError:
                continue
            del flags
            if sender[2] != socket.PACKET_OUTGOING:
                continue
            seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
            self._found.append(seconds + nanoseconds / 1e9)
