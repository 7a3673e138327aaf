"""The measurements of Zeng et al., and what both models say of them.

    zeng_iteration_time.csv.gz, zeng_flops.csv.gz -> ZengRun
    ZengRun -> as_published_s        ZengRun, ZengFit -> repaired_s        ZengRun, ... -> ZengFit

The published model is fed as the authors' workbook feeds it. The repaired one has a few numbers
that are fitted, each drawn towards what physics or data sheets say where few rows tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.analytic import repaired, zeng
from driple.analytic.repaired import Parts, TransferCosts
from driple.catalog import DEVICES
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.runs.solver import least_squares
from scripts.fits import zeng_formulas
from scripts.published.rows.cells import read_raw

__all__ = ["PEAKS", "ZengFit", "ZengRun", "as_published_s", "fit_zeng", "read_zeng", "repaired_s"]

FloatArray = npt.NDArray[np.float64]

_CLOCKS = {"E5-2620": 2.0e9, "E5-2660": 2.2e9}
_AVX = 16  # FLOPs a cycle of these cores: an addition and a product of 8 numbers each
# FLOP/s that one core, or a GPU, could reach.
PEAKS: Mapping[str, float] = MappingProxyType(
    {name: clock * _AVX for name, clock in _CLOCKS.items()}
    | {name: DEVICES[name].fp32_flops for name in ("RTX4000", "GTX1060")}
)
_WORKERS = {
    "standalone-gpu": ("RTX4000",),
    "distributed-cpu": ("E5-2620", "E5-2620"),
    "distributed-gpu": ("RTX4000", "RTX4000"),
    "distributed-gpu+cpu": ("RTX4000", "E5-2620"),
    "heterogeneous-gpu-1G": ("RTX4000", "RTX4000", "GTX1060"),
    "heterogeneous-gpu-10G": ("RTX4000", "RTX4000", "GTX1060"),
}
# What the published model takes for peaks: clock, stream processors, no fused multiply-adds.
_GPU_CLOCK_AND_CORES = {"RTX4000": (1.545e9, 2304), "GTX1060": (1.506e9, 1280)}
_FLOPS_PER_WEIGHT = 85  # in the workbook; equations 23 to 26 make 89 of it
_IMAGE_BYTES = 224 * 224 * 3 * 4
_BITS, _FLOAT_BYTES = 8, 4
_SMALL_BATCH = 16  # below, kernels of a GPU take longer for each image, whatever the model


@dataclass(frozen=True, kw_only=True, slots=True)
class ZengRun:
    """One measured iteration.

    Attributes:
        platform: `standalone-cpu` and so on.
        model: of the zoo or not.
        batch_size: images of each worker.
        workers: device of each worker.
        bytes_per_s: nominal rate of the links; 0 without a server.
        forward_flops: of one image (Table 1).
        backward_flops: of an iteration (Table 1).
        weights: parameters but the biases.
        nbytes: of all parameters.
        num_pushes: tensors that are pushed.
        measured_s: of the workbook.
        told_s: the authors' prediction in the workbook; none for batches of 1.
        table: of the paper, such as `Table 4`; empty if the row is in none.
        paper_told_s: their prediction in that table, where it is printed.
        paper_measured_s: their measurement in that table.
    """

    platform: str
    model: str
    batch_size: int
    workers: tuple[str, ...]
    bytes_per_s: float
    forward_flops: float
    backward_flops: float
    weights: float
    nbytes: float
    num_pushes: int
    measured_s: float
    told_s: float | None
    table: str
    paper_told_s: float | None
    paper_measured_s: float | None

    @property
    def on_cpu(self) -> tuple[bool, ...]:
        """Of each worker."""
        return tuple(name in _CLOCKS for name in self.workers)


@dataclass(frozen=True, kw_only=True, slots=True)
class ZengFit:
    """The fitted numbers of the repaired model.

    Attributes:
        efficiency: share of its peak that each device reaches; above 1 where Winograd's
            convolutions save products.
        parameter_s: seconds of each device for a parameter, in each iteration.
        models: factor on the time of each model, by `cpu/MODEL` or `gpu/MODEL`.
        small_batch: factor on a GPU's time for an image in batches below 16.
        exchange: how gradients and parameters travel.
    """

    efficiency: Mapping[str, float]
    parameter_s: Mapping[str, float]
    models: Mapping[str, float] = field(default_factory=dict)
    small_batch: float
    exchange: TransferCosts

    def to_json_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return to_dict(self)


def read_zeng(folder: Path) -> list[ZengRun]:
    """All measured rows of the tables in a folder.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    known = {row["model"]: row for row in read_raw(folder / "zeng_flops.csv.gz")}
    runs = []
    for row in read_raw(folder / "zeng_iteration_time.csv.gz"):
        try:
            runs.append(_run(row, known[row["model"]]))
        except (KeyError, ValueError) as error:
            raise ConfigError(
                f"zeng_iteration_time.csv.gz holds an odd row ({error}): {row}; restore it from git"
            ) from error
    return runs


