"""Copies between the host's memory and a GPU's, page-locked and not; not run on a GPU here yet."""

from __future__ import annotations

import torch

from driple.catalog.machine_file import CopyRate
from driple.measure.machine.clock import Clock

__all__ = ["copy_rates"]

_BYTES = 2**26


def copy_rates(clock: Clock, nbytes: int = _BYTES) -> list[CopyRate]:
    """Rates both ways; those of page-locked memory only with a GPU.

    Args:
        clock: of the GPU, or of the processor in tests.
        nbytes: of a copy.
    """
    is_gpu = clock.device.type == "cuda"
    there = torch.zeros(nbytes, dtype=torch.uint8, device=clock.device)
    rates = []
    for pinned in (True, False) if is_gpu else (False,):
        here = torch.zeros(nbytes, dtype=torch.uint8, pin_memory=pinned)
        for target, source in ((there, here), (here, there)):
            seconds = clock.step_s(
                lambda target=target, source=source: target.copy_(source, non_blocking=True)  # type: ignore[misc]
            )
            rates.append(
                CopyRate(
                    device=clock.device.index or 0,
                    to_device=target is there,
                    pinned=pinned,
                    bytes_per_s=nbytes / seconds,
                )
            )
    return rates
