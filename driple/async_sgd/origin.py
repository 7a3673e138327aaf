"""Origin of a job trace, and content of a platform's file (`driple.codec`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driple.async_sgd.overhead import Overhead
from driple.checks import check_number, check_whole
from driple.codec import Json, json_field

__all__ = ["PlatformRecord", "TraceOrigin"]

_MAY_LACK, _OPTIONAL = json_field(may_lack=True), json_field(optional=True)


def _check_overhead(overhead: Overhead) -> None:
    check_number("s_per_byte of an overhead", overhead.s_per_byte, least=0)
    check_number("s of an overhead", overhead.s, least=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceOrigin:
    """Origin of a job trace; None where a fact is not known.

    Attributes:
        workload: name of the workload that was profiled.
        setting: full name of its setting.
        worker_share: cores of the worker.
        server_share: cores of each server.
        provenance: `measured`.
        versions: versions of the software, by name.
        other_cores: cores used by other programs.
        measured: when, ISO format.
        files: names of the records that were imported.
        traced_step_s: median seconds from the start of a step to the end of its last op.
        untraced_step_s: mean seconds of a step without tracing.
        left_out_steps: steps that lacked transfers.
        overhead: cost of parsing received tensors, measured on the platform.
        others: unrecognised keys.

    Raises:
        ConfigError: a negative overhead or number of steps.
    """

    workload: str | None = field(default=None, metadata=_OPTIONAL)
    setting: str | None = field(default=None, metadata=_OPTIONAL)
    worker_share: float | None = field(default=None, metadata=_OPTIONAL)
    server_share: float | None = field(default=None, metadata=_OPTIONAL)
    provenance: str | None = field(default=None, metadata=_OPTIONAL)
    versions: Mapping[str, str] | None = field(default=None, metadata=_OPTIONAL)
    other_cores: float | None = field(default=None, metadata=_OPTIONAL)
    measured: str | None = field(default=None, metadata=_OPTIONAL)
    files: tuple[str, ...] = field(default=(), metadata=_OPTIONAL)
    traced_step_s: float | None = field(default=None, metadata=_OPTIONAL)
    untraced_step_s: float | None = field(default=None, metadata=_MAY_LACK)
    left_out_steps: int = field(default=0, metadata=_MAY_LACK)
    overhead: Overhead | None = field(default=None, metadata=_OPTIONAL)
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))

    def __post_init__(self) -> None:
        check_whole("left_out_steps", self.left_out_steps, 0)
        if self.overhead is not None:
            _check_overhead(self.overhead)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformRecord:
    """Content of a platform's file; simulations need `bytes_per_s` and `overhead`.

    Attributes:
        bytes_per_s: goodput of a TCP connection over a link.
        overhead: line of the parsing overhead.
        bits_per_s: nominal rate of a link.
        r_squared: fraction of the variance explained by the line.
        sizes: bytes of each tensor that was fetched.
        overhead_s: seconds from its last packet until TensorFlow could use it.
        measured: when, ISO format.

    Raises:
        ConfigError: a bandwidth that is not above 0, or a negative overhead.
    """

    bits_per_s: float | None = field(default=None, metadata=_MAY_LACK)
    bytes_per_s: float
    overhead: Overhead
    r_squared: float | None = field(default=None, metadata=_MAY_LACK)
    sizes: tuple[int, ...] = field(default=(), metadata=_MAY_LACK)
    overhead_s: tuple[float, ...] = field(default=(), metadata=_MAY_LACK)
    measured: str | None = field(default=None, metadata=_MAY_LACK)
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))

    def __post_init__(self) -> None:
        check_number("bytes_per_s", self.bytes_per_s, above=0)
        _check_overhead(self.overhead)
