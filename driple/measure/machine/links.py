"""Collectives by size of the message, over all processes of a group: what the links carry.

RANK, WORLD_SIZE, MASTER_ADDR ... (torchrun, or `local_links`) -> Collective for each kind

The group of all devices shows the network between machines, or the link within a single one; with
several machines of several devices each, those of a machine by themselves show the link within.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import torch
import torch.distributed as dist

from driple.catalog.machine_file import COLLECTIVES, Collective
from driple.errors import MeasureError

__all__ = ["LinkEffort", "Ranks", "measure_links", "ranks_of_environment"]

_LEAST_BYTES, _MOST_BYTES = 2**12, 2**28
_STEP = 4  # between two sizes
_SIOCGIFADDR = 0x8915
_WAIT = datetime.timedelta(minutes=10)  # until all processes are there
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkEffort:
    """How long is measured.

    Attributes:
        repeats: of each size; the median counts.
        size_s: sizes grow until a message takes so long.
        most_bytes: largest message.
    """

    repeats: int = 3
    size_s: float = 0.4
    most_bytes: int = _MOST_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """This process among all.

    Attributes:
        rank: its number.
        count: of all processes.
        local_rank: its number on its machine, and that of its GPU.
        local_count: processes of a machine.
    """

    rank: int
    count: int
    local_rank: int
    local_count: int


def ranks_of_environment() -> Ranks | None:
    """The group that `torchrun` made; None where nothing did.

    Raises:
        MeasureError: half of it is there.
    """
    given = [name for name in _NEEDED if os.environ.get(name)]
    if "WORLD_SIZE" not in given or os.environ["WORLD_SIZE"] == "1":
        return None
    lacking = [name for name in _NEEDED if name not in given]
    numbers = {}
    for name, usual in (("RANK", ""), ("WORLD_SIZE", ""), ("LOCAL_RANK", "0"),
                        ("LOCAL_WORLD_SIZE", "1")):  # fmt: skip
        text = os.environ.get(name, usual)
        if not text.isdigit():
            lacking.append(name)
        else:
            numbers[name] = int(text)
    if lacking:
        raise MeasureError(
            f"WORLD_SIZE is set, and {', '.join(dict.fromkeys(lacking))} is not a number or "
            "missing; start driple measure --machine by torchrun, or unset WORLD_SIZE"
        )
    return Ranks(
        rank=numbers["RANK"],
        count=numbers["WORLD_SIZE"],
        local_rank=numbers["LOCAL_RANK"],
        local_count=numbers["LOCAL_WORLD_SIZE"],
    )


def measure_links(
    ranks: Ranks,
    *,
    effort: LinkEffort = LinkEffort(),
    progress: Callable[[str], None] = lambda _: None,
) -> list[Collective]:
    """Time collectives with all other processes; the same result in each.

    Raises:
        MeasureError: the processes do not meet, or one of them failed.
    """
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", ranks.local_rank % torch.cuda.device_count())
    backend = "nccl" if device.type == "cuda" else "gloo"
    machines = max(1, ranks.count // ranks.local_count)
    collectives: list[Collective] = []
    with _group(backend, device):
        for collective in COLLECTIVES:
            progress(f"links: {collective} over {ranks.count} processes")
            collectives.append(
                _Timed(device, effort, ranks.rank, None).of(collective, backend, machines)
            )
        if machines > 1 and ranks.local_count > 1:
            for machine in range(machines):
                members = [machine * ranks.local_count + k for k in range(ranks.local_count)]
                group = dist.new_group(members)
                if ranks.rank in members:
                    progress(f"links: all_reduce over {ranks.local_count} processes of a machine")
                    timed = _Timed(device, effort, ranks.local_rank, group)
                    collectives.append(timed.of("all_reduce", backend, 1))
    return collectives


@contextmanager
def _group(backend: str, device: torch.device) -> Iterator[None]:
    """All processes, met and parted."""
    if backend == "gloo" and "GLOO_SOCKET_IFNAME" not in os.environ:
        name = _interface_to(os.environ["MASTER_ADDR"])
        if name:
            os.environ["GLOO_SOCKET_IFNAME"] = name
    try:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group(backend, timeout=_WAIT)
        try:
            yield
            dist.barrier()
        finally:
            dist.destroy_process_group()
    except (RuntimeError, ValueError) as error:  # torch's own errors are RuntimeErrors
        reason = " ".join(str(error).split())[:200]
        raise MeasureError(
            f"collectives over {backend} failed: {reason}; check that all processes run and reach "
            f"{os.environ['MASTER_ADDR']}, or leave links out (--set parts=host,gpu,copies)"
        ) from error


def _interface_to(host: str) -> str:
    """The network interface by which a host is reached; empty if that cannot be seen.

    Gloo takes the one of the machine's own name by itself, which often is the loopback.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            own = probe.getsockname()[0]
            for _, name in socket.if_nameindex():
                asked = struct.pack("256s", name.encode()[:15])
                try:
                    answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, asked)
                except OSError:  # an interface without an address
                    continue
                if socket.inet_ntoa(answer[20:24]) == own:
                    return name
    except OSError:
        return ""
    return ""


