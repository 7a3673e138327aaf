"""How long the kernels of a GPU take: bounded by its peaks, and by what kernels reach of them.

    OpFacts, Runtime -> inputs [n, I] --GpuKernels--> share of the peak FLOP/s and bytes/s, [n, 2]
    seconds at the peaks / shares -> seconds of each kernel

The share that a kernel reaches depends on what it computes: a depthwise convolution with its
channels last runs by another algorithm than one of eight groups. A small network of two hidden
layers, fitted to published times of whole steps (`scripts.fits.device_fit`), gives both
shares from facts of the op that do not grow with the batch; each kind of op has its own offset. So
a larger batch never takes less time, and a device with higher rates never takes more.

The functions of this module take NumPy's arrays, or torch's with `xp=torch` when they are fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driple.checks import check_choice, check_number
from driple.errors import ConfigError
from driple.graph.torch.options import LIBRARIES as TORCH_LIBRARIES
from driple.graph.torch.options import Library as TorchLibrary
from driple.simulate.op_facts import FACTS, GROUPS, OpFacts, grouped_share

__all__ = [
    "ARRAYS",
    "CHANNEL_RATES",
    "INPUTS",
    "LIBRARIES",
    "GpuKernels",
    "Library",
    "Runtime",
    "channel_rows",
    "kernel_inputs",
    "kernel_seconds",
    "log_shares",
    "shares_with",
    "smooth_max",
]

FloatArray = npt.NDArray[np.float64]

# Generations of libraries: those of PyTorch, of which the first had cuDNN 8, and TensorFlow with
# cuDNN 7 and 8.
Library = TorchLibrary | Literal["tensorflow"]
LIBRARIES = (*TORCH_LIBRARIES, "tensorflow")
INPUTS = (*FACTS, *GROUPS, "compiled", "torch1", "tensorflow", "last_torch1", "grouped_torch1",
          "depthwise_torch1", "first_flash", "first_layer_norm_gradient")  # fmt: skip
ARRAYS = ("linear", "hidden", "hidden_bias", "second", "second_bias", "out", "kind_offset",
          "kind_last_offset")  # fmt: skip
_FIRST_FLASH = frozenset({"torch1", "torch2.1"})
# PyTorch 2.8 has another kernel for the gradients of a layer norm's weights (pull request 148605).
_FIRST_LAYER_NORM_GRADIENT = frozenset({"torch1", "torch2.1", "torch2.7"})
_COMPILED = INPUTS.index("compiled")
# Shares from which the fit begins: of the peak FLOP/s, of the peak bytes/s.
USUAL_SHARES = (0.6, 0.8)
# Shares end smoothly between these: Winograd's algorithm and caches let kernels pass a peak, and no
# kernel of which a step consists is slower than a hundredth of it.
_LEAST_SHARES, _MOST_SHARES, _BEND = (0.01, 0.01), (2.5, 1.5), 0.3
# Share of the peak bytes/s at which a kernel half follows a faster memory, and how sharply: what
# kernels of the same steps on an H100 and an H200 show (`scripts/fits/slow_share.py`).
SLOW_SHARE, SLOW_POWER = 0.5, 2.0
# Elements/s that the block of one channel moves in a batch norm, forward and backward: by cuDNN,
# and by PyTorch's own kernel. The fit begins with what kernels of an H100 and an H200 show.
CHANNEL_RATES: Mapping[str, float] = MappingProxyType({
    "cudnn": 4.0e9, "native": 3.8e9, "cudnn_gradient": 2.4e9, "native_gradient": 1.9e9,
})  # fmt: skip
_TINY_S, _TINY_RATIO = 1e-15, 1e-9


@dataclass(frozen=True, slots=True)
class Runtime:
    """The software that runs a step.

    Attributes:
        library: generation of the framework and its libraries.
        compiled: whether a compiler (`torch.compile`, XLA) fuses ops and picks kernels.
        cuda_graphs: whether the host replays a compiled step's kernels as CUDA graphs.
    """

    library: Library = "torch2"
    compiled: bool = False
    cuda_graphs: bool = False

    def __post_init__(self) -> None:
        check_choice("library", self.library, LIBRARIES)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GpuKernels:
    """What kernels reach of a GPU's peaks, the same on every GPU; two columns: FLOP/s, bytes/s.

    Attributes:
        kinds: kinds of ops with offsets of their own, length k.
        inputs: names of the inputs, `INPUTS` when it was fitted, length I.
        linear: shape [I, 2].
        hidden: shape [I, h].
        hidden_bias: shape [h].
        second: shape [h, h].
        second_bias: shape [h].
        out: shape [h, 2].
        kind_offset: shape [k, 2].
        kind_last_offset: shape [k, 2], added where channels are last in memory.
        sharpness: exponent p of (compute^p + memory^p)^(1/p), in which a kernel's two bounds meet.
        start_s: seconds that every kernel takes at least.
        update_share: share of the peak bytes/s that the optimizer's update reaches.
        channel_rates: elements/s of one channel's block, in the order of `CHANNEL_RATES`.

    Raises:
        ConfigError: arrays that do not fit together.
    """

    kinds: tuple[str, ...]
    inputs: tuple[str, ...]
    linear: FloatArray
    hidden: FloatArray
    hidden_bias: FloatArray
    second: FloatArray
    second_bias: FloatArray
    out: FloatArray
    kind_offset: FloatArray
    kind_last_offset: FloatArray
    sharpness: float
    start_s: float
    update_share: float
    channel_rates: FloatArray

    def __post_init__(self) -> None:
        check_number("sharpness", self.sharpness, least=1)
        check_number("start_s", self.start_s, least=0)
        check_number("update_share", self.update_share, above=0)
        if self.inputs != INPUTS:
            raise ConfigError(
                "the calibration's kernels take other inputs than this version of Driple gives; "
                "fit it again"
            )
        width = self.hidden_bias.shape[0] if self.hidden_bias.ndim == 1 else 0
        shapes = {
            "linear": (len(INPUTS), 2), "hidden": (len(INPUTS), width), "hidden_bias": (width,),
            "second": (width, width), "second_bias": (width,), "out": (width, 2),
            "kind_offset": (len(self.kinds), 2), "kind_last_offset": (len(self.kinds), 2),
            "channel_rates": (len(CHANNEL_RATES),),
        }  # fmt: skip
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise ConfigError(
                    f"{name} of the calibration's kernels must be finite numbers of shape "
                    f"{list(shape)}, got shape {list(array.shape)}"
                )

    def shares(self, facts: OpFacts, runtime: Runtime) -> FloatArray:
        """Shares of the peak FLOP/s and bytes/s that each op's kernel reaches, shape [n, 2]."""
        inputs = kernel_inputs(facts, runtime)
        weights = {name: getattr(self, name) for name in ARRAYS}
        logs = log_shares(weights, inputs, self.offsets(facts.kinds), np)
        shares: FloatArray = np.exp(logs)
        return shares

    def offsets(self, kinds: Sequence[str]) -> npt.NDArray[np.int64]:
        """Rows of `kind_offset` of some kinds; k for a kind without one."""
        place = {kind: i for i, kind in enumerate(self.kinds)}
        return np.array([place.get(kind, len(place)) for kind in kinds], dtype=np.int64)


