"""What a step takes on a slower host than those of published runs.

    Simulation on a GPU setting -> SlowHost: its step time, and what the host takes for an op

Hosts differ more than GPUs of one kind: on a virtual machine with an H100 (datasets/measured-h100)
PyTorch takes several times as long to start a kernel as on the hosts that the calibration knows.
Nobody knows a user's host before a run, so an answer that depends on it says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.simulate.device_models import GpuModel

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.estimation.methods import Place
    from driple.simulate.calibration import Calibration
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["SLOWER", "SlowHost", "slow_host"]

SLOWER = 2.5
"""How many times as long the host of datasets/measured-h100 takes as those of published runs:
`driple.calibration.tuning.factors_of` on all its steps, to two digits."""
_MATTERS = 1.1  # a step that grows less does not wait for its host


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowHost:
    """A step on a slower host.

    Attributes:
        step_s: seconds of the step.
        usual_us: microseconds that the host of the answer takes for an op.
        slow_us: that the slower one takes.
    """

    step_s: float
    usual_us: float
    slow_us: float

    def sentence(self) -> str:
        """For a user."""
        return (
            f"the host decides: a host that takes {self.usual_us:.0f} us for each op, as in "
            f"published runs, is assumed; on one that takes {self.slow_us:.0f} us, as a virtual "
            f"machine that was measured, the step is {self.step_s:.3g} s; "
            f"--set host_us_per_op={self.slow_us:.0f} simulates that one"
        )


def slow_host(
    prepared: PreparedJob, setting: Setting, place: Place, *, step_s: float
) -> SlowHost | None:
    """What a step would take on a slower host; None where that makes no difference.

    What the slower host adds to the computing of one device is added to the step; an exchange that
    hides behind it would hide as well.

    Args:
        prepared: the job.
        setting: cluster and scheme.
        place: its machines and their calibration.
        step_s: of the answer, on a host like those of published runs.

    Returns:
        The step; None on processors, and where the user's own runs tell of his host.
    """
    model = place.calibration.model
    if not isinstance(model, GpuModel) or setting.worker.find("tuned_host") is not None:
        return None

    def computing_s(calibration: Calibration) -> float:
        calibrated = calibration.device(setting.worker)
        of_ops = float(prepared.times(calibrated).duration_s.sum())
        return of_ops + prepared.update_seconds(calibrated)

    slower = place.calibration.with_slower_host(SLOWER)
    slow_s = step_s + computing_s(slower) - computing_s(place.calibration)
    if slow_s < step_s * _MATTERS:
        return None
    usual_us = 1e6 * model.host.each_s(prepared.runtime)
    return SlowHost(step_s=slow_s, usual_us=usual_us, slow_us=SLOWER * usual_us)
