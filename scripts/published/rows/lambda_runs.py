"""lambdal/deeplearning-benchmark: NVIDIA's DeepLearningExamples on one to sixteen GPUs.

    throughput tables (v1, v2), monitored runs (v0) + batches of the configs -> PublishedRun

What the configuration files and logs of that repository say, and its tables do not:

- the batch of several GPUs is that of all together, although the gathered column says per GPU; in
  v2 and v0 it stands in the configuration files alone (`lambda_batches.csv.gz`);
- ResNet-50 in v1 and v2 computes on one synthetic batch in the memory of the GPU;
- Tacotron 2, WaveGlow and NCF got a flag for half precision that later releases of the examples do
  not know and ignore: their rows named fp16 of v1, v2 and most of v0 from November 2020 on ran in
  full precision (`amp : False` in the logs);
- GNMT counts tokens of both languages, 48 a pair (26 each with padding); Tacotron 2 real mel
  frames, 565 a sample (860 with padding);
  WaveGlow 8,000 audio samples of a segment (items x seconds of an iteration / batch in the logs);
- NCF on 2 to 8 GPUs counts the samples of a whole epoch where the batch of all leaves one to four
  steps of it: rows that are faster than one GPU with the same batch cannot be, and are unused;
- BERT divides the samples of 100 steps by the time, although 101 steps were run, or fewer where two
  epochs of 88,641 samples are over before: the time of a step is that of the steps that were run.
  In v0 the throughput of BERT agrees with no count of steps and is unused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, nan
from statistics import median
from types import MappingProxyType

from driple.catalog import device_named
from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.families import family_of
from scripts.published.rows.machines import canonical_device, is_card, link_within

__all__ = ["SOURCE", "Batches", "lambda_rows", "read_batches"]

SOURCE = "lambda-pytorch"


@dataclass(frozen=True, slots=True)
class _Model:
    job: str
    size: int | None  # tokens of a sample, or side of an image
    per_sample: float  # units of the throughput in one sample
    optimizer: str
    half_optimizer: str
    half: str = "amp-fp16"
    old_half: str = "fp16"  # of v0: apex O2 or a model that is cast by hand


# Optimizers: apex FusedAdam and the examples' FusedLAMB update all tensors in a few kernels.
_MODELS: Mapping[str, _Model] = MappingProxyType({
    "resnet50": _Model("timm:resnet50", 224, 1, "momentum", "momentum"),
    "bert_base_squad": _Model("own:bert-base-squad", 384, 1, "adam", "adam-fused", "fp16"),
    "bert_large_squad": _Model("own:bert-large-squad", 384, 1, "adam", "adam-fused", "fp16"),
    "gnmt": _Model("own:gnmt", 26, 48, "adam", "adam", "fp16"),
    "tacotron2": _Model("own:tacotron2", 860, 565, "adam", "adam", old_half="amp-fp16"),
    "waveglow": _Model("own:waveglow", 8000, 8000, "adam", "adam", old_half="amp-fp16"),
    "transformerxlbase": _Model("own:transformerxl-base", 192, 192, "lamb", "lamb", "fp16"),
    "transformerxllarge": _Model(
        "own:transformerxl-large", 256, 256, "adam", "adam", "fp16"),
    "ncf": _Model("own:ncf", None, 1, "adam-fused", "adam-fused"),
    "SSD": _Model("own:ssd300", 300, 1, "momentum", "momentum", old_half="amp-fp16"),
    "maskrcnn": _Model("own:maskrcnn", None, 1, "momentum", "momentum", old_half="amp-fp16"),
})  # fmt: skip
# SQuAD 1.1 for BERT: samples of the training set, epochs, and steps that the throughput counts.
_SQUAD_SAMPLES, _SQUAD_EPOCHS, _SQUAD_STEPS = 88_641, 2, 100
_MANY, _FAR = 10, 1.2  # identical rows, and how far one may be from their median
_LEAST_OF_ALONE = 0.8  # of the step on one device with the same batch, on each of several
_NOT_HALF_IN_LATER_RELEASES = frozenset({"tacotron2", "waveglow"})
_DEVICES_OF_INSTANCES = MappingProxyType({"p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8})
# NVIDIA's containers, by the version of PyTorch that each system printed (`sys_pytorch.txt`).
_CONTAINERS = (
    ("2020-10", "ngc20.01"),  # PyTorch 1.4.0a0+a5b4d78
    ("2021-05", "ngc20.10"),  # 1.7.0a0+7036e91
    ("2022-01", "ngc21.03"),  # 1.9.0a0+df837d0
    ("9999", "ngc21.07"),  # 1.10.0a0+ecc3718
)

Batches = Mapping[tuple[str, str, int, str, str], Raw]


def read_batches(rows: Iterable[Raw]) -> Batches:
    """Rows of `lambda_batches.csv.gz` by release, system, devices, model and precision."""
    return {
        (row["release"], row["system"], int(row["devices"]), row["model"], row["precision"]): row
        for row in rows
    }


def lambda_rows(
    raw: Iterable[Raw], batches: Batches, util: Mapping[str, float]
) -> list[PublishedRun]:
    """Rows of the source.

    Args:
        raw: gathered rows of this source.
        batches: what the configuration files say.
        util: mean utilisation in percent of the monitored runs, by source file.
    """
    items = list(raw)
    first = {_same(row): row["source_file"] for row in items if not _is_collection(row)}
    rows = []
    for row in items:
        monitored = row["file"] == "lambda_run_monitor.csv"
        run = _monitored(row, batches, util) if monitored else _tabled(row, batches)
        if run.usable and _is_collection(row) and _same(row) in first:
            run = replace(run, unused_why=f"duplicate: stands in {first[_same(row)]}")
        rows.append(run)
    return _without_faster(_without_outliers(rows))


def _same(row: Raw) -> tuple[str, ...]:
    return tuple(
        row[name] for name in ("gpu_canonical", "gpus", "model", "precision", "throughput")
    )


def _is_collection(row: Raw) -> bool:
    """Whether a row stands in the table that repeats others of both releases."""
    return "csv_v1_v2" in row["source_file"]


def _without_outliers(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Rows of hosts that are far from many identical ones are unused.

    Tacotron 2 is left as it is: its times vary with the host's processors.
    """
    groups: dict[object, list[float]] = defaultdict(list)

    def key(row: PublishedRun) -> object:
        return (row.job, row.library, row.device, row.num_devices, row.precision, row.batch_size)

    for row in rows:
        if row.usable:
            groups[key(row)].append(row.step_s)
    checked = []
    for row in rows:
        times = groups.get(key(row), [])
        if row.usable and len(times) >= _MANY and row.model != "tacotron2":
            ratio = row.step_s / median(times)
            if not 1 / _FAR < ratio < _FAR:
                why = f"outlier: {ratio:.2f} of the time of {len(times)} identical machines"
                row = replace(row, unused_why=why)  # noqa: PLW2901  # the row that is kept
        checked.append(row)
    return checked


