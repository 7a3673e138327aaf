"""Which step of the published jobs is meant: what decides its ops, and nothing else.

columns of a table of rows -> StepKey -> the name under which the store has it
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.errors import ConfigError

__all__ = ["TIMM", "UNFUSED", "StepKey", "attention_of", "capability_of"]

TIMM = "timm:"
UNFUSED = 0  # `StepKey.capability` without fused attention
_LAYOUTS = ("usual", "channels-last")
_PASSES = ("one-pass", "passes")
_WITHOUT_FLASH = frozenset({"Kepler", "Maxwell", "Pascal", "Volta", "Turing"})


def capability_of(generation: str) -> int:
    """`StepKey.capability` of a generation of NVIDIA's devices."""
    return 70 if generation in _WITHOUT_FLASH else 80


def attention_of(job: str, library: str, generation: str) -> int:
    """`StepKey.capability` of a run.

    Args:
        job: that ran. Models of timm have PyTorch's attention; `own:` models of PyTorch 1 brought
            kernels of other libraries, or compute attention by hand.
        library: generation of the framework, such as `torch1`.
        generation: of the device.
    """
    if library == "torch1" and job.startswith(TIMM):
        return UNFUSED
    return capability_of(generation)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class StepKey:
    """One step.

    Attributes:
        job: JOB, such as `timm:resnet50`, or `own:NAME` of `scripts/published/models`.
        size: side of the images in pixels, or tokens of a sample; 0 for the job's usual.
        task: `train` or `forward`.
        precision: as `--precision`.
        channels_last: whether the model is in that format.
        activation_checkpointing: as `--activation-checkpointing`.
        accumulates: whether several passes add up their gradients before an update.
        capability: of the device, for kernels of attention: 70 (Volta and Turing: no flash
            attention) or 80; 0 without fused attention, as in PyTorch 1.
    """

    job: str
    size: int = 0
    task: str = "train"
    precision: str = "fp32"
    channels_last: bool = False
    activation_checkpointing: str = "none"
    accumulates: bool = False
    capability: int = 80

    @property
    def name(self) -> str:
        """Unique text, in words."""
        return " ".join(
            [
                self.job,
                str(self.size),
                self.task,
                self.precision,
                _LAYOUTS[self.channels_last],
                self.activation_checkpointing,
                _PASSES[self.accumulates],
                f"sm{self.capability}",
            ]
        )

    @classmethod
    def parse(cls, name: str) -> StepKey:
        """The inverse of `name`.

        Raises:
            ConfigError: not such a text.
        """
        try:
            job, size, task, precision, layout, activation_checkpointing, passes, capability = (
                name.split(" ")
            )
            key = cls(
                job=job,
                size=int(size),
                task=task,
                precision=precision,
                channels_last=bool(_LAYOUTS.index(layout)),
                activation_checkpointing=activation_checkpointing,
                accumulates=bool(_PASSES.index(passes)),
                capability=int(capability.removeprefix("sm")),
            )
        except ValueError as error:
            raise ConfigError(f"{name[:80]!r} names no stored step") from error
        if key.name != name:
            raise ConfigError(f"{name[:80]!r} names no stored step")
        return key
