"""The four tools of assistants: what each asks, and the numbers that it answers with.

    predict, fits, explain: JOB, setting, options of the job -> numbers and the lines of the command
    plan: JOB, amount, limits -> recommended offer and others

No code of a user is run: JOB is a file, a name of the catalogue, `hf:PATH` or `timm:NAME`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import TypedDict  # that of typing gives pydantic no schema before 3.12

from driple.errors import ConfigError
from driple.jobs.load import JobOptions
from driple.units import HOUR_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driple.api.predicting import Answer
    from driple.cluster.setting import Setting
    from driple.estimate import Estimate
    from driple.planning.offers import Offer

__all__ = ["ExplainAnswer", "FitsAnswer", "JobAsked", "PlanAnswer", "PredictAnswer",
           "explain", "fits", "plan", "predict"]  # fmt: skip

_MOST_OFFERS = 5


class Number(TypedDict):
    """A number with the ends of its 90 % interval; None where they are not known."""

    value: float
    low: float | None
    high: float | None


class PredictAnswer(TypedDict):
    """Answer of `predict`."""

    setting: str
    step_s: Number | None
    samples_per_s: float | None
    tokens_per_s: float | None
    is_guess: bool
    text: list[str]


class FitsAnswer(TypedDict):
    """Answer of `fits`; bytes of one device."""

    setting: str
    fits: str | None
    needed_bytes: Number | None
    capacity_bytes: float | None
    largest_batch: int | None
    surely_largest_batch: int | None
    would_fit_with: list[str]
    why_unknown: str | None


class PartAnswer(TypedDict):
    """A part of a step."""

    part: str
    seconds: float
    pct: float


class ExplainAnswer(TypedDict):
    """Answer of `explain`."""

    setting: str
    method: str
    parts: list[PartAnswer]
    bottleneck: str | None
    model_flops_utilisation_pct: float | None
    assumed: list[str]
    error_median_pct: float | None
    error_p90_pct: float | None
    text: list[str]


class OfferAnswer(TypedDict):
    """One way to train."""

    name: str
    how: str
    devices: int
    training_hours: Number
    cost_dollars: float | None
    price_per_hour: float | None
    fits: str | None


class PlanAnswer(TypedDict):
    """Answer of `plan`; offers are in its order, the cheapest first where prices are known."""

    recommendation: str | None
    recommended: OfferAnswer | None
    offers: list[OfferAnswer]
    num_offers: int
    refused: list[str]
    said: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobAsked:
    """A job as an assistant states it.

    Attributes:
        job: JOB as on the command line, but no code of a user.
        batch_size: samples of a device; None: the job's own.
        seq_len: tokens of a sample.
        input_shape: one sample of other data, such as [3, 224, 224].
        precision: such as `amp-bf16`.
        optimizer: such as `adamw`.
        grad_accumulation: passes of an update.
        activation_checkpointing: `none`, `full` or `selective`.

    Raises:
        ConfigError: a job that is code.
    """

    job: str
    batch_size: int | None = None
    seq_len: int | None = None
    input_shape: Sequence[int] | None = None
    precision: str | None = None
    optimizer: str | None = None
    grad_accumulation: int | None = None
    activation_checkpointing: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would run code of a user."""
        from driple.jobs.own_model import OWN_MODEL

        if OWN_MODEL.claims(self.job):
            raise ConfigError(
                f"{self.job[:80]} is code of a user, which an assistant's tools never run; ask for "
                "driple predict on the command line, or name a file, a catalogue job, hf:PATH or "
                "timm:NAME"
            )

    @property
    def options(self) -> JobOptions:
        """The options as every question takes them."""
        shape = self.input_shape
        return JobOptions(
            batch_size=self.batch_size,
            seq_len=self.seq_len,
            input_shape=None if shape is None else tuple(shape),
            precision=self.precision,
            optimizer=self.optimizer,
            grad_accumulation=self.grad_accumulation,
            activation_checkpointing=self.activation_checkpointing,
        )


def predict(asked: JobAsked, setting: str, scheme: str | None) -> PredictAnswer:
    """Step time and throughput, with the lines of the command.

    Raises:
        DripleError: a job, a setting or an option that is none.
    """
    from driple.api.throughput import throughput_of
    from driple.render.answer_lines import answer_lines

    answer = _answer(asked, setting, scheme)
    throughput = None if answer.best is None else throughput_of(answer)
    tokens = None if throughput is None else throughput.tokens_per_s
    return {
        "setting": answer.setting.name,
        "step_s": None if answer.best is None else _number(answer.iteration_time_s),
        "samples_per_s": None if throughput is None else throughput.samples_per_s.value,
        "tokens_per_s": None if tokens is None else tokens.value,
        "is_guess": answer.best is not None and answer.iteration_time_s.is_guess,
        "text": answer_lines(answer),
    }


