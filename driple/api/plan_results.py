"""What `plan` answers: offers in order, a recommendation, and what it rests on.

PlanResult -> JSON, flat rows
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driple.api.results import Cell, Result, job_facts
from driple.codec import Json, to_dict
from driple.estimate import LEVEL, estimate
from driple.jobs.load import Job
from driple.planning.offers import Offer
from driple.planning.places import Refused
from driple.planning.ranking import Choice, Rank, TrainingLimits, pareto, ranked
from driple.remarks import Remark

if TYPE_CHECKING:
    from driple.api.json_types.plan import OfferJson, OfferMemoryJson, PlanJson
    from driple.estimate import Estimate
    from driple.planning.assumptions import Assumptions
    from driple.planning.changes import Change

__all__ = ["PlanResult"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class PlanResult(Result):
    """Ways to train a job in the order of their cost, time or memory, and which to take.

    Attributes:
        job: the training job; None if all offers were measured.
        offers: all that can run, in order, with and without a price.
        refused: machines that cannot run the job in any way.
        tried: number of candidates.
        rank: by what offers are in order.
        limits: budget and deadline.
        choice: the recommended offer and the runner-up, and why.
        assumptions: what the simulated offers rest on; None if all were measured.
        no_price: why there are no prices; None if there are.
        scaling: how many machines pay; None if only one number was tried.
        remedy: what would make the job fit; None if something fits.
        changes: what would help most; empty if that was not asked.
        remarks: what a user should know of devices and prices.
    """

    job: Job | None
    offers: tuple[Offer, ...]
    refused: tuple[Refused, ...]
    tried: int
    rank: Rank = "cost"
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    choice: Choice = field(default_factory=Choice)
    assumptions: Assumptions | None = None
    no_price: Remark | None = None
    scaling: Remark | None = None
    remedy: Remark | None = None
    changes: tuple[Change, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def recommendation(self) -> Remark | None:
        """What to take; None for a job with unknown sizes."""
        return self.choice.why

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple plan --json` prints."""
        assumed, best = self.assumptions, self.choice.best
        place = {id(offer): number for number, offer in enumerate(self.offers)}
        runner_up = self.choice.runner_up
        plan: PlanJson = {
            "question": "plan",
            "job": None if self.job is None else job_facts(self.job),
            "no_price": self.no_price,
            "assumptions": assumed,
            "rank": self.rank,
            "budget": self.limits.budget,
            "deadline_s": self.limits.deadline_s,
            "tried": self.tried,
            "offers": [self._offer_dict(offer) for offer in self.offers],
            "refused": [{"name": one.name, "reason": one.reason} for one in self.refused],
            "recommended": None if best is None else place[id(best)],
            "runner_up": None if runner_up is None else place[id(runner_up)],
            "pareto": [place[id(offer)] for offer in pareto(self.offers)],
            "recommendation": self.recommendation,
            "scaling": self.scaling,
            "would_fit": self.remedy,
            "would_help": [
                {
                    "change": one.what,
                    "time_ratio": one.time_ratio,
                    "cost_ratio": one.cost_ratio,
                }
                for one in self.changes
            ],
            "remarks": self.remarks,
        }
        return to_dict(plan)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per offer."""
        by_time = {id(one): place for place, one in enumerate(ranked(self.offers, "time"), 1)}
        return [_row(offer, by_time[id(offer)], self.limits) for offer in self.offers]

    def _offer_dict(self, offer: Offer) -> OfferJson:
        """One offer; intervals of times and costs come from the simulator's known error."""
        variant = offer.variant
        return {
            "name": offer.name,
            "instance": None if offer.instance is None else offer.instance.name,
            "machines": offer.machines,
            "devices": offer.devices,
            "setting": offer.setting,
            "scheme": offer.scheme or None,
            "batch_size": None if variant is None else variant.batch_size,
            "grad_accumulation": None if variant is None else variant.grad_accumulation,
            "activation_checkpointing": None
            if variant is None
            else variant.activation_checkpointing,
            "precision": None if variant is None else variant.precision,
            "source": offer.provenance,
            "iteration_time_s": _number(offer, offer.iteration_s),
            "samples_per_s": _rate(offer),
            "communication_pct": _share(offer),
            "training_time_s": _number(offer, offer.training_s),
            "cost": None if offer.cost is None else _number(offer, offer.cost),
            "price_per_hour": offer.per_hour,
            "price": offer.price,
            "no_price": offer.no_price,
            "keeps_limits": self.limits.kept_by(offer),
            "memory": _memory_dict(offer),
            "largest_batch": None if offer.largest is None else offer.largest.expected,
            "largest_sure_batch": None if offer.largest is None else offer.largest.sure,
            "bottleneck": None if offer.parts is None else offer.parts.bottleneck,
            "step_parts": None
            if offer.parts is None
            else [
                {"part": name, "seconds": seconds, "pct": pct}
                for name, seconds, pct in offer.parts.rows()
            ],
            "slow_step_s": None if offer.slow_host is None else offer.slow_host.step_s,
            "stated_error": None if offer.error is None else offer.error.to_dict(),
        }


