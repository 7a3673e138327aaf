"""What decides the ops of a PyTorch training step besides the model, such as its precision.

Imports no torch, so that a command can check the options before it loads a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from driple.checks import check_choice
from driple.errors import ConfigError
from driple.graph.low_precision import LOW_PRECISIONS, OTHER_SPELLINGS
from driple.graph.torch.lora import BASE_WEIGHTS, BaseWeights, LoraAdapters

__all__ = [
    "ACTIVATION_CHECKPOINTING",
    "LIBRARIES",
    "OPTIMIZERS",
    "PRECISIONS",
    "TASKS",
    "TRACE_MODES",
    "UPDATE_KINDS",
    "ActivationCheckpointing",
    "Kernels",
    "Library",
    "Precision",
    "StepOptions",
    "Task",
    "TraceMode",
    "compute_capability_of",
    "kernels_like",
    "kernels_of",
]

Precision = Literal[
    "fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16", "bf16-mixed", "fp16-mixed",
    "fp8", "fp8-block", "nvfp4",
]  # fmt: skip
ActivationCheckpointing = Literal["none", "full", "selective"]
TraceMode = Literal["meta", "real"]
Library = Literal["torch1", "torch2.1", "torch2.7", "torch2"]
Task = Literal["train", "forward"]
Kernels = Literal["gpu", "cpu"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
ACTIVATION_CHECKPOINTING: tuple[str, ...] = get_args(ActivationCheckpointing)
# Versions of PyTorch in each generation, whose kernels differ: before 2.0 no attention was fused,
# to 2.1 it was by the first version of flash attention; to 2.7 gradients of layer norms' weights
# took several times as long.
LIBRARIES: Mapping[Library, str] = MappingProxyType(
    {
        "torch1": "1.0 to 1.13",
        "torch2.1": "2.0 and 2.1",
        "torch2.7": "2.2 to 2.7",
        "torch2": "2.8 and later",
    }
)
TASKS: tuple[str, ...] = get_args(Task)
TRACE_MODES: tuple[str, ...] = get_args(TraceMode)
_FUSED, _MIXED = "-fused", "-mixed"
# Those that PyTorch has a fused kernel for.
_WITH_FUSED = ("sgd", "momentum", "adam", "adamw", "adagrad")
OPTIMIZERS: tuple[str, ...] = (
    "sgd", "momentum", "adam", "adamw", "adafactor", "lion", "adam8bit", "rmsprop", "adagrad",
    "lamb", "lars", "novograd",
    *(f"{name}{_FUSED}" for name in _WITH_FUSED),
)  # fmt: skip
# Kind of an update in `OpGraph.remote`.
UPDATE_KINDS: Mapping[str, str] = MappingProxyType(
    {name: f"update_{name}" for name in OPTIMIZERS if not name.endswith(_FUSED)}
    | {"novograd": "update_other"}
)

# NVIDIA: CUDA C++ programming guide, "Compute capabilities"; the data-centre device of each.
_CAPABILITIES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "Kepler": (3, 7), "Maxwell": (5, 2), "Pascal": (6, 0), "Volta": (7, 0), "Turing": (7, 5),
        "Ampere": (8, 0), "Ada": (8, 9), "Ada Lovelace": (8, 9), "Hopper": (9, 0),
        "Blackwell": (10, 0),
    }
)  # fmt: skip
# As `attention` decides by them.
_FUSED_FROM, _FLASH_FROM, _SMALL_SHARED_MEMORY = (5, 0), (8, 0), (8, 9)


def compute_capability_of(generation: str) -> tuple[int, int] | None:
    """Compute capability of a generation of NVIDIA's devices; None of any other."""
    return _CAPABILITIES.get(generation)


def kernels_like(generation: str, *, half: bool) -> tuple[int, int] | None:
    """A compute capability whose steps have the same kernels as a generation's.

    So that a step is read once for all devices that run it alike. Fused attention needs 5.0, in
    half precision 8.0 for the flash kernel; 8.9 lacks the shared memory for the widest heads.

    Args:
        generation: of the device.
        half: whether attention may be in half precision.
    """
    return kernels_of(compute_capability_of(generation), half=half)


def kernels_of(own: tuple[int, int] | None, *, half: bool) -> tuple[int, int] | None:
    """The same of a compute capability; None of none."""
    if own is None or own < _FUSED_FROM:
        return own
    if half and (own < _FLASH_FROM or own == _SMALL_SHARED_MEMORY):
        return own
    return _FLASH_FROM


