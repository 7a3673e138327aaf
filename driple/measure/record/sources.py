"""Everything that one record samples, opened: counters of each row, readings of each block.

pid, folder -> Sources: columns with readers, gauges, what is missing and why
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driple.errors import MeasureError
from driple.measure.counters.sampler import Reader, open_counter
from driple.measure.record.gpus import GpuGauges, Reading
from driple.measure.record.network import find_network
from driple.measure.record.processes import ProcessTree, allowed_cores
from driple.units import counted

__all__ = ["ALLOCATED", "CPU", "LOOPBACK", "Sources", "counters_here", "open_sources"]

CPU, LOOPBACK, ALLOCATED = "cpu_ns", "loopback_bytes", "allocated_bytes"
_COUNTER_VARIABLE = b"DRIPLE_ALLOC_COUNTER="


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """What is sampled of one job.

    Attributes:
        tree: its processes.
        columns: growing counters of every row, in order.
        gauges: names of the readings of every block, in order.
        missing: counters that cannot be read, and why.
        log: what was noticed, as a sentence each.
        interfaces: network interfaces and ports that count.
        cores: cores that the job may use.
        gpus: the GPUs.
    """

    tree: ProcessTree
    columns: Mapping[str, Reader]
    gauges: tuple[str, ...]
    missing: dict[str, str]
    log: list[str]
    interfaces: tuple[str, ...]
    cores: float
    gpus: GpuGauges

    def read_gauges(self) -> list[Reading]:
        """Readings of a block."""
        now_ns = time.monotonic_ns()
        readings: list[Reading] = [("memory_bytes", now_ns, self.tree.memory_bytes())]
        disk = self.tree.disk_bytes()
        if disk is not None:
            readings += [
                ("disk_read_bytes", now_ns, disk[0]),
                ("disk_write_bytes", now_ns, disk[1]),
            ]
        else:
            self.missing.setdefault(
                "disk", "reads and writes of another user's process need root; run as that user"
            )
        return readings + self.gpus.read(self.tree.pids)

    def close(self) -> None:
        """Give all handles back."""
        self.gpus.close()
        self.tree.close()


def open_sources(
    pid: int, interfaces: Sequence[str] = (), nvml: Any = None, *, is_child: bool = False
) -> Sources:
    """Open all counters of a process, its descendants and its machine.

    Args:
        pid: of the process.
        interfaces: network interfaces to count; empty for the rule of `find_network`.
        nvml: the module `pynvml`, or one of the same form.
        is_child: whether this process started it: it has the same network, also once it has ended.

    Raises:
        MeasureError: no such process or interface.
    """
    tree, gpus = ProcessTree(pid), GpuGauges(nvml)
    missing = dict(gpus.missing)
    columns: dict[str, Reader] = {CPU: tree.cpu_ns}
    names: tuple[str, ...] = ()
    try:
        network = find_network(os.getpid() if is_child else pid, interfaces)
    except MeasureError as error:
        if interfaces:
            raise
        missing["network"] = str(error)
    else:
        columns |= {"net_tx": network.net_tx, "net_rx": network.net_rx, LOOPBACK: network.loopback}
        names = network.names
        if not network.num_ports:
            missing["infiniband"] = "no active port"
    page = _allocation_page(pid)
    if page is not None:
        columns[ALLOCATED] = open_counter(f"mmap:{page}")
    return Sources(
        tree=tree,
        columns=columns,
        gauges=("memory_bytes", "disk_read_bytes", "disk_write_bytes", *gpus.gauges),
        missing=missing,
        log=_busy(gpus, tree),
        interfaces=names,
        cores=allowed_cores(pid),
        gpus=gpus,
    )


def counters_here(nvml: Any = None) -> dict[str, str]:
    """Which counters a record has on this machine: `works` with names, or why not.

    Args:
        nvml: as for `open_sources`.
    """
    sources = open_sources(os.getpid(), nvml=nvml)
    readings = {name for name, _, _ in sources.read_gauges()}
    sources.close()
    gpus = ", ".join(dict.fromkeys(name.partition(".")[0] for name in sources.gpus.gauges))
    counters = {
        "cpu": f"works, {sources.cores:g} cores",
        "memory": "works",
        "disk": "works" if "disk_read_bytes" in readings else "",
        "network": f"works, {', '.join(sources.interfaces) or 'no interface'}",
        "gpu": f"works, {gpus}" if gpus else "",
        "infiniband": "works",
    }
    lacking = {name: f"no: {why}" for name, why in sources.missing.items()}
    return {name: words for name, words in (counters | lacking).items() if words}


def _busy(gpus: GpuGauges, tree: ProcessTree) -> list[str]:
    """A sentence for each GPU on which other processes compute already."""
    return [
        f"{name.partition('.')[0]} is busy: its counters include {counted(value, 'other process')} "
        "computing on it"
        for name, _, value in gpus.read(tree.pids)
        if name.endswith(".others") and value
    ]


def _allocation_page(pid: int) -> Path | None:
    """The page in which a process counts its allocations, if it was started so."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in variables:
        if variable.startswith(_COUNTER_VARIABLE):
            page = Path(os.fsdecode(variable.removeprefix(_COUNTER_VARIABLE)))
            return page if page.is_file() and page.stat().st_size >= 8 else None
    return None
