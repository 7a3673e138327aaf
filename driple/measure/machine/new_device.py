"""The row of a GPU that no catalogue has, from what it was measured to reach.

GpuFacts, kernels, bytes/s of its memory -> fields of a device
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driple.errors import MeasureError

if TYPE_CHECKING:
    from driple.catalog.rows import Value
    from driple.measure.machine.gpu import GpuFacts, MeasuredKernel

__all__ = ["device_values"]

_TENSOR_CORES = 2.5  # times the plain cores' rate
_PCIE, _LANES = 4, 16  # copies between host and device are measured, and do not take these


def device_values(
    facts: GpuFacts, timed: Sequence[MeasuredKernel], bytes_per_s: float | None
) -> dict[str, Value]:
    """What a device of its own needs to be simulated; its peaks are the best measured rates.

    Args:
        facts: what PyTorch states.
        timed: its kernels.
        bytes_per_s: of a copy within its memory.

    Raises:
        MeasureError: its generation is not known, or a rate could not be measured.
    """
    best = {"bf16": 0.0, "tf32": 0.0, "fp32": 0.0}
    for measured in timed:
        rate = 2 * measured.kernel.multiply_adds / measured.seconds
        best[measured.kernel.precision] = max(best[measured.kernel.precision], rate)
    if not facts.generation or bytes_per_s is None or not all(best.values()):
        raise MeasureError(
            f"{facts.name} is in no catalogue, and not enough is known of it to add it; leave "
            "gpu out, as in --set parts=host, and describe it for driple predict --catalog"
        )
    has_tensor_cores = best["bf16"] > _TENSOR_CORES * best["fp32"]
    values: dict[str, Value] = {
        "generation": facts.generation,
        "aliases": (facts.name,),
        "fp32_flops": best["fp32"],
        "fp16_flops": best["bf16"],
        "bf16_flops": best["bf16"],
        "tensor_cores": has_tensor_cores,
        "datacentre": False,
        "bytes_per_s": bytes_per_s,
        "memory_bytes": float(facts.memory_bytes),
        "multiprocessors": facts.multiprocessors,
        "pcie_generation": _PCIE,
        "pcie_lanes": _LANES,
        "pcie_peers": False,
    }
    if best["tf32"] > _TENSOR_CORES * best["fp32"]:
        values["tf32_flops"] = best["tf32"]
    return values
