"""A row before its reasons are known: what all readers fill in the same way.

gathered row + what its reader found -> PublishedRow; the first reason against it, if any
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from driple.runs.published_rows import ROW_PRECISIONS, PublishedRow
from driple.runs.rows.cells import Raw, number
from driple.runs.rows.families import family_of

__all__ = ["TP_PP", "Draft", "checkpointing"]

TP_PP = "tensor, pipeline, context or expert parallelism is not simulated"
_LOW = {"fp8": "fp8 is not simulated", "fp4": "fp4 is not simulated"}


@dataclass(kw_only=True, slots=True)
class Draft:
    """What a reader found in a row; fields as in `PublishedRow`.

    Attributes:
        raw: gathered row.
        prefix: start of the row's id.
        why: first reason against the row; readers set it to reasons of their own.
        library: see `PublishedRow`.
        device: see `PublishedRow`.
        devices: see `PublishedRow`.
        per_machine: see `PublishedRow`; 0: as many as there are.
        within: link within a machine.
        between: link between machines.
        scheme: see `PublishedRow`; empty: `ddp` for several devices.
        dp: replicas; 0: of all devices that the other groups leave.
        tp: see `PublishedRow`.
        pp: see `PublishedRow`.
        cp: see `PublishedRow`.
        ep: see `PublishedRow`.
        job: see `PublishedRow`.
        batch: see `PublishedRow`.
        size: see `PublishedRow`.
        precision: see `PublishedRow`.
        optimizer: see `PublishedRow`.
        accumulation: passes of a step.
        checkpointed: see `activation_checkpointing` of `PublishedRow`.
        compiled: see `PublishedRow`.
        channels_last: see `PublishedRow`.
        implementation: see `PublishedRow`.
        data: see `PublishedRow`.
        step_s: see `PublishedRow`.
        memory_kind: see `peak_mem_kind` of `PublishedRow`.
    """

    raw: Raw
    prefix: str
    why: str = ""
    library: str = ""
    device: str = ""
    devices: int = 1
    per_machine: int = 0
    within: str = ""
    between: str = ""
    scheme: str = ""
    dp: int = 0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    job: str = ""
    batch: int | None = None
    size: int | None = None
    precision: str = ""
    optimizer: str = ""
    accumulation: int = 1
    checkpointed: str = "none"
    compiled: bool = False
    channels_last: bool = False
    implementation: str = ""
    data: str = ""
    step_s: float | None = None
    memory_kind: str = ""

    def _reason(self, dp: int) -> str:
        checks = (
            (self.why, self.why),
            (not self.step_s and not number(self.raw["throughput"]), "no time"),
            (not self.device, f"unknown device: {self.raw['gpu'] or 'not stated'}"),
            (not self.job, "model cannot be built"),
            (self.batch is None, "no batch size"),
            (not self.step_s, "no time"),
            (self.tp * self.pp * self.cp > 1 or self.ep > 1, TP_PP),
            (self.precision in _LOW, _LOW.get(self.precision, "")),
            (self.precision not in ROW_PRECISIONS or not self.precision, "no precision"),
            (dp * self.tp * self.pp * self.cp != self.devices, "groups do not make the devices"),
            (
                self.devices > self.per_machine > 0 and self.devices % self.per_machine,
                "machines are not filled evenly",
            ),
        )
        return next((text for holds, text in checks if holds), "")

    def _scheme(self) -> str:
        if self.tp > 1 or self.pp > 1:
            return "+".join(name for name, n in (("tp", self.tp), ("pp", self.pp)) if n > 1)
        return "none" if self.devices == 1 else self.scheme or "ddp"

    def row(self) -> PublishedRow:
        """The row that goes into the table."""
        raw = self.raw
        dp = self.dp or max(1, self.devices // (self.tp * self.pp * self.cp))
        memory = number(raw["peak_mem_gib"])
        made = PublishedRow(
            id=f"{self.prefix}-{int(raw['row']):05d}",
            source=raw["source"],
            source_file=raw["source_file"],
            date=raw["date"],
            framework=raw["framework"],
            library=self.library,
            device=self.device,
            devices=self.devices,
            per_machine=min(self.per_machine or self.devices, self.devices),
            link_within=self.within,
            link_between=self.between if self.devices > (self.per_machine or 10**9) else "",
            scheme=self._scheme(),
            dp=dp,
            tp=self.tp,
            pp=self.pp,
            cp=self.cp,
            ep=self.ep,
            model=raw["model"],
            family=family_of(self.job),
            job=self.job,
            batch=self.batch,
            size=self.size,
            precision=self.precision if self.precision in ROW_PRECISIONS else "",
            optimizer=self.optimizer,
            grad_accumulation=self.accumulation,
            activation_checkpointing=self.checkpointed,
            compiled=self.compiled,
            channels_last=self.channels_last,
            implementation=self.implementation,
            data=self.data,
            step_s=self.step_s if self.step_s and self.step_s > 0 else None,
            peak_mem_gib=memory,
            peak_mem_kind=self.memory_kind if memory is not None else "",
            unused_why="unknown",
        )
        return dataclasses.replace(made, unused_why=self._reason(dp))


def checkpointing(text: str) -> str:
    """`none`, `full` or `selective` of the twelve spellings of the sources."""
    word = text.strip().lower()
    if word in ("", "false", "no ac", "&#x2718;", "none"):
        return "none"
    if word.startswith("selective") or word == "per op sac":
        return "selective"
    if word in ("true", "full", "&#x2714;"):
        return "full"
    raise ValueError(f"activation checkpointing {text!r} is not known")
