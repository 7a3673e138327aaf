"""The JSON of `driple sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from driple.api.json_types.shared import JobJson
from driple.api.sweeping_traces import BASELINES
from driple.codec import Names
from driple.estimate import Method, Source
from driple.memory.estimate import Fits
from driple.remarks import Remark

__all__ = [
    "BatchFactsJson",
    "ColumnIntervalJson",
    "ColumnJson",
    "GridFactsJson",
    "SweepFactsJson",
    "SweepJson",
    "TraceFactsJson",
]


class ColumnIntervalJson(TypedDict):
    """An interval at every point.

    Attributes:
        high: null where the error has no upper bound.
        level: share of true values within the intervals.
    """

    low: Sequence[float]
    high: Sequence[float | None]
    level: float | None


class ColumnJson(TypedDict):
    """An estimate at every point of a sweep: the numbers are lists."""

    value: Sequence[float]
    interval: ColumnIntervalJson | None
    method: Method
    source: Source


class GridFactsJson(TypedDict):
    """How the workers of a job exchange gradients, by the closed form."""

    exchange: str
    placement: str


class BatchFactsJson(TypedDict):
    """Whether each batch size fits a device.

    Attributes:
        device: of unlike devices the one with least room, at each batch size.
    """

    fits: Sequence[Fits | None]
    margin_bytes: Sequence[float | None]
    capacity_bytes: NotRequired[float | None]
    largest: NotRequired[Sequence[str]]
    device: NotRequired[Sequence[str]]
    device_capacity_bytes: NotRequired[Sequence[float | None]]


class TraceFactsJson(TypedDict):
    """What a trace states, and what coarser models give.

    Attributes:
        knee: workers from which on more of them bring little; null if there is none.
    """

    batch_size: int
    servers: int
    profiled_step_s: float
    knee: int | None
    baselines_examples_per_s: Annotated[Mapping[str, Sequence[float]], Names(BASELINES)]


SweepFactsJson = GridFactsJson | BatchFactsJson | TraceFactsJson


class SweepJson(TypedDict):
    """The answer at every point, column by column.

    Attributes:
        clusters: what each point is: numbers by name.
        estimates: what is estimated at each point.
        bottleneck: what holds each point back; null where nothing is claimed.
        bottleneck_words: meaning of these.
    """

    question: Literal["sweep"]
    kind: Literal["job", "trace"]
    job: JobJson | None
    setting: str | None
    clusters: Mapping[str, Sequence[float]]
    estimates: Annotated[Mapping[str, ColumnJson], Names(("iteration_time_s",), and_others=True)]
    bottleneck: Sequence[str] | None
    bottleneck_words: Mapping[str, str]
    assumptions: Sequence[Remark]
    remarks: Sequence[Remark]
    facts: SweepFactsJson
