"""Published iteration times of models of the zoo, read from the tables in datasets/published.

    CSV of each source -> PublishedRun, PublishedRun, ... of one device, a ring, or servers

Rows that no simulation here can speak of are left out: other models, devices outside of the
catalogue, input from disk, networks that nobody named.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from driple.catalog import device_named, shipped_hardware
from driple.errors import ConfigError, SettingError

__all__ = [
    "FACTS",
    "MODELS",
    "Kind",
    "PublishedRun",
    "ServerRate",
    "most_passed_by_servers",
    "read_published",
    "read_rows",
]

Kind = Literal["single", "ring", "servers"]
Row = dict[str, str]
# Devices of the runs that the shipped calibration is fitted to and checked with. The tables have
# runs of others (3070, 3080), which change its errors: add them together with a new fit.
DEVICES_OF_RUNS = frozenset({
    "2080Ti", "3090", "A100", "A6000", "GTX1060", "GTX1080Ti", "K80", "P100", "P100-SXM2",
    "RTX4000", "RTX6000", "TitanV", "V100", "V100-SXM2", "V100-SXM3",
})  # fmt: skip
FACTS = "network_and_utilisation_facts"
_ONE_SERVER = re.compile(r"(?P<workers>\d+) workers \+ 1 PS; (?P<gbit>\d+) Gbit/s")

MODELS = frozenset({
    "alexnet", "googlenet", "inception3", "inception4", "overfeat", "resnet50", "resnet50_v2",
    "resnet101", "resnet101_v2", "resnet152", "resnet152_v2", "vgg11", "vgg16", "vgg19",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRun:
    """One published measurement.

    Attributes:
        source: who published it.
        kind: one device; devices that add up gradients in a ring; parameter servers.
        model: of the zoo, on ImageNet.
        batch_size: images of each worker.
        half: half precision.
        fused: a compiler fused the ops (XLA).
        devices: of the workers, by the catalogue's names.
        num_servers: parameter servers, each on a machine of its own; 0 if there are none.
        gpus_per_machine: workers that share a machine.
        link: name of what joins workers, or machines if there are several.
        overlapped: whether gradients travel while later ones are computed, as in Horovod. In
            tf_cnn_benchmarks on one machine they do not: a step on two devices takes longer than
            on one by what all gradients take, whatever the model.
        seconds: time of an iteration.
    """

    source: str
    kind: Kind
    model: str
    batch_size: int
    half: bool
    fused: bool
    devices: tuple[str, ...]
    num_servers: int
    gpus_per_machine: int
    link: str
    overlapped: bool
    seconds: float

    @property
    def device(self) -> str:
        """Of the first worker."""
        return self.devices[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRate:
    """What TensorFlow passed through one parameter server.

    Attributes:
        bytes_per_s: rate of each direction.
        link: name of the server's link.
        num_workers: workers, each on a machine of its own.
    """

    bytes_per_s: float
    link: str
    num_workers: int


def read_published(folder: Path) -> list[PublishedRun]:
    """All runs of the tables in a folder.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    readers = {
        "lambda_tf_cnn_benchmarks": _lambda,
        "tf_cnn_published_tables": _tables,
        "azure_horovod_tf_cnn": _azure,
        "zeng_iteration_time": _zeng,
        "single_gpu_cnn_ms": _single,
    }
    runs = []
    for name, reader in readers.items():
        for row in read_rows(folder / f"{name}.csv.gz"):
            try:
                runs += [
                    run
                    for run in reader(row)
                    if run.model in MODELS and DEVICES_OF_RUNS.issuperset(run.devices)
                ]
            except SettingError:
                continue  # a device outside of the catalogue
            except (KeyError, ValueError) as error:
                raise ConfigError(f"{name}.csv.gz holds an odd row ({error}): {row}") from error
    return runs


