"""A row before its reasons are known: what all readers fill in the same way.

gathered row + what its reader found -> PublishedRun; the first reason against it, if any
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import nan
from typing import Any

from driple.runs.published_runs import PRECISIONS, PublishedRun
from scripts.published.rows.cells import Raw, number
from scripts.published.rows.families import family_of

__all__ = ["TP_PP", "Draft", "checkpointing"]

TP_PP = "tensor, pipeline, context or expert parallelism is not simulated"
_AS_FILLED_IN = (
    "library", "device", "num_devices", "link_within", "tp", "pp", "cp", "ep", "job", "batch_size",
    "size", "optimizer", "grad_accumulation", "activation_checkpointing", "compiled",
    "channels_last", "implementation", "data",
)  # fmt: skip
_LOW = {"fp8": "fp8 is not simulated", "fp4": "fp4 is not simulated"}


@dataclass(kw_only=True, slots=True)
class Draft:
    """A `PublishedRun` that a reader is filling in; facts have the same names and meaning.

    Attributes:
        raw: gathered row.
        prefix: start of the row's id.
        why: first reason against the row; readers set it to reasons of their own.
        per_machine: 0 for as many as there are.
        scheme: empty for `ddp` on several devices.
        dp: 0 for all devices that the other groups leave.
        step_s: None or 0 if it is not known.
    """

    raw: Raw
    prefix: str
    why: str = ""
    library: str = ""
    device: str = ""
    num_devices: int = 1
    per_machine: int = 0
    link_within: str = ""
    link_between: str = ""
    scheme: str = ""
    dp: int = 0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    job: str = ""
    batch_size: int | None = None
    size: int | None = None
    precision: str = ""
    optimizer: str = ""
    grad_accumulation: int = 1
    activation_checkpointing: str = "none"
    compiled: bool = False
    channels_last: bool = False
    implementation: str = ""
    data: str = ""
    step_s: float | None = None
    peak_mem_kind: str = ""

    def _reason(self, dp: int) -> str:
        checks = (
            (self.why, self.why),
            (not self.step_s and not number(self.raw["throughput"]), "no time"),
            (not self.device, f"unknown device: {self.raw['gpu'] or 'not stated'}"),
            (not self.job, "model cannot be built"),
            (self.batch_size is None, "no batch size"),
            (not self.step_s, "no time"),
            (self.tp * self.pp * self.cp > 1 or self.ep > 1, TP_PP),
            (self.precision in _LOW, _LOW.get(self.precision, "")),
            (self.precision not in PRECISIONS or not self.precision, "no precision"),
            (
                dp * self.tp * self.pp * self.cp != self.num_devices,
                "groups do not make the devices",
            ),
            (
                self.num_devices > self.per_machine > 0 and self.num_devices % self.per_machine,
                "machines are not filled evenly",
            ),
        )
        return next((text for holds, text in checks if holds), "")

    def _scheme(self) -> str:
        if self.tp > 1 or self.pp > 1:
            return "+".join(name for name, n in (("tp", self.tp), ("pp", self.pp)) if n > 1)
        return "none" if self.num_devices == 1 else self.scheme or "ddp"

    def row(self) -> PublishedRun:
        """The row that goes into the table."""
        raw = self.raw
        dp = self.dp or max(1, self.num_devices // (self.tp * self.pp * self.cp))
        memory = number(raw["peak_mem_gib"])
        num_devices = self.num_devices
        several_machines = num_devices > (self.per_machine or 10**9)
        facts: dict[str, Any] = {name: getattr(self, name) for name in _AS_FILLED_IN}
        run = PublishedRun(
            **facts,
            id=f"{self.prefix}-{int(raw['row']):05d}",
            source=raw["source"],
            source_file=raw["source_file"],
            date=raw["date"],
            framework=raw["framework"],
            per_machine=min(self.per_machine or num_devices, num_devices),
            link_between=self.link_between if several_machines else "",
            scheme=self._scheme(),
            dp=dp,
            model=raw["model"],
            family=family_of(self.job),
            precision=self.precision if self.precision in PRECISIONS else "",
            step_s=self.step_s if self.step_s and self.step_s > 0 else nan,
            peak_mem_gib=memory,
            peak_mem_kind=self.peak_mem_kind if memory is not None else "",
            unused_why="unknown",
        )
        return dataclasses.replace(run, unused_why=self._reason(dp))


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
