"""huggingface/pytorch-image-models, `results/benchmark-*`: training steps and forward passes.

    tables of `benchmark.py` + names of timm 1.0.31 -> PublishedRun

Training (2022, PyTorch 1.12): `--amp` is autocast to fp16 without a scaler of gradients, SGD with
Nesterov momentum of one kernel per tensor and pass, synthetic images in device memory. Forward
passes: `amp` and `amp_bf16` are autocast, `bf16` casts the model; `compile` is `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import nan
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole

__all__ = ["SOURCE", "TimmName", "forward_rows", "read_names", "training_rows"]

SOURCE = "timm"
_DEVICES: Mapping[str, str] = MappingProxyType({
    "rtx3090": "3090", "rtx4090": "4090", "4090": "4090", "pro6000maxq": "RTXPRO6000-MaxQ",
})  # fmt: skip
_PRECISIONS: Mapping[str, str] = MappingProxyType({
    "amp": "amp-fp16", "amp_bf16": "amp-bf16", "bf16": "bf16", "fp32": "fp32",
})  # fmt: skip
_CPUS = frozenset({"i9_10940x", "i7_12700h"})


@dataclass(frozen=True, slots=True)
class TimmName:
    """What a name of a result file is in timm 1.0.31.

    Attributes:
        job: `timm:NAME`; empty if timm no longer has the model.
        family: of the model.
    """

    job: str
    family: str


def read_names(rows: Iterable[Raw]) -> dict[str, TimmName]:
    """Names of `timm_names.csv.gz`."""
    return {row["name"]: TimmName(row["job"], row["family"]) for row in rows}


def training_rows(raw: Iterable[Raw], names: Mapping[str, TimmName]) -> Iterator[PublishedRun]:
    """Training rows of the source, from the gathered ones."""
    for row in raw:
        yield _row(row, names, f"timm-{int(row['row']):05d}", "train", "1.12")


def forward_rows(raw: Iterable[Raw], names: Mapping[str, TimmName]) -> Iterator[PublishedRun]:
    """Forward passes of the source, from the gathered ones."""
    for row in raw:
        release = row["framework"].split()[1]
        yield _row(row, names, f"timm-f{int(row['row']):05d}", "forward", release)


def _row(
    row: Raw, names: Mapping[str, TimmName], name: str, task: str, release: str
) -> PublishedRun:
    known = names.get(row["model"], TimmName("", ""))
    device = _DEVICES.get(row["gpu"], "")
    batch, seconds = whole(row["batch_per_gpu"]), number(row["step_time_s"])
    why = ""
    if row["gpu"] in _CPUS:
        why = "CPU: memory, cores in use and threads are not stated"
    elif not device:
        why = f"unknown device: {row['gpu']}"
    elif not known.job:
        why = "timm 1.0.31 no longer has the model"
    elif batch is None or not seconds:
        why = "no time" if batch else "no batch size"
    return PublishedRun(
        id=name,
        source=SOURCE,
        source_file=row["source_file"],
        date="2022-07" if task == "train" else "",
        framework=row["framework"].strip(),
        library=f"torch{'.'.join(release.split('.')[:2])}",
        device=device,
        model=row["model"],
        family=known.family,
        job=known.job,
        task=task,
        batch_size=batch,
        size=whole(row["seq_len_or_res"]),
        precision=_PRECISIONS[row["precision"]],
        optimizer="momentum" if task == "train" else "none",
        compiled=row["compile"] == "torch.compile",
        channels_last="-nhwc-" in row["source_file"],
        data="synthetic",
        step_s=seconds or nan,
        unused_why=why,
    )
