"""Ops and kernels of NeuSight, and their shapes."""

from __future__ import annotations

from scripts.published.rows.ops import OPS_COLUMNS, kernel_rows, op_rows


def test_ops_that_launch_no_kernel_are_left_out() -> None:
    cells = {
        "gpu": "Tesla V100-PCIE-32GB", "model": "gpt2_large", "kind": "train", "seq": "1024",
        "batch": "4", "dtype": "torch.float32", "fw_ms": "0.5", "bw_ms": "1.25",
        "input_shapes": "[[4, 1024, 1280]]", "output_shape": "(4, 1024, 1280)",
    }  # fmt: skip
    rows = list(
        op_rows([
            {**cells, "target": "<built-in method matmul of type object at >"},
            {**cells, "target": "transformer.h.0.ln_1"},
            {**cells, "target": "view"},
        ])
    )  # fmt: skip
    matmul, norm = (dict(zip(OPS_COLUMNS, row, strict=True)) for row in rows)
    assert (matmul["op"], norm["op"], norm["module"]) == ("matmul", "layer_norm", "ln_1")
    assert (matmul["device"], matmul["inputs"]) == ("V100", "4x1024x1280")
    assert (matmul["forward_s"], matmul["backward_s"]) == ("0.0005", "0.00125")


def test_kernels_are_spread_over_their_times() -> None:
    empty = dict.fromkeys(
        ("b", "m", "n", "k", "h", "input_channel", "output_channel", "kernel_size", "input_size",
         "stride", "padding"), "")  # fmt: skip
    raw = [
        {**empty, "gpu": "NVIDIA A100-PCIE-40GB", "op": "add", "torch": "2.1.0",
         "latency_ms": str(i), "b": "8", "h": "16"}
        for i in range(1, 1001)
    ]  # fmt: skip
    rows = [dict(zip(OPS_COLUMNS, row, strict=True)) for row in kernel_rows(raw)]
    times = [float(row["forward_s"]) for row in rows]
    assert len(rows) == 100
    assert (times[0], times[-1]) == (0.001, 1.0)
    assert rows[0]["inputs"] == "8x16;8x16"
    assert rows[0]["library"] == "torch2.1"
