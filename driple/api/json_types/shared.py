"""Parts of the JSON of several questions: the job, parts of a step, the twelve targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NotRequired, TypedDict

from driple.codec import Names
from driple.estimate import Estimate
from driple.jobs.training_config import Undecided
from driple.remarks import Remark, RemarkValue
from driple.trace.targets import FIGURES, RESOURCES, UNITS

__all__ = ["JobJson", "RemarkJson", "StepPartJson", "TargetsJson", "UnitsJson"]

TargetsJson = Annotated[
    Mapping[str, Annotated[Mapping[str, Estimate], Names(FIGURES)]], Names(RESOURCES)
]
"""Burst amount in the unit of the resource, burst and idle duration in seconds."""
UnitsJson = Annotated[Mapping[str, str], Names(tuple(UNITS))]


class RemarkJson(TypedDict):
    """What a result says beside its numbers: a code with its values.

    Attributes:
        code: kind of remark.
        values: what its sentence names; units are suffixes of the names.
        text: the sentence, as commands print it; results in Python leave it out.
    """

    code: str
    values: Mapping[str, RemarkValue]
    text: NotRequired[str]


class JobJson(TypedDict):
    """What was read, and what is unknown of it; the options of the job follow its kind.

    Attributes:
        source: JOB as it was typed.
        undecided: decisive fields of the training config that were not read; there is no verdict on
            what they change.
        unknown_share: share of the graph's sizes that are unknown, 0 to 1.
        op_types_without_cost: number of ops of each type whose FLOPs are unknown.
    """

    source: str
    kind: str
    samples: int | None
    assumptions: Sequence[Remark]
    undecided: Sequence[Undecided]
    unknown_dimensions: int
    unknown_share: float
    unknown_turns: Sequence[str]
    notes: Sequence[Remark]
    op_types_without_cost: Mapping[str, int]


class StepPartJson(TypedDict):
    """A part of a step of one device.

    Attributes:
        pct: share of the step, percent.
    """

    part: str
    seconds: float
    pct: float
