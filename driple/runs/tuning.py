"""What a user's own runs on one device tell: factors on what its kernels and its host reach.

measured steps on one device + how the device runs others' --tune--> Tuning (factors, errors)

Few runs cannot fit a model of kernels anew, but they tell how far this device with this host,
driver and library is from the usual: half precision, TF32, plain cores, memory, and the pace of the
host. Factors are held near 1 by what devices differ by, so that five runs do not carry them away.
But a device may also be slower, or faster, in all that it does, as one with a limit of its power:
what all runs say together is held back little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.catalog import DEVICES
from driple.catalog.fields import TUNED, TUNING_FACTS, check_field
from driple.errors import ConfigError
from driple.runs.solver import least_squares
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.gpu_kernels import kernel_seconds, smooth_max
from driple.simulate.gpu_times import PIPES, GpuEfficiency, inner_starts, most_shares, peak_seconds
from driple.simulate.prepared_job import PreparedJob

__all__ = ["LEAST_RUNS", "TunedStep", "Tuning", "errors_pct", "factors_of", "tune", "tuned_step"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEAST_RUNS = 5  # fewer leave too little to check the factors on
# By how much (natural logarithm, one standard deviation) devices without published rows turned out
# to differ from their generation, those with rows from what the rows say, and hosts from the usual
# one; in the order of `TUNED`.
_SPREAD = np.array([0.3, 0.3, 0.3, 0.2, 0.6])
_SPREAD_OF_KNOWN = np.array([0.15, 0.15, 0.15, 0.1, 0.6])
# By how much a device differs in all four shares together; a difference of many times as much is
# rare, and yet what runs that all tell it mean (a Cauchy distribution beyond so many deviations).
_SPREAD_OF_ALL, _SPREAD_OF_ALL_KNOWN = 0.2, 0.1
_FAR = 2.0
_TOLERANCE = 0.07  # of the logarithm of a time; a larger error counts by its size
_MOST_FOLDS = 10
_MOST_EVALUATIONS = 20
_MOST_RATIO = 50  # of a measured time and the expected one, in either direction
_MOST_PCT = 100.0  # median error of left-out runs that are worth a file
_WAITS = 1.1  # a step that grows less on a host half as fast does not tell of it


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedStep:
    """One measured step, with what it takes at the usual shares; arrays of length n, one per op.

    Attributes:
        name: of the run, for errors.
        group: runs of one group are left out together, such as those of one model.
        seconds: measured.
        compute_s: of the multiply-adds at the peak, all executions.
        memory_s: of the bytes at the share of the peak that kernels reach.
        share: of the peak FLOP/s that kernels reach, before the device's own factor.
        pipes: position in `PIPES`.
        most: largest share.
        starts: kernels that are started.
        start_s: seconds to start them.
        turns_s: seconds at least of kernels that follow one another within an op.
        channel_s: of the blocks of one channel each, which no factor changes.
        host_s: of the host for the whole step.
        update_s: of the device for the optimizer's update, bytes at the peak.
        update_starts: kernels of the update.
        efficiency: of the device.
        is_known: whether published rows tell of the device, or of its chip.
    """

    name: str
    group: str
    seconds: float
    compute_s: FloatArray
    memory_s: FloatArray
    share: FloatArray
    pipes: IntArray
    most: FloatArray
    starts: FloatArray
    start_s: FloatArray
    turns_s: FloatArray
    channel_s: FloatArray
    host_s: float
    update_s: float
    update_starts: int
    efficiency: GpuEfficiency
    is_known: bool

    def predicted_s(self, factors: FloatArray) -> float:
        """Seconds of the step with factors, in the order of `TUNED`."""
        shares, kernels = self.efficiency.shares, self.efficiency.kernels
        own = np.array([getattr(shares, pipe) for pipe in PIPES]) * factors[:3]
        memory = shares.memory * factors[3]
        busy = kernel_seconds(
            self.compute_s / np.minimum(self.share * own[self.pipes], self.most),
            self.memory_s / memory,
            self.start_s,
            self.channel_s,
            self.turns_s,
            sharpness=kernels.sharpness,
            xp=np,
        ).sum()
        busy += self.update_s / memory + self.update_starts * kernels.start_s
        host_s = self.host_s * factors[4]
        return float(smooth_max(busy, host_s, self.efficiency.host.sharpness, np))

    def waits(self, factors: FloatArray) -> bool:
        """Whether the step waits for its host: it would be longer on one half as fast."""
        slower = np.where(np.array(TUNED) == "host", 2 * factors, factors)
        return self.predicted_s(slower) > _WAITS * self.predicted_s(factors)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """What the runs of one device tell.

    Attributes:
        factors: by the names of `TUNED`, on what the device reaches (`host`: on its seconds).
        host_runs: how many runs wait for their host, so that they tell of it.
        before: of each run, predicted over measured seconds without tuning.
        left_out: the same with factors from the other runs, those of its group left out too.
    """

    factors: dict[str, float]
    host_runs: int
    before: FloatArray
    left_out: FloatArray

    @property
    def median_pct(self) -> float:
        """Median error of runs that were left out, percent."""
        return float(np.median(errors_pct(self.left_out)))

    @property
    def p90_pct(self) -> float:
        """90th percentile of the same."""
        return float(np.quantile(errors_pct(self.left_out), 0.9))

    @property
    def helps(self) -> bool:
        """Whether left-out runs are predicted better than without tuning, and not all wrong."""
        before_pct = float(np.median(errors_pct(self.before)))
        return self.median_pct < min(before_pct, _MOST_PCT)


def errors_pct(ratios: FloatArray) -> FloatArray:
    """|predicted - measured| / measured in percent, from predicted over measured."""
    errors: FloatArray = 100 * np.abs(ratios - 1)
    return errors


def tuned_step(
    job: PreparedJob, device: CalibratedDevice, *, name: str, group: str, seconds: float
) -> TunedStep:
    """A measured step of a job on one GPU.

    Raises:
        ConfigError: the device is no GPU.
    """
    efficiency = device.efficiency
    if not isinstance(efficiency, GpuEfficiency):
        raise ConfigError(f"{device.spec.name} is not a GPU; runs of GPUs can be tuned to")
    kinds, table = job.kinds, job.kinds.table
    peaks = peak_seconds(table, device.spec)
    shares = efficiency.kernel_shares(peaks.facts, job.runtime)
    executions = kinds.executions * (table.moved > 0)[kinds.kind_of]
    count = len(table.moved)

    def summed(weights: npt.NDArray[Any]) -> FloatArray:
        return np.bincount(kinds.kind_of, weights, count).astype(np.float64)

    runs = summed(executions)
    bytes_runs, starts = runs, runs
    if kinds.fused is not None:
        bytes_runs = summed(executions * kinds.fused.bytes_share)
        starts = summed(executions * kinds.fused.starts)
    inner, apart = inner_starts(table, job.runtime)
    handed = inner * runs
    own = efficiency.op_starts(table, peaks.facts, job.runtime)
    start_s = starts * own.start_s + runs * own.apart_s
    launches, starts = starts + handed, starts + apart * runs
    there = runs > 0
    update, update_s, update_starts = job.graph.update, 0.0, 0
    if update is not None:
        rate = device.spec.bytes_per_s * efficiency.kernels.update_share
        update_s, update_starts = update.moved_bytes / rate, update.num_kernels
    host_s = efficiency.host.of_step(
        job.runtime,
        launches=float(launches.sum()),
        runs=float((runs + handed).sum()),
        updates=update_starts,
        tensors=job.handed_tensors,
    )
    return TunedStep(
        name=name,
        group=group,
        seconds=seconds,
        compute_s=(peaks.compute_s * runs)[there],
        memory_s=(peaks.memory_s * bytes_runs / shares[:, 1])[there],
        share=shares[there, 0],
        pipes=peaks.pipes[there],
        most=most_shares(peaks.pipes)[there],
        starts=starts[there],
        start_s=start_s[there],
        turns_s=(own.turns_s * runs)[there],
        channel_s=(peaks.channel_s(efficiency.kernels, job.runtime) * runs)[there],
        host_s=host_s,
        update_s=float(update_s),
        update_starts=update_starts,
        efficiency=efficiency,
        is_known=device.measured_on in DEVICES,
    )


def tune(steps: Sequence[TunedStep], progress: Callable[[str], None] = lambda _: None) -> Tuning:
    """Factors that predict the steps best, and how well left-out steps are predicted.

    Args:
        steps: of one device.
        progress: called with each part of the work.

    Raises:
        ConfigError: fewer than `LEAST_RUNS` steps, or a time that cannot be that of the step.
        MissingExtraError: scipy is not installed.
    """
    if len(steps) < LEAST_RUNS:
        raise ConfigError(
            f"{len(steps)} runs on one device are too few to tune to; give {LEAST_RUNS} or more"
        )
    ones = np.ones(len(TUNED))
    before = np.array([one.predicted_s(ones) / one.seconds for one in steps])
    _check_seconds(steps, before)
    left_out = np.empty(len(steps))
    for number, part in enumerate(_parts(steps), 1):
        progress(f"part {number} left out")
        hidden = set(part)
        seen = [one for i, one in enumerate(steps) if i not in hidden]
        factors = factors_of(seen) if seen else ones
        for i in part:
            left_out[i] = steps[i].predicted_s(factors) / steps[i].seconds
    progress("all runs")
    factors = factors_of(steps)
    for name, factor in zip(TUNED, factors.tolist(), strict=True):
        check_field(TUNING_FACTS[f"tuned_{name}"], f"the factor of {name}", factor, "these runs")
    return Tuning(
        factors=dict(zip(TUNED, factors.tolist(), strict=True)),
        host_runs=sum(one.waits(factors) for one in steps),
        before=before,
        left_out=left_out,
    )


def _check_seconds(steps: Sequence[TunedStep], before: FloatArray) -> None:
    """Refuse times of which no factor of a device can be the reason, such as milliseconds."""
    for step, ratio in zip(steps, before.tolist(), strict=True):
        if not 1 / _MOST_RATIO <= ratio <= _MOST_RATIO:
            expected_s = ratio * step.seconds
            raise ConfigError(
                f"{step.name} ({step.group}): {step.seconds:.4g} s is over {_MOST_RATIO} times "
                f"as {'long' if ratio < 1 else 'short'} as the {expected_s:.3g} s that are "
                "expected; give the seconds of one step (not milliseconds, not an epoch), or leave "
                "the run out"
            )


def _parts(steps: Sequence[TunedStep]) -> list[list[int]]:
    """Positions that are left out together: whole groups, in at most `_MOST_FOLDS` parts."""
    groups: dict[str, list[int]] = {}
    for i, step in enumerate(steps):
        groups.setdefault(step.group, []).append(i)
    parts: list[list[int]] = [[] for _ in range(min(len(groups), _MOST_FOLDS))]
    for some in sorted(groups.values(), key=len, reverse=True):
        min(parts, key=len).extend(some)
    return parts


def _heavy_tailed(deviations: float) -> float:
    """The residual of a Cauchy distribution: as it is near 0, and growing ever less."""
    return float(np.sign(deviations) * _FAR * np.sqrt(np.log1p((deviations / _FAR) ** 2)))


def factors_of(steps: Sequence[TunedStep]) -> FloatArray:
    """The most likely factors, in the order of `TUNED`.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    measured = np.log([step.seconds for step in steps])
    is_known = steps[0].is_known
    spread = _SPREAD_OF_KNOWN if is_known else _SPREAD
    of_all = _SPREAD_OF_ALL_KNOWN if is_known else _SPREAD_OF_ALL
    of_shares = spread[:-1]
    weights = of_shares**-2 / (of_shares**-2).sum()

    def residuals(logs: FloatArray) -> FloatArray:
        factors = np.exp(logs)
        off = np.log([step.predicted_s(factors) for step in steps]) - measured
        near = np.sqrt(1 + (off / _TOLERANCE) ** 2) - 1
        together = float(weights @ logs[:-1])
        return np.concatenate(
            [
                np.sign(off) * np.sqrt(2 * near),
                (logs[:-1] - together) / of_shares,
                [_heavy_tailed(together / of_all), logs[-1] / spread[-1]],
            ]
        )

    fit = least_squares(residuals, np.zeros(len(TUNED)), max_nfev=_MOST_EVALUATIONS)
    factors: FloatArray = np.exp(np.asarray(fit.x, dtype=np.float64))
    return factors
