"""A row of the table of job options (`JobOptions`): how one option is typed, checked and stated.

seq_len: int | None = option(None, "--seq-len", whole(1, ...), "tokens of a sample", suits=...)
-> the field of JobOptions, `--seq-len` of every command with a JOB, the keyword of
   job_of_module, `seq_len` of the JSON, and the refusal for jobs that have no use for it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from driple.checks import check_whole
from driple.errors import ConfigError
from driple.graph.options import sizes_of
from driple.graph.torch.lora import LoraAdapters
from driple.jobs.training_config import TrainingConfig, read_training_config
from driple.rules import OptionRule, number, text

__all__ = [
    "ANY",
    "MIB_BYTES",
    "MODELS",
    "MODULE",
    "ROW",
    "JobOption",
    "lora_adapters",
    "mebibytes",
    "option",
    "sample_shape",
    "shapes_by_name",
    "train_op",
    "training_config",
]

ROW = "job_option"  # key of the row in the metadata of a field
# Kinds of jobs, as `JobOrigin.name`; a module is given from Python, to `job_of_module`.
MODULE = "module"
MODELS = frozenset({"pytorch", "hugging_face", "timm", "own_model", MODULE})
ANY = MODELS | {"file", "graph", "onnx", "workload", "other"}

_FIRST_OUTPUT = ":0"  # as TensorFlow names the tensor of an op
MIB_BYTES = 2**20
_MOST_MIB = 2**20
_MOST_SIZES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOption:
    """One option of a job.

    Attributes:
        flag: as messages name it: `--seq-len`, `--set task`, or `--input SHAPE` where another row
            has the same flag.
        rule: how its value is read and checked.
        help: what it is; a line of `--help`.
        suits: kinds of jobs that it is for.
        name: in Python.
        default: value where it is left out; None is left to the job.
        typed_default: the same as a user types it, if that is in another unit.
        metavar: stands for its value in `--help`.
        in_training: whether a forward pass has none of it.
        for_all: whether every job takes it, with or without effect, as a limit of reading.
        stated: whether the JSON states it, under its name.
        words: it in the line that states the job; empty text for a usual value.
    """

    flag: str
    rule: OptionRule
    help: str
    suits: frozenset[str]
    name: str = ""
    default: Any = None
    typed_default: Any = None
    metavar: str | None = None
    in_training: bool = False
    for_all: bool = False
    stated: bool = False
    words: Callable[[Any], str] | None = None

    @property
    def typed(self) -> str:
        """The option that a user types: `--seq-len`, or `--set`."""
        return self.flag.split()[0]

    @property
    def set_name(self) -> str:
        """Its name for `--set`; empty if it is an option of its own."""
        return self.flag.split()[1] if self.typed == "--set" else ""

    def checked(self, value: object) -> Any:
        """A value from Python, in its usual form.

        Raises:
            ConfigError: it is of another type, or out of range.
        """
        if value is None and self.default is None:
            return None
        renamed = self.set_name not in ("", self.name)
        return self.rule.checked(f"{self.name} ({self.flag})" if renamed else self.flag, value)


def option(default: Any, flag: str, rule: OptionRule, help_: str, **columns: Any) -> Any:
    """A field of `JobOptions`; for the columns of its row see `JobOption`."""
    row = JobOption(flag=flag, rule=rule, help=help_, default=default, **columns)
    if rule.type is dict:
        return field(default_factory=dict, hash=False, metadata={ROW: replace(row, default={})})
    return field(default=default, metadata={ROW: row})


def mebibytes() -> OptionRule:
    """A size that is typed in MiB, and in bytes in Python."""
    typed = number(above=0, most=_MOST_MIB)

    def checked(flag: str, value: Any) -> Any:
        check_whole(flag, value, 1)
        return value

    return OptionRule(
        int, lambda flag, given: max(int(typed.read(flag, given) * MIB_BYTES), 1), checked
    )


def train_op() -> OptionRule:
    """The name of an op, which may be typed as that of its first output."""
    return OptionRule(str, lambda _, given: given.removesuffix(_FIRST_OUTPUT), text().checked)


def shapes_by_name() -> OptionRule:
    """Shapes by the names of inputs, typed one by one; `ReadOptions` checks them."""
    return OptionRule(dict, lambda _, given: given, lambda _, value: value, adds=True)


def sample_shape() -> OptionRule:
    """The shape of one sample."""

    def checked(flag: str, value: Any) -> Any:
        sizes = sizes_of(value)
        if sizes is None or not 1 <= len(sizes) <= _MOST_SIZES:
            raise ConfigError(
                f"--input needs 1 to {_MOST_SIZES} sizes of one sample, whole numbers of 1 or more "
                f"such as 3x224x224 (from Python input_shape=(3, 224, 224)), got {value!r:.80}"
            )
        return sizes

    return OptionRule(tuple, checked, checked)


def lora_adapters() -> OptionRule:
    """Adapters, typed as `r=16,alpha=32,targets=all-linear`; in Python the text will do too."""
    return OptionRule(
        str, lambda _, given: LoraAdapters.read(given), lambda _, value: LoraAdapters.checked(value)
    )


def training_config() -> OptionRule:
    """A file of training arguments; in Python what it says."""

    def checked(flag: str, value: Any) -> Any:
        if not isinstance(value, TrainingConfig):
            raise ConfigError(
                f"config is {value!r:.80}, and a TrainingConfig is needed; leave it out where "
                "there is no file of training arguments"
            )
        return value

    return OptionRule(Path, lambda _, given: read_training_config(Path(given)), checked)
