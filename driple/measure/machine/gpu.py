"""Kernels of each GPU: products, convolutions, attention, norms, reductions, element by element.

Clock -> (KernelProgram, seconds of the device) ...;  facts of a device that no catalogue has

Not run on a GPU by this project yet: its tests run the same code on the processor. Each kernel is a
small module in a forward pass, which the simulator predicts as it predicts any job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from driple.errors import MeasureError
from driple.measure.machine.clock import Clock

__all__ = [
    "KERNELS",
    "GpuFacts",
    "KernelProgram",
    "MeasuredKernel",
    "check_gpus",
    "gpu_facts",
    "kernel_seconds",
    "memory_bytes_per_s",
    "others_bytes",
]

_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16,
           "fp16": torch.float16}  # fmt: skip
_COPIED_BYTES = 2**28
_FREE_SHARE = 0.9  # of a GPU that no other program uses
_CAPABILITIES = {  # NVIDIA: CUDA C++ programming guide, "Compute capabilities"
    (6, 0): "Pascal", (6, 1): "Pascal", (7, 0): "Volta", (7, 5): "Turing", (8, 0): "Ampere",
    (8, 6): "Ampere", (8, 9): "Ada", (9, 0): "Hopper", (10, 0): "Blackwell",
    (12, 0): "Blackwell",
}  # fmt: skip


class _Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


class _Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelProgram:
    """One kernel as a module.

    Attributes:
        name: such as `product 4096`.
        precision: of the whole module: `fp32`, `tf32` or `bf16` (`fp16` where that is missing).
        module: makes it.
        shapes: of its inputs, the batch first.
        multiply_adds: of a run.
    """

    name: str
    precision: str
    module: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    multiply_adds: float = 0.0

    def inputs(self, device: torch.device | str) -> tuple[Tensor, ...]:
        """Tensors of its shapes, without values of their own on `meta`."""
        return tuple(torch.rand(shape, device=device) for shape in self.shapes)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredKernel:
    """Seconds of a kernel, and the bytes that it moves at the least."""

    kernel: KernelProgram
    seconds: float
    nbytes: float


def _kernels() -> Iterator[KernelProgram]:
    for precision in ("bf16", "tf32", "fp32"):
        for side in (1024, 2048, 4096, 8192):
            yield KernelProgram(
                name=f"product {side}",
                precision=precision,
                module=lambda side=side: nn.Linear(side, side, bias=False),  # type: ignore[misc]
                shapes=((side, side),),
                multiply_adds=float(side) ** 3,
            )
    for precision in ("bf16", "tf32"):
        for channels, size, kernel in ((64, 56, 3), (256, 28, 3), (512, 14, 1)):
            yield KernelProgram(
                name=f"convolution {kernel}x{kernel} of {channels}",
                precision=precision,
                module=lambda c=channels, k=kernel: nn.Conv2d(  # type: ignore[misc]
                    c, c, k, padding=k // 2, bias=False
                ),
                shapes=((64, channels, size, size),),
                multiply_adds=64.0 * channels**2 * size**2 * kernel**2,
            )
        yield KernelProgram(
            name="batch norm",
            precision=precision,
            module=lambda: nn.BatchNorm2d(256),
            shapes=((64, 256, 56, 56),),
        )
    for precision in ("bf16", "fp32"):
        heads = (8, 16, 2048, 64)
        yield KernelProgram(
            name="attention 2048",
            precision=precision,
            module=_Attention,
            shapes=(heads, heads, heads),
            multiply_adds=2.0 * 8 * 16 * 2048**2 * 64,
        )
        rows = (8192, 4096)
        for name, module in (("layer norm", lambda: nn.LayerNorm(4096)), ("gelu", nn.GELU),
                             ("softmax", lambda: nn.Softmax(dim=-1)), ("mean", _Mean)):  # fmt: skip
            yield KernelProgram(name=name, precision=precision, module=module, shapes=(rows,))
        yield KernelProgram(
            name="sum of two", precision=precision, module=_Sum, shapes=(rows, rows)
        )


KERNELS: tuple[KernelProgram, ...] = tuple(_kernels())


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFacts:
    """What PyTorch states of a GPU.

    Attributes:
        name: as the driver has it.
        generation: its architecture; empty if this program does not know it.
        memory_bytes: of its memory.
        multiprocessors: that it has.
        clock_mhz: under load; None where NVML is not installed.
    """

    name: str
    generation: str
    memory_bytes: int
    multiprocessors: int
    clock_mhz: float | None


def check_gpus() -> list[str]:
    """Names of the GPUs, which are whole ones.

    Raises:
        MeasureError: there is none, or one is a part of a GPU (MIG).
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise MeasureError(
            "PyTorch sees no GPU here (torch.cuda.is_available() is false); PyTorch for CUDA and "
            "the driver are needed for gpu and copies (--set parts=host leaves them out)"
        )
    names = [torch.cuda.get_device_name(number) for number in range(count)]
    for number, name in enumerate(names):
        if "MIG" in name.split():
            raise MeasureError(
                f"GPU {number} is a part of one ({name}): its rates are not those of the GPU; "
                "measure with MIG off, or leave gpu out, as in --set parts=host"
            )
    return names