def read_rows(file: Path) -> list[Row]:
    """The rows of a compressed table.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with gzip.open(file, "rt", encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"cannot read {file}: {error}; published measurements come with a checkout of Driple"
        ) from error


def most_passed_by_servers(folder: Path) -> ServerRate:
    """The fastest transfer of TensorFlow through one parameter server.

    The run passed at least that much, since the time that it was taken over includes computing.

    Args:
        folder: of the tables.

    Raises:
        ConfigError: the table is missing or damaged.
    """
    rows = read_rows(folder / f"{FACTS}.csv.gz")
    found = []
    try:
        for row in rows:
            setup = _ONE_SERVER.match(row["setup"])
            if row["kind"] == "network (derived)" and row["unit"] == "Gbit/s" and setup:
                rate = float(row["value"]) * 1e9 / 8
                found.append((rate, f"{setup['gbit']}G", int(setup["workers"])))
        rate, link, num_workers = max(found)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{FACTS}.csv.gz has no rates of servers ({error})") from error
    return ServerRate(bytes_per_s=rate, link=link, num_workers=num_workers)


def _lambda(row: Row) -> Iterator[PublishedRun]:
    if row["data"] != "syn" or row["mem_pressure_warning"] == "True":
        return
    device, count = device_named(row["gpu"]).name, int(row["n_gpus"])
    if row["variable_update"] == "parameter_server":
        return
    yield PublishedRun(
        source="lambda",
        kind="single" if count == 1 else "ring",
        model=row["model"],
        batch_size=int(row["batch_per_gpu"]),
        half=row["precision"] == "fp16",
        fused=row["xla"] == "True",
        devices=(device,) * count,
        num_servers=0,
        gpus_per_machine=count,
        link=_peer_link(device, row["interconnect"], float(row["p2p_pair_fraction"] or 1)),
        overlapped=False,
        seconds=float(row["step_time_s"]),
    )


def _peer_link(device: str, named: str, peers: float) -> str:
    """What a ring within one machine goes over; through the host where a pair has no access."""
    hardware, known = shipped_hardware(), device_named(device)
    if peers < 1 and named != "SXM":
        return hardware.pcie_link(known, through_host=True).name
    nvlink = hardware.nvlink(known) if named in {"SXM", "NVLink"} else None
    return nvlink.name if nvlink else hardware.pcie_link(known).name


def _tables(row: Row) -> Iterator[PublishedRun]:
    if row["source"] != "tf-official" or row["data"] != "syn":
        return
    count, way = int(row["n_gpus"]), row["variable_update"]
    device = device_named("P100-SXM2" if row["system"] == "DGX-1" else row["gpu"]).name
    if count == 1:
        kind: Kind = "single"
    elif way.startswith("replicated (NCCL)"):
        kind = "ring"
    else:
        return
    yield PublishedRun(
        source="tf-official",
        kind=kind,
        model=row["model"],
        batch_size=int(float(row["batch_per_gpu"])),
        half=False,
        fused=False,
        devices=(device,) * count,
        num_servers=0,
        gpus_per_machine=count,
        link="NVLink-P100",
        overlapped=False,
        seconds=float(row["step_time_s"]),
    )


def _azure(row: Row) -> Iterator[PublishedRun]:
    count, per_machine = int(row["n_gpus"]), int(row["gpus_per_node"])
    nccl = "NCCL" in row["method"]
    if count > 1 and not nccl and int(row["n_nodes"]) == 1:
        return  # MPI through the host's memory
    several = int(row["n_nodes"]) > 1
    yield PublishedRun(
        source="azure",
        kind="single" if count == 1 else "ring",
        model=row["model"],
        batch_size=int(row["batch_per_gpu"]),
        half=row["precision"] == "fp16",
        fused=False,
        devices=(device_named(row["gpu"]).name,) * count,
        num_servers=0,
        gpus_per_machine=min(count, per_machine),
        link=("azure-Ethernet" if nccl else "azure-InfiniBand") if several else "PCIe3",
        overlapped=True,
        seconds=float(row["step_time_s"]),
    )


def _zeng(row: Row) -> Iterator[PublishedRun]:
    gpus = {
        "standalone-gpu": ("RTX4000",),
        "distributed-gpu": ("RTX4000",) * 2,
        "heterogeneous-gpu-1G": ("RTX4000", "RTX4000", "GTX1060"),
        "heterogeneous-gpu-10G": ("RTX4000", "RTX4000", "GTX1060"),
    }.get(row["platform"])
    if gpus is None:
        return
    servers = row["platform"] != "standalone-gpu"
    yield PublishedRun(
        source="zeng",
        kind="servers" if servers else "single",
        model=row["model"],
        batch_size=int(row["batch_per_worker"]),
        half=False,
        fused=False,
        devices=gpus,
        num_servers=int(servers),
        gpus_per_machine=1,
        link=f"{row['bandwidth_gbps']}G" if servers else "PCIe3",
        overlapped=True,
        seconds=float(row["measured_s"]),
    )


def _single(row: Row) -> Iterator[PublishedRun]:
    if row["framework"] != "TensorFlow" or row["measure"] != "forward+backward":
        return
    yield PublishedRun(
        source="u39kun",
        kind="single",
        model=row["model"],
        batch_size=int(row["batch"]),
        half=row["precision"] == "fp16",
        fused=False,
        devices=(device_named(row["gpu"].partition(" ")[0]).name,),
        num_servers=0,
        gpus_per_machine=1,
        link="PCIe3",
        overlapped=True,
        seconds=float(row["ms_per_batch"]) / 1e3,
    )
