"""The JSON of `driple plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from driple.answers.error_statement import StatedErrorJson
from driple.answers.step_parts import Bottleneck
from driple.api.json_types.shared import JobJson, StepPartJson
from driple.catalog.model import Price
from driple.estimate import Estimate, Source
from driple.memory.memory_estimate import Bytes, Fits
from driple.planning.assumptions import Assumptions
from driple.planning.ranking import Rank
from driple.remarks import Remark

__all__ = ["ChangeJson", "OfferJson", "OfferMemoryJson", "PlanJson", "RefusedJson"]


class OfferMemoryJson(TypedDict):
    """Memory of the device with least room."""

    allocated: Bytes | None
    reserved: Bytes | None
    device_total: Bytes | None
    is_lower_bound: bool
    capacity_bytes: float | None
    fits: Fits | None
    margin_bytes: float | None
    largest: str | None
    device: str | None


class OfferJson(TypedDict):
    """A way to train the job.

    Attributes:
        communication_pct: share of the step, percent.
        price: of one machine.
        keeps_limits: whether it keeps budget and deadline; null without these.
        largest_batch: most samples of a device that fit there; null if that is not known.
        largest_sure_batch: the same by the upper end of the interval of their memory.
        slow_step_s: seconds of a step on a slower host, where that makes a difference.
    """

    name: str
    instance: str | None
    machines: int
    devices: int
    setting: str
    scheme: str | None
    batch_size: int | None
    grad_accumulation: int | None
    activation_checkpointing: str | None
    precision: str | None
    source: Source
    iteration_time_s: Estimate
    samples_per_s: Estimate
    communication_pct: Estimate | None
    training_time_s: Estimate
    cost: Estimate | None
    price_per_hour: float | None
    price: Price | None
    no_price: Remark | None
    keeps_limits: bool | None
    memory: OfferMemoryJson | None
    largest_batch: int | None
    largest_sure_batch: int | None
    bottleneck: Bottleneck | None
    step_parts: Sequence[StepPartJson] | None
    slow_step_s: float | None
    stated_error: StatedErrorJson | None


class RefusedJson(TypedDict):
    """What cannot run the job, and why."""

    name: str
    reason: str


class ChangeJson(TypedDict):
    """A change of the recommended offer.

    Attributes:
        time_ratio: time of the training after the change over that before.
        cost_ratio: the same of the cost; null without prices.
    """

    change: Remark
    time_ratio: float
    cost_ratio: float | None


class PlanJson(TypedDict):
    """Ways to train a job in the order of their cost, time or memory, and which to take.

    Attributes:
        tried: number of candidates.
        recommended: number of the offer to take, from 0.
        runner_up: likewise, the next best.
        pareto: offers that are neither slower nor dearer than another.
    """

    question: Literal["plan"]
    job: JobJson | None
    no_price: Remark | None
    assumptions: Assumptions | None
    rank: Rank
    budget: float | None
    deadline_s: float | None
    tried: int
    offers: Sequence[OfferJson]
    refused: Sequence[RefusedJson]
    recommended: int | None
    runner_up: int | None
    pareto: Sequence[int]
    recommendation: Remark | None
    scaling: Remark | None
    would_fit: Remark | None
    would_help: Sequence[ChangeJson]
    remarks: Sequence[Remark]
