"""Published iteration times of models of the zoo, read from the tables in datasets/runs/published.

    CSV of each source --read_tensorflow_runs--> TensorFlowRun, ... of one device, a ring, servers

Rows that no simulation here can speak of are left out: other models, devices outside of the
catalogue, input from disk, networks that nobody named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from driple.catalog import device_named, shipped_hardware
from driple.errors import ConfigError, SettingError
from driple.runs.measured_run import MeasuredRun
from driple.runs.tables import TENSORFLOW, read_table

__all__ = ["MODELS", "Kind", "TensorFlowRun", "read_tensorflow_runs"]

Kind = Literal["single", "ring", "servers"]
# Devices of the runs that the shipped calibration is fitted to and checked with. The tables have
# runs of others (3070, 3080), which change its errors: add them together with a new fit.
DEVICES_OF_RUNS = frozenset({
    "2080Ti", "3090", "A100", "A6000", "GTX1060", "GTX1080Ti", "K80", "P100", "P100-SXM2",
    "RTX4000", "RTX6000", "TitanV", "V100", "V100-SXM2", "V100-SXM3",
})  # fmt: skip

MODELS = frozenset({
    "alexnet", "googlenet", "inception3", "inception4", "overfeat", "resnet50", "resnet50_v2",
    "resnet101", "resnet101_v2", "resnet152", "resnet152_v2", "vgg11", "vgg16", "vgg19",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorFlowRun(MeasuredRun):
    """A run of TensorFlow, whose cluster no setting names; `job` is a model of the zoo on ImageNet.

    Attributes:
        batch_size: images of each worker.
        kind: one device; devices that add up gradients in a ring; parameter servers.
        devices: of the workers, by the catalogue's names.
        num_servers: parameter servers, each on a machine of its own; 0 if there are none.
        per_machine: workers that share a machine.
        link: name of what joins workers, or machines if there are several.
        overlapped: whether gradients travel while later ones are computed, as in Horovod. In
            tf_cnn_benchmarks on one machine they do not: a step on two devices takes longer than
            on one by what all gradients take, whatever the model.
    """

    framework: str = "tensorflow"
    batch_size: int
    kind: Kind = "single"
    devices: tuple[str, ...]
    num_servers: int = 0
    per_machine: int = 1
    link: str = "PCIe3"
    overlapped: bool = True

    @property
    def device(self) -> str:
        """Of the first worker."""
        return self.devices[0]

    @property
    def num_devices(self) -> int:
        """Workers."""
        return len(self.devices)

    @property
    def half(self) -> bool:
        """Whether it is in half precision."""
        return self.precision == "fp16"


def read_tensorflow_runs(folder: Path) -> list[TensorFlowRun]:
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
        file, needed = folder / f"{name}.csv.gz", ("job", "batch_size")
        for line in read_table(file, needed, TENSORFLOW[name], may_be_empty=True):
            try:
                runs += [
                    run
                    for run in reader(line.cells)
                    if run.job in MODELS and DEVICES_OF_RUNS.issuperset(run.devices)
                ]
            except SettingError:
                continue  # a device outside of the catalogue
            except (KeyError, ValueError) as error:
                raise ConfigError(f"{line.where} is odd ({error}): {line.cells}") from error
    return runs


def _lambda(cells: dict[str, str]) -> Iterator[TensorFlowRun]:
    if cells["data"] != "syn" or cells["mem_pressure_warning"] == "True":
        return
    device, count = device_named(cells["device"]).name, int(cells["num_devices"])
    if cells["variable_update"] == "parameter_server":
        return
    yield TensorFlowRun(
        source="lambda",
        kind="single" if count == 1 else "ring",
        job=cells["job"],
        batch_size=int(cells["batch_size"]),
        precision="fp16" if cells["precision"] == "fp16" else "fp32",
        compiled=cells["compiled"] == "True",
        devices=(device,) * count,
        per_machine=count,
        link=_peer_link(device, cells["link"], float(cells["p2p_pair_fraction"] or 1)),
        overlapped=False,
        step_s=float(cells["step_s"]),
    )


def _peer_link(device: str, named: str, peers: float) -> str:
    """What a ring within one machine goes over; through the host where a pair has no access."""
    hardware, known = shipped_hardware(), device_named(device)
    if peers < 1 and named != "SXM":
        return hardware.pcie_link(known, through_host=True).name
    nvlink = hardware.nvlink(known) if named in {"SXM", "NVLink"} else None
    return nvlink.name if nvlink else hardware.pcie_link(known).name


def _tables(cells: dict[str, str]) -> Iterator[TensorFlowRun]:
    if cells["source"] != "tf-official" or cells["data"] != "syn":
        return
    count, way = int(cells["num_devices"]), cells["variable_update"]
    device = device_named("P100-SXM2" if cells["system"] == "DGX-1" else cells["device"]).name
    if count == 1:
        kind: Kind = "single"
    elif way.startswith("replicated (NCCL)"):
        kind = "ring"
    else:
        return
    yield TensorFlowRun(
        source="tf-official",
        kind=kind,
        job=cells["job"],
        batch_size=int(float(cells["batch_size"])),
        precision="fp32",
        devices=(device,) * count,
        per_machine=count,
        link="NVLink-P100",
        overlapped=False,
        step_s=float(cells["step_s"]),
    )


def _azure(cells: dict[str, str]) -> Iterator[TensorFlowRun]:
    count, per_machine = int(cells["num_devices"]), int(cells["per_machine"])
    nccl = "NCCL" in cells["method"]
    if count > 1 and not nccl and int(cells["num_machines"]) == 1:
        return  # MPI through the host's memory
    several = int(cells["num_machines"]) > 1
    yield TensorFlowRun(
        source="azure",
        kind="single" if count == 1 else "ring",
        job=cells["job"],
        batch_size=int(cells["batch_size"]),
        precision="fp16" if cells["precision"] == "fp16" else "fp32",
        devices=(device_named(cells["device"]).name,) * count,
        per_machine=min(count, per_machine),
        link=("azure-Ethernet" if nccl else "azure-InfiniBand") if several else "PCIe3",
        step_s=float(cells["step_s"]),
    )


def _zeng(cells: dict[str, str]) -> Iterator[TensorFlowRun]:
    gpus = {
        "standalone-gpu": ("RTX4000",),
        "distributed-gpu": ("RTX4000",) * 2,
        "heterogeneous-gpu-1G": ("RTX4000", "RTX4000", "GTX1060"),
        "heterogeneous-gpu-10G": ("RTX4000", "RTX4000", "GTX1060"),
    }.get(cells["platform"])
    if gpus is None:
        return
    servers = cells["platform"] != "standalone-gpu"
    yield TensorFlowRun(
        source="zeng",
        kind="servers" if servers else "single",
        job=cells["job"],
        batch_size=int(cells["batch_size"]),
        precision="fp32",
        devices=gpus,
        num_servers=int(servers),
        link=f"{cells['bandwidth_gbps']}G" if servers else "PCIe3",
        step_s=float(cells["step_s"]),
    )


def _single(cells: dict[str, str]) -> Iterator[TensorFlowRun]:
    if cells["framework"] != "TensorFlow" or cells["measure"] != "forward+backward":
        return
    yield TensorFlowRun(
        source="u39kun",
        job=cells["job"],
        batch_size=int(cells["batch_size"]),
        precision="fp16" if cells["precision"] == "fp16" else "fp32",
        devices=(device_named(cells["device"].partition(" ")[0]).name,),
        step_s=float(cells["ms_per_batch"]) / 1e3,
    )