def others_bytes(number: int) -> float | None:
    """Bytes of a GPU that other programs hold; None if these are few."""
    free, total = torch.cuda.mem_get_info(number)
    held = total - free - torch.cuda.memory_reserved(number)
    return float(held) if held > (1 - _FREE_SHARE) * total else None


def gpu_facts(number: int) -> GpuFacts:
    """What PyTorch states of a GPU, with its clock while products run."""
    known = torch.cuda.get_device_properties(number)
    return GpuFacts(
        name=known.name,
        generation=_CAPABILITIES.get((known.major, known.minor), ""),
        memory_bytes=known.total_memory,
        multiprocessors=known.multi_processor_count,
        clock_mhz=_clock_under_load(number),
    )


def _clock_under_load(number: int) -> float | None:
    """MHz of the multiprocessors while matrix products run, by NVML."""
    matrix = torch.zeros(8192, 8192, dtype=torch.bfloat16, device=f"cuda:{number}")
    for _ in range(200):
        torch.mm(matrix, matrix)
    try:
        return float(torch.cuda.clock_rate(number))
    except (ModuleNotFoundError, RuntimeError):  # torch asks NVML through pynvml
        return None
    finally:
        torch.cuda.synchronize(number)


def kernel_seconds(
    clock: Clock,
    kernels: Sequence[KernelProgram] = KERNELS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[MeasuredKernel]:
    """Seconds of the device for each kernel that it can run and that the host keeps it busy with.

    Args:
        clock: of the GPU, or of the processor in tests.
        kernels: that are timed.
        progress: called before each.
    """
    measured = []
    for kernel in kernels:
        progress(f"{clock.device}: {kernel.name}, {kernel.precision}")
        dtype = _DTYPES[kernel.precision]
        module = kernel.module().to(clock.device, dtype).eval()
        inputs = [one.to(dtype) for one in kernel.inputs(clock.device)]
        with torch.no_grad(), _tf32(allowed=kernel.precision == "tf32"):
            try:
                seconds = clock.kernel_s(lambda module=module, inputs=inputs: module(*inputs))  # type: ignore[misc]
            except torch.OutOfMemoryError:
                continue
            output = module(*inputs)
        tensors = [*inputs, *module.parameters(), output]
        nbytes = float(sum(one.numel() * one.element_size() for one in tensors))
        if seconds is not None:
            measured.append(MeasuredKernel(kernel=kernel, seconds=seconds, nbytes=nbytes))
    return measured


@contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    """Products and convolutions of single precision on tensor cores, or not, within the block."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32, cudnn.allow_tf32 = allowed, allowed
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def memory_bytes_per_s(clock: Clock, nbytes: int = _COPIED_BYTES) -> float | None:
    """Bytes/s that a copy within the device's memory reads and writes; None if not measured."""
    source = torch.zeros(nbytes, dtype=torch.uint8, device=clock.device)
    target = torch.empty_like(source)
    with nullcontext() if clock.device.type != "cuda" else torch.cuda.device(clock.device):
        seconds = clock.kernel_s(lambda: target.copy_(source))
    return None if seconds is None else 2 * nbytes / seconds
