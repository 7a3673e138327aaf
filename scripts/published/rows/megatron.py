"""Language models in Megatron's manner: LiBai, InternEvo, Megatron-Bridge, NeMo, SimuMax.

    tensor, pipeline, context and expert parallelism x data parallelism -> PublishedRun

Rows of these groups keep them, so that they can be used as soon as they are simulated. NVIDIA's
sources run Transformer Engine; their throughput is tokens per second of one device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft, checkpointing
from scripts.published.rows.machines import canonical_device, devices_of_machine, link_within

__all__ = ["READERS"]

_JOBS: Mapping[str, str] = MappingProxyType({
    "deepseekv3": "deepseek-v3", "deepseek v3 671b": "deepseek-v3", "gpt oss 120b": "gpt-oss-120b",
    "gpt-oss 120b": "gpt-oss-120b", "gpt-oss 20b": "gpt-oss-20b", "llama3_8b": "llama3-8b",
    "llama3_70b": "llama3-70b", "llama3.1_405b": "llama3.1-405b", "llama3 8b": "llama3-8b",
    "llama3 70b": "llama3-70b", "llama3-8b": "llama3-8b", "llama3-70b": "llama3-70b",
    "llama2-7b": "llama2-7b", "llama2-13b": "llama2-13b", "llama2-70b": "llama2-70b",
    "qwen3_30b_a3b": "qwen3-30b-a3b", "qwen3 moe 30b": "qwen3-30b-a3b",
    "qwen3_235b_a22b": "qwen3-235b-a22b", "qwen2.5 7b": "qwen2.5-7b", "qwen2.5 32b": "qwen2.5-32b",
    "gpt3-5b": "gpt3-5b", "gpt3-20b": "gpt3-20b", "gpt3-175b": "gpt3-175b",
    "llama3.1 405b": "llama3.1-405b", "llama 3.1 8b": "llama3.1-8b",
    "llama 3.1 70b": "llama3.1-70b", "mixtral 8x22b": "mixtral-8x22b", "grok1 314b": "grok1",
    "nemotron4 15b": "nemotron-15b", "nemotron4 340b": "nemotron-340b",
    "nemotron 340b": "nemotron-340b",
    "nemotron-8b": "nemotron-8b", "nemotron-22b": "nemotron-22b", "nemotron-340b": "nemotron-340b",
})  # fmt: skip


def _job(model: str) -> str:
    name = re.sub(r"\s*\(.*\)|\s+2-node", "", model).strip().lower()
    return f"own:{_JOBS[name]}" if name in _JOBS else ""


def _first(text: str) -> int:
    """The number that a cell such as `1 (4)` begins with."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match and int(match[0]) > 0 else 1


def _start(row: Raw, prefix: str) -> Draft:
    device = canonical_device(row["gpu_canonical"])
    devices = whole_or(row["gpus"], 1)
    machine = devices_of_machine(device, devices, whole_or(row["gpus_per_node"], 8))
    return Draft(
        raw=row,
        prefix=prefix,
        device=device,
        num_devices=devices,
        per_machine=machine,
        link_within=link_within(device, machine),
        tp=_first(row["tp"]),
        pp=_first(row["pp"]),
        cp=_first(row["cp"]),
        ep=_first(row["ep"]),
        batch_size=whole(row["batch_per_gpu"]),
        size=whole(row["seq_len_or_res"].split(" ", maxsplit=1)[0]),
        step_s=number(row["step_time_s"]),
        activation_checkpointing=checkpointing(row["act_ckpt"]),
    )


