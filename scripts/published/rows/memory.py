"""Runs with their memory, from the gathered tables and the cleaned rows of training steps.

What the sources say and the tables do not: litgpt's resource tables state the tokens of the longest
sample (phi-1.5 1,044, StableLM Alpha 1,034, Llama 2 1,304), which its scripts run first, and count
GB of 10^9 bytes; on several devices the largest memory is that of loading all weights. Hugging
Face's Trainer keeps FSDP's shards in single precision where a full fine-tuning runs under autocast,
and gathers them in half precision. NVIDIA's apex (O2) keeps a copy of half-precision parameters in
single precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from driple.catalog import find_device
from driple.runs.published_runs import PublishedRun
from driple.runs.step_key import UNFUSED, attention_of
from scripts.fits.memory_rows import GIB, MemoryRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.families import family_of

__all__ = ["fine_tuning_rows", "mlp_rows", "step_rows", "timm_batch_before", "timm_rows"]

_GB = 1e9

# Memory of lambda's devices where the catalogue's device of that name has another size, GiB.
_LAMBDA_GIB: Mapping[str, float] = MappingProxyType({
    "V100": 32.0, "p3.2xlarge": 16.0, "p3.8xlarge": 16.0, "p3.16xlarge": 16.0, "V10016G": 16.0,
    "A100_80GB_PCIe": 80.0, "A100_80GB_SXM4": 80.0, "A100_PCIe": 40.0, "A100_SXM4": 40.0,
    "A100": 40.0, "2070MaxQ": 8.0, "2080MaxQ": 8.0, "2080SuperMaxQ": 8.0, "3080Max-Q": 16.0,
})  # fmt: skip
# Their programs keep the whole data set in the device's memory.
_DATA_ON_DEVICE = frozenset({"ncf"})
# Tokens of the longest sentences, which decide the peak: DeepLearningExamples trains GNMT with
# --max-length-train 50; the rows of times have the mean.
_LONGEST: Mapping[str, int] = MappingProxyType({"own:gnmt": 50})
_MAX_Q = MappingProxyType({
    "2070MaxQ": "Turing", "2080MaxQ": "Turing", "2080SuperMaxQ": "Turing", "3080Max-Q": "Ampere",
})  # fmt: skip
_TRAINED_BY_STEP = ("lambda-pytorch", "FlagPerf", "torchtitan", "SimuMax (Moore Threads)")
_PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16")
_TORCH2 = re.compile(r"torch2|ngc2[3-9]")


def _bytes(gib: float | None) -> float | None:
    return None if gib is None else GIB * gib


def _fold(family: str, folds: Mapping[str, int]) -> int:
    """Fold of a family; families without one are spread by their letters."""
    return folds.get(family, sum(family.encode()) % 10)


def step_rows(
    rows: Iterable[PublishedRun], raw: Sequence[Raw], folds: Mapping[str, int]
) -> list[MemoryRun]:
    """Runs of the table of training steps that state their largest memory.

    Args:
        rows: the table.
        raw: gathered rows, for what the table does not keep.
        folds: of each family.
    """
    runs = []
    for row in rows:
        if row.peak_mem_gib is None or row.source not in _TRAINED_BY_STEP or not row.job:
            continue
        if (
            row.batch_size is None
            or row.precision not in _PRECISIONS
            or row.tp * row.pp * row.cp > 1
        ):
            continue
        if row.family in _DATA_ON_DEVICE:
            continue
        origin = raw[int(row.id.rpartition("-")[2])]
        device = find_device(row.device) if row.device else None
        generation = device.architecture.name if device else _MAX_Q.get(origin["gpu"], "")
        if not generation:
            continue
        usual = device.memory_bytes / 1e9 if device is not None else 0.0
        stated = number(origin["gpu_mem_gib"]) or 0.0
        runs.append(
            MemoryRun(
                id=f"memory-{row.id}",
                source=row.source,
                date=row.date,
                family=row.family,
                fold=_fold(row.family, folds),
                job=row.job,
                size=_LONGEST.get(row.job, int(row.size or 0)),
                precision=row.precision,
                optimizer=row.job_optimizer or "momentum",
                activation_checkpointing=row.activation_checkpointing,
                accumulates=row.grad_accumulation > 1,
                capability=_capability(row, generation),
                library=_library(row),
                masters="apex-o2" in row.implementation,
                batch_size=row.batch_size,
                device=row.device,
                capacity_bytes=GIB * _LAMBDA_GIB.get(origin["gpu"], stated or usual),
                generation=generation,
                num_devices=row.num_devices,
                per_machine=row.per_machine,
                scheme=row.scheme,
                **{f"{row.peak_mem_kind}_bytes": GIB * row.peak_mem_gib},  # type: ignore[arg-type]
            )
        )
    return runs


def _library(row: PublishedRun) -> str:
    return "torch2" if _TORCH2.match(row.library) else "torch1"


def _capability(row: PublishedRun, generation: str) -> int:
    """Kernels of attention; own models do not depend on it."""
    if not row.job.startswith("timm:"):
        return 80
    return attention_of(row.job, _library(row), generation)


_TRAINER = MappingProxyType({
    "bigcode/gpt_bigcode-santacoder": "santacoder",
    "mistralai/Mistral-7B-v0.1": "mistral-7b", "TheBloke/Mistral-7B-v0.1-GPTQ": "mistral-7b",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
    "TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ": "mixtral-8x7b",
    "NousResearch/Llama-2-70b-hf": "llama2-70b", "TheBloke/Llama-2-70B-GPTQ": "llama2-70b",
})  # fmt: skip
_LITGPT = MappingProxyType({  # name, tokens of the longest sample
    "phi-1.5 1.3 B": ("phi-1.5", 1044), "StableLM Alpha 3 B": ("stablelm-3b", 1034),
    "Llama 2 7 B": ("llama2-7b", 1304), "Llama 2 13 B": ("llama2-13b", 1304),
    "llama-2-7b": ("llama2-7b", 512), "llama-3-8b": ("llama3-8b", 512),
    "llama-3.1-8b": ("llama3.1-8b", 512), "mistral-7b": ("mistral-7b", 512),
    "mistral-7b-v0.2": ("mistral-7b", 512), "phi-2": ("phi-2", 512),
    "stablelm-base-alpha-3b": ("stablelm-3b", 512), "tiny-llama": ("tinyllama", 512),
})  # fmt: skip


def fine_tuning_rows(
    raw: Iterable[Raw], litgpt: Iterable[Raw], folds: Mapping[str, int]
) -> list[MemoryRun]:
    """Runs of fine-tuning, and those that ran out of memory.

    Args:
        raw: gathered rows of `memory_fit`.
        litgpt: gathered training rows of litgpt, which have more models.
        folds: of each family.
    """
    runs = [row for one in raw if (row := _trainer(one, folds)) is not None]
    runs += [row for one in raw if one["ran"] == "no" and (row := _litgpt(one, folds)) is not None]
    runs += [row for one in litgpt if (row := _litgpt(one, folds)) is not None]
    return runs


def _trainer(row: Raw, folds: Mapping[str, int]) -> MemoryRun | None:
    """A run of fms-acceleration with whole samples; padded ones have no known length.

    Runs with Liger's kernels compute the loss without its logits, and are left out.
    """
    name, config = _TRAINER.get(row["model"]), row["framework"]
    if name is None or "liger" in config or not row["source_file"].startswith("scripts/benchmarks"):
        return None
    if "orca" in row["source_file"] or "moe" in row["source_file"]:
        return None
    adapts = "lora" in row["task"]
    kind = ("qlora" if "bnb" in config or "gptq" in config else "lora") if adapts else ""
    if "baseline-peft-bnb" in config:  # PEFT casts norms, and with them their results, to fp32
        return None
    devices = whole_or(row["gpus"], 1)
    half = "fp16" if row["precision"].startswith("float16") else "bf16"
    # Accelerate keeps FSDP's shards of trained models in single precision under autocast.
    upcast = "autocast" in row["precision"] and row["sharding"] == "FSDP" and not adapts
    batch, samples = whole(row["batch_per_gpu"]), whole(row["global_batch"])
    if batch is None:
        return None
    sharded = row["sharding"] == "FSDP"
    # The plug-in's loss writes its gradient into the logits, which shows on one device alone.
    fused = "+foak" if "foak" in config and not sharded else ""
    job = f"own:{name}" + (f"+{kind}" if kind else "") + fused
    family = family_of(job)
    allocated, device_mib = number(row["peak_allocated_gib"]), number(row["nvml_mib"])
    ran = row["ran"] == "yes"
    return MemoryRun(
        id=f"fit-{int(row['row']):05d}",
        source="fms-acceleration",
        date=row["date"],
        family=family,
        fold=_fold(family, folds),
        job=job,
        size=2048 if name == "santacoder" else 4096,
        precision=half,
        masters=upcast,
        optimizer="adamw",
        activation_checkpointing="full",
        accumulates=bool(samples and samples // (batch * devices) > 1),
        batch_size=batch,
        device="A100-80G",
        capacity_bytes=80 * GIB,
        generation="Ampere",
        num_devices=devices,
        per_machine=devices,
        scheme="fsdp" if sharded else "none",
        allocated_bytes=_bytes(allocated) if ran else None,
        device_bytes=device_mib * 2**20 if ran and device_mib is not None else None,
        ran=ran,
    )


def _litgpt(row: Raw, folds: Mapping[str, int]) -> MemoryRun | None:
    """A run of litgpt, bfloat16 throughout; GB are of 10^9 bytes."""
    model, task = _LITGPT.get(row["model"]), row["task"]
    batch = whole(row["batch_per_gpu"])
    if model is None or batch is None or "Inference" in task or "Adapter" in task:
        return None
    notes = row["notes"]
    config = notes.partition("config=")[2].partition(";")[0]
    quantised = "nf4" in row["precision"] or "qlora" in config
    full = config.endswith("full.yaml")
    kind = "" if full else ("qlora-qv" if quantised else "lora-qv")
    several = re.search(r"gpu=(\d+) x", notes) or re.match(r"(\d+)x", row["gpu"])
    devices = int(several[1]) if several and "OOM" not in notes else whole_or(row["gpus"], 1)
    if devices > 1 or "Multiple" in task:  # each device holds all weights while they are loaded
        return None
    name, size = model
    job = f"own:{name}" + (f"+{kind}" if kind else "")
    family = family_of(job)
    peak = number(row.get("peak_mem_gib") or row.get("peak_allocated_gib") or "")
    is_a10 = "A10G" in row["gpu"]
    return MemoryRun(
        id=f"litgpt-{'oom-' if peak is None else ''}{int(row['row']):05d}",
        source="litgpt",
        date=row["date"],
        family=family,
        fold=_fold(family, folds),
        job=job,
        size=size,
        precision="bf16",
        optimizer="adamw",
        activation_checkpointing="none",
        accumulates=True,
        batch_size=batch,
        device="A10G" if is_a10 else "A100",
        capacity_bytes=(24 if is_a10 else 40) * GIB,
        generation="Ampere",
        num_devices=devices,
        per_machine=devices,
        scheme="none",
        allocated_bytes=None if peak is None else peak * _GB,
        ran=peak is not None,
    )


def mlp_rows(raw: Sequence[Raw], every: int) -> list[MemoryRun]:
    """Some of GPUMemNet's multilayer perceptrons, evenly spread over their parameters."""
    ordered = sorted(raw, key=lambda row: (float(row["total_parameters"]), row["row"]))
    runs = []
    for place, row in enumerate(ordered[::every]):
        widths = re.findall(r"\(linear,(\d+),(\d+)\)", row["layers"])
        first, weights = (int(one) for one in widths[0])
        inputs = weights // first - 1
        name = "-".join([str(inputs), *(one for one, _ in widths)])
        runs.append(
            MemoryRun(
                id=f"mlp-{int(row['row']):05d}",
                source="GPUMemNet",
                date=row["date"],
                family=f"mlp-{place % 2}",
                fold=place % 2,
                job=f"mlp:{name}",
                optimizer="adam",
                batch_size=whole_or(row["batch_per_gpu"], 1),
                device="A100",
                capacity_bytes=40 * GIB,
                generation="Ampere",
                device_bytes=_bytes(number(row["peak_mem_gib"])),
            )
        )
    return runs


