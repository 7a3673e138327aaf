"""Messages between the orchestrator and its roles: one JSON object a line (`driple.codec`).

orchestrator  --RoleJob, TurnOrder-->  role process        role process  --RoleAnswer-->  ...
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from driple.codec import from_json, json_field, to_dict
from driple.errors import MeasureError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Event", "RoleAnswer", "RoleJob", "TurnOrder", "from_line", "to_line"]

_OPTIONAL = json_field(optional=True)
_Message = TypeVar("_Message")

Event = Literal["up", "ready", "placed", "warm", "done", "failed", "ended"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleJob:
    """One run for one role.

    Attributes:
        job: `ps` or `worker`.
        task: number of the role among those of its kind.
        cluster: addresses by kind.
        workload: name of the workload; empty for fetching tensors.
        warmup: steps that are not measured.
        graph: file for the graph of the step; None for no such file.
        by_turns: whether the workers train only on `TurnOrder`.
        transfers: bytes of each tensor to fetch, in place of training.
        trace: folder for the records of the fetches.
    """

    job: Literal["ps", "worker"]
    task: int
    cluster: Mapping[str, tuple[str, ...]]
    workload: str = field(default="", metadata=_OPTIONAL)
    warmup: int = field(default=0, metadata=_OPTIONAL)
    graph: str | None = field(default=None, metadata=_OPTIONAL)
    by_turns: bool = field(default=False, metadata=_OPTIONAL)
    transfers: tuple[int, ...] = field(default=(), metadata=_OPTIONAL)
    trace: str = field(default="", metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnOrder:
    """Train for a time, or for some traced steps.

    Attributes:
        from_ns: monotonic time of the start.
        until_ns: monotonic time of the end.
        trace: folder for the records of traced steps; empty without any.
        num_traced: number of traced steps before the start.
    """

    from_ns: int
    until_ns: int
    trace: str = field(default="", metadata=_OPTIONAL)
    num_traced: int = field(default=0, metadata=_OPTIONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleAnswer:
    """One answer of a role.

    Attributes:
        event: stage that the role has reached.
        versions: versions of its libraries, by name, with `up`.
        num_parameters: trainable parameters, with `ready`.
        times_ns: monotonic times before the first step and after each, with `warm` and `done`.
        error: reason, with `failed`.
    """

    event: Event
    versions: Mapping[str, str] = field(default_factory=dict, metadata=_OPTIONAL)
    num_parameters: int = field(default=0, metadata=_OPTIONAL)
    times_ns: list[int] = field(default_factory=list, metadata=_OPTIONAL)
    error: str = field(default="", metadata=_OPTIONAL)


def to_line(message: DataclassInstance) -> str:
    """The message as one line, without newline."""
    return json.dumps(to_dict(message, where="message", error=MeasureError))


def from_line(kind: type[_Message], line: str | bytes, where: str) -> _Message:
    """The message of a line.

    Args:
        kind: type of the message.
        line: the line, with or without its newline.
        where: the sender, for the error.

    Raises:
        MeasureError: the line is not such a message.
    """
    try:
        content = json.loads(line)
    except ValueError as error:
        raise MeasureError(f"{where} sent no JSON ({error}); run again to resume") from error
    return from_json(kind, content, where=where, error=MeasureError, advice="run again to resume")
