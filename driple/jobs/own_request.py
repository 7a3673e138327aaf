"""What the process that executes a user's file is asked, and what it answers: plain data.

OwnRequest -> request.json -> process -> outcome.json (OwnOutcome), graph.npz

Imports no torch, so that the process that asks needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driple.graph.torch.options import StepOptions
from driple.remarks import Remark

__all__ = [
    "GRAPH_FILE",
    "OUTCOME_FILE",
    "REQUEST_FILE",
    "OwnModel",
    "OwnOutcome",
    "OwnRequest",
]

REQUEST_FILE, OUTCOME_FILE, GRAPH_FILE = "request.json", "outcome.json", "graph.npz"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnModel:
    """What a user says of his own model.

    Attributes:
        model: `FILE.py:FUNCTION` that builds it.
        data: likewise its data set, data loader or one batch; None if the builder returns a batch,
            or if its shape is given.
        loss: likewise the loss of outputs and labels; None for the model's own or the usual one.
        batch_size: samples per device; None if a batch states it.
        input_shape: one sample of numbers.
        seq_len: tokens of a sample.
        step: how it is trained.
    """

    model: str
    data: str | None = None
    loss: str | None = None
    batch_size: int | None = None
    input_shape: tuple[int, ...] | None = None
    seq_len: int | None = None
    step: StepOptions = field(default_factory=StepOptions)


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnRequest:
    """What the process is to do.

    Attributes:
        model: the user's functions and shapes.
        memory_bytes: that its own data may take.
    """

    model: OwnModel
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnOutcome:
    """What came of it: a graph beside this file, or an error.

    Attributes:
        error: message of the error; empty if there is a graph.
        is_graph_error: whether it is a `GraphError`; else it is a `ConfigError`.
        details: traceback of the error.
        batch_size: see `OwnStep`.
        input_shape: see `OwnStep`.
        seq_len: see `OwnStep`.
        samples: see `OwnStep`.
        assumptions: see `OwnStep`.
    """

    error: str = ""
    is_graph_error: bool = False
    details: str = ""
    batch_size: int = 0
    input_shape: tuple[int, ...] | None = None
    seq_len: int | None = None
    samples: int | None = None
    assumptions: tuple[Remark, ...] = ()
