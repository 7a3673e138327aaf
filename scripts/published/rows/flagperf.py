"""FlagOpen/FlagPerf: training cases on GPUs of several makers.

    README of each case -> PublishedRun; devices that the catalogue does not have are unused

`samples/s (p_core)` is of all devices without the time of evaluations; tokens per second are of one
device. Precision and batch stand in the columns, `net` in the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft
from scripts.published.rows.machines import canonical_device, link_between, link_within

__all__ = ["SOURCE", "flagperf_rows"]

SOURCE = "FlagPerf"
# Job, size, optimizer; other cases have no definition.
_CASES: Mapping[str, tuple[str, int | None, str]] = MappingProxyType({
    "resnet50-pytorch": ("timm:resnet50", 224, "momentum"),
    "vit-pytorch": ("timm:vit_base_patch16_224", 224, "adamw"),
    "swin_transformer-pytorch": ("timm:swin_tiny_patch4_window7_224", 224, "adamw"),
    "mask_rcnn-pytorch": ("own:maskrcnn", None, "momentum"),
    "bert_hf-pytorch": ("own:bert-large-pretrain", 512, "adamw"),
    "bert_hf": ("own:bert-large-pretrain", 512, "adamw"),
})  # fmt: skip
# Cases whose configuration turns autocast on, whatever the README's column says.
_AUTOCAST = frozenset({"vit-pytorch", "swin_transformer-pytorch"})
_PARALLEL = ("megatron", "flagscale", "deepspeed")
_TABLED = MappingProxyType({"fp32": "tf32", "amp": "amp-fp16", "bf16": "amp-bf16"})


def flagperf_rows(raw: Iterable[Raw]) -> Iterator[PublishedRun]:
    """Rows of the source, from the gathered ones."""
    return map(_row, raw)


def _row(row: Raw) -> PublishedRun:
    case = row["model"]
    nvidia = "vendor nvidia" in row["notes"]
    device = canonical_device(row["gpu_canonical"]) if nvidia else ""
    devices = whole_or(row["gpus"], 1)
    per_machine = min(whole_or(row["gpus_per_node"], 8), devices)
    job, size, optimizer = _CASES.get(case, ("", None, ""))
    batch, throughput = whole(row["batch_per_gpu"]), number(row["throughput"])
    total = row["unit"].startswith("samples/s")
    release = re.search(r"torch(?:ch)?-(\d+\.\d+)", row["framework"])
    draft = Draft(
        raw=row,
        prefix="flagperf",
        library=f"torch{release[1]}" if release else "",
        device=device,
        num_devices=devices,
        per_machine=per_machine,
        link_within=link_within(device, per_machine),
        link_between=link_between(row["notes"]),
        job=job,
        batch_size=batch,
        size=size,
        precision="amp-fp16" if case in _AUTOCAST else _TABLED.get(row["precision"], ""),
        optimizer=optimizer,
        data="real",
        step_s=batch * devices / throughput if batch and throughput and total else None,
        peak_mem_kind="device",
    )
    if not throughput:
        draft.why = "no time"
    elif not nvidia:
        draft.why = f"unknown device: {row['gpu']}"
    elif any(word in case for word in _PARALLEL):
        draft.why = "scheme and groups of devices are not stated"
    return draft.row()
