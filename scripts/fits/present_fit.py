"""Fit of the kernels of PyTorch's present libraries to kernels that a profiler timed; needs torch.

    parts of steps, each with a fit that has not seen its family --> PresentKernels

What the network of `GpuKernels` leaves is fitted: factors of the kernels that PyTorch picks, and
seconds to start kernels. Each part is priced by the fit that has not seen its family, so that what
is left is what is left of unseen families. `scripts.fits.present_kernels` writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.codec import from_json
from driple.simulate.device_models import GpuModel
from driple.simulate.gpu_kernels import kernel_seconds
from driple.simulate.gpu_times import PIPES, inner_starts, most_shares, peak_seconds
from driple.simulate.kernel_picks import PICKS
from driple.simulate.prepared_job import OpKinds
from driple.simulate.present_kernels import STARTS, PresentKernels, log_factors, start_rows
from scripts.fits.fit_table import StepRow

__all__ = ["ALL", "PRESENT_FILE", "PartOps", "fit_present", "part_ops", "with_present"]

FloatArray = npt.NDArray[np.float64]

PRESENT_FILE = Path(__file__).with_name("present.json")
ALL = "all"  # the fit that has seen all families
# Where the fit begins, in microseconds: the fastest kernels of each kind, times their number.
_START_US: Mapping[str, float] = {
    **dict.fromkeys(STARTS, 2.0), "cast": 1.5, "map": 1.5, "softmax": 1.5, "reduction": 2.5,
    "indexed": 2.5, "pooling": 3.5, "pooling_gradient": 3.5, "norm": 3.0, "norm_gradient": 4.0,
    "matmul": 4.0, "attention": 6.0, "recurrent": 3.0, "convolution": 4.5,
    "convolution_apart": 7.0, "depthwise_convolution": 4.5, "grouped_convolution": 8.0,
}  # fmt: skip
_TURN_US = (4.5, 3.5)  # of a group, of a recurrent layer's kernel
_STEPS, _RATE, _TOLERANCE = 200, 0.03, 0.05
_PICK_PENALTY, _START_PENALTY = 1e-4, 1.2e-3
_MS, _US = 1e3, 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOps:
    """The ops of one part of a step, at what a fit's kernels reach; arrays of length n.

    Attributes:
        seconds: measured.
        weight: in the fit.
        update_s: seconds of the optimizer's update, if it belongs to the part.
        runs: executions.
        compute_s: of the multiply-adds.
        least_s: what they take at least.
        memory_s: of the bytes.
        channel_s: of the blocks of one channel.
        apart: kernels of a sort.
        picks: shape [n, P].
        turns: shape [n, T].
        starts: position in `STARTS`.
        sharpness: with which compute and memory meet.
    """

    seconds: float
    weight: float
    update_s: float
    runs: FloatArray
    compute_s: FloatArray
    least_s: FloatArray
    memory_s: FloatArray
    channel_s: FloatArray
    apart: FloatArray
    picks: FloatArray
    turns: FloatArray
    starts: npt.NDArray[np.int64]
    sharpness: float


def part_ops(kinds: OpKinds, step: StepRow, model: GpuModel) -> PartOps:
    """The ops of a part as a fit prices them, without present kernels."""
    count = len(kinds.table.moved)
    runs = np.bincount(kinds.kind_of, kinds.executions, count).astype(np.float64)
    some = np.flatnonzero((kinds.table.moved > 0) & (runs > 0))
    table = kinds.table.take(some)
    efficiency, _ = model.of(step.device, 1.0)
    peaks = peak_seconds(table, step.device)
    shares = replace(efficiency, present=None).kernel_shares(peaks.facts, step.runtime)
    own = np.array([getattr(efficiency.shares, pipe) for pipe in PIPES])[peaks.pipes]
    most = most_shares(peaks.pipes)
    rate = step.device.bytes_per_s * efficiency.shares.memory * efficiency.kernels.update_share
    update_s = step.update.moved_bytes / rate
    return PartOps(
        seconds=step.seconds,
        weight=step.weight,
        update_s=update_s + step.update.num_kernels * efficiency.kernels.start_s,
        runs=runs[some],
        compute_s=peaks.compute_s / np.minimum(shares[:, 0] * own, most),
        least_s=peaks.compute_s / most,
        memory_s=peaks.memory_s / (shares[:, 1] * efficiency.shares.memory),
        channel_s=peaks.channel_s(efficiency.kernels, step.runtime),
        apart=inner_starts(table, step.runtime)[1],
        picks=peaks.facts.picks,
        turns=peaks.facts.turns,
        starts=start_rows(peaks.facts),
        sharpness=efficiency.kernels.sharpness,
    )


def fit_present(parts: Sequence[PartOps]) -> PresentKernels:
    """The most likely numbers, given parts and where the fit begins."""
    import torch  # an extra, loaded when something is fitted

    def joined(name: str) -> Any:
        return torch.tensor(np.concatenate([getattr(one, name) for one in parts]))

    def each(name: str) -> Any:
        return torch.tensor([getattr(one, name) for one in parts], dtype=torch.float64)

    lengths = torch.tensor([len(one.runs) for one in parts])
    row_of = torch.repeat_interleave(torch.arange(len(parts)), lengths)
    columns = {
        name: joined(name)
        for name in ("runs", "compute_s", "least_s", "memory_s", "channel_s", "apart", "picks",
                     "turns", "starts")
    }  # fmt: skip
    sharpness, measured = each("sharpness")[row_of], each("seconds").log()
    weights = each("weight") / each("weight").sum()
    usual = torch.tensor([_START_US[name] * _US for name in STARTS], dtype=torch.float64).log()
    usual_turn = torch.tensor(np.log(np.array(_TURN_US) * _US))
    pick = torch.zeros((len(PICKS), 2), dtype=torch.float64, requires_grad=True)
    start, turn = usual.clone().requires_grad_(), usual_turn.clone().requires_grad_()

    def predicted_s() -> Any:
        factors = (-log_factors(pick, columns["picks"], torch)).exp()
        start_s = start.exp()
        each_s = kernel_seconds(
            torch.maximum(columns["compute_s"] * factors[:, 0], columns["least_s"]),
            columns["memory_s"] * factors[:, 1],
            start_s[columns["starts"]] + columns["apart"] * start_s[STARTS.index("indexed")],
            columns["channel_s"],
            columns["turns"] @ turn.exp(),
            sharpness=sharpness,
            xp=torch,
        )
        sums = torch.zeros(len(parts), dtype=torch.float64)
        return sums.index_add(0, row_of, each_s * columns["runs"]) + each("update_s")

    def penalty() -> Any:
        moved = ((start - usual) ** 2).sum() + ((turn - usual_turn) ** 2).sum()
        return _PICK_PENALTY * (pick**2).sum() + _START_PENALTY * moved

    optimizer = torch.optim.Adam([pick, start, turn], lr=_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, _RATE, total_steps=_STEPS, pct_start=0.1
    )
    for _ in range(_STEPS):
        off = (predicted_s().log() - measured) / _TOLERANCE
        # Errors far out count by their size: some models run kernels that no pick names.
        loss = (weights * ((1 + off * off).sqrt() - 1)).sum() * _TOLERANCE + penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return PresentKernels(
        picks=PICKS,
        starts=STARTS,
        pick=pick.detach().numpy().round(4),
        start_s=start.detach().exp().numpy().round(9),
        turn_s=turn.detach().exp().numpy().round(9),
    )


def with_present(model: GpuModel, fold: int | None) -> GpuModel:
    """The model with present kernels that have not seen a fold of families; None: all were seen.

    Raises:
        ConfigError: the file is of another version.
    """
    known = json.loads(PRESENT_FILE.read_text(encoding="utf-8"))
    name = ALL if fold is None else f"fold {fold}"
    return replace(model, present=from_json(PresentKernels, known[name], where=PRESENT_FILE.name))
