"""How much of a device's peak a step reaches: model FLOPs utilisation.

PreparedJob, Place, seconds of a step -> percent (Chowdhery et al., PaLM, 2022, appendix B)
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from driple.catalog import Device
from driple.errors import CatalogError
from driple.graph.step_facts import Phase
from driple.simulate.gpu_rates import peaks
from driple.simulate.gpu_times import PIPES, peak_seconds
from driple.simulate.place import Place
from driple.simulate.prepared_job import PreparedJob

__all__ = ["flops_utilisation_pct"]


def flops_utilisation_pct(job: PreparedJob, place: Place, step_s: float) -> float | None:
    """FLOPs of a step over those that a device could do in its time, percent.

    FLOPs that recomputation repeats do not count. The peak is that of the units that do most of
    them: half precision, TF32, or the plain cores.

    Args:
        job: what one device computes.
        place: machines; the first worker's device counts.
        step_s: seconds of a step.

    Returns:
        The share; None on processors, of ops without known FLOPs, and where no source states the
        peaks of the device.
    """
    device = place.topology.workers[0]
    if device.is_cpu or step_s <= 0:
        return None
    known = _KNOWN.setdefault(job, {})
    if device not in known:
        known[device] = _flops_and_peak(job, device)
    both = known[device]
    if both is None:
        return None
    flops, peak = both
    total = flops / place.topology.degrees.of_replica
    return 100 * total / (peak * step_s) if total > 0 and peak > 0 else None


def _flops_and_peak(job: PreparedJob, device: Device) -> tuple[float, float] | None:
    """FLOPs of a step, and the device's peak; None where no source states its peaks."""
    flops = job.cost.flops * job.cost.executions
    if len(job.graph.phases):
        flops = np.where(job.graph.phases == Phase.RECOMPUTE, 0.0, flops)
    try:
        pipes = peak_seconds(job.kinds.table, device).pipes[job.kinds.kind_of]
        rates = peaks(device)
    except CatalogError:
        return None
    by_pipe = np.bincount(pipes, weights=flops, minlength=len(PIPES))
    return float(flops.sum()), rates[PIPES[int(by_pipe.argmax())]]


# By job and device: questions ask for one job on many settings.
_KNOWN: WeakKeyDictionary[PreparedJob, dict[Device, tuple[float, float] | None]] = (
    WeakKeyDictionary()
)
