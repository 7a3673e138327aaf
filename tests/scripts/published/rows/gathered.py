"""Rows as they were gathered, for tests: every column is there, most are empty."""

from __future__ import annotations

COLUMNS = (
    "file", "gpu_canonical", "source", "source_file", "date", "framework", "gpu", "gpus",
    "gpus_per_node", "model", "task", "precision", "batch_per_gpu", "global_batch",
    "seq_len_or_res", "dp", "tp", "pp", "cp", "ep", "sharding", "grad_accum", "act_ckpt", "compile",
    "throughput", "unit", "per", "step_time_s", "peak_mem_gib", "gpu_mem_gib", "mfu_pct",
    "tflops_per_gpu", "notes", "throughput_per_gpu", "throughput_check", "row",
)  # fmt: skip


def gathered(**cells: str) -> dict[str, str]:
    """A row with these cells; the others are empty."""
    unknown = set(cells) - set(COLUMNS)
    assert not unknown, unknown
    return {**dict.fromkeys(COLUMNS, ""), "row": "7", **cells}
