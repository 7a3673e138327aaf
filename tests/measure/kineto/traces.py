"""Traces for tests: events written by hand, and real ones of a small model on the CPU."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

HOST, DEVICE = 100, 0


def event(cat: str, name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    """A complete event of the host's only thread, or of the only GPU."""
    on_device = cat in {"kernel", "gpu_memcpy", "gpu_memset"}
    place = {"pid": DEVICE, "tid": 7} if on_device else {"pid": HOST, "tid": HOST}
    if on_device:
        args.setdefault("device", DEVICE)
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": length, **place, "args": args}


def write(path: Path, events: list[dict[str, Any]], device: str = "") -> Path:
    """A trace file as Kineto writes it."""
    header: dict[str, Any] = {"schemaVersion": 1}
    header["deviceProperties"] = [{"id": 0, "name": device}] if device else []
    text = json.dumps({**header, "traceEvents": events, "traceName": str(path)})
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def gpu_step(at: float = 0.0, number: int = 0, keys: int = 0) -> list[dict[str, Any]]:
    """A step of 100 us: 10 of a convolution, 20 of its gradient, 5 of the update.

    The GPU runs from 10 to 20, 30 to 50 and 70 to 75: it waits for the host from 0 to 10 and from
    50 to 70, as the launches are at 8 and 65, and from 20 to 30 for a kernel launched at 18.
    """
    return [
        event("user_annotation", f"ProfilerStep#{number}", at, 100),
        event("python_function", "nn.Module: Net_0", at + 1, 20),
        event("python_function", "nn.Module: Conv2d_0", at + 2, 18),
        event("cpu_op", "aten::conv2d", at + 5, 10, **{"Sequence number": keys}),
        event("cpu_op", "aten::cudnn_convolution", at + 6, 8, **{"Sequence number": keys}),
        event("cuda_runtime", "cudaLaunchKernel", at + 8, 2, correlation=keys + 1),
        event("kernel", "implicit_gemm", at + 10, 10, correlation=keys + 1),
        event(
            "cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", at + 16, 10,
            **{"Sequence number": keys},
        ),
        event("cpu_op", "aten::convolution_backward", at + 17, 8),
        event("cuda_runtime", "cudaLaunchKernel", at + 18, 2, correlation=keys + 2),
        event("kernel", "dgrad", at + 30, 20, correlation=keys + 2),
        event("user_annotation", "Optimizer.step#SGD.step", at + 60, 20),
        event("cpu_op", "aten::add_", at + 62, 10),
        event("cuda_runtime", "cudaLaunchKernel", at + 65, 2, correlation=keys + 3),
        event("kernel", "multi_tensor_apply", at + 70, 5, correlation=keys + 3),
    ]  # fmt: skip


def gpu_steps(count: int) -> list[dict[str, Any]]:
    """Several of these steps, one after the other."""
    return [e for i in range(count) for e in gpu_step(100.0 * i, i, 10 * i)]
