"""Enter llm-analysis (cli99, Apache-2.0): FLOPs of a transformer over a share of the peak.

    pip install --no-deps llm-analysis==0.2.2 fire termcolor      in an environment with Driple
    python -m scripts.entries.llm_analysis

config of a model, its own table of GPUs --llm_analysis--> latency of an iteration

Models are described as it reads configs of Hugging Face, GPUs by the table that it ships. Its share
of the peak is that of its own training examples. Other rows are refused.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from driple.errors import DripleError
from driple.runs.measured_run import MeasuredRun
from scripts.entries.table import Entry, benchmark_rows, write_entry
from scripts.published.models import PREFIX, built
from scripts.published.models.mpt import Mpt

__all__ = ["FLOPS_EFFICIENCY", "GPUS", "main", "refusal"]

NAME = "llm-analysis"
NO_ROOM = "it finds that the batch does not fit in the device's memory"
FLOPS_EFFICIENCY = 0.5  # of examples/llama/run_train.sh
# Devices of the catalogue by the names of its GPUs.
GPUS = {
    "A10": "a10-pcie-28gb",
    "A100": "a100-sxm-40gb",
    "A100-80G": "a100-sxm-80gb",
    "A100-PCIe-80G": "a100-pcie-80gb",
    "A6000": "a6000-48gb",
    "H100": "h100-sxm-80gb",
    "H100-PCIe": "h100-pcie-80gb",
    "MI100": "mi100-32gb",
    "MI210": "mi210-64gb",
    "V100": "v100-pcie-32gb",
    "V100-SXM2": "v100-sxm-32gb",
}
_HALF = frozenset({"fp16", "bf16", "amp-fp16", "amp-bf16"})
_DENSE = frozenset({"bert", "gpt2", "gpt_bigcode", "llama", "mpt", "opt"})


def refusal(row: MeasuredRun) -> str:
    """Why it does not do a row; empty if it does."""
    if row.domain != "language" or not row.job.startswith(PREFIX):
        return "no transformer of one stack"
    if "+" in row.job:
        return "adapters"
    if row.precision not in _HALF:
        return "single precision: GPUs have peaks in 16, 8 and 4 bits alone"
    if row.device not in GPUS:
        return "no such GPU in its table"
    return "" if model_facts(row.job) else "no transformer of one stack"


@cache
def model_facts(job: str) -> dict[str, Any]:
    """What it needs of a model, as it reads a config of Hugging Face; empty if it cannot."""
    model = built(job, batch_size=2).model
    for module in model.modules():
        if isinstance(module, Mpt):
            return {
                "num_layers": len(module.blocks),
                "n_head": module.blocks[0].heads,
                "hidden_dim": module.wte.embedding_dim,
                "vocab_size": module.wte.num_embeddings,
            }
        config = getattr(module, "config", None)
        if config is not None:
            if config.model_type not in _DENSE:
                return {}
            return {
                "num_layers": config.num_hidden_layers,
                "n_head": config.num_attention_heads,
                "hidden_dim": config.hidden_size,
                "vocab_size": config.vocab_size,
                "num_key_value_heads": getattr(config, "num_key_value_heads", None),
            }
    return {}


def seconds_of(row: MeasuredRun, package: Any) -> float:
    """Its latency of one iteration.

    Args:
        row: that is not refused.
        package: the module `llm_analysis`.
    """
    analysis, config = package.analysis, package.config
    checkpoints = row.activation_checkpointing not in ("", "none")
    recomputation = analysis.ActivationRecomputation
    length = row.seq_len
    model = config.ModelConfig(name=row.job, max_seq_len=length, **model_facts(row.job))
    whole = analysis.LLMAnalysis(
        model,
        config.gpu_configs[GPUS[row.device]],
        config.dtype_configs["w16a16e16"],
        config.ParallelismConfig(dp_size=row.num_devices),
        flops_efficiency=FLOPS_EFFICIENCY,
    )
    summary = whole.training(
        batch_size_per_gpu=row.batch_size,
        gradient_accumulation_steps=row.grad_accumulation,
        seq_len=length,
        activation_recomputation=recomputation.FULL if checkpoints else recomputation.NONE,
        ds_zero=analysis.DSZeRO.STAGE_3 if row.scheme == "sharded" else analysis.DSZeRO.NONE,
    )
    return float(summary["latency_per_iter"])


def main(argv: Sequence[str] | None = None) -> int:
    """Ask it about each row that it does, and write the entry.

    Raises:
        DripleError: it is not installed.
    """
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args(argv)
    try:
        import_module("llm_analysis.analysis")
    except ImportError as error:
        raise DripleError(f"llm-analysis is not installed ({error}); see this program") from error
    llm_analysis = import_module("llm_analysis")
    logging.disable(logging.WARNING)
    llm_analysis.config.populate_model_and_gpu_configs()
    rows, seconds, refused = benchmark_rows(), {}, {}
    for row in rows:
        why = refusal(row)
        if why:
            refused[row.id] = why
            continue
        try:
            seconds[row.id] = seconds_of(row, llm_analysis)
        except AssertionError as error:  # its own checks
            whole = str(error).splitlines()[0]
            refused[row.id] = NO_ROOM if "max_batch_size" in whole else f"fails: {whole[:80]}"
    write_entry(Entry(name=NAME, seconds=seconds, refused=refused), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
