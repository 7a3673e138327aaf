"""Language models trained by data parallelism: FSDP, Hugging Face's Trainer, and single devices.

    llm-foundry, fms-acceleration, fms-fsdp, torchtitan, torchtune, litgpt, ms-swift, NeuSight

What the repositories say and the tables do not: llm-foundry trains MPT with flash attention,
DecoupledAdamW and, in older rows, FSDP's mixed precision PURE; fms-acceleration runs Hugging Face's
Trainer with flash attention 2, gradient checkpointing, AdamW, packed samples of 4,096 tokens (2,048
for SantaCoder) and FSDP FULL_SHARD from two devices on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.cells import Raw, number, whole, whole_or
from scripts.published.rows.draft import Draft, checkpointing
from scripts.published.rows.machines import canonical_device, link_between, link_within

__all__ = ["READERS"]


def _start(row: Raw, prefix: str, **values: object) -> Draft:
    device = canonical_device(row["gpu_canonical"])
    devices = whole_or(row["gpus"], 1)
    machine = min(whole_or(row["gpus_per_node"], 8), devices)
    draft = Draft(
        raw=row,
        prefix=prefix,
        device=device,
        num_devices=devices,
        per_machine=machine,
        link_within=link_within(device, machine),
        batch_size=whole(row["batch_per_gpu"]),
        size=whole(row["seq_len_or_res"]),
        grad_accumulation=whole_or(row["grad_accum"], 1),
        step_s=number(row["step_time_s"]),
    )
    for name, value in values.items():
        setattr(draft, name, value)
    return draft


def _mode(notes: str) -> str:
    """FSDP's mode of mixed precision, `pure` or `default`."""
    return notes.partition("mp_mode=")[2].partition(";")[0].lower()


def _mosaic(row: Raw) -> PublishedRun:
    strategy = row["sharding"].removeprefix("FSDP ")
    low = row["precision"] == "amp_fp8"
    between = "3200G" if row["gpu"].startswith("h100") else "1600G"
    draft = _start(
        row,
        "mpt",
        job=f"own:{row['model']}",
        scheme={"FULL_SHARD": "fsdp", "SHARD_GRAD_OP": "zero2"}[strategy],
        precision="fp8" if low else "bf16",  # FSDP gathers weights in bfloat16, shards are in fp32
        library="torch1.13" if row["precision"] == "bf16" else "torch2.1",
        optimizer="adamw",
        activation_checkpointing=checkpointing(row["act_ckpt"]),
        implementation=f"flash fp32-master low-precision-layernorm mp-{_mode(row['notes'])}",
        link_between=between,
        data="real",
    )
    samples = whole(row["global_batch"])
    if (
        draft.batch_size
        and samples
        and draft.grad_accumulation * draft.batch_size * draft.num_devices != samples
    ):
        # The last of the passes is smaller: passes of the mean size make the same step.
        share = samples / draft.num_devices / draft.grad_accumulation
        draft.batch_size = int(share) if share == int(share) else draft.batch_size
        if share != int(share):
            draft.why = "passes of a step have different batches"
    return draft.row()


_TRAINER: Mapping[str, str] = MappingProxyType({
    "bigcode/gpt_bigcode-santacoder": "own:santacoder",
    "mistralai/Mistral-7B-v0.1": "own:mistral-7b",
    "TheBloke/Mistral-7B-v0.1-GPTQ": "own:mistral-7b",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "own:mixtral-8x7b",
    "TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ": "own:mixtral-8x7b",
    "NousResearch/Llama-2-70b-hf": "own:llama2-70b",
    "TheBloke/Llama-2-70B-GPTQ": "own:llama2-70b",
    "ibm-granite/granite-3.0-3b-a800m-instruct": "own:granite-3.0-3b-a800m",
})  # fmt: skip
_TRAINER_PRECISIONS = MappingProxyType({
    "bfloat16": "bf16", "float16": "fp16", "bfloat16 autocast bf16": "amp-bf16",
    "float16 autocast fp16": "amp-fp16",
})  # fmt: skip


