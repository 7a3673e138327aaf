"""The two timelines of a step on GPUs, and the interval that the doubts about both leave.

    PreparedJob, Place --timelines--> Timelines --ends--> interval of the step

Errors of published runs are those of kernels: nearly all of them keep their device busy. A step
that waits for its host is as uncertain as the host, whatever its kernels. Each of several devices
has a host thread of its own: the host decides how long it computes, and not what exchanges add.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driple.answers.tuned_steps import tuned_steps
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import smooth_max
from driple.simulate.gpu_rates import host_factor, with_host
from driple.simulate.place import Place
from driple.simulate.prepared_job import PreparedJob

__all__ = ["UNKNOWN_HOST", "Timelines", "timelines"]

UNKNOWN_HOST = (0.9, 1.2)
"""Ends of the host's seconds over those of the fastest and of the slowest known host, where the
user's is not known: nine of ten steps of three machines (decision 0059)."""
_LITTLE, _MUCH = 1e-6, 1e4  # factors on the host's pace that leave one of the timelines


@dataclass(frozen=True, kw_only=True, slots=True)
class Timelines:
    """What a step would take if the device or the host alone decided.

    Attributes:
        device_s: kernels, one after another.
        host_s: handing them to the device.
        exchange_s: what exchanges add to the longer of both, which the errors of kernels hold too.
        sharpness: exponent with which the two meet.
        fastest: how many times as long the host may take at best.
        slowest: at worst.
    """

    device_s: float
    host_s: float
    exchange_s: float
    sharpness: float
    fastest: float
    slowest: float

    def ends(self, step_s: float, device: tuple[float, float]) -> tuple[float, float]:
        """Interval of a step.

        Args:
            step_s: simulated.
            device: factors on the seconds of kernels and exchanges, to the ends of their interval.
        """
        usual_s = self._step_s(1.0, 1.0)
        low_s = self._step_s(device[0], self.fastest)
        high_s = self._step_s(device[1], self.slowest)
        return step_s * low_s / usual_s, step_s * high_s / usual_s

    def _step_s(self, device: float, host: float) -> float:
        computing_s = smooth_max(device * self.device_s, host * self.host_s, self.sharpness, np)
        return float(computing_s) + device * self.exchange_s


def timelines(
    prepared: PreparedJob, place: Place, step_s: float, *, host_is_known: bool
) -> Timelines | None:
    """Timelines of a step on like GPUs; None of split models and offload, with servers, on CPUs.

    Args:
        prepared: the job.
        place: machines and their calibration.
        step_s: simulated.
        host_is_known: whether the user said, or his runs tell, how fast the host is.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    model, topology = place.calibration.model, place.topology
    is_shared = topology.degrees.is_split or bool(prepared.program.offload)
    if not isinstance(model, GpuModel) or topology.server_machine or is_shared:
        return None
    if len(topology.kinds) > 1:
        return None
    device = topology.workers[0]

    def computing_s(factor: float) -> float:
        known = factor * host_factor(device, model.host)
        other = place.calibration.device(with_host(device, known))
        return float(prepared.times(other).duration_s.sum()) + prepared.update_seconds(other)

    fastest, slowest = tuned_steps().host_ends
    if not host_is_known:
        fastest = UNKNOWN_HOST[0] * model.host.fastest
        slowest = UNKNOWN_HOST[1] * model.host.slowest
    return Timelines(
        device_s=computing_s(_LITTLE),
        host_s=computing_s(_MUCH) / _MUCH,
        exchange_s=max(step_s - computing_s(1.0), 0.0) if len(topology.workers) > 1 else 0.0,
        sharpness=model.host.sharpness,
        fastest=fastest,
        slowest=slowest,
    )
