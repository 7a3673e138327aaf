"""The JSON of `driple profile links`: fitted links, and stalls that they predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from driple.api.json_types.shared import JobJson
from driple.estimate import Estimate
from driple.profiler.communication import Channel, LatencyPer

__all__ = ["LinkFitJson", "LinksJson", "StallsJson"]


class LinkFitJson(TypedDict):
    """A link as it was fitted.

    Attributes:
        left_out_error_pct: median leave-one-out error of the selected form.
        errors_pct: the same of each form.
        left_out_s: stall of each model, measured and predicted by a fit without it, seconds.
    """

    name: str
    latency_s: float
    bytes_per_s: float
    latency_per: LatencyPer
    overlap: bool
    left_out_error_pct: float
    errors_pct: Mapping[str, float]
    left_out_s: Mapping[str, tuple[float, float]]


class LinksJson(TypedDict):
    """What was fitted to each link."""

    question: Literal["links"]
    links: Mapping[str, LinkFitJson]


class StallsJson(TypedDict):
    """The time that the exchange of gradients adds to a step of a job.

    Attributes:
        buckets: of DistributedDataParallel.
        network_stall_s: what the network adds to the stall of the machine; null without a network.
    """

    question: Literal["stalls"]
    job: JobJson
    setting: str
    gradients: int
    gradient_bytes: float
    buckets: int
    iteration_time_s: Estimate
    interconnect_stall_s: Estimate
    interconnect_stall_pct: Estimate
    network_stall_s: Estimate | None
    network_stall_pct: Estimate | None
    channels: Sequence[Channel]