def _trainer(row: Raw) -> PublishedRun:
    """fms-acceleration; throughput is per device, the batch of a step in `global_batch`."""
    config = re.sub(r".*\(\+ (.*)\)", r"\1", row["framework"])
    job = _TRAINER.get(row["model"].removesuffix(" (see source)"), "")
    quantised = "bnb" in config or "gptq" in config
    if job and "lora" in row["task"]:
        job += "+qlora" if quantised else "+lora"
    draft = _start(
        row,
        "fms",
        job=job,
        scheme="fsdp",
        precision=_TRAINER_PRECISIONS[row["precision"]],
        library="torch2.6" if "moe" in row["source_file"] else "torch2.4",
        optimizer="adamw",
        activation_checkpointing="full",
        implementation=" ".join(["flash", *([] if config == "none" else [config])]),
        peak_mem_kind="allocated",
        data="real",
    )
    packed = draft.size is not None and any(
        abs(draft.size - length) <= 20 for length in (2048, 4096)
    )
    if packed:
        draft.size = 2048 if draft.size and draft.size < 3000 else 4096
    elif "padding-free" not in config:
        draft.why = "padded length is not stated"
    samples = whole(row["global_batch"])
    if not row["grad_accum"] and samples and draft.batch_size:
        passes, rest = divmod(samples, draft.batch_size * draft.num_devices)
        draft.grad_accumulation = max(1, passes)
        if rest:
            draft.why = "passes of a step have different batches"
    elif (
        samples and draft.grad_accumulation * (draft.batch_size or 0) * draft.num_devices != samples
    ):
        draft.why = "passes of a step have different batches"
    if "-ep" in config:
        draft.why = "experts run in the kernels of a plug-in"
    return draft.row()


def _fms_fsdp(row: Raw) -> PublishedRun:
    size = row["model"].split()[-1].lower()
    return _start(
        row,
        "fsdp",
        job=f"own:llama2-{size}",
        scheme=row["sharding"].lower(),
        precision="bf16",
        library="torch2.2",
        optimizer="adamw",
        activation_checkpointing=checkpointing(row["act_ckpt"]),
        compiled=row["compile"] == "True",
        implementation="flash mixed-precision-policy",
        link_between=link_between(row["notes"]),
    ).row()


def _titan(row: Raw) -> PublishedRun:
    precision = "fp8" if "float8" in row["precision"] else "bf16"
    draft = _start(
        row,
        "titan",
        job={"8B": "own:llama3.1-8b", "405B": "own:llama3.1-405b"}[row["model"].split()[-1]],
        scheme="fsdp",
        precision=precision,
        library="torch2.6" if row["date"].startswith("2024") else "torch2.8",
        optimizer="adamw-fused",
        activation_checkpointing=checkpointing(row["act_ckpt"]),
        compiled=row["compile"] == "True",
        implementation="flash fsdp2",
        link_between="3200G",
        tp=whole_or(row["tp"], 1),
        pp=whole_or(row["pp"], 1),
        cp=whole_or(row["cp"], 1),
        peak_mem_kind="reserved",
    )
    if draft.device == "H100":
        draft.why = "device of no data sheet: H100 with 96 GB of HBM2e at 500 W"
    return draft.row()


def _unknown_length(prefix: str) -> Callable[[Raw], PublishedRun]:
    def read(row: Raw) -> PublishedRun:
        draft = _start(row, prefix, precision="bf16", optimizer="adamw")
        draft.peak_mem_kind = "reserved" if prefix != "swift" else "device"
        if "inference" in row["task"].lower():
            draft.why = "inference in a table of training"
        elif not row["throughput"] and not row["step_time_s"]:
            draft.why = "no time"
        else:
            draft.why = "tokens of a sample are not stated"
        draft.size = None
        return draft.row()

    return read


_NEUSIGHT = MappingProxyType({
    "bert_large": "bert-large", "gpt2_large": "gpt2-large", "opt_13": "opt-13b",
    "gpt3_xl": "gpt3-xl", "gpt3_27": "gpt3-27b",
})  # fmt: skip


def _neusight(row: Raw) -> PublishedRun:
    """Sums of single ops of one layer, times the layers, without an optimizer."""
    name = _NEUSIGHT.get(row["model"], "")
    draft = _start(
        row,
        "neusight",
        job=f"own:neusight-{name}" if name else "",
        precision="fp32",
        library="torch2.1",
        optimizer="none",
        implementation="math op-by-op",
        data="synthetic",
    )
    if row["gpu"].startswith("Tesla V100-PCIE"):
        draft.device = "V100"
    return draft.row()


READERS: Mapping[str, Callable[[Raw], PublishedRun]] = MappingProxyType({
    "llm-foundry": _mosaic,
    "fms-acceleration (IBM)": _trainer,
    "fms-fsdp (IBM)": _fms_fsdp,
    "torchtitan": _titan,
    "torchtune": _unknown_length("tune"),
    "litgpt": _unknown_length("litgpt"),
    "ms-swift 2.x benchmark": _unknown_length("swift"),
    "NeuSight labels": _neusight,
})  # fmt: skip
