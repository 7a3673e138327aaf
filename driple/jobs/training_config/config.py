"""What a file of training arguments says of a job, and which of its decisive fields were not read.

TrainingConfig -> options that stand where no flag was given; scheme; fields that stay open
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from driple.cluster.schemes import DDP
from driple.errors import ConfigError
from driple.graph.torch.lora import LoraAdapters
from driple.remarks import Remark, remark
from driple.units import counted

__all__ = [
    "BOTH",
    "MEMORY",
    "TIME",
    "USUAL_REUSE_ELEMENTS",
    "Change",
    "Changes",
    "TrainingConfig",
    "Undecided",
    "undecided_remark",
    "undecided_remarks",
]

USUAL_REUSE_ELEMENTS = 1_000_000_000
"""DeepSpeed's `stage3_max_reuse_distance` and `stage3_max_live_parameters`, by default."""

Change = Literal["memory", "time"]
Changes = tuple[Change, ...]
BOTH: Changes = ("memory", "time")
MEMORY: Changes = ("memory",)
TIME: Changes = ("time",)

_LONGEST_KEY, _LONGEST_VALUE = 60, 40
_MOST_LISTED = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecided:
    """A decisive field that was not read.

    Attributes:
        file: its file.
        field: dotted key.
        value: as text, shortened.
        changes: what it changes of an answer, which has no verdict on that.
        settled_by: option of a job that decides in its place; empty if there is none.
        reason: `not_modelled`, `not_known` (no field of the tool that Driple knows),
            or `no_file` (it names a file that is not there).
    """

    file: str
    field: str
    value: str
    changes: Changes
    settled_by: str = ""
    reason: str = "not_modelled"

    @classmethod
    def of(cls, file: str, field: str, value: object, changes: Changes, **more: str) -> Undecided:
        """A field with its value in short."""
        text = " ".join(str(value).split())
        short = text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
        printable = "".join(one if one.isprintable() else "?" for one in short)
        name = "".join(one if one.isprintable() else "?" for one in field[:_LONGEST_KEY])
        return cls(file=file, field=name, value=printable, changes=changes, **more)


def undecided_remarks(fields: tuple[Undecided, ...]) -> tuple[Remark, ...]:
    """Remarks that name decisive fields that were not read: one for each kind and change."""
    groups: dict[tuple[str, str, Changes], list[Undecided]] = {}
    for field in fields:
        groups.setdefault((field.file, field.reason, field.changes), []).append(field)
    return tuple(
        remark(
            "fields_left_open",
            reason=reason,
            file=file,
            fields=tuple(f"{one.field}: {one.value}" for one in those[:_MOST_LISTED]),
            more=max(len(those) - _MOST_LISTED, 0),
            changes=changes,
        )
        for (file, reason, changes), those in groups.items()
    )