@dataclass(frozen=True, kw_only=True, slots=True)
class StepOptions:
    """How a model is trained, or called.

    Attributes:
        precision: `fp32` is PyTorch's default (convolutions may use TF32, matrix products do not),
            `tf32` allows it for both; `bf16` and `fp16` cast the whole model; `amp-bf16` and
            `amp-fp16` are `torch.autocast`, the latter with a gradient scaler; `bf16-mixed` and
            `fp16-mixed` cast the model, and update a copy of the parameters in fp32, as FSDP's
            MixedPrecision, DeepSpeed and Megatron do. `fp8`, `fp8-block` and `nvfp4` are
            `bf16-mixed` whose linear layers multiply in 8 or 4 bits, scaled for each tensor, or for
            blocks of it.
        optimizer: one of `OPTIMIZERS`; PyTorch's default implementation (foreach), or `NAME-fused`.
        grad_accumulation: forward and backward passes for each update.
        activation_checkpointing: `full` recomputes each repeated block, `selective` keeps the
            results of matrix products and attention; calls in the model itself always count.
        clip_gradients: whether the norm of all gradients is clipped before the update.
        compiled: whether `torch.compile` fuses element-wise ops and reductions.
        cuda_graphs: whether the compiled step is replayed as CUDA graphs.
        tensor_overlap: whether devices that share tensors exchange them beside the products.
        compute_capability: of the device, which decides the kernel of attention; None if it has no
            fused attention.
        fused_attention: whether `scaled_dot_product_attention` may be one kernel; else the model
            multiplies, scales and takes the softmax by ops of their own, as before PyTorch 2.
        library: generation of PyTorch: `torch1` updates parameter by parameter.
        trace: `meta` follows shapes alone, `real` runs the step on the CPU.
        task: `train`, or `forward`: one forward pass in eval mode without gradients, as for
            inference; what concerns gradients and the update is then not read.
        channels_last: whether the model and its images are put in PyTorch's channels-last format.
        kernels: whose kernels and rules of autocast PyTorch chooses: a GPU's, or the CPU's, as in
            a real step on the CPU; that needs tensors on the CPU, with values or without.
        lora: adapters that are trained in place of the model; None trains the model.
        weights: how the frozen weights of linear layers are quantized; None leaves them as they
            are.
        fused_loss: whether the loss of a language model is computed without keeping its logits.
        fused_kernels: whether norms and gated activations are those of Liger-Kernel.
    """

    precision: Precision = "fp32"
    optimizer: str = "momentum"
    grad_accumulation: int = 1
    activation_checkpointing: ActivationCheckpointing = "none"
    clip_gradients: bool = False
    compiled: bool = False
    cuda_graphs: bool = False
    tensor_overlap: bool = False
    compute_capability: tuple[int, int] | None = (8, 0)
    fused_attention: bool = True
    trace: TraceMode = "meta"
    library: Library = "torch2"
    task: Task = "train"
    channels_last: bool = False
    kernels: Kernels = "gpu"
    lora: LoraAdapters | None = None
    weights: BaseWeights | None = None
    fused_loss: bool = False
    fused_kernels: bool = False

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, PRECISIONS, OTHER_SPELLINGS)
        if self.optimizer not in OPTIMIZERS:
            raise ConfigError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}; got {self.optimizer!r}"
            )
        if self.activation_checkpointing not in ACTIVATION_CHECKPOINTING:
            raise ConfigError(
                "activation_checkpointing must be one of "
                f"{', '.join(ACTIVATION_CHECKPOINTING)}; got {self.activation_checkpointing!r}"
            )
        count = self.grad_accumulation
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"grad_accumulation must be a whole number from 1, got {count!r}")
        if self.trace not in TRACE_MODES:
            raise ConfigError(f"trace must be meta or real, got {self.trace!r}")
        if self.weights not in (None, *BASE_WEIGHTS):
            raise ConfigError(
                f"weights must be one of {', '.join(BASE_WEIGHTS)}; got {self.weights!r}"
            )
        if self.library not in LIBRARIES:
            raise ConfigError(
                f"library must be one of {', '.join(LIBRARIES)}; got {self.library!r}"
            )
        if self.kernels not in get_args(Kernels):
            raise ConfigError(f"kernels must be gpu or cpu, got {self.kernels!r}")
        if self.kernels == "cpu" and self.trace != "real":
            raise ConfigError("kernels of the CPU need tensors on the CPU; give trace='real' too")
        if self.task not in TASKS:
            raise ConfigError(f"task must be train or forward, got {self.task!r}")

    @property
    def trains(self) -> bool:
        """Whether gradients are computed and applied."""
        return self.task == "train"

    @property
    def is_fused(self) -> bool:
        """Whether one kernel updates many parameters at once."""
        return self.optimizer.endswith(_FUSED)

    @property
    def optimizer_name(self) -> str:
        """The optimizer without its implementation."""
        return self.optimizer.removesuffix(_FUSED)

    @property
    def has_masters(self) -> bool:
        """Whether the optimizer updates parameters in fp32, and copies them to half precision."""
        return self.precision.endswith(_MIXED) or self.precision in LOW_PRECISIONS

    @property
    def low(self) -> int:
        """What products of linear layers say of their format: position in `LOW_PRECISIONS` + 1."""
        low = self.precision in LOW_PRECISIONS
        return LOW_PRECISIONS.index(self.precision) + 1 if low else 0

    @property
    def is_autocast(self) -> bool:
        """Whether `torch.autocast` casts ops one by one."""
        return self.precision.startswith("amp-")

    @property
    def scales_loss(self) -> bool:
        """Whether gradients are unscaled and searched for infinities before the update."""
        return self.precision in ("amp-fp16", f"fp16{_MIXED}")
