"""Oneflow-Inc/DLPerf: ResNet-50, BERT-base and InsightFace of seven frameworks on 32 V100.

    heading of each table (model, precision, batch, XLA) -> PublishedRun

Batch and precision stand in the headings: the gathered column of the precision does not hold. One
adapter of 100 Gbit/s joins the servers (InfiniBand EDR).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft
from scripts.published.rows.machines import link_within

__all__ = ["SOURCE", "dlperf_rows"]

SOURCE = "DLPerf"
_BATCH = re.compile(r"batch[ _]?size\s*=\s*(\d+)", re.IGNORECASE)
_LIBRARIES: Mapping[str, str] = MappingProxyType({
    "MindSpore": "mindspore1.1", "MxNet": "mxnet1.6", "OneFlow": "oneflow0.2",
    "PaddlePaddle": "paddle1.8", "PyTorch": "torch1.6", "TensorFlow": "tf2.3",
    "NVIDIADeepLearningExamples/PyTorch": "ngc20.03",
    "NVIDIADeepLearningExamples/TensorFlow": "tf1-ngc20.03",
    "NVIDIADeepLearningExamples/MxNet": "mxnet-ngc20.03",
})  # fmt: skip


def dlperf_rows(raw: Iterable[Raw]) -> Iterator[PublishedRun]:
    """Rows of the source, from the gathered ones."""
    return map(_row, raw)


def _row(row: Raw) -> PublishedRun:
    notes, model = row["notes"], row["model"]
    half = re.search(r"FP16|AMP\b", notes) is not None
    bert = "bert" in model.lower()
    job = "own:bert-base-pretrain" if bert else ""
    if not bert and re.search(r"resnet50|RN50", model, re.IGNORECASE) and "face" not in notes:
        job = "timm:resnet50"
    if "insightface" in model and re.search(r"Emore & R100 & FP32 > Data", notes):
        job = "own:insightface-r100"
    match = _BATCH.search(notes)
    batch = whole(row["batch_per_gpu"]) or (int(match[1]) if match else None)
    devices = whole_or(row["gpus"], 1)
    per_machine = min(8, devices)
    throughput = number(row["throughput"])
    place = next(
        name for name in sorted(_LIBRARIES, key=len, reverse=True) if model.startswith(name)
    )
    library = _LIBRARIES[place]
    torch = "PyTorch" in place
    compiler = " xla" if re.search(r"with ?xla", notes) else ""
    draft = Draft(
        raw=row,
        prefix="dlperf",
        library=library,
        device="V100-SXM2",
        num_devices=devices,
        per_machine=per_machine,
        link_within=link_within("V100-SXM2", per_machine),
        link_between="100G",
        job=job,
        batch_size=batch,
        size=128 if bert else 112 if "face" in job else 224,
        precision="amp-fp16" if half else "fp32",
        optimizer=("adam-fused" if torch else "adam") if bert else "momentum",
        channels_last="MxNet/Classification" in model and half,
        implementation=f"{place.rpartition('/')[2].lower()}{compiler}".strip(),
        data="synthetic" if "synthetic" in notes else "real",
        step_s=batch * devices / throughput if batch and throughput else None,
    )
    if not job:
        draft.why = "model cannot be built: its head is split over devices"
    elif job == "timm:resnet50" and place == "OneFlow":
        draft.why = "duplicate: the table repeats the figures of BERT"
    elif "real data" in notes and "dali" not in notes:
        draft.why = "input-bound: real images without DALI, against synthetic ones beside"
    elif "DataLoader" in notes and devices >= 8:
        draft.why = "input-bound: images decoded by torch.utils.data"
    return draft.row()
