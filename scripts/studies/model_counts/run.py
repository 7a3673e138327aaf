"""Count FLOPs and parameters of models of timm and transformers: results.jsonl.

    nice python -m scripts.studies.model_counts.run [--part 0/2] [--only transformers]

Each model is read as a training step of two samples. What was done is in results.jsonl; stop it at
any time, the same command goes on. Nothing is downloaded: models are built without weights.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from driple.errors import DripleError
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.step_facts import Phase
from driple.jobs.job import Job
from driple.jobs.load import JobOptions, load_job
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from scripts.studies.kit.results import Row, add_result, read_results

HOME = Path(__file__).parent
RESULTS = HOME / "results.jsonl"
COUNTS = HOME.parents[2] / "datasets/runs/published/timm_counts.csv.gz"
BATCH = 2  # batch norm over one value per channel fails in training
SEQ_LEN = 128
_MEMORY_BYTES = 20 * 2**30
SMALL = {"num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 1024,
         "num_attention_heads": 4}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 2}
# Config class, values, class that is trained.
TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "BERT": ("BertConfig", {}, "BertForMaskedLM"),
    "RoBERTa": ("RobertaConfig", SMALL, "RobertaForSequenceClassification"),
    "GPT-2": ("GPT2Config", {}, "GPT2LMHeadModel"),
    "Llama": ("LlamaConfig", GROUPED, "LlamaForCausalLM"),
    "Mistral": ("MistralConfig", GROUPED, "MistralForCausalLM"),
    "Mixtral": ("MixtralConfig", GROUPED, "MixtralForCausalLM"),
    "T5": ("T5Config", {}, "T5ForConditionalGeneration"),
    "ViT": ("ViTConfig", {}, "ViTForImageClassification"),
    "Swin": ("SwinConfig", {}, "SwinForImageClassification"),
    "Whisper": ("WhisperConfig", {"encoder_layers": 2, "decoder_layers": 2},
                "WhisperForConditionalGeneration"),
}  # fmt: skip


def published() -> list[dict[str, str]]:
    """Rows of timm's counts: of each model the smallest size of images."""
    with gzip.open(COUNTS, "rt", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["model"], int(row["image_size"])))
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        first.setdefault(row["model"], row)
    return list(first.values())


def product_flops(job: Job, phase: Phase) -> float:
    """FLOPs of convolutions, matrix products and attention in a phase of the step."""
    graph: OpGraph = job.graph
    is_product = np.array([family_of(kind) in PRODUCT_FAMILIES for kind in graph.kinds])
    chosen = is_product & (graph.phases == phase)
    return float((job.cost.flops * job.cost.executions)[chosen].sum())


def norm_flops(job: Job) -> float:
    """FLOPs of norms of a forward pass as fvcore counts them, which timm's `gmacs` contain.

    Two per element for a batch norm in evaluation, five for all others (fvcore/nn/jit_handles.py).
    """
    graph, total = job.graph, 0
    for node in np.flatnonzero(graph.phases == Phase.FORWARD).tolist():
        signature = graph.signatures[graph.signature_of[node]]
        if family_of(signature.kind) == "normalisation" and signature.outputs:
            each = 2 if "batch_norm" in signature.kind else 5
            total += each * signature.outputs[0].elements * int(graph.executions[node])
    return float(total)


def counted(job: Job) -> Row:
    """What Driple counts of a job, per sample."""
    flops = job.cost.flops * job.cost.executions
    return {
        "parameters": int(job.graph.parameters.elements.sum()),
        "forward_products": product_flops(job, Phase.FORWARD) / BATCH,
        "backward_products": product_flops(job, Phase.BACKWARD) / BATCH,
        "forward_norms": norm_flops(job) / BATCH,
        "forward_flops": float(flops[job.graph.phases == Phase.FORWARD].sum()) / BATCH,
        "step_flops": float(job.cost.total_flops) / BATCH,
        "without_formula": dict(job.op_types_without_cost),
    }


def timm_row(entry: dict[str, str]) -> Row:
    """Driple's counts of one model beside timm's."""
    name, size = entry["model"], int(entry["image_size"])
    row: Row = {"kind": "timm", "model": name, "image_size": size, "gmacs": float(entry["gmacs"]),
                "parameters_millions": float(entry["parameters_millions"])}  # fmt: skip
    options = JobOptions(batch_size=BATCH, input_shape=(3, size, size))
    started_s = time.process_time()
    try:
        counts = counted(load_job(f"timm:{name}", options))
    except (DripleError, RecursionError, MemoryError) as error:
        return {**row, "error": f"{type(error).__name__}: {str(error)[:300]}"}
    return {**row, **counts, "cpu_s": round(time.process_time() - started_s, 2)}


def transformers_row(name: str, folder: Path) -> Row:
    """Driple's counts of one model beside those of torch.utils.flop_counter."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    from driple.jobs.pytorch.hf_batches import BatchSizes, batch_of_task, task_of
    from driple.jobs.pytorch.whole_sequences import whole_sequences

    kind, values, trained = TRANSFORMERS[name]
    config = getattr(transformers, kind)(**values, architectures=[trained])
    config.save_pretrained(folder)
    images = "image_size" in config.to_dict()
    options = JobOptions(batch_size=BATCH, seq_len=None if images else SEQ_LEN)
    counts = counted(load_job(f"hf:{folder}", options))
    config.use_cache = False
    with torch.device("meta"):
        model = getattr(transformers, trained)(config).train()
    task = task_of(trained, config, name)
    sizes = BatchSizes.of(task, config, BATCH, options.seq_len, None, source=name)
    batch = batch_of_task(task, model, sizes)
    forward, backward = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with whole_sequences():
        with forward:
            loss = model(**batch).loss
        with backward:
            loss.backward()
    return {
        "kind": "transformers",
        "model": name,
        "class": trained,
        **counts,
        "counter_forward": forward.get_total_flops() / BATCH,
        "counter_backward": backward.get_total_flops() / BATCH,
        "model_parameters": sum(one.numel() for one in model.parameters()),
    }


def todo(only: str, part: str) -> Iterator[tuple[str, Any]]:
    """(kind, model) of all that is not in the results yet."""
    done = {(row["kind"], row["model"]) for row in read_results(RESULTS)}
    number, parts = (int(word) for word in part.split("/"))
    if only in ("", "transformers") and number == 0:
        for name in TRANSFORMERS:
            if ("transformers", name) not in done:
                yield "transformers", name
    if only in ("", "timm"):
        for entry in published()[number::parts]:
            if ("timm", entry["model"]) not in done:
                yield "timm", entry


def main() -> None:
    """Count all models that are not in the results yet."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="timm or transformers")
    parser.add_argument("--part", default="0/1", help="such as 0/2: every second model")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    declare_torchvision_ops()
    for kind, entry in todo(options.only, options.part):
        if kind == "timm":
            row = timm_row(entry)
        else:
            with tempfile.TemporaryDirectory() as folder:
                row = transformers_row(entry, Path(folder))
        add_result(RESULTS, row)
        print(kind, row["model"], row.get("error", ""), flush=True)


if __name__ == "__main__":
    main()