def timm_batch_before(batch: int, largest: int = 512) -> int | None:
    """The batch that timm's benchmark tried before it lowered it to this one; None for the first.

    timm.utils.decay_batch: between powers of two there is one step (512, 384, 256, 192, ...).
    """
    tried = largest
    while tried > 1:
        base = 1 << ((tried - 1).bit_length() - 1)
        step = max(base // 2, 1)
        lower = base + ((tried - base - 1) // step) * step
        if lower == batch:
            return tried
        tried = lower
    return None


def timm_rows(rows: Iterable[PublishedRun], folds: Mapping[str, int]) -> list[MemoryRun]:
    """Timm's training runs on an RTX 3090: the batch that ran, and the one before that did not.

    A batch that is no larger than one at which the same model ran failed for another reason.
    """
    chosen = [row for row in rows if row.source == "timm" and not row.channels_last and row.usable]
    largest: dict[tuple[str, int | None], int] = {}
    for row in chosen:
        key = (row.job, row.size)
        largest[key] = max(largest.get(key, 0), row.batch_size or 0)
    runs: list[MemoryRun] = []
    for row in chosen:
        common: dict[str, Any] = {
            "source": "timm",
            "date": row.date,
            "family": row.family,
            "fold": _fold(row.family, folds),
            "job": row.job,
            "size": int(row.size or 0),
            "precision": row.precision,
            "optimizer": row.optimizer,
            "capability": UNFUSED,  # PyTorch 1.12 has no fused attention
            "library": "torch1",
            "device": row.device,
            "capacity_bytes": 24 * GIB,
            "generation": "Ampere",
        }
        ran = MemoryRun(id=f"timm-{row.id}", batch_size=row.batch_size or 1, **common)
        runs.append(ran)
        before = timm_batch_before(row.batch_size or 1)
        if before is not None and before > largest[row.job, row.size]:
            runs.append(replace(ran, id=f"{ran.id}-before", batch_size=before, ran=False))
    return runs
