"""The JSON of `driple sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from driple.api.json_types.shared import JobJson
from driple.api.sweeping_traces import BASELINES
from driple.codec import Names
from driple.estimate import Method, Source
from driple.memory.memory_estimate import Fits
from driple.remarks import Remark

__all__ = [
    "ColumnIntervalJson",
    "ColumnJson",
    "DevicesFactsJson",
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


class DevicesFactsJson(TypedDict):
    """Whether each point fits a device, and how long its step waits.

    Attributes:
        settings: name of each cluster.
        links: name of what joins its devices; null for one device.
        waiting_pct: share of the step in which a device waits for exchanges; null where that is not
            known, as with servers.
        enough_bandwidth_bits_per_s: rate of what joins the devices from which that share is under
            10 %; null where there is none.
        device: of unlike devices the one with least room, at each point.
    """

    settings: Sequence[str]
    links: Sequence[str | None]
    waiting_pct: Sequence[float | None]
    enough_bandwidth_bits_per_s: Sequence[float | None]

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


SweepFactsJson = GridFactsJson | DevicesFactsJson | TraceFactsJson


class SweepJson(TypedDict):
    """The answer at every point, column by column.

    Attributes:
        clusters: what each point is: numbers by name; null where there is none, as of the bandwidth
            of one device.
        estimates: what is estimated at each point.
        bottleneck: what holds each point back; null where nothing is claimed.
        bottleneck_words: meaning of these.
    """

    question: Literal["sweep"]
    kind: Literal["job", "trace"]
    job: JobJson | None
    setting: str | None
    clusters: Mapping[str, Sequence[float | None]]
    estimates: Annotated[Mapping[str, ColumnJson], Names(("iteration_time_s",), and_others=True)]
    bottleneck: Sequence[str] | None
    bottleneck_words: Mapping[str, str]
    assumptions: Sequence[Remark]
    remarks: Sequence[Remark]
    facts: SweepFactsJson