def _without_faster(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Several devices that take far less than one for the same batch of each are unused."""
    alone: dict[object, float] = {}

    def key(row: PublishedRun) -> object:
        return (row.job, row.device, row.precision, row.batch_size)

    for row in rows:
        if row.usable and row.num_devices == 1:
            alone[key(row)] = min(row.step_s, alone.get(key(row), row.step_s))
    checked = []
    for row in rows:
        share = row.step_s / alone.get(key(row), nan) if row.usable else nan
        if row.num_devices > 1 and share < _LEAST_OF_ALONE:
            why = f"impossible: {share:.2f} of the time of one device with the same batch"
            row = replace(row, unused_why=why)  # noqa: PLW2901  # the row that is kept
        checked.append(row)
    return checked


def _tabled(row: Raw, batches: Batches) -> PublishedRun:
    """A row of the throughput tables: releases v1 (with a batch) and v2 (without)."""
    devices = whole_or(row["gpus"], 1)
    device = canonical_device(row["gpu_canonical"])
    card = is_card(row["gpu"]) or not device
    half_named = row["precision"] == "fp16"
    model = row["model"]
    batch = whole(row["batch_per_gpu"])  # of all devices
    release = "v1"
    if batch is None:
        release = "v2"
        names = ("FP32",) if not half_named else ("FP16", "AMP")
        memory = "192GB" if device == "B200" else "80GB"
        configs = [batches.get((release, memory, devices, model, name)) for name in names]
        batch = next((int(config["global_batch"]) for config in configs if config), None)
    half = half_named and model not in _NOT_HALF_IN_LATER_RELEASES
    if model == "ncf" and device and device_named(device).memory_bytes >= 80e9:
        half = False  # the configuration for 80 GB lacks the flag
    spec = _MODELS[model]
    return _row(
        row, spec, device=device, devices=devices, batch=batch,
        precision=spec.half if half else _full(device),
        within=link_within(device, devices, pcie=card),
        library=_container(row["gpu"], device, release),
        data="synthetic" if model == "resnet50" else "real",
        apex=half and spec.half == "fp16" and model != "gnmt",
    )  # fmt: skip


def _container(gpu: str, device: str, release: str) -> str:
    """Container of a tabled row: of its release, but for machines that were added later."""
    if device == "B200":
        return "ngc25.06"
    later = re.match(r"Dell|SMC|1CC|RAIDZ1|LambdaCloud [124]x H100|LambdaCloud 1x H100", gpu)
    if release == "v2" or later:
        return "ngc24.03"
    return "ngc23.06" if gpu == "LambdaCloud 8x H100 80GB SXM5" else "ngc22.09"


def _monitored(row: Raw, batches: Batches, util: Mapping[str, float]) -> PublishedRun:
    """A run of release v0: its throughput, and what nvidia-smi saw."""
    system, model = row["source_file"].split("/")[2], row["model"]
    device = canonical_device(row["gpu_canonical"])
    name = row["gpu"]
    if "Max" in name:
        device = ""  # a laptop's GPU of the same name
    devices = _DEVICES_OF_INSTANCES.get(name) or whole_or(row["gpus"], 1)
    config = batches.get(("v0", system, devices, model, row["precision"]))
    if device == "V100":
        device = "V100-SXM2"  # all of them are boards, by the logs of the systems
    half = config is not None and config["half"] == "1"
    spec = _MODELS[model]
    day, month, year = row["date"][:2], row["date"][3:5], row["date"][6:10]
    date = f"{year}-{month}-{day}"
    autocast = row["precision"] == "AMP" or spec.old_half == "amp-fp16"
    run = _row(
        row, spec, device=device, devices=devices,
        batch=int(config["global_batch"]) if config else None,
        precision=("amp-fp16" if autocast else spec.old_half) if half else _full(device),
        within=link_within(device, devices, bridged="NVlink" in name, pcie="PCIe" in name),
        library=next(library for until, library in _CONTAINERS if date < until),
        data=config["data"] if config else "",
        apex=half,
        date=date,
        util=util.get(row["source_file"], nan),
    )  # fmt: skip
    if run.usable and model.startswith("bert"):
        return replace(run, unused_why="throughput agrees with no count of steps in the logs")
    if run.usable and model == "resnet50" and run.data == "real" and half and devices > 1:
        return replace(run, unused_why="input-bound: several GPUs read real images in half")
    return run


def _full(device: str) -> str:
    """Full precision of NGC's builds: matrix products in TF32 where the device has it."""
    return "tf32" if device and device_named(device).tf32_flops else "fp32"


def _row(
    row: Raw, spec: _Model, *, device: str, devices: int, batch: int | None, precision: str,
    within: str, library: str, data: str, apex: bool, date: str = "", util: float = nan,
) -> PublishedRun:  # fmt: skip
    throughput = number(row["throughput"])
    half = precision in ("fp16", "amp-fp16")
    why = ""
    if throughput is None or throughput <= 0:
        why = "no time"
    elif not device:
        why = f"unknown device: {row['gpu']}"
    elif batch is None:
        why = "no batch size"
    elif batch % devices:
        why = "the batch cannot be divided by the devices"
    seconds = batch * spec.per_sample / throughput if batch and throughput else None
    if seconds and batch and row["model"].startswith("bert"):
        run = min(_SQUAD_STEPS + 1, _SQUAD_EPOCHS * ceil(_SQUAD_SAMPLES / batch))
        seconds *= _SQUAD_STEPS / run
    return PublishedRun(
        id=f"lambda-{int(row['row']):05d}",
        source=SOURCE,
        source_file=row["source_file"],
        date=date or row["date"],
        framework=row["framework"],
        library=library,
        device=device,
        num_devices=devices,
        per_machine=devices,
        link_within=within,
        scheme="none" if devices == 1 else "ddp",
        dp=devices,
        model=row["model"],
        family=family_of(spec.job),
        job=spec.job,
        batch_size=batch // devices if batch and batch >= devices else None,
        size=spec.size,
        precision=precision,
        optimizer=spec.half_optimizer if half else spec.optimizer,
        implementation="apex-o2" if apex and precision == "fp16" else "",
        data=data,
        step_s=seconds or nan,
        peak_mem_gib=number(row["peak_mem_gib"]),
        peak_mem_kind="device" if row["peak_mem_gib"] else "",
        utilisation_pct=util,
        unused_why=why,
    )
