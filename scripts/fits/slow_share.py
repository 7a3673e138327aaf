"""Which kernels follow a faster memory: the two numbers of `driple.simulate.gpu_kernels`.

    python -m scripts.fits.slow_share

An H200 is an H100 with faster memory. For each part of each step that we measured on both
(datasets/runs/measured-h100, datasets/runs/measured-h200), the time on the H200 over that on the
H100 is predicted with many pairs of `SLOW_SHARE` and `SLOW_POWER`; prints the errors, and those of
the pair with the least one by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.runs.step_store import StepStore
from driple.simulate.calibration import shipped_calibration
from driple.simulate.device_models import CalibratedDevice
from driple.simulate.gpu_kernels import kernel_seconds, shares_with
from driple.simulate.gpu_times import PIPES, GpuEfficiency, most_shares, peak_seconds
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import (
    kinds_of_parts,
    seconds_of_parts,
    stored_job,
)

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
KNOWN, FASTER = (
    DATASETS / "runs" / "measured-h100",
    DATASETS / "runs" / "measured-h200",
)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
POWERS = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
_SHORTEST_S = 3e-4  # of a part; shorter ones measure how kernels are launched

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOfBoth:
    """A part of a step that ran on both devices; arrays of length n, one per kind of op.

    Attributes:
        part: convolutions, norms, ...
        runs: executions.
        compute_s: of the multiply-adds, on either device.
        memory_s: of the bytes at the H100's peak.
        channel_s: of the block of one channel, which does not wait for the memory.
        shares: shape [n, 2], that the kernels reach on the H100.
        memory: of the peak bytes/s that the H100 reaches.
        measured: logarithm of the H200's seconds over the H100's.
        weight: root of the part's share of the step.
    """

    part: str
    runs: FloatArray
    compute_s: FloatArray
    memory_s: FloatArray
    channel_s: FloatArray
    shares: FloatArray
    memory: float
    measured: float
    weight: float

    def error(
        self, efficiency: GpuEfficiency, gain: float, *, slow_share: float, power: float
    ) -> float:
        """Predicted minus measured logarithm."""
        other = shares_with(self.shares, gain, slow_share=slow_share, power=power)
        before = self._seconds(efficiency, self.shares[:, 1])
        after = self._seconds(efficiency, other[:, 1] * gain)
        return float(np.log(after / before)) - self.measured

    def _seconds(self, efficiency: GpuEfficiency, reached: FloatArray) -> float:
        kernels = efficiency.kernels
        each_s = kernel_seconds(
            self.compute_s, self.memory_s / (reached * self.memory),
            np.full(len(self.runs), kernels.start_s), self.channel_s, np.zeros(len(self.runs)),
            sharpness=kernels.sharpness, xp=np,
        )  # fmt: skip
        return float((each_s * self.runs).sum())


def parts_of_both() -> Iterator[PartOfBoth]:
    """Parts of steps that ran on both devices."""
    device = shipped_calibration().device("H100")
    efficiency = _gpu(device)
    own = np.array([getattr(efficiency.shares, pipe) for pipe in PIPES])
    known, faster = seconds_of_parts(KNOWN), seconds_of_parts(FASTER)
    store = StepStore.open(KNOWN)
    for row in read_profiled_runs(KNOWN / MEASURED_FILE):
        job = stored_job(row, store) if row.key in known and row.key in faster else None
        if job is None:
            continue
        total = sum(known[row.key].values())
        for part, kinds in kinds_of_parts(job):
            before, after = known[row.key].get(part, 0.0), faster[row.key].get(part, 0.0)
            if before < _SHORTEST_S or after <= 0:
                continue
            table = kinds.table
            peaks = peak_seconds(table, device.spec)
            shares = efficiency.kernels.shares(peaks.facts, job.runtime)
            reached = np.minimum(shares[:, 0] * own[peaks.pipes], most_shares(peaks.pipes))
            runs = kinds.executions * (table.moved > 0)[kinds.kind_of]
            yield PartOfBoth(
                part=part,
                runs=np.bincount(kinds.kind_of, runs, len(table.moved)).astype(np.float64),
                compute_s=peaks.compute_s / reached,
                memory_s=peaks.memory_s,
                channel_s=peaks.channel_s(efficiency.kernels, job.runtime),
                shares=shares,
                memory=efficiency.shares.memory,
                measured=float(np.log(after / before)),
                weight=float((before / total) ** 0.5),
            )


def errors(parts: Sequence[PartOfBoth], slow_share: float, power: float) -> FloatArray:
    """Of each part, with a share and a power in place of those that ship."""
    known, faster = (shipped_calibration().device(name) for name in ("H100", "H200"))
    gain = faster.spec.bytes_per_s / known.spec.bytes_per_s
    return np.array(
        [one.error(_gpu(known), gain, slow_share=slow_share, power=power) for one in parts]
    )


def _gpu(device: CalibratedDevice) -> GpuEfficiency:
    if not isinstance(device.efficiency, GpuEfficiency):
        raise TypeError(f"{device.spec.name} is no GPU")
    return device.efficiency


def mean_errors(parts: Sequence[PartOfBoth]) -> Mapping[tuple[float, float], float]:
    """Weighted mean of the absolute errors by share and power."""
    weights = np.array([one.weight for one in parts])
    return {
        pair: float(np.average(np.abs(errors(parts, *pair)), weights=weights))
        for pair in product(SHARES, POWERS)
    }


def main() -> None:
    """Print the tables."""
    parts = list(parts_of_both())
    error_of = mean_errors(parts)
    plain = np.average(np.abs(errors(parts, 1e-9, 2.0)), weights=[one.weight for one in parts])
    print(f"{len(parts)} parts; error if all kernels follow the memory: {100 * plain:.1f} %")
    for share in SHARES:
        cells = "  ".join(f"{100 * error_of[share, power]:5.2f}" for power in POWERS)
        print(f"share {share}, powers {POWERS}: {cells}")
    best = min(error_of, key=lambda pair: error_of[pair])
    print(f"least: share {best[0]}, power {best[1]}; by part, measured and predicted H200 / H100:")
    off = errors(parts, *best)
    for name in sorted({one.part for one in parts}):
        some = [i for i, one in enumerate(parts) if one.part == name]
        measured = np.array([parts[i].measured for i in some])
        medians = np.exp([np.median(measured), np.median(measured + off[some])])
        print(f"{name}: {len(some)} steps, {medians[0]:.2f}, {medians[1]:.2f}")


if __name__ == "__main__":
    main()
