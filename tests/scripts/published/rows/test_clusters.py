"""Rows of large clusters from pages and logs."""

from __future__ import annotations

import json

import pytest

from scripts.published.rows.clusters import SOURCES, bridge_rows, dgxc_rows, mlperf_row, small_rows

BRIDGE = """
## 26.08 NeMo Container
### Pre-Training Performance
#### Model: DeepSeekV3

| System | #-GPUs | Precision | GBS | MBS | Sequence Length | TP | PP | CP | VP | EP | Tokens / sec / GPU |
|--------|--------|-----------|-----|-----|----|----|----|----|----|----|----|
| DGX-GB300 | 256 | MXFP8 | 4096 | 1 | 4096 | 1 | 2 | 1 | 8 | 32 | 4096 (4000) |
| DGX-GB200 | 256 | MXFP8 | 4096 | 1 | 4096 | 1 | 4 | 1 | 4 | 64 | 4912 |
"""  # noqa: E501
DGXC = """
**GB200**:

| GPUs | SeqLen | TP | PP | CP | EP | VP | MBS | GBS | GA |
|------|:---:|:---:|:---:|:---:|:---:|:---:|:---:|:---:|:---:|
| 128 | 8192 | 4 | 8 | 2 | NA | 8 | 1 | 64 | 32 |

**H100**:

| GPUs | SeqLen | TP | PP | CP | EP | VP | MBS | GBS | GA |
|------|:---:|:---:|:---:|:---:|:---:|:---:|:---:|:---:|:---:|
| 128 | 8192 | 8 | 8 | 2 | NA | 8 | 1 | 256 | 32 |

# Performance
| Llama3.1 405b BF16 | 128x GB200 GPUs |
|---|:---:|
Training step time (seconds per step)| 9.347
Throughput| 56092
"""
SYSTEM = json.dumps({
    "accelerator_model_name": "NVIDIA B200", "number_of_nodes": "2", "accelerators_per_node": "8",
    "framework": "PyTorch",
    "host_networking": "Storage: 1x200Gb/s, Compute: 8x ConnectX-7 400Gb/s",
})  # fmt: skip


def event(key: str, value: object) -> str:
    return f"0: :::MLLOG {json.dumps({'key': key, 'value': value})}"


def test_pages_of_megatron_bridge() -> None:
    """Of systems that other tables have nothing is taken; a step's time is of its tokens."""
    (row,) = bridge_rows(BRIDGE, "page.md")
    assert (row["gpu"], row["model"], row["precision"]) == ("GB300", "DeepSeekV3", "MXFP8")
    assert float(row["step_time_s"]) == pytest.approx(4096 / 256)
    assert (row["pp"], row["ep"], row["notes"]) == ("2", "32", "VP=8")


def test_times_meet_the_settings_of_their_system() -> None:
    """Under H100 stands a row with as many GPUs; a later release that repeats a time is left."""
    pages = [("llama3.1", "25.05", DGXC), ("llama3.1", "25.05.01", DGXC)]
    (row,) = dgxc_rows(pages)
    assert (row["tp"], row["ep"], row["global_batch"], row["date"]) == ("4", "1", "64", "25.05")
    assert (row["model"], row["precision"], row["step_time_s"]) == (
        "Llama3.1 405b",
        "BF16",
        "9.347",
    )


def test_a_run_of_mlperf() -> None:
    """The first block warms up; the step is the batch over the median of the others' speeds."""
    log = "\n".join([
        event("global_batch_size", 256), "0: micro_batch_size: 2", "0:   fp8: true",
        *(event("tracked_stats", {"throughput": speed}) for speed in (100.0, 500.0, 520.0, 510.0)),
        ":::MLLOG {broken",
    ])  # fmt: skip
    row = mlperf_row("x/results/n2/llama31_8b", SYSTEM, log)
    assert row is not None
    assert float(row["step_time_s"]) == pytest.approx(256 / 510, rel=1e-5)
    assert (row["gpus"], row["precision"], row["batch_per_gpu"]) == ("16", "FP8", "2")
    assert row["notes"] == "network 8x400 Gb/s"
    assert mlperf_row("x/results/n2/llama31_8b", SYSTEM, event("global_batch_size", 256)) is None


def test_a_third_of_the_sources_is_for_checks() -> None:
    apart = {source.name for source in SOURCES.values() if source.for_checks}
    assert "AMD Primus" in apart & {row["source"] for row in small_rows()}
    assert len(apart) >= len(SOURCES) / 3
