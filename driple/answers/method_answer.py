"""What one method answers: the one type that `predict`, `plan` and `sweep` read.

ReadyJob, Place --ask--> MethodAnswer: step time with its interval, targets, parts, errors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isclose
from typing import TYPE_CHECKING, Literal

from driple.answers.slow_hosts import interval_with
from driple.estimate import Estimate, Method
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.analytic.closed_forms import ClosedForm, MethodError, Work
    from driple.answers.error_statement import StatedError
    from driple.answers.slow_hosts import SlowHost
    from driple.answers.timelines import Timelines
    from driple.cluster.setting import Setting
    from driple.dataset.lookup import StoredWorkload
    from driple.inspector.predict import Prediction
    from driple.simulate.run import Simulation

__all__ = ["MethodAnswer", "ends_of_p90", "simulated_ends"]

WideBecause = Literal["network", "host", "other_kind", "tail"]
_WELL_BEYOND = 1.25  # ratio to what the 90th percentile says
_SAME = 1.01


def ends_of_p90(seconds: float, p90: float | None) -> tuple[float, float] | None:
    """The interval of a time whose error is below a share of it nine times out of ten.

    Args:
        seconds: the time.
        p90: 90th percentile of |time - true| / true; None if it is not known.
    """
    if p90 is None:
        return None
    return seconds / (1 + p90), seconds / (1 - p90) if p90 < 1 else inf


def simulated_ends(
    seconds: float,
    stated: StatedError,
    slow: SlowHost | None,
    by_network: tuple[float, float] | None = None,
    lines: Timelines | None = None,
) -> tuple[float, float] | None:
    """The interval of a simulated time: the one rule for it, in every question.

    Args:
        seconds: the time.
        stated: error on runs like the job.
        slow: the step on a slower host; None where it makes no difference.
        by_network: the step over the fastest and the slowest network that it may have; None where
            it is known what the network reaches.
        lines: of device and host, on like GPUs: the stated error is that of kernels and exchanges.

    Returns:
        That of the stated error, and of what is not known of the host; else, by
        the 90th percentile of the errors; with the steps over both networks. None if the error is
        not known.
    """
    known = stated.interval_of(seconds)
    if known is not None and lines is not None:
        known = lines.ends(seconds, (known[0] / seconds, known[1] / seconds))
    else:
        known = interval_with(known, None if slow is None else slow.step_s)
    ends = ends_of_p90(seconds, stated.p90) if known is None else known
    if ends is None or by_network is None:
        return ends
    return min(ends[0], by_network[0]), max(ends[1], by_network[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodAnswer:
    """What one method answers for one job on one setting.

    Attributes:
        setting: cluster and scheme.
        step_time: of one training iteration, or of a forward pass.
        p90: share of the true time that nine of ten errors stay below; 0 of a measurement; None
            where the error is not known.
        stated: error of the simulator on such jobs; None where it does not matter.
        slow_host: the step on a slower host; None where it makes no difference.
        by_network: seconds of the step over the fastest and the slowest network that it may have;
            None where it is known what the network reaches.
        assumptions: what was assumed where job and setting do not fit.
        simulation: of the simulator.
        prediction: of the inspector.
        form: of a closed form.
        form_error: its known error on such clusters; None if it is not known.
        work: what the closed forms count in the job.
        measured: the measured workload with this very graph.
    """

    setting: Setting
    step_time: Estimate
    p90: float | None = None
    stated: StatedError | None = None
    slow_host: SlowHost | None = None
    by_network: tuple[float, float] | None = None
    assumptions: tuple[Remark, ...] = ()
    simulation: Simulation | None = None
    prediction: Prediction | None = None
    form: ClosedForm | None = None
    form_error: MethodError | None = None
    work: Work | None = None
    measured: StoredWorkload | None = None

    @property
    def method(self) -> Method:
        """What answered."""
        return self.step_time.method

    @property
    def step_s(self) -> float:
        """Seconds of an iteration."""
        return self.step_time.value

    @property
    def parts_s(self) -> Mapping[str, float] | None:
        """Seconds of each part of the iteration, of closed forms."""
        return None if self.form is None else dict(self.form.parts_s)

    @property
    def doubts(self) -> tuple[Remark, ...]:
        """What an inspector has not seen."""
        prediction = self.prediction
        if prediction is None:
            return ()
        return (
            *prediction.warnings,
            *(() if prediction.outdated is None else (prediction.outdated,)),
        )

    @property
    def width(self) -> float:
        """Upper over lower end of the interval; infinite where no share is stated for it."""
        interval = self.step_time.interval
        if self.method == "measured":
            return 1.0
        return inf if interval is None or interval.level is None else interval.width

    @property
    def factors(self) -> tuple[float, float] | None:
        """On the step time, to the ends of its interval; None without one."""
        interval = self.step_time.interval
        if interval is None:
            return None
        high = inf if interval.high is None else interval.high
        return interval.low / self.step_s, high / self.step_s

    @property
    def widened(self) -> tuple[Remark, ...]:
        """Ends of the interval well beyond the 90th percentile of the stated error, and why."""
        factors, stated = self.factors, self.stated
        if factors is None or stated is None or stated.p90 is None:
            return ()
        low, high = factors
        ends = []
        if _WELL_BEYOND * (1 + stated.p90) < high < inf:
            ends.append((self._longer_because(high), high))
        if low * (1 + stated.p90) * _WELL_BEYOND < 1:
            ends.append((self._shorter_because(low), low))
        return tuple(
            remark("interval_wider", because=because, factor=factor)
            for because, factor in ends
            # A true time longer by just that percentile, which is of the true time, is no tail.
            if because != "tail" or not isclose(factor * (1 - stated.p90), 1, rel_tol=_SAME - 1)
        )

    def _longer_because(self, factor: float) -> WideBecause:
        """What decides the upper end of the interval, a factor of the step time."""
        if self.by_network is not None and self.by_network[1] * _SAME >= factor * self.step_s:
            return "network"
        own = None if self.stated is None else self.stated.high_factor
        return "host" if own is None or factor > own * _SAME else self._by_errors

    def _shorter_because(self, factor: float) -> WideBecause:
        """What decides the lower end."""
        if self.by_network is not None and self.by_network[0] <= _SAME * factor * self.step_s:
            return "network"
        own = None if self.stated is None else self.stated.low_factor
        return "host" if own is None or factor * _SAME < own else self._by_errors

    @property
    def _by_errors(self) -> WideBecause:
        is_near = self.stated is not None and self.stated.nearest_because is not None
        return "other_kind" if is_near else "tail"

    @property
    def error_factors(self) -> tuple[float, float] | None:
        """The same of a simulated time by the errors of published runs, without a slower host."""
        ends = None if self.stated is None else simulated_ends(self.step_s, self.stated, None)
        return None if ends is None else (ends[0] / self.step_s, ends[1] / self.step_s)