def fits(asked: JobAsked, setting: str, scheme: str | None) -> FitsAnswer:
    """Whether a job fits in the memory of a device, and what would make it fit.

    Raises:
        DripleError: as `predict`.
    """
    from driple.render.remarks import sentence

    answer = _answer(asked, setting, scheme)
    memory = answer.memory
    estimate = None if memory is None else memory.estimate
    why = None
    if memory is None:
        why = "devices of this setting share the memory of their host"
    elif estimate is None:
        why = None if memory.reason is None else sentence(memory.reason)
    needed = None if estimate is None else estimate.needed
    largest = None if memory is None else memory.largest
    remedies = () if memory is None else memory.remedies
    return {
        "setting": answer.setting.name,
        "fits": None if estimate is None else estimate.fits,
        "needed_bytes": None
        if needed is None
        else {"value": needed.value, "low": needed.lower, "high": needed.upper},
        "capacity_bytes": None if estimate is None else estimate.capacity_bytes,
        "largest_batch": None if largest is None else largest.expected,
        "surely_largest_batch": None if largest is None else largest.sure,
        "would_fit_with": [remedy.flag for remedy in remedies if remedy.memory.fits == "yes"],
        "why_unknown": why,
    }


def explain(asked: JobAsked, setting: str, scheme: str | None) -> ExplainAnswer:
    """Where the time of a step goes, what was assumed, and how far to trust it.

    Raises:
        DripleError: as `predict`.
    """
    from driple.render.answer_lines import answer_lines
    from driple.render.remarks import sentences

    answer = _answer(asked, setting, scheme)
    parts, stated = answer.parts, answer.stated
    rows = () if parts is None else parts.rows()
    largest = None if parts is None else parts.bottleneck
    return {
        "setting": answer.setting.name,
        "method": answer.method,
        "parts": [{"part": name, "seconds": value, "pct": pct} for name, value, pct in rows],
        "bottleneck": answer.bottleneck or (None if largest is None else largest.part),
        "model_flops_utilisation_pct": answer.flops_pct,
        "assumed": [*sentences(answer.job.assumptions), *sentences(answer.assumptions)],
        "error_median_pct": None if stated is None else stated.median_pct,
        "error_p90_pct": None if stated is None else stated.p90_pct,
        "text": answer_lines(answer),
    }


def plan(
    asked: JobAsked,
    *,
    samples: float | None,
    tokens: float | None,
    epochs: float,
    devices: Sequence[str],
    instances: Sequence[str],
    settings: Sequence[str],
    machines: Sequence[int],
    budget_dollars: float | None,
    deadline_hours: float | None,
    spot: bool,
) -> PlanAnswer:
    """Which machines to take for a whole training.

    Raises:
        DripleError: as `predict`; or how much is trained is not known.
    """
    from driple.api.planning import plan as ask
    from driple.render.remarks import sentence, sentences

    result = ask(
        asked.job,
        options=asked.options,
        samples=samples,
        tokens=tokens,
        epochs=epochs,
        devices=devices,
        instances=instances,
        settings=list(settings),
        machines=list(machines),
        budget=budget_dollars,
        deadline_s=None if deadline_hours is None else deadline_hours * HOUR_S,
        spot=spot,
        rank="time" if settings else "cost",
    )
    best, why = result.choice.best, result.recommendation
    return {
        "recommendation": None if why is None else sentence(why),
        "recommended": None if best is None else _offer(best),
        "offers": [_offer(offer) for offer in result.offers[:_MOST_OFFERS]],
        "num_offers": len(result.offers),
        "refused": [f"{place.name}: {place.reason}" for place in result.refused],
        "said": [*sentences(result.remarks)],
    }


def _answer(asked: JobAsked, setting: str, scheme: str | None) -> Answer:
    from driple.api.predicting import predict as ask

    (answer,) = ask(asked.job, _setting(setting, scheme), options=asked.options).answers
    return answer


def _setting(name: str, scheme: str | None) -> Setting:
    from driple.api.arguments import with_asked_scheme
    from driple.cluster.setting import parse_setting

    setting = parse_setting(name)
    return setting if scheme is None else with_asked_scheme([setting], scheme)[0]


def _number(number: Estimate) -> Number:
    ends = number.interval
    return {
        "value": number.value,
        "low": None if ends is None else ends.low,
        "high": None if ends is None else ends.high,
    }


def _offer(offer: Offer) -> OfferAnswer:
    hours, ends = offer.training_s / HOUR_S, offer.factors
    high = None if ends is None or ends[1] == float("inf") else ends[1] * hours
    return {
        "name": offer.name,
        "how": offer.full_name,
        "devices": offer.devices,
        "training_hours": {
            "value": hours,
            "low": None if ends is None else ends[0] * hours,
            "high": high,
        },
        "cost_dollars": offer.cost,
        "price_per_hour": offer.per_hour,
        "fits": offer.fits,
    }
