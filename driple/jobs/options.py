"""What a user adds to a JOB: the same options for every kind of job, each checked once.

JobOptions.given -> flags that were given; a reader of jobs refuses those that it has no use for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from driple.checks import check_choice, check_number, check_switch, check_text, check_whole
from driple.errors import ConfigError
from driple.graph.options import LARGEST_DIMENSION, ReadOptions, sizes_of
from driple.graph.torch.options import (
    ACTIVATION_CHECKPOINTING,
    LIBRARIES,
    OPTIMIZERS,
    PRECISIONS,
    TASKS,
    StepOptions,
)
from driple.jobs.training_config import TrainingConfig

__all__ = [
    "FILE_FLAGS",
    "MAX_MIB",
    "MODEL_FLAGS",
    "OWN_FLAGS",
    "JobOptions",
    "options_of",
]

MAX_MIB = 512.0
_MIB_BYTES = 2**20
MOST_ACCUMULATION = 100_000
_MOST_SIZES = 6
# Flags by what they apply to; --batch-size applies to all.
FILE_FLAGS = ("--input NAME=SHAPE", "--set target", "--set loop_turns")
MODEL_FLAGS = (
    "--input SHAPE", "--seq-len", "--precision", "--optimizer", "--grad-accumulation",
    "--activation-checkpointing", "--compile", "--set clip_gradients", "--set task",
    "--set channels_last", "--set library",
)  # fmt: skip
OWN_FLAGS = ("--data", "--loss", "--set trace")
# Of training alone: a forward pass has none of them.
_TRAINING_FLAGS = (
    "--optimizer", "--grad-accumulation", "--activation-checkpointing", "--set clip_gradients",
    "--loss",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOptions:
    """What a user adds to a job; None is left to the job, and what it assumes is stated.

    Attributes:
        batch_size: samples of a device in a forward pass.
        inputs: shapes of named inputs of a graph file, such as {"images": (32, 224, 224, 3)}.
        target: train op of a graph file.
        loop_turns: turns of each loop whose length a graph file does not fix.
        max_bytes: largest graph file that is read.
        input_shape: one sample of a model's input, such as (3, 224, 224).
        seq_len: tokens of a sample.
        precision: one of `PRECISIONS`.
        optimizer: one of `OPTIMIZERS`.
        grad_accumulation: forward and backward passes per update.
        activation_checkpointing: one of `ACTIVATION_CHECKPOINTING`.
        compiled: whether the model is compiled by `torch.compile`.
        clip_gradients: whether the norm of all gradients is clipped before the update.
        task: `train`, or `forward`: one forward pass in eval mode, without gradients.
        channels_last: whether the model and its images are put in PyTorch's channels-last format.
        data: FILE.py:FUNCTION that builds the data set, or a batch, of the user's own model.
        loss: FILE.py:FUNCTION of the model's outputs and labels.
        library: generation of PyTorch: `torch1`, `torch2.1` (2.0 and 2.1), `torch2.7` (2.2 to 2.7)
            or `torch2` (later ones).
        trace: `meta` follows shapes alone; `real` runs the user's own model once, on the CPU.
        own_code_s: seconds that the user's own code may take.
        own_code_gib: memory that it may take, GiB.
        config: what a file of training arguments says.

    Raises:
        ConfigError: a value of another type, that is none of these choices, or out of range.
    """

    batch_size: int | None = None
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    target: str | None = None
    loop_turns: int | None = None
    max_bytes: int = int(MAX_MIB * _MIB_BYTES)
    input_shape: tuple[int, ...] | None = None
    seq_len: int | None = None
    precision: str | None = None
    optimizer: str | None = None
    grad_accumulation: int | None = None
    activation_checkpointing: str | None = None
    compiled: bool = False
    clip_gradients: bool = False
    task: str = "train"
    channels_last: bool = False
    data: str | None = None
    loss: str | None = None
    library: str = "torch2"
    trace: str = "meta"
    own_code_s: float = 600.0
    own_code_gib: float = 8.0
    config: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", self.read.inputs)  # `read` checks its values
        object.__setattr__(self, "input_shape", _checked_shape(self.input_shape))
        self._check_choices()
        self._check_numbers()
        for flag, switch in (
            ("--compile", self.compiled),
            ("--set clip_gradients", self.clip_gradients),
            ("--set channels_last", self.channels_last),
        ):
            check_switch(flag, switch)
        for flag, words in (("--data", self.data), ("--loss", self.loss)):
            if words is not None:
                check_text(flag, words)
        if not isinstance(self.config, TrainingConfig):
            raise ConfigError(
                f"config is {self.config!r:.80}, and a TrainingConfig is needed; leave it out "
                "where there is no file of training arguments"
            )
        if self.task == "forward":
            odd = [flag for flag in self.given if flag in _TRAINING_FLAGS]
            if odd:
                raise ConfigError(
                    f"{' and '.join(odd)}: of training, and --set task=forward asks for a forward "
                    f"pass; leave {'it' if len(odd) == 1 else 'them'} out"
                )

    def _check_choices(self) -> None:
        for flag, value, choices in (
            ("--precision", self.precision, PRECISIONS),
            ("--optimizer", self.optimizer, OPTIMIZERS),
            ("--activation-checkpointing", self.activation_checkpointing, ACTIVATION_CHECKPOINTING),
        ):
            if value is not None:
                check_choice(flag, value, choices)
        check_choice("--set library", self.library, LIBRARIES)
        check_choice("--set trace", self.trace, ("meta", "real"))
        check_choice("--set task", self.task, TASKS)

    def _check_numbers(self) -> None:
        for flag, number, most in (
            ("--seq-len", self.seq_len, LARGEST_DIMENSION),
            ("--grad-accumulation", self.grad_accumulation, MOST_ACCUMULATION),
        ):
            if number is not None:
                check_whole(flag, number, 1, most)
        check_whole("max_bytes (--set max_mib)", self.max_bytes, 1)
        check_number("own_code_s (--set time_limit_s)", self.own_code_s, above=0, most=1e6)
        check_number("own_code_gib (--set memory_gib)", self.own_code_gib, above=0, most=1e6)

    @property
    def read(self) -> ReadOptions:
        """What the reader of a graph file takes of these options."""
        return ReadOptions(
            batch_size=self.batch_size,
            inputs=self.inputs,
            target=self.target,
            loop_turns=self.loop_turns,
        )

    @property
    def given(self) -> tuple[str, ...]:
        """Flags that were given, but those that limit what is read."""
        values: Mapping[str, Any] = MappingProxyType(
            {
                "--batch-size": self.batch_size,
                "--input NAME=SHAPE": self.inputs,
                "--set target": self.target,
                "--set loop_turns": self.loop_turns,
                "--input SHAPE": self.input_shape,
                "--seq-len": self.seq_len,
                "--precision": self.precision,
                "--optimizer": self.optimizer,
                "--grad-accumulation": self.grad_accumulation,
                "--activation-checkpointing": self.activation_checkpointing,
                "--compile": self.compiled,
                "--set clip_gradients": self.clip_gradients,
                "--set task": None if self.task == "train" else self.task,
                "--set channels_last": self.channels_last,
                "--data": self.data,
                "--loss": self.loss,
                "--set library": None if self.library == "torch2" else self.library,
                "--set trace": None if self.trace == "meta" else self.trace,
            }
        )
        return tuple(flag for flag, value in values.items() if value)

    def with_config(self) -> JobOptions:
        """These options, with what the training config says where a flag was not given."""
        said = self.config
        names = ["batch_size", "seq_len", "precision"]
        if self.task == "train":
            names += ["optimizer", "grad_accumulation", "activation_checkpointing"]
        values = {
            name: getattr(said, name)
            for name in names
            if getattr(self, name) is None and getattr(said, name) is not None
        }
        if self.input_shape is not None:  # of numbers, which have no tokens
            values.pop("seq_len", None)
        return replace(self, compiled=self.compiled or bool(said.compiled), **values)

    def step_options(
        self, optimizer: str, compute_capability: tuple[int, int] | None
    ) -> StepOptions:
        """How a PyTorch model is trained.

        Args:
            optimizer: that is assumed if none was given.
            compute_capability: of the device, see `StepOptions`.
        """
        checkpointing: Any = self.activation_checkpointing or "none"
        precision: Any = self.precision or "fp32"
        trace: Any = self.trace
        library: Any = self.library
        task: Any = self.task
        return StepOptions(
            precision=precision,
            optimizer=self.optimizer or optimizer,
            grad_accumulation=self.grad_accumulation or 1,
            activation_checkpointing=checkpointing,
            compiled=self.compiled,
            clip_gradients=self.clip_gradients,
            compute_capability=compute_capability,
            fused_attention=self.library != "torch1",
            trace=trace,
            library=library,
            task=task,
            channels_last=self.channels_last,
        )


def options_of(given: JobOptions | None) -> JobOptions:
    """The options that were given, or the usual ones.

    Raises:
        ConfigError: something else than options.
    """
    if given is None:
        return JobOptions()
    if not isinstance(given, JobOptions):
        raise ConfigError(
            f"options is a {type(given).__name__}, and driple.JobOptions is needed; give "
            "options=driple.JobOptions(batch_size=32)"
        )
    return given


def _checked_shape(shape: object) -> tuple[int, ...] | None:
    """The shape of one sample; None if it is left to the job.

    Raises:
        ConfigError: no shape, or too many sizes.
    """
    if shape is None:
        return None
    sizes = sizes_of(shape)
    if sizes is None or not 1 <= len(sizes) <= _MOST_SIZES:
        raise ConfigError(
            f"--input needs 1 to {_MOST_SIZES} sizes of one sample, whole numbers of 1 or more "
            f"such as 3x224x224 (from Python input_shape=(3, 224, 224)), got {shape!r:.80}"
        )
    return sizes