def _row(offer: Offer, rank_by_time: int, limits: TrainingLimits) -> dict[str, Cell]:
    """A flat row of an offer."""
    kept = limits.kept_by(offer)
    variant, ends, price = offer.variant, offer.factors, offer.price
    low, high = (None, None) if ends is None else ends
    error, largest = offer.error, None if offer.parts is None else offer.parts.bottleneck
    return {
        "name": offer.name,
        "setting": offer.setting,
        "machines": offer.machines,
        "devices": offer.devices,
        "scheme": offer.scheme,
        "batch_size": None if variant is None else variant.batch_size,
        "grad_accumulation": None if variant is None else variant.grad_accumulation,
        "activation_checkpointing": None if variant is None else variant.activation_checkpointing,
        "precision": None if variant is None else variant.precision,
        "iteration_time_s": offer.iteration_s,
        "samples_per_s": offer.samples_per_s,
        "training_time_s": offer.training_s,
        "training_time_low_s": None if low is None else low * offer.training_s,
        "training_time_high_s": None if high is None else high * offer.training_s,
        "rank_by_time": rank_by_time,
        "price_usd_per_hour": offer.per_hour,
        "price_is_spot": None if price is None else str(price.spot).lower(),
        "price_region": None if price is None else price.region,
        "price_date": None if price is None or price.date is None else price.date.isoformat(),
        "price_source": None if price is None else price.source,
        "cost_usd": offer.cost,
        "keeps_limits": None if kept is None else str(kept).lower(),
        "memory_bytes": offer.memory_bytes,
        "fits": offer.fits,
        "largest_batch": None if offer.largest is None else offer.largest.expected,
        "largest_sure_batch": None if offer.largest is None else offer.largest.sure,
        "bottleneck": None if largest is None else largest.part,
        "bottleneck_pct": None if largest is None else largest.pct,
        "error_median_pct": None if error is None else error.median_pct,
        "error_p90_pct": None if error is None else error.p90_pct,
        "source": offer.provenance,
    }


def _number(offer: Offer, value: float) -> Estimate:
    """A time or a cost, which grows as the step time does."""
    if offer.provenance == "measured":
        return estimate(value, "measured", "measured")
    ends = offer.factors
    return estimate(
        value,
        "simulator",
        ends=None if ends is None else [end * value for end in ends],
        level=LEVEL,
    )


def _rate(offer: Offer) -> Estimate:
    """Samples per second, which fall as the step time grows."""
    value, ends = offer.samples_per_s, offer.factors
    if offer.provenance == "measured":
        return estimate(value, "measured", "measured")
    known = None if ends is None or ends[0] <= 0 else [value / ends[1], value / ends[0]]
    return estimate(value, "simulator", ends=known, level=LEVEL)


def _share(offer: Offer) -> Estimate | None:
    if offer.communication_pct is None:
        return None
    if offer.provenance == "measured":
        return estimate(offer.communication_pct, "measured", "measured")
    return estimate(offer.communication_pct, "simulator")


def _memory_dict(offer: Offer) -> OfferMemoryJson | None:
    """Memory of a device."""
    memory = offer.memory
    if memory is None:
        return None
    return {
        "allocated": memory.allocated,
        "reserved": memory.reserved,
        "device_total": memory.device_total,
        "is_lower_bound": memory.is_lower_bound,
        "capacity_bytes": memory.capacity_bytes,
        "fits": memory.fits,
        "margin_bytes": memory.margin_bytes,
        "largest": memory.largest or None,
        "device": memory.device or None,
    }