def _run(row: Mapping[str, str], model: Mapping[str, str]) -> ZengRun:
    platform = row["platform"]
    alone = row["worker_device"].removeprefix("Xeon ").partition(" ")[0]
    seconds_told = {name: float(row[name]) if row[name] else None for name in _TOLD}
    forward = model["forward_all_flops_per_image"] or model["forward_conv_flops_per_image"]
    return ZengRun(
        platform=platform,
        model=row["model"],
        batch_size=int(row["batch_per_worker"]),
        workers=(alone,) if platform == "standalone-cpu" else _WORKERS[platform],
        bytes_per_s=float(row["bandwidth_gbps"] or 0) * 1e9 / _BITS,
        forward_flops=float(forward),
        backward_flops=float(model["backward_flops_per_iteration"]),
        weights=float(model["weights_params"]),
        nbytes=float(model["one_way_comm_s_at_1gbps"]) * 1e9 / _BITS,
        num_pushes=int(model["pushes_paper"] or model["pushes_xlsx"]),
        measured_s=float(row["measured_s"]),
        told_s=seconds_told["predicted_s"],
        table=row["paper_table"],
        paper_told_s=seconds_told["paper_predicted_s"],
        paper_measured_s=seconds_told["paper_measured_s"],
    )


_TOLD = ("predicted_s", "paper_predicted_s", "paper_measured_s")


def as_published_s(run: ZengRun) -> float:
    """Seconds by the published model, fed as in the authors' workbook.

    Tables 4 and 5 send the weights alone, 6 and 7 all parameters and the whole iteration of the
    fastest worker (equation 32).
    """
    flops = float(
        zeng_formulas.iteration_flops(run.batch_size, run.forward_flops, run.backward_flops)
    )
    times = [_peak_seconds(run, name, flops) for name in run.workers]
    if not run.bytes_per_s:
        return times[0]
    bits_per_s = _BITS * run.bytes_per_s
    lean_s = float(zeng.transfer_s(_FLOAT_BYTES * run.weights, bits_per_s))
    full_s = float(zeng.transfer_s(run.nbytes, bits_per_s))
    if run.platform == "distributed-cpu":
        return float(zeng_formulas.equal_workers_seconds(times[0], lean_s, lean_s, len(times)))
    if run.platform.startswith("heterogeneous"):
        return float(zeng_formulas.network_bound_seconds(times, full_s, full_s))
    clock, cores = _GPU_CLOCK_AND_CORES["RTX4000"]
    first = float(
        zeng.first_gradient_seconds(
            run.batch_size, run.forward_flops, run.backward_flops, run.num_pushes, clock * cores
        )
    )
    firsts = [time if cpu else first for time, cpu in zip(times, run.on_cpu, strict=True)]
    return float(zeng.distributed_gpu_seconds(firsts, lean_s, lean_s))


def _peak_seconds(run: ZengRun, device: str, flops: float) -> float:
    """Equation 28 or 33, with what the workbook takes for FLOPs a cycle (the paper says 2)."""
    if device in _CLOCKS:
        usual = 2.5 if run.model == "vgg19" and device == "E5-2660" else 2.4
        simd = 2.6 if run.model == "alexnet" else usual
        return float(zeng_formulas.cpu_seconds(flops, _CLOCKS[device], simd))
    return float(zeng_formulas.gpu_seconds(flops, *_GPU_CLOCK_AND_CORES[device]))


def repaired_s(runs: Sequence[ZengRun], fit: ZengFit) -> FloatArray:
    """Seconds of each run by the repaired model."""
    seconds = np.empty(len(runs))
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, run in enumerate(runs):
        key = (*run.workers, "alone" if not run.bytes_per_s else "")
        alike.setdefault(key, []).append(place)
    for places in alike.values():
        seconds[places] = _repaired([runs[place] for place in places], fit).total_s
    return seconds