def _named(name: str, earlier: str) -> Callable[..., object]:
    """A collective by its name in this PyTorch."""
    collective: Callable[..., object] = getattr(dist, name, None) or getattr(dist, earlier)
    return collective


class _Timed:
    """Collectives of one group.

    Args:
        device: of the messages.
        effort: how long.
        rank: of this process in the group.
        group: None for all processes.
    """

    def __init__(
        self, device: torch.device, effort: LinkEffort, rank: int, group: dist.ProcessGroup | None
    ) -> None:
        self.device, self.effort, self.rank, self.group = device, effort, rank, group
        self.count = dist.get_world_size(group)

    def of(self, collective: str, backend: str, machines: int) -> Collective:
        """Its times, from small to large messages."""
        sizes, seconds = [], []
        size = _LEAST_BYTES
        while size <= self.effort.most_bytes:
            taken_s = self._seconds(collective, size)
            sizes.append(float(size))
            seconds.append(taken_s)
            if taken_s > self.effort.size_s:
                break
            size *= _STEP
        return Collective(
            collective=collective,
            backend=backend,
            ranks=self.count,
            machines=machines,
            sizes=tuple(sizes),
            seconds=tuple(seconds),
        )

    def _seconds(self, collective: str, size: int) -> float:
        """Seconds of a message, agreed on by all."""
        run = self._runner(collective, size)
        taken = []
        for _ in range(1 + self.effort.repeats):
            dist.barrier(self.group)
            self._wait()
            begin = time.perf_counter()
            run()
            self._wait()
            taken.append(time.perf_counter() - begin)
        slowest = torch.tensor([median(taken[1:])], dtype=torch.float64, device=self.device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self.group)
        return float(slowest)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _runner(self, collective: str, size: int) -> Callable[[], object]:
        elements = max(self.count, size // 4 // self.count * self.count)
        whole = torch.zeros(elements, device=self.device)
        part = torch.zeros(elements // self.count, device=self.device)
        if collective == "all_reduce":
            return lambda: dist.all_reduce(whole, group=self.group)
        if collective == "all_gather":
            gather = _named("all_gather_single", "all_gather_into_tensor")
            return lambda: gather(whole, part, group=self.group)
        if collective == "reduce_scatter":
            scatter = _named("reduce_scatter_single", "reduce_scatter_tensor")
            return lambda: scatter(part, whole, group=self.group)
        return lambda: self._send(whole)

    def _send(self, whole: torch.Tensor) -> None:
        """From the first process to the last, whose answer ends the time."""
        last = self.count - 1
        if self.rank == 0:
            dist.send(whole, last, group=self.group)
            dist.recv(whole[:1], last, group=self.group)
        elif self.rank == last:
            dist.recv(whole, 0, group=self.group)
            dist.send(whole[:1], 0, group=self.group)
