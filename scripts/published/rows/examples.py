"""NVIDIA/DeepLearningExamples: tables of the README of each model, PyTorch and TensorFlow.

    model, precision, GPUs, batch of a GPU (a cell, a note, or configs.yml) -> PublishedRun

Throughput is of all GPUs. A batch of the translation model is in tokens, taken as sentences of 32
pieces without padding. Batches of the classification models stand in
`PyTorch/Classification/ConvNets/configs.yml`. Half precision of the PyTorch models is autocast or
apex O1, with images stored channels last; TensorFlow's is its graph rewrite. NCF counts millions of
samples a second. V100 tables of NCF and of Wide & Deep list full precision before half under
headings that name half alone. Tables of evaluation hold forward passes, and are unused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft
from scripts.published.rows.machines import BETWEEN, canonical_device, link_within

__all__ = ["SOURCE", "example_rows"]

SOURCE = "NVIDIA DeepLearningExamples"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Model:
    job: str = ""
    size: int | None = None
    per_sample: float = 1  # units of the throughput in one sample
    optimizer: str = "adam"
    images: bool = False  # half precision with channels last
    why: str = ""


_WORDS = 32  # pieces of a sentence: batches of the translation model are in tokens
_MODELS: Mapping[str, _Model] = MappingProxyType({
    "Classification/ConvNets/resnet50v1.5": _Model(
        job="timm:resnet50", size=224, optimizer="momentum", images=True),
    "Classification/ConvNets/se-resnext101-32x4d": _Model(
        job="timm:seresnext101_32x4d", size=224, optimizer="momentum", images=True),
    "Detection/SSD": _Model(job="own:ssd300", size=300, optimizer="momentum", images=True),
    "Segmentation/MaskRCNN": _Model(
        job="own:maskrcnn", size=800, optimizer="momentum", images=True),
    "Recommendation/NCF": _Model(job="own:ncf", per_sample=1e-6, optimizer="adam-fused"),
    "SpeechRecognition/Jasper": _Model(job="own:jasper", optimizer="novograd"),
    "SpeechRecognition/QuartzNet": _Model(job="own:quartznet", optimizer="novograd"),
    "SpeechSynthesis/FastPitch": _Model(
        job="own:fastpitch", size=860, per_sample=565, optimizer="lamb"),
    "Segmentation/UNet_Medical": _Model(job="own:unet-medical"),
    "Segmentation/UNet_Industrial": _Model(job="own:unet-industrial", optimizer="rmsprop"),
    "Segmentation/VNet": _Model(job="own:vnet"),
    "Recommendation/WideAndDeep": _Model(job="own:wide-and-deep", optimizer="rmsprop"),
    "Recommendation/VAE-CF": _Model(job="own:vae-cf"),
    "Recommendation/DLRM": _Model(job="own:dlrm", optimizer="sgd"),
    "Translation/Transformer": _Model(
        job="own:transformer-big", size=_WORDS, per_sample=_WORDS, optimizer="adam-fused"),
    "LanguageModeling/BART": _Model(job="own:bart-large-pretrain", optimizer="lamb"),
})  # fmt: skip
_NNUNET = MappingProxyType({"2": "own:nnunet-2d", "3": "own:nnunet-3d"})
# Batch of a device by model and precision: V100 16 GB, V100 32 GB, A100 (configs.yml).
_BATCHES: Mapping[tuple[str, str], tuple[int, int, int]] = MappingProxyType({
    ("resnet50v1.5", "amp"): (256, 256, 256),
    ("resnet50v1.5", "full"): (112, 112, 256),
    ("se-resnext101-32x4d", "amp"): (112, 112, 128),
    ("se-resnext101-32x4d", "full"): (64, 64, 128),
    ("efficientnet-b0", "amp"): (128, 256, 256),
    ("efficientnet-b4", "amp"): (32, 64, 128),
})  # fmt: skip
_EFFICIENTNETS = MappingProxyType({
    "efficientnet-b0": ("timm:efficientnet_b0", 224),
    "efficientnet-b4": ("timm:efficientnet_b4", 380),
})  # fmt: skip
# Models whose tables of the V100 lack the heading of full precision, which comes first.
_UNNAMED_FULL = frozenset({
    ("PyTorch", "Recommendation/NCF"), ("TensorFlow", "Recommendation/WideAndDeep"),
    ("TensorFlow2", "Recommendation/WideAndDeep"),
})  # fmt: skip
_CASE = ("framework", "model", "gpu", "gpus", "batch_per_gpu", "notes")
_EVALUATION = "Evaluation"  # how the heading of a table of forward passes begins
_READS_IMAGES = 13_000  # images/s that the readers of one machine do not exceed


def example_rows(raw: Iterable[Raw]) -> list[PublishedRun]:
    """Rows of the source, from the gathered ones."""
    seen: set[tuple[str, ...]] = set()
    rows = []
    for row in raw:
        precision = row["precision"]
        if (row["framework"], row["model"]) in _UNNAMED_FULL and row["gpu"].startswith("V100"):
            case = tuple(row[name] for name in _CASE)
            precision = precision if case in seen else "fp32"
            seen ^= {case}
        rows.append(_row(row, precision))
    return _consistent(rows)


def _row(row: Raw, precision: str) -> PublishedRun:
    device = canonical_device(row["gpu_canonical"])
    machine, between = _machine(row["notes"])
    devices = whole_or(row["gpus"], 1)
    if machine == 16 and device == "V100-SXM2":
        device = "V100-SXM3"  # DGX-2
    per_machine = min(machine, devices)
    model, batch = _model(row, precision)
    half = precision == "amp"
    accumulation = re.search(r"Grad accumulation=(\d+)", row["notes"])
    passes = int(accumulation[1]) if accumulation else 1
    throughput = number(row["throughput"])
    samples = batch * passes * devices if batch else None
    tensorflow = row["framework"].startswith("TensorFlow")
    draft = Draft(
        raw=row,
        prefix="dle",
        why=model.why,
        library=_library(row["framework"]),
        device=device,
        num_devices=devices,
        per_machine=per_machine,
        link_within=link_within(device, per_machine),
        link_between=between,
        job=model.job,
        batch_size=batch,
        size=model.size,
        precision={"amp": "amp-fp16", "bf16": "amp-bf16"}.get(precision, precision),
        optimizer=model.optimizer,
        grad_accumulation=passes,
        compiled="XLA=Yes" in row["notes"],
        channels_last=model.images and half,
        implementation="tensorflow" if tensorflow else "",
        data="real",
        step_s=samples * model.per_sample / throughput if samples and throughput else None,
    )
    if row["notes"].startswith(_EVALUATION):
        draft.why = "evaluation: forward passes, not training"
    machines = devices / per_machine
    if model.images and half and devices >= 8 and (throughput or 0) / machines > _READS_IMAGES:
        draft.why = "input-bound: images read by one machine"
    return draft.row()


def _model(row: Raw, precision: str) -> tuple[_Model, int | None]:
    """What the model is, and the batch of a device."""
    name = row["model"]
    if name.endswith("nnUNet"):
        kind = re.search(r"Dimension=(\d)", row["notes"])
        return _Model(job=_NNUNET[kind[1]] if kind else ""), _batch(row["batch_per_gpu"])
    if name.endswith("/efficientnet"):
        variant = re.search(r"Model=([\w-]+)", row["notes"])
        kind_of = variant[1] if variant else ""
        job, size = _EFFICIENTNETS.get(kind_of, ("", None))
        model = _Model(job=job, size=size, optimizer="rmsprop", images=True)
        return model, _tabled(kind_of, precision, row["gpu"])
    model = _MODELS.get(name, _Model())
    cell = row["batch_per_gpu"]
    if name == "Translation/Transformer":
        tokens = _batch(cell)
        return model, tokens // _WORDS if tokens else None
    if name == "LanguageModeling/BART":
        # Batches of TF32 and of BF16; fine-tuning states no lengths.
        pair = [_batch(text.strip()) for text in cell.split(", ")]
        size = whole(row["seq_len_or_res"])
        why = "" if size else "tokens of a sample are not stated"
        return replace(model, size=size, why=why), pair[precision == "bf16"]
    if name.endswith("DLRM") and "large" in row["notes"]:
        model = replace(model, job="", why="model cannot be built: tables are split over devices")
    if name == "Detection/SSD" and row["framework"].startswith("TensorFlow"):
        model = replace(model, job="")  # another architecture of that name
    batch = _batch(cell)
    if batch is None:
        batch = _tabled(name.rpartition("/")[2], precision, row["gpu"])
    return model, batch


def _batch(text: str) -> int | None:
    """Batch of a cell such as `128 (FP32)`, `131,072` or `64k`; None of a list of two."""
    match = re.fullmatch(r"([\d,]+)(k?)(?:\s*\(\w+\))?", text.strip())
    if match is None or re.search(r",\s", text):
        return None
    return int(match[1].replace(",", "")) * (1024 if match[2] else 1)


def _tabled(name: str, precision: str, gpu: str) -> int | None:
    batches = _BATCHES.get((name, "amp" if precision == "amp" else "full"))
    if batches is None:
        return None
    return batches[2 if gpu.startswith("A100") else 1 if "32G" in gpu else 0]


def _machine(notes: str) -> tuple[int, str]:
    """Devices of the machine that a heading names, and its network."""
    if "DGX-2" in notes or "16x V100" in notes or "16xV100" in notes:
        return 16, BETWEEN["DGX-2"]
    return 8, BETWEEN["DGX-1" if "DGX-1" in notes else "DGX A100"]


def _library(framework: str) -> str:
    release = re.search(r"NGC (\d+\.\d+)", framework)
    kind = "tf" if framework.startswith("TensorFlow") else "ngc"
    if framework.startswith("TensorFlow2"):
        kind = "tf2-ngc"
    elif kind == "tf":
        kind = "tf1-ngc"
    return f"{kind}{release[1]}" if release else kind


def _consistent(rows: list[PublishedRun]) -> list[PublishedRun]:
    """One device that is slower than each of eight cannot be: the row is unused."""
    rates: dict[object, dict[int, float]] = defaultdict(dict)

    def key(row: PublishedRun) -> object:
        return (row.job, row.library, row.device, row.precision, row.batch_size, row.source_file)

    for row in rows:
        if row.usable and row.step_s and row.batch_size:
            rates[key(row)][row.num_devices] = (
                row.batch_size * row.dp * row.grad_accumulation / row.step_s / row.num_devices
            )
    checked = []
    for row in rows:
        per_device = rates[key(row)] if row.usable else {}
        if row.num_devices == 1 and any(
            rate > 1.25 * per_device[1] for rate in per_device.values()
        ):
            row = replace(row, unused_why="one device is slower than each of several")  # noqa: PLW2901
        checked.append(row)
    return checked
