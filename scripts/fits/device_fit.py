"""Fit of the GPU model to published times of whole steps; needs torch.

    FitTable (seconds at the peaks of each kind of op) -> GpuModel

All devices, models and frameworks are fitted together: that a grouped convolution falls further
short of the peak than a dense one holds on every device, so few rows tell of a new one. What a
device reaches is shrunk towards its generation, and a generation towards all (partial pooling).
Sources differ by hosts and drivers that nobody describes: each has an offset of its own in the fit,
which predictions leave out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from driple.catalog import Device
from driple.simulate.calibration import GpuModel
from driple.simulate.gpu_kernels import (
    CHANNEL_RATES,
    INPUTS,
    GpuKernels,
    Runtime,
    kernel_seconds,
    log_shares,
    smooth_max,
)
from driple.simulate.gpu_rates import (
    REPLAYED_TENSOR_OPS,
    TENSOR_OPS,
    GpuReached,
    GpuShares,
    HostPace,
    balance_factor,
    is_better,
    peaks,
)
from driple.simulate.gpu_times import most_shares
from scripts.fits.fit_table import FitTable

__all__ = ["FitOptions", "fit_devices"]

SHARES = ("half", "tf32", "plain", "memory")
PACES = ("op_s", "torch1_op_s", "tensorflow_op_s", "compiled_s", "update_s", "step_s")
_MOST_ROUNDS, _ROUNDING = 200, 1e-9
_FILLS = ("fill", "fill_like")  # write memory and do nothing else, as element-wise kinds
_MS = 1e3  # the fit computes in milliseconds, in single precision


@dataclass(frozen=True, kw_only=True, slots=True)
class FitOptions:
    """How it is fitted.

    Attributes:
        steps: of the optimizer.
        rate: its learning rate.
        width: of the hidden layers.
        kind_penalty: on squares of offsets of kinds and of linear weights.
        map_penalty: on those of element-wise kinds, whose kernels are alike: without it, a kind
            that one family alone uses takes up what else is odd about that family.
        net_penalty: on squares of the network's weights.
        share_penalty: on squares of deviations of devices.
        source_penalty: on mean squares of what sources add.
        order_penalty: on squares of what a device's rates (logarithms) lie below those of one that
            is worse in every field. Within the fit the rows decide which of both gives way.
        tolerance: of the logarithm of a time; larger errors count by their size, not its square.
        seed: of the network's first weights.
    """

    steps: int = 400
    rate: float = 0.02
    width: int = 32
    kind_penalty: float = 3e-5
    map_penalty: float = 1e-3
    net_penalty: float = 1e-5
    share_penalty: float = 3e-4
    source_penalty: float = 10.0
    order_penalty: float = 1.0
    tolerance: float = 0.05
    seed: int = 0


USUAL_FIT = FitOptions()


def fit_devices(
    table: FitTable,
    options: FitOptions = USUAL_FIT,
    progress: Callable[[int, float], None] = lambda _, __: None,
) -> GpuModel:
    """The most likely numbers, given rows and priors.

    Args:
        table: the rows.
        options: how it is fitted.
        progress: given the step and the loss.
    """
    import torch  # an extra, loaded when something is fitted

    torch.manual_seed(options.seed)
    parameters = _Parameters(table, options, torch)
    optimizer = torch.optim.Adam(parameters.parameters(), lr=options.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=options.steps, pct_start=0.1
    )
    measured = torch.tensor([row.seconds * _MS for row in table.rows], dtype=torch.float32).log()
    weights = torch.tensor([row.weight for row in table.rows], dtype=torch.float32)
    weights = weights / weights.sum()
    data = _Data(table, torch)
    for step in range(options.steps):
        off = (
            parameters.step_ms(data).log() + parameters.source_offsets(data) - measured
        ) / options.tolerance
        # Least absolute deviations far out: some systems were throttled, and nobody says which.
        fit = (weights * ((1 + off * off).sqrt() - 1)).sum() * options.tolerance
        loss = fit + parameters.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        progress(step, float(fit.detach()))
    return parameters.model()


class _Data:
    """A table as torch's tensors, in milliseconds."""

    def __init__(self, table: FitTable, torch: Any) -> None:
        def single(values: Any) -> Any:
            return torch.tensor(np.asarray(values), dtype=torch.float32)

        names = sorted({row.device.name for row in table.rows})
        sources = sorted({row.source for row in table.rows})
        self.count = len(table.rows)
        device_of = np.array([names.index(row.device.name) for row in table.rows])
        # Most ops are in many steps: each is worked out once, and counted in each step.
        runs = np.maximum(table.runs, _ROUNDING)
        ops = np.stack(
            [
                device_of[table.row_of], table.input_of, table.pipes, table.channel_rows,
                *(values / runs for values in
                  (table.compute_s, table.memory_s, table.channel_elements)),
            ],
            axis=1,
        )  # fmt: skip
        _, some, op_of = np.unique(
            np.ascontiguousarray(ops).view(np.void(ops[0].nbytes)).ravel(),
            return_index=True, return_inverse=True,
        )  # fmt: skip
        counts = torch.sparse_coo_tensor(
            torch.tensor(np.stack([table.row_of, op_of.ravel()])),
            single(table.runs),
            (self.count, len(some)),
            check_invariants=False,
        )
        self.sums_of_rows = _sums_of_rows(counts, torch)
        self.compute, self.memory, self.elements = (
            single(ops[some, column] * _MS) for column in (4, 5, 6)
        )
        self.no_turns = torch.zeros(len(some))  # facts of turns are fitted after this
        self.channel_rows = torch.tensor(table.channel_rows[some])
        self.inputs = single(table.inputs)
        self.most = single(np.log(most_shares(table.pipes[some])))
        self.input_of = torch.tensor(table.input_of[some])
        self.kind_of = torch.tensor(table.kind_of)
        self.device_of = torch.tensor(device_of)
        first = device_of[table.row_of[some]] * len(SHARES)  # among all devices' shares in a row
        self.pipe_of = torch.tensor(first + table.pipes[some])
        self.memory_of = torch.tensor(first + SHARES.index("memory"))
        self.source_of = torch.tensor([sources.index(row.source) for row in table.rows])
        rows = table.rows
        self.update_ms = single(
            [_MS * row.update.moved_bytes / row.device.bytes_per_s for row in rows]
        )
        self.update_kernels = single([row.update.num_kernels for row in rows])
        replays = np.array([row.runtime.cuda_graphs for row in rows])  # its kernels, at once
        self.tensor_ops = single(
            np.where(replays, REPLAYED_TENSOR_OPS, TENSOR_OPS) * [row.tensors for row in rows]
        )
        launches = np.bincount(table.row_of, table.launches + table.handed, len(rows))
        self.step_launches = single(launches * ~replays)
        self.step_starts = single(
            np.bincount(table.row_of, table.launches + table.apart, len(rows))
        )
        self.hosted = single([not row.alone for row in rows])
        self.step_runs = single(np.bincount(table.row_of, table.runs + table.handed, len(rows)))
        self.pace_of = torch.tensor([PACES.index(_pace(row.runtime)) for row in rows])
        eager = [replace(row.runtime, compiled=False) for row in rows]
        self.eager_pace_of = torch.tensor([PACES.index(_pace(one)) for one in eager])