def _passes(draft: Draft) -> None:
    """Passes of a step from the batch of all devices."""
    samples = whole(draft.raw["global_batch"])
    replicas = max(1, draft.num_devices // (draft.tp * draft.pp * draft.cp))
    stated = whole(draft.raw["grad_accum"].split(" ", maxsplit=1)[0])
    if draft.batch_size and samples:
        passes = samples / (draft.batch_size * replicas)
        if passes != int(passes) or passes < 1:
            draft.why = "batch of a step is no multiple of the devices' batches"
        else:
            draft.grad_accumulation = int(passes)
    elif stated:
        draft.grad_accumulation = stated


def _libai(row: Raw) -> PublishedRun:
    draft = _start(row, "libai")
    draft.job = "own:libai-bert" if row["model"].startswith("BERT") else "own:libai-gpt2"
    megatron = row["framework"] == "Megatron"
    draft.library = "torch1.10" if megatron else "oneflow0.8"
    draft.precision, draft.optimizer = "fp16" if megatron else "amp-fp16", "adamw-fused"
    draft.implementation = "megatron fused-softmax" if megatron else "libai fused-softmax"
    draft.link_between = "100G"
    _passes(draft)
    # The columns of these tables swap micro-batch and batch in a few rows: the product decides.
    return draft.row()


def _internevo(row: Raw) -> PublishedRun:
    draft = _start(row, "internevo")
    draft.job, draft.library = "own:internlm-7b", "torch1.13"
    draft.precision, draft.optimizer = "bf16", "adamw-fused"
    draft.scheme, draft.link_between = "zero1", "400G"
    draft.grad_accumulation = whole_or(row["grad_accum"], 1)
    group = row["sharding"].rpartition(" ")[2]
    draft.implementation = f"flash apex fp32-master zero1-group-{group}"
    draft.data = "synthetic"
    return draft.row()


def _bridge(row: Raw) -> PublishedRun:
    draft = _start(row, "bridge")
    draft.job = _job(row["model"])
    if draft.job and row["task"] == "LoRA":
        draft.job += "+lora"
    words = row["precision"].upper()
    draft.precision = (
        "fp4" if "FP4" in words else "fp8" if "FP8" in words else "bf16" if "BF16" in words else ""
    )
    shards = re.match(r"FSDP (\d+)", row["sharding"])  # `FSDP 0` means that it is off
    draft.scheme = "fsdp" if shards and int(shards[1]) > 1 else "zero1"
    release = row["date"].split()[0]
    draft.library, draft.optimizer = f"nemo{'.'.join(release.split('.')[:2])}", "adamw-fused"
    more = ["mxfp8"] if draft.precision == "fp8" and "MX" in words else []
    more += ["tp-overlap"] if draft.tp > 1 else []  # tp_comm_overlap of the performance recipes
    draft.implementation = " ".join(["te cuda-graphs", *more, *_interleaved(row)])
    _passes(draft)
    if "ETP" in row["notes"]:
        draft.why = "experts are split by tensor parallelism"
    elif "w/ MTP" in row["model"]:
        draft.why = "model cannot be built: an extra prediction layer"
    elif not row["gpu_canonical"]:
        draft.why = "unknown device: the table's heading is not kept"
    elif not draft.precision:
        draft.why = "no precision"
    return draft.row()


def _interleaved(row: Raw) -> list[str]:
    """`vpp4` for four stages of each device (Megatron's virtual pipeline)."""
    match = re.match(r"VP=(\d+)", row["notes"])
    return [f"vpp{match[1]}"] if match and int(match[1]) > 1 and _first(row["pp"]) > 1 else []


def _primus(row: Raw) -> PublishedRun:
    draft = _start(row, "primus")
    draft.job, draft.library = _job(row["model"]), "rocm-primus"
    draft.precision, draft.optimizer = row["precision"].lower(), "adamw-fused"
    draft.scheme, draft.link_between = "fsdp" if row["sharding"] else "zero1", "3200G"
    draft.implementation = " ".join(["te", *_interleaved(row)])
    _passes(draft)
    return draft.row()


def _nemo(row: Raw) -> PublishedRun:
    draft = _start(row, "nemo")
    draft.job = _job(row["model"])
    if draft.job and ("LoRA" in row["task"] or "Task=LoRA" in row["notes"]):
        draft.job += "+lora"
    draft.precision = {"fp8": "fp8", "bf16": "bf16"}.get(row["precision"].lower(), "")
    automodel = row["source"].endswith("AutoModel")
    draft.scheme = "fsdp" if automodel else "zero1"
    draft.library = "torch2.9" if automodel else "nemo24.07"
    draft.optimizer, draft.implementation = "adamw-fused", "te"
    draft.link_between = "3200G"
    _passes(draft)
    if "long" in row["source"]:
        draft.why = "no time"
    return draft.row()


def _simumax(row: Raw) -> PublishedRun:
    draft = _start(row, "simumax")
    name = row["model"]
    start = name.split(" ", maxsplit=1)[0].removesuffix("_l12").removesuffix("_l4")
    jobs = {"llama3_70b": "own:llama3-70b-l12", "llama3_405b": "own:llama3-405b-l4"}
    draft.job = jobs.get(start, "")
    match = re.search(r"_mbc(\d+)", name)
    draft.grad_accumulation = int(match[1]) if match else 1
    context = re.search(r"_cp(\d+)", name)
    draft.cp = int(context[1]) if context else 1
    draft.precision, draft.optimizer, draft.library = "bf16", "adamw-fused", "megatron0.14"
    draft.scheme, draft.implementation = "zero1", "te"
    draft.peak_mem_kind = "allocated"
    return draft.row()


READERS: Mapping[str, Callable[[Raw], PublishedRun]] = MappingProxyType({
    "LiBai benchmark": _libai,
    "InternEvo": _internevo,
    "AMD Primus": _primus,
    "NVIDIA Megatron-Bridge": _bridge,
    "NVIDIA dgxc-benchmarking": _bridge,
    "NVIDIA NeMo 24.07": _nemo,
    "NVIDIA NeMo AutoModel": _nemo,
    "NVIDIA NeMo long sequence": _nemo,
    "SimuMax (Moore Threads)": _simumax,
})  # fmt: skip
