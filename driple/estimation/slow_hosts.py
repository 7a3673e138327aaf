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
from driple.simulate.run import iteration_time_s, simulate_steps

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.estimation.methods import Place
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["NINE_OF_TEN", "SLOWER", "SLOWER_TRAINING", "SlowHost", "interval_with", "slow_host"]

SLOWER = 1.9
"""How many times as long the host of datasets/measured-h100 takes as those of published runs:
`driple.calibration.tuning.factors_of` on all its steps, to two digits."""
SLOWER_TRAINING = 1.6
"""How many times that in training steps; the same of the host of datasets/measured-h200."""
NINE_OF_TEN = 1.4
"""How many times as long as that host's simulated step nine of ten of its steps were at most, of
those that wait for it: hosts take from half to twice their mean for an op, by what it launches."""
_MATTERS = 1.1  # a step that grows less does not wait for its host
_STEPS = 20


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
            f"machine that was measured, the step is {self.step_s:.3g} s; if you know yours, "
            "--set host_us_per_op=N simulates it"
        )


def slow_host(
    prepared: PreparedJob, setting: Setting, place: Place, *, step_s: float
) -> SlowHost | None:
    """What a step would take on a slower host; None where that makes no difference.

    Args:
        prepared: the job.
        setting: cluster and scheme.
        place: its machines and their calibration.
        step_s: of the answer, on a host like those of published runs.

    Returns:
        The step; None on processors, and where the user's own runs tell of his host.

    Raises:
        GraphError: a graph that cannot be simulated.
    """
    model = place.calibration.model
    if not isinstance(model, GpuModel) or setting.worker.find("tuned_host") is not None:
        return None
    slower = place.calibration.with_slower_host(SLOWER, training=SLOWER_TRAINING)
    records = simulate_steps(prepared, place.topology, slower, num_steps=_STEPS)
    slow_s = iteration_time_s(place.topology, records)
    if slow_s < step_s * _MATTERS:
        return None
    usual_us = 1e6 * model.host.each_s(prepared.runtime)
    factor = SLOWER * (SLOWER_TRAINING if prepared.runtime.trains else 1.0)
    return SlowHost(step_s=slow_s, usual_us=usual_us, slow_us=factor * usual_us)


def interval_with(
    ends: tuple[float, float] | None, slow: SlowHost | None
) -> tuple[float, float] | None:
    """An interval that holds nine of ten steps on a slower host too; None where there was none."""
    if ends is None or slow is None:
        return ends
    return ends[0], max(ends[1], NINE_OF_TEN * slow.step_s)