def _sums_of_rows(counts: Any, torch: Any) -> Callable[[Any], Any]:
    """Product of a sparse matrix and a vector, with its gradient.

    By compressed rows of the matrix and of its transpose, which takes a fifteenth of what PyTorch's
    own product of pairs of coordinates takes.
    """
    with warnings.catch_warnings():  # that compressed rows are in beta state
        warnings.simplefilter("ignore")
        matrix = counts.coalesce().to_sparse_csr()
        transpose = counts.t().coalesce().to_sparse_csr()

    class Sums(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(_: Any, values: Any) -> Any:
            return matrix.mv(values)

        @staticmethod
        def backward(_: Any, gradient: Any) -> Any:
            return transpose.mv(gradient)

    product: Callable[[Any], Any] = Sums.apply
    return product


def _pace(runtime: Runtime) -> str:
    if runtime.compiled:
        return "compiled_s"
    return {"torch1": "torch1_op_s", "tensorflow": "tensorflow_op_s"}.get(runtime.library, "op_s")


class _Parameters:
    """The numbers that are fitted, as deviations from where the fit begins."""

    def __init__(self, table: FitTable, options: FitOptions, torch: Any) -> None:
        self._torch, self._options, self._kinds = torch, options, table.kinds
        self._devices = {row.device.name: row.device for row in table.rows}
        names = sorted(self._devices)
        self._names = names
        self._device_weights = dict.fromkeys(names, 0.0)
        for row in table.rows:
            self._device_weights[row.device.name] += row.weight
        self._generations = sorted({self._devices[name].generation for name in names})
        self._generation_of = [
            self._generations.index(self._devices[name].generation) for name in names
        ]
        self._balance = torch.tensor(
            [float(balance_factor(self._devices[name], -1.0)) for name in names]
        )
        pairs = _ordered_pairs(self._devices)
        self._better = torch.tensor([names.index(better) for better, _ in pairs], dtype=torch.long)
        self._worse = torch.tensor([names.index(worse) for _, worse in pairs], dtype=torch.long)
        self._log_peaks = torch.tensor(
            [[peaks(self._devices[name])[share] for share in SHARES] for name in names]
        ).log()
        is_map = np.zeros(len(table.kinds), dtype=np.bool_)
        is_map[table.kind_of[table.inputs[:, INPUTS.index("map")] > 0]] = True
        is_map |= np.isin(table.kinds, _FILLS)
        self._kind_penalties = torch.tensor(
            np.where(is_map, options.map_penalty, options.kind_penalty), dtype=torch.float32
        )
        width, kinds, count = options.width, len(table.kinds), len(INPUTS)

        def zeros(*shape: int) -> Any:
            return torch.zeros(*shape, requires_grad=True)

        def drawn(rows: int, columns: int) -> Any:
            return (torch.randn(rows, columns) / rows**0.5).requires_grad_()

        self.weights: dict[str, Any] = {
            "linear": zeros(count, 2),
            "hidden": drawn(count, width),
            "hidden_bias": zeros(width),
            "second": drawn(width, width),
            "second_bias": zeros(width),
            "out": zeros(width, 2),
            "kind_offset": zeros(kinds, 2),
            "kind_last_offset": zeros(kinds, 2),
        }
        self.usual = zeros(len(SHARES))
        self.of_generation = zeros(len(self._generations), len(SHARES))
        self.of_device = zeros(len(names), len(SHARES))
        self.fall = torch.tensor(0.2, requires_grad=True)
        sources = sorted({row.source for row in table.rows})
        weights = dict.fromkeys(sources, 0.0)
        for row in table.rows:
            weights[row.source] += row.weight
        shares = np.array([weights[source] for source in sources])
        self._source_weights = torch.tensor(shares / shares.sum(), dtype=torch.float32)
        self.of_source = zeros(len(sources))
        self.paces = torch.tensor([-11.5, -11.5, -11.5, -12.5, -12.0, -8.5], requires_grad=True)
        self.sharpness = torch.tensor(1.5, requires_grad=True)
        self.start = torch.tensor(-12.5, requires_grad=True)
        self.update = torch.tensor(-0.2, requires_grad=True)
        rates = torch.tensor(list(CHANNEL_RATES.values()), dtype=torch.float32)
        self.channel_rates = rates.log().requires_grad_()
        self.host_sharpness = 6.0

    def parameters(self) -> list[Any]:
        """All of them."""
        return [
            *self.weights.values(), self.usual, self.of_generation, self.of_device, self.fall,
            self.of_source, self.paces, self.sharpness, self.start, self.update, self.channel_rates,
        ]  # fmt: skip

    def penalty(self) -> Any:
        """What it costs to be far from where the fit begins."""
        options = self._options
        square = {name: (value**2).sum() for name, value in self.weights.items()}
        offsets = (self.weights["kind_offset"] ** 2 + self.weights["kind_last_offset"] ** 2).sum(1)
        of_kinds = (self._kind_penalties * offsets).sum() + options.kind_penalty * square["linear"]
        net = square["hidden"] + square["second"] + square["out"]
        shares = (
            (self.of_device**2).sum() * 4
            + (self.of_generation**2).sum()
            + (self.usual**2).sum()
            + (self.fall - 0.2) ** 2 * 4
        )
        sources = (self._source_weights * (self.of_source - self._mean_source()) ** 2).sum()
        return (
            of_kinds
            + options.net_penalty * net
            + options.share_penalty * shares
            + options.source_penalty * sources
            + options.order_penalty * self._disorder()
        )

    def _disorder(self) -> Any:
        """Sum of squares of what better devices' rates lie below those of worse ones."""
        rates = self._log_device_shares() + self._log_peaks
        below = (rates[self._worse] - rates[self._better]).clamp(min=0.0)
        return (below**2).sum()

    def _log_device_shares(self) -> Any:
        """Shape [devices, SHARES]."""
        logs = self.usual + self.of_generation[self._generation_of] + self.of_device
        tensor = self._torch.tensor([1.0, 1.0, 0.0, 0.0])
        return logs - self.fall * self._balance.log()[:, None] * tensor

    def step_ms(self, data: _Data) -> Any:
        """Milliseconds of each step."""
        torch = self._torch
        logs = log_shares(self.weights, data.inputs, data.kind_of, torch)
        logs = logs.index_select(0, data.input_of)
        shares = self._log_device_shares().flatten()
        own = shares.index_select(0, data.pipe_of)
        memory = shares.index_select(0, data.memory_of)
        busy_ms = kernel_seconds(
            data.compute * (-torch.minimum(logs[:, 0] + own, data.most)).exp(),
            data.memory * (-(logs[:, 1] + memory)).exp(),
            0.0,
            data.elements * (-self.channel_rates[data.channel_rows]).exp(),
            data.no_turns,
            sharpness=1 + self.sharpness.exp(),
            xp=torch,
        )
        start_ms = self.start.exp() * _MS
        of_device = data.sums_of_rows(busy_ms) + data.step_starts * start_ms
        memory = self._log_device_shares()[data.device_of, SHARES.index("memory")]
        of_device = of_device + data.update_ms * (-(self.update + memory)).exp()
        of_device = of_device + data.update_kernels * start_ms
        pace = self.paces.exp() * _MS
        each_ms = torch.minimum(
            data.step_launches * pace[data.pace_of], data.step_runs * pace[data.eager_pace_of]
        )
        host = (
            each_ms
            + data.tensor_ops * pace[data.eager_pace_of]
            + data.update_kernels * pace[PACES.index("update_s")]
            + pace[PACES.index("step_s")]
        ) * data.hosted
        return smooth_max(of_device, host, self.host_sharpness, torch)

    def source_offsets(self, data: _Data) -> Any:
        """Logarithm of what each row's source adds to its time, beyond the mean source."""
        return (self.of_source - self._mean_source())[data.source_of]

    def _mean_source(self) -> Any:
        return (self._source_weights * self.of_source).sum()

    def unordered(self) -> Mapping[str, GpuShares]:
        """Shares of the measured devices as the rows have them."""
        return _shares(self._names, self._log_device_shares().detach())

    def model(self) -> GpuModel:
        """The numbers that were found, in NumPy's arrays."""
        arrays = {
            name: np.round(value.detach().numpy().astype(np.float64), 5)
            for name, value in self.weights.items()
        }
        kernels = GpuKernels(
            kinds=self._kinds,
            inputs=INPUTS,
            sharpness=round(1 + float(self.sharpness.detach().exp()), 4),
            start_s=float(self.start.detach().exp()),
            update_share=float(self.update.detach().exp()),
            channel_rates=self.channel_rates.detach().exp().numpy().astype(np.float64).round(-6),
            **arrays,
        )
        usual = self.usual.detach()
        generations = usual + self.of_generation.detach()
        paces = dict(zip(PACES, self.paces.detach().exp().tolist(), strict=True))
        return GpuModel(
            kernels=kernels,
            devices=GpuReached(
                measured=_in_order(self.unordered(), self._devices, self._device_weights),
                generations=_shares(self._generations, generations),
                usual=_shares([""], usual[None])[""],
                tensor_fall=float(self.fall.detach()),
            ),
            host=HostPace(sharpness=self.host_sharpness, **paces),
        )


def _in_order(
    measured: Mapping[str, GpuShares],
    devices: Mapping[str, Device],
    weights: Mapping[str, float],
) -> Mapping[str, GpuShares]:
    """Shares such that no device is slower than one that is worse in every field.

    Where measurements contradict that, both get the mean of their rates, weighted by their rows: a
    device of few rows gives way to one of many. (Four steps of a Titan V, which is better than a
    2080 Ti in every field and was measured slower, had made 78 steps of the latter 17 % too slow.)

    Args:
        measured: shares as the rows have them.
        devices: by name.
        weights: of all rows of each device.
    """
    shares_of = {name: dict(asdict(shares)) for name, shares in measured.items()}
    pairs = _ordered_pairs({name: devices[name] for name in shares_of})
    for share in SHARES:
        rates = {name: shares_of[name][share] * peaks(devices[name])[share] for name in shares_of}
        for _ in range(_MOST_ROUNDS):
            wrong = [pair for pair in pairs if rates[pair[0]] < rates[pair[1]] * (1 - _ROUNDING)]
            for better, worse in wrong:
                if rates[better] < rates[worse]:
                    total = weights[better] + weights[worse]
                    own = weights[better] / total if total > 0 else 0.5
                    rates[better] = rates[worse] = rates[better] ** own * rates[worse] ** (1 - own)
            if not wrong:
                break
        for better, worse in pairs:  # what rounds left
            rates[better] = max(rates[better], rates[worse])
        for name, rate in rates.items():
            shares_of[name][share] = rate / peaks(devices[name])[share]
    return {name: GpuShares(**shares) for name, shares in shares_of.items()}


def _ordered_pairs(devices: Mapping[str, Device]) -> list[tuple[str, str]]:
    """Names of a better and a worse device, for every such pair."""
    return [
        (better, worse)
        for better in devices
        for worse in devices
        if is_better(devices[better], devices[worse])
    ]


def _shares(names: Sequence[str], logs: Any) -> Mapping[str, GpuShares]:
    """From logarithms of shape [names, SHARES]."""
    return {
        name: GpuShares(**dict(zip(SHARES, row, strict=True)))
        for name, row in zip(names, logs.exp().tolist(), strict=True)
    }