def undecided_remark(fields: tuple[Undecided, ...]) -> Remark:
    """Why there is no verdict: names of decisive fields that were not read."""
    return remark(
        "no_verdict",
        file=fields[0].file,
        fields=tuple(one.field for one in fields[:_MOST_LISTED]),
        more=max(len(fields) - _MOST_LISTED, 0),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """What a file of training arguments says of a job; None where it says nothing.

    Attributes:
        file: its name; empty without a file.
        tool: whose format it has, such as `DeepSpeed`.
        batch_size: samples per device in a forward pass.
        global_batch: samples of all devices per update.
        seq_len: tokens of a sample.
        precision: as `JobOptions.precision`.
        precision_alone: the same on one device, where that differs.
        optimizer: as `JobOptions.optimizer`.
        grad_accumulation: forward and backward passes per update.
        activation_checkpointing: as `JobOptions.activation_checkpointing`.
        clip_gradients: whether the norm of gradients is clipped.
        compiled: whether the model is compiled.
        cuda_graphs: whether its compiled step is replayed as CUDA graphs.
        lora: adapters of a frozen model.
        weights: how its weights are quantized, as `JobOptions.weights`.
        fused_loss: whether the loss is computed without logits.
        fused_kernels: whether norms and activations have kernels of their own.
        scheme: that it trains with, as `--scheme` takes it, such as `zero2`; empty if none.
        replicas: copies of the model that share parameters out, as of `hsdp`; None if not stated.
        offload: what is kept on the host: `states`, `parameters`.
        bucket_elements: gradients of the engine's buffer; None where the file leaves it.
        reuse_elements: as `Job.reuse_elements`.
        updates_in_backward: whether gradients are freed as soon as they are applied.
        used: its keys that were understood.
        unknown: its keys that no list of the tool's fields has.
        undecided: decisive fields that were not read.
        usual: what its tool does where the file says nothing: `NAME VALUE` each.
    """

    file: str = ""
    tool: str = ""
    batch_size: int | None = None
    global_batch: int | None = None
    seq_len: int | None = None
    precision: str | None = None
    precision_alone: str | None = None
    optimizer: str | None = None
    grad_accumulation: int | None = None
    activation_checkpointing: str | None = None
    clip_gradients: bool | None = None
    compiled: bool | None = None
    cuda_graphs: bool | None = None
    lora: LoraAdapters | None = None
    weights: str | None = None
    fused_loss: bool | None = None
    fused_kernels: bool | None = None
    scheme: str = ""
    replicas: int | None = None
    offload: tuple[str, ...] = ()
    bucket_elements: int | None = None
    reuse_elements: int | None = None
    updates_in_backward: bool | None = None
    used: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    usual: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What its tool does by itself."""
        if not self.usual:
            return ()
        return (remark("usual_of_tool", file=self.file, tool=self.tool, values=self.usual),)

    def without_scheme(self, asked: str) -> TrainingConfig:
        """The same where the user states how the work is distributed.

        Args:
            asked: the user's scheme.
        """
        if asked == self.scheme:
            return self
        open_fields = tuple(one for one in self.undecided if one.settled_by != "scheme")
        alone = self.precision_alone if asked == DDP else None
        return replace(
            self,
            precision=alone or self.precision,
            scheme="",
            replicas=None,
            undecided=open_fields,
        )

    @property
    def agreed_replicas(self) -> float | None:
        """Devices on which samples per update, batch and passes agree; None unless all are stated.

        DeepSpeed refuses to start on any other number of devices.
        """
        if self.global_batch is None or self.batch_size is None or self.grad_accumulation is None:
            return None
        return self.global_batch / (self.batch_size * self.grad_accumulation)

    def check_batches(self, replicas: int) -> None:
        """Refuse samples per update that batch and passes contradict, as DeepSpeed does.

        Args:
            replicas: see `passes`.

        Raises:
            ConfigError: the file states all three, and they disagree on so many devices.
        """
        agreed = self.agreed_replicas
        if agreed in (None, replicas):
            return
        samples = (self.batch_size or 0) * (self.grad_accumulation or 0) * replicas
        elsewhere = (
            "" if agreed != int(agreed) else f", or give a --setting of {counted(agreed, 'device')}"
        )
        raise ConfigError(
            f"{self.file} has train_batch_size {self.global_batch}, and {self.batch_size} a device "
            f"x {counted(self.grad_accumulation or 0, 'pass')} x {counted(replicas, 'device')} are "
            f"{samples}, which {self.tool or 'DeepSpeed'} refuses; set it to {samples}, leave one "
            f"of the three out{elsewhere}"
        )

    def passes(self, batch_size: int | None, replicas: int) -> int | None:
        """Forward and backward passes per update.

        Args:
            batch_size: samples per device in a pass.
            replicas: copies of the model that compute on samples of their own.

        Raises:
            ConfigError: the samples of an update cannot be shared out so.
        """
        if self.grad_accumulation is not None or self.global_batch is None or batch_size is None:
            return self.grad_accumulation
        passes, rest = divmod(self.global_batch, batch_size * replicas)
        if rest or not passes:
            raise ConfigError(
                f"{self.file} has {counted(self.global_batch, 'sample')} per update, which are no "
                f"multiple of {counted(batch_size, 'sample')} on each of "
                f"{counted(replicas, 'device')}; change --batch-size, --setting or the file"
            )
        return passes

    def device_batch(self, replicas: int) -> int | None:
        """Samples per device in a pass, which the samples of an update give where they are alone.

        Raises:
            ConfigError: the samples of an update cannot be shared out so.
        """
        if self.batch_size is not None or self.global_batch is None:
            return self.batch_size
        share, rest = divmod(self.global_batch, replicas * (self.grad_accumulation or 1))
        if rest or not share:
            raise ConfigError(
                f"{self.file} has {counted(self.global_batch, 'sample')} per update, which cannot "
                f"be shared out over {counted(replicas, 'device')}; change --setting or the file"
            )
        return share