def shares_with(
    shares: FloatArray,
    memory_gain: float,
    *,
    slow_share: float = SLOW_SHARE,
    power: float = SLOW_POWER,
) -> FloatArray:
    """Shares of the peaks of a chip with another memory than the one that they are known with.

    A kernel that reaches nearly all bytes/s follows the memory. One that reaches few of them waits
    for the chip, which is the same: its bytes/s stay, and with a faster memory its share falls.

    Args:
        shares: shape [n, 2], of the peak FLOP/s and bytes/s.
        memory_gain: bytes/s of this memory over those of the known one.
        slow_share: share of the peak bytes/s at which a kernel half follows.
        power: how sharply kernels divide there.
    """
    follows = 1.0 / (1.0 + (slow_share / shares[:, 1]) ** power)
    memory = shares[:, 1] * memory_gain ** (follows - 1.0)
    return np.stack([shares[:, 0], memory], axis=1)


def channel_rows(facts: OpFacts) -> npt.NDArray[np.int64]:
    """Position in `CHANNEL_RATES` of each op's block of a channel, if it has one; shape [n]."""
    native = facts.values[:, FACTS.index("native_norm")] > 0
    gradient = facts.groups == GROUPS.index("norm_gradient")
    rows: npt.NDArray[np.int64] = native + 2 * gradient.astype(np.int64)
    return rows


