"""Fit of compiled kernels to pairs of published steps with and without `torch.compile`.

    rows, fits that have not seen a fold of families --> WorkOfPair, ... --> CompiledKernels

Each pair is priced by the fit that has not seen its family. `scripts.make_compiled_kernels` writes
the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.codec import from_json
from driple.simulate.compiled_kernels import COMPILED_CLASSES, CompiledKernels, compiled_classes
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import smooth_max
from driple.simulate.gpu_times import PIPES, GpuEfficiency, most_shares, peak_seconds
from driple.simulate.prepared_job import PreparedJob

__all__ = ["COMPILED_FILE", "WorkOfPair", "fit_compiled", "predicted_logs", "with_compiled",
           "work_by_class"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]
COMPILED_FILE = Path(__file__).with_name("compiled.json")
_ALL = "all"
_PENALTY, _TOLERANCE = 3e-3, 0.05
_OF_STEPS = 0.3  # share of the compiled step's own time in what is fitted; the rest is the ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkOfPair:
    """A pair of steps as a fit prices it.

    Attributes:
        work_s: shape [C], seconds of the compiled step by class, with factors of 1.
        eager_s: seconds of the eager step.
        measured_s: of the eager and the compiled step.
        weight: in the fit.
    """

    work_s: FloatArray
    eager_s: float
    measured_s: tuple[float, float]
    weight: float


def work_by_class(job: PreparedJob, device: object, efficiency: GpuEfficiency) -> FloatArray:
    """Seconds of a step's kernels by class, shape [C]; all factors are 1."""
    plain = replace(efficiency, compiled=None)
    kinds, table = job.kinds, job.kinds.table
    peaks = peak_seconds(table, device)  # type: ignore[arg-type]
    shares = plain.kernel_shares(peaks.facts, job.runtime)
    own = np.array([getattr(plain.shares, pipe) for pipe in PIPES])[peaks.pipes]
    compute_s = peaks.compute_s / np.minimum(shares[:, 0] * own, most_shares(peaks.pipes))
    memory_s = peaks.memory_s / (shares[:, 1] * plain.shares.memory)
    starts = plain.op_starts(table, peaks.facts, job.runtime)
    runs = kinds.executions * (table.moved > 0)[kinds.kind_of]
    left = np.ones(len(runs)) if kinds.fused is None else kinds.fused.bytes_share
    begins = np.ones(len(runs)) if kinds.fused is None else kinds.fused.starts
    sharpness = plain.kernels.sharpness
    work_s = smooth_max(compute_s[kinds.kind_of], memory_s[kinds.kind_of] * left, sharpness, np)
    turns_s = starts.turns_s[kinds.kind_of]
    work_s = smooth_max(work_s, turns_s, sharpness, np) * runs
    found = np.zeros(len(COMPILED_CLASSES))
    np.add.at(found, compiled_classes(peaks.facts)[kinds.kind_of], work_s)
    found[-1] = float((runs * begins * starts.start_s[kinds.kind_of]).sum())
    return found


def fit_compiled(pairs: Sequence[WorkOfPair]) -> CompiledKernels:
    """The most likely factors; those of classes that no pair tells of are 1."""
    from scipy.optimize import minimize  # an extra, loaded when something is fitted

    work = np.array([pair.work_s for pair in pairs])
    eager = np.log([pair.eager_s for pair in pairs])
    before, after = np.log([pair.measured_s for pair in pairs]).T
    weights = np.array([pair.weight for pair in pairs])
    weights /= weights.sum()

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        parts = work * np.exp(logs)
        made = np.log(parts.sum(axis=1))
        slope = parts / parts.sum(axis=1, keepdims=True)
        total, gradient = _PENALTY * float((logs**2).sum()), 2 * _PENALTY * logs
        for share, off, sign in (
            (1 - _OF_STEPS, (eager - made) - (before - after), -1.0),
            (_OF_STEPS, made - after, 1.0),
        ):
            scaled = off / _TOLERANCE
            bend = np.sqrt(1 + scaled**2)
            total += share * float((weights * (bend - 1)).sum()) * _TOLERANCE
            gradient = gradient + share * sign * (weights * scaled / bend) @ slope
        return total, gradient

    found = minimize(loss, np.zeros(work.shape[1]), jac=True, method="L-BFGS-B")
    return CompiledKernels(classes=COMPILED_CLASSES, times=np.exp(found.x).round(4))


def predicted_logs(pair: WorkOfPair, kernels: CompiledKernels) -> tuple[float, float]:
    """Logarithms of the predicted speed-up and of the compiled step's time over the measured."""
    made = float(np.log(pair.work_s @ kernels.times))
    before, after = np.log(pair.measured_s)
    return float(np.log(pair.eager_s) - made - (before - after)), float(made - after)


def with_compiled(model: GpuModel, fold: int | None) -> GpuModel:
    """The model with compiled kernels that have not seen a fold of families; None: all were seen.

    Raises:
        ConfigError: the file is of another version.
    """
    known = json.loads(COMPILED_FILE.read_text(encoding="utf-8"))
    name = _ALL if fold is None else f"fold {fold}"
    return replace(
        model, compiled=from_json(CompiledKernels, known[name], where=COMPILED_FILE.name)
    )