def _repaired(runs: Sequence[ZengRun], fit: ZengFit) -> Parts:
    """Iterations on the same workers, all alone or all with a server."""
    how, first = fit.exchange, runs[0]

    def each(name: str) -> FloatArray:
        return np.array([getattr(run, name) for run in runs], dtype=np.float64)[:, None]

    batch, nbytes = each("batch_size"), each("nbytes")
    on_gpu = ~np.array(first.on_cpu)
    factor = np.array(
        [
            [fit.models.get(f"{'cpu' if cpu else 'gpu'}/{run.model}", 1.0) for cpu in run.on_cpu]
            for run in runs
        ]
    )
    factor = factor * np.where(on_gpu & (batch < _SMALL_BATCH), fit.small_batch, 1.0)
    reached = np.array([PEAKS[name] * fit.efficiency[name] for name in first.workers]) / factor
    # Parameters and gradients come and go through the host, where there is a server.
    shared = nbytes * (on_gpu if first.bytes_per_s else 0.0 * on_gpu)
    forward = zeng_formulas.forward_seconds(
        batch,
        each("forward_flops"),
        reached,
        copied_bytes=batch * _IMAGE_BYTES * on_gpu + shared,
        copy_s_per_byte=how.copy_s_per_byte,
    )
    backward = zeng_formulas.backward_seconds(
        batch,
        each("forward_flops"),
        reached,
        parameters=each("weights"),
        parameter_s=np.array([fit.parameter_s[name] for name in first.workers]),
    )
    pushes = each("num_pushes")[:, 0]
    link_s, server_s = (
        repaired.repaired_transfer_s(nbytes[:, 0], each("bytes_per_s")[:, 0], pushes, how)
        if first.bytes_per_s
        else (np.zeros(len(runs)), np.zeros(len(runs)))
    )
    return repaired.iteration_parts(
        forward,
        backward,
        link_s,
        server_s,
        num_pushes=pushes,
        copy_s=shared * how.copy_s_per_byte,
        exposed=how.exposed,
    )


# The fit. Each number: name, where it begins, and how far rows may draw the logarithm from there
# (logit for shares). Shares of peaks: half, as a good library; a parameter is read and written
# some ten times; PCI Express 3 at 12 GB/s; TCP's payload is 95 % of a link's rate.
_NUMBERS: tuple[tuple[str, float, float], ...] = (
    ("efficiency/E5-2620", 0.5, 0.5),
    ("efficiency/E5-2660", 0.5, 0.5),
    ("efficiency/GPU", 1.2, 0.5),
    ("parameter_s/E5-2620", 1e-8, 2.0),
    ("parameter_s/E5-2660", 1e-8, 2.0),
    ("parameter_s/GPU", 1e-10, 1.0),
    ("small_batch", 1.0, 0.5),
    ("copy_s_per_byte", 1 / 12e9, 1.0),
    ("server_s_per_byte", 1e-10, 1.0),
    ("push_s", 1e-5, 2.0),
)
_SHARES: tuple[tuple[str, float, float], ...] = (("share", 0.95, 1.0), ("exposed", 0.2, 1.0))
_MODEL_DEVIATION, _NOISE = 0.15, 0.05


def fit_zeng(runs: Sequence[ZengRun]) -> ZengFit:
    """The numbers with which the repaired model is nearest to these rows.

    Least squares of the logarithm of predicted over measured, lenient towards single odd rows.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    kinds = sorted({f"{'cpu' if cpu else 'gpu'}/{run.model}" for run in runs for cpu in run.on_cpu})
    begin = np.array(
        [np.log(value) for _, value, _ in _NUMBERS]
        + [np.log(value / (1 - value)) for _, value, _ in _SHARES]
        + [0.0] * len(kinds)
    )
    deviations = np.array(
        [spread for _, _, spread in (*_NUMBERS, *_SHARES)] + [_MODEL_DEVIATION] * len(kinds)
    )
    measured = np.array([run.measured_s for run in runs])

    def residuals(values: FloatArray) -> FloatArray:
        fit = _from_vector(values, kinds)
        logs = np.log(repaired_s(runs, fit) / measured)
        return np.concatenate([logs / _NOISE, (values - begin) / deviations])

    return _from_vector(least_squares(residuals, begin, loss="soft_l1").x, kinds)


def _from_vector(values: FloatArray, kinds: Sequence[str]) -> ZengFit:
    """The numbers of a fit from their logarithms and logits."""
    count = len(_NUMBERS)
    logs = dict(
        zip((name for name, _, _ in _NUMBERS), np.exp(values[:count]).tolist(), strict=True)
    )
    logits = values[count : count + len(_SHARES)]
    shares = dict(
        zip((name for name, _, _ in _SHARES), (1 / (1 + np.exp(-logits))).tolist(), strict=True)
    )
    each = {
        what: {name: logs[f"{what}/{name if name in _CLOCKS else 'GPU'}"] for name in PEAKS}
        for what in ("efficiency", "parameter_s")
    }
    return ZengFit(
        **each,
        models=dict(zip(kinds, np.exp(values[count + len(_SHARES) :]).tolist(), strict=True)),
        small_batch=logs["small_batch"],
        exchange=TransferCosts(
            share=shares["share"],
            exposed=shares["exposed"],
            **{name: logs[name] for name in ("copy_s_per_byte", "server_s_per_byte", "push_s")},
        ),
    )