def kernel_inputs(facts: OpFacts, runtime: Runtime) -> FloatArray:
    """What the network takes of each op, shape [n, I]."""
    count = len(facts.kinds)
    columns = dict(zip(FACTS, facts.values.T, strict=True))
    groups = np.eye(len(GROUPS))[facts.groups]
    dense, grouped = (GROUPS.index(name) for name in ("convolution", "grouped_convolution"))
    share = grouped_share(columns["channel_groups"])
    groups[:, dense] += groups[:, grouped] * (1.0 - share)
    groups[:, grouped] *= share
    is_torch1 = np.full(count, float(runtime.library == "torch1"))
    depthwise = groups[:, GROUPS.index("depthwise_convolution")]
    of_layer_norms = np.array([kind == "layer_norm_gradient" for kind in facts.kinds], dtype=float)
    environment = (
        np.full(count, float(runtime.compiled)),
        is_torch1,
        np.full(count, float(runtime.library == "tensorflow")),
        is_torch1 * columns["channels_last"],
        is_torch1 * groups[:, grouped],
        is_torch1 * depthwise,
        float(runtime.library in _FIRST_FLASH) * groups[:, GROUPS.index("attention")],
        float(runtime.library in _FIRST_LAYER_NORM_GRADIENT) * of_layer_norms,
    )
    inputs: FloatArray = np.concatenate([facts.values, groups, np.stack(environment, axis=1)], 1)
    return inputs


def log_shares(weights: Mapping[str, Any], inputs: Any, kind_of: Any, xp: Any) -> Any:
    """Logarithms of the shares that kernels reach, shape [n, 2].

    A compiler takes no slower kernel than the one that runs without it: in 24 of 1,310 published
    pairs a compiled pass was slower than the same without.

    Args:
        weights: arrays by name, `ARRAYS` of `GpuKernels`.
        inputs: shape [n, I].
        kind_of: shape [n], row of each op's kind; k for a kind without offsets.
        xp: the module of the arrays, NumPy or torch.
    """
    logs = _own_log_shares(weights, inputs, kind_of, xp)
    compiled = inputs[:, _COMPILED] > 0
    if not bool(compiled.any()):
        return logs
    keeps = xp.asarray([name != "compiled" for name in INPUTS], dtype=inputs.dtype)
    eager = _own_log_shares(weights, inputs[compiled] * keeps, kind_of[compiled], xp)
    logs = logs + 0.0  # a copy
    logs[compiled] = xp.maximum(logs[compiled], eager)
    return logs


def _own_log_shares(weights: Mapping[str, Any], inputs: Any, kind_of: Any, xp: Any) -> Any:
    """The same, of ops compiled or not as they are given."""
    first = xp.tanh(inputs @ weights["hidden"] + weights["hidden_bias"])
    second = xp.tanh(first @ weights["second"] + weights["second_bias"])
    none = xp.zeros_like(weights["kind_offset"][:1])
    own = xp.concatenate([weights["kind_offset"], none])[kind_of]
    last = xp.concatenate([weights["kind_last_offset"], none])[kind_of]
    last = last * inputs[:, FACTS.index("channels_last")][:, None]
    usual = xp.log(xp.asarray(USUAL_SHARES, dtype=inputs.dtype))
    logs = usual + inputs @ weights["linear"] + second @ weights["out"] + own + last
    least = xp.log(xp.asarray(_LEAST_SHARES, dtype=inputs.dtype))
    most = xp.log(xp.asarray(_MOST_SHARES, dtype=inputs.dtype))
    logs = most - _BEND * xp.logaddexp((most - logs) / _BEND, xp.zeros_like(logs))
    return least + _BEND * xp.logaddexp((logs - least) / _BEND, xp.zeros_like(logs))


def kernel_seconds(
    compute_s: Any,
    memory_s: Any,
    start_s: Any,
    channel_s: Any,
    turns_s: Any,
    *,
    sharpness: Any,
    xp: Any,
) -> Any:
    """Seconds of kernels whose multiply-adds and memory traffic overlap.

    Args:
        compute_s: shape [n], seconds of the multiply-adds alone.
        memory_s: shape [n], seconds of the memory traffic alone.
        start_s: shape [n], seconds to start the kernels.
        channel_s: shape [n], seconds of the block of one channel, where each channel has one.
        turns_s: shape [n], seconds at least of kernels that follow one another.
        sharpness: see `GpuKernels`.
        xp: the module of the arrays.
    """
    work_s = smooth_max(compute_s, memory_s, sharpness, xp) + channel_s
    return smooth_max(work_s, turns_s, sharpness, xp) + start_s


def smooth_max(first: Any, other: Any, sharpness: Any, xp: Any) -> Any:
    """(first^p + other^p)^(1/p): the larger of two times, or a little more where they are alike."""
    larger, smaller = xp.maximum(first, other), xp.minimum(first, other)
    ratio = smaller / (larger + _TINY_S) + _TINY_RATIO  # both keep gradients finite at 0
    return larger * (1.0 + ratio**sharpness) ** (1.0 / sharpness)
