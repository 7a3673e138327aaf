"""`plan`: what a training takes and costs in many ways, which fits, and which to take.

JOB -> simulated offers;  stall profiles -> measured offers;  both -> PlanResult
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from driple.api.arguments import (
    PathLike,
    batches_remarks,
    catalog_of,
    day_of,
    machine_of,
    names_of,
    own_setting,
    paths_of,
    unread_settings_of,
    whole_numbers_of,
)
from driple.api.plan_places import (
    MOST_MACHINES,
    PlacesAsked,
    PricesAsked,
    book_of,
    measured_offers,
    places_of,
    profiles_of,
)
from driple.api.plan_remarks import doubts_of, remarks_of_machine, why_no_price
from driple.api.plan_results import PlanResult
from driple.checks import check_choice, check_whole
from driple.cluster.setting import Setting
from driple.engine.engine import ENGINES, MOST_WORKERS, open_engine
from driple.errors import ConfigError
from driple.jobs.load import Job, JobOptions, JobSource
from driple.jobs.options import options_of
from driple.jobs.own_model import kept_processes
from driple.planning.amount import AmountAsked
from driple.planning.places import ANY_SCHEME, Refused
from driple.planning.ranking import RANKS, Choice, Rank, TrainingLimits, choose, ranked
from driple.remarks import Remark

if TYPE_CHECKING:
    from driple.planning.assumptions import Assumptions
    from driple.planning.changes import Change
    from driple.planning.evaluator import Evaluator
    from driple.planning.offers import Offer
    from driple.planning.places import Machines
    from driple.planning.search import Asked

__all__ = ["PlanResult", "plan"]

_NOTHING = "none"  # of `vary`: the job stays as it is


@kept_processes()
def plan(
    job: JobSource | None = None,
    *,
    options: JobOptions | None = None,
    samples: float | None = None,
    tokens: float | None = None,
    epochs: float = 1.0,
    instances: str | Sequence[str] = (),
    devices: str | Sequence[str] = (),
    machines: int | Sequence[int] = (1,),
    settings: str | Setting | Sequence[str | Setting] = (),
    schemes: str | Sequence[str] = (),
    vary: str | Sequence[str] = ("checkpointing",),
    global_batch: int | None = None,
    budget: float | None = None,
    deadline_s: float | None = None,
    rank: str = "cost",
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
    prices: PathLike | Sequence[PathLike] = (),
    spot: bool = False,
    region: str | None = None,
    day: datetime.date | str | None = None,
    profiles: Sequence[tuple[PathLike, str]] = (),
    would_help: bool = False,
    engine: str = "local",
    processes: int = 1,
    progress: Callable[[int], None] | None = None,
) -> PlanResult:
    """What a training takes and costs in many ways, whether it fits, and which way to take.

    Instances with a profile are measured; all others are simulated from the job, without stalls of
    CPU and disk. Where several names, numbers or files may be given, one alone may be too.

    Args:
        job: JOB as on the command line, a graph or a `Job`; None with profiles alone.
        options: batch size, shapes of inputs and the like.
        samples: of an epoch; if None, those of the job's or the profile's data set, and ImageNet
            for models of images.
        tokens: of an epoch, in place of samples.
        epochs: how often all samples are trained on.
        instances: names; `p3` is all of P3; all known if empty.
        devices: names of the instances' devices; `own` for instances of `catalogs`; any if empty.
        machines: numbers of instances of a kind.
        settings: the user's own clusters, in place of instances: names, or as they are.
        schemes: names; those that suit the machines if empty; `any` tries degrees of tensor, expert
            and pipeline parallelism, too.
        vary: what of a model may be changed: `batch`, `checkpointing`, `precision`; or `none`.
        global_batch: samples of all devices per update, which every offer keeps.
        budget: most that the training may cost.
        deadline_s: longest time that it may take, seconds.
        rank: order of offers: `cost`, `time` or `memory`; `time` in place of `cost` for settings
            of the user's own without prices.
        catalogs: own devices, links, instances and prices (TOML), which take precedence.
        machine: file of `driple measure --machine`, for `settings`; its own GPUs if there are
            neither settings nor instances.
        prices: files of prices, which take precedence over the catalogue.
        spot: whether spot prices are asked for.
        region: of prices, which one of them must have; any if None.
        day: last day of a price, or its text such as 2026-01-31; the newest if None.
        profiles: (folder of a stall profile, name of the instance that it was taken on).
        would_help: whether the changes that help most are worked out.
        engine: `local`, processes of this machine, or `ray`, the cluster of `RAY_ADDRESS`.
        processes: how many kinds of devices are tried at the same time; results are the same.
        progress: called after each group of candidates with how many groups there are.

    Raises:
        ConfigError: neither job nor profile, no batch size, no samples of a job that is not of
            images, a region without prices, or no machines that can be simulated.
        GraphError: a job that cannot be read, or contains no training step.
        MeasureError: a profile that does not contain what a cost needs.
        EngineError: workers die over and over, or there is no cluster.
    """
    from driple.planning.search import Asked

    check_choice("--set rank", rank, RANKS)
    check_choice("--set engine", engine, ENGINES)
    check_whole("--set processes", processes, 1, MOST_WORKERS)
    varied = names_of("--set vary", vary)
    asked_schemes = names_of("--scheme", schemes)
    options = _with_schemes(options, asked_schemes)
    config = options_of(options).config
    contradicted = batches_remarks(options, None) if global_batch is None else ()
    if global_batch is None and options_of(options).grad_accumulation is None:
        global_batch = config.global_batch
    asked = Asked(
        schemes=asked_schemes,
        usual_scheme=config.scheme,
        vary=() if varied == (_NOTHING,) else varied,
        global_batch=global_batch,
        fixed_batch=(options_of(options).batch_size or config.batch_size) is not None,
    )
    measured = profiles_of(profiles)
    own = machine_of(machine)
    if not settings and not instances and not devices:
        settings = own_setting(own) or ()
    question = _Question(
        amount=AmountAsked(samples=samples, tokens=tokens, epochs=epochs),
        places=PlacesAsked(
            instances=names_of("--instance", instances),
            devices=names_of("--devices", devices),
            machines=whole_numbers_of("--machines", machines, most=MOST_MACHINES),
            settings=unread_settings_of(settings),
            catalogs=paths_of("--catalog", catalogs),
            options=options,
            machine=own,
        ),
        prices=PricesAsked(
            files=paths_of("--prices", prices),
            day=day_of("--set on_date", day),
            region=region,
            spot=spot,
        ),
        ways=asked,
        limits=TrainingLimits(budget=budget, deadline_s=deadline_s),
        rank=cast("Rank", rank),
        would_help=would_help,
        engine=engine,
        processes=processes,
    )
    _check_job(job, options, measured, global_batch)
    answer = _answer(question, job, options, measured, progress)
    return replace(answer, remarks=(*contradicted, *answer.remarks))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    """What is asked of a job."""

    amount: AmountAsked
    places: PlacesAsked
    prices: PricesAsked
    ways: Asked
    limits: TrainingLimits
    rank: Rank
    would_help: bool
    engine: str
    processes: int


def _with_schemes(options: JobOptions | None, schemes: Sequence[str]) -> JobOptions | None:
    """The options, whose training config states no scheme where the user does."""
    if options is None or not schemes:
        return options
    asked = schemes[0] if len(schemes) == 1 and schemes[0] != ANY_SCHEME else ""
    known = options_of(options)
    return replace(known, config=known.config.without_scheme(asked))


def _check_job(
    job: JobSource | None,
    options: JobOptions | None,
    profiles: Sequence[tuple[Path, str]],
    global_batch: int | None,
) -> None:
    """Refuse what needs no reading."""
    if job is None and not profiles:
        raise ConfigError("give a JOB, or --profile FOLDER=INSTANCE")
    if job is None and options is not None and options.given:
        raise ConfigError(
            f"{' and '.join(options.given)}: for JOB, and none is given; leave them out"
        )
    passes = None if options is None else options.grad_accumulation
    if passes is not None and global_batch is not None:
        raise ConfigError(
            f"--global-batch sets the passes of each offer, and --grad-accumulation {passes} those "
            "of all; leave one of them out"
        )


@dataclass(kw_only=True, slots=True)
class _Draft:
    """A result in the making."""

    offers: list[Offer]
    job: Job | None = None
    evaluator: Evaluator | None = None
    refused: list[Refused] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    tried: int = 0
    remedy: Remark | None = None


def _answer(
    question: _Question,
    job: JobSource | None,
    options: JobOptions | None,
    profiles: Sequence[tuple[Path, str]],
    progress: Callable[[int], None] | None,
) -> PlanResult:
    from driple.catalog import shipped_catalog
    from driple.planning.amount import amount_of
    from driple.planning.changes import helpful_changes
    from driple.planning.evaluator import Evaluator
    from driple.planning.scaling import scaling_of
    from driple.planning.variants import JobVariants

    catalog = catalog_of(question.places.catalogs, question.places.machine)
    known = (catalog or shipped_catalog()).instances
    book = book_of(question.prices, known, catalog)
    draft = _Draft(offers=measured_offers(profiles, known, book, question.amount))
    draft.remarks += remarks_of_machine(question.places, catalog)
    draft.remarks += [
        file.unused(path)
        for path, file in zip(question.prices.files, book.files, strict=True)
        if file.unknown
    ]
    places: list[Machines] = []
    if job is not None:
        measured = {offer.name for offer in draft.offers}
        places, draft.refused = places_of(
            question.places, known, catalog, measured, question.ways.schemes
        )
        variants = JobVariants(job, options)
        amount = amount_of(variants.given, question.amount)
        if variants.given.undecided:
            draft.job = variants.given
        else:
            evaluator = Evaluator(variants, amount, book, catalog)
            _add_simulated(draft, evaluator, question, places, progress)
    unknown = draft.job is not None and (draft.job.has_unknown or bool(draft.job.undecided))
    rank = _rank_of(question, draft.offers)
    offers = ranked(draft.offers, rank)
    choice = Choice() if unknown else choose(offers, question.limits, rank)
    changes: tuple[Change, ...] = ()
    if draft.evaluator is not None:
        shown = [one for one in (choice.best, choice.runner_up) if one is not None] or offers[:1]
        draft.remarks += doubts_of(shown, draft.evaluator.variants)
        if question.would_help and choice.best is not None:
            changes = tuple(
                helpful_changes(
                    draft.evaluator,
                    choice.best,
                    offers,
                    keeps_batch=question.ways.global_batch is not None,
                )
            )
    return PlanResult(
        job=draft.job,
        offers=tuple(offers),
        refused=tuple(draft.refused),
        tried=draft.tried,
        rank=rank,
        limits=question.limits,
        choice=choice,
        assumptions=_assumptions(draft, question),
        no_price=why_no_price(draft.job),
        scaling=None if unknown else scaling_of(offers, choice.best),
        remedy=draft.remedy,
        changes=changes,
        remarks=tuple(draft.remarks),
    )


def _rank_of(question: _Question, offers: Sequence[Offer]) -> Rank:
    """By what offers are in order: own machines whose price nobody gave are ranked by time."""
    own = all(offer.instance is None and offer.price is None for offer in offers)
    by_cost = question.rank == "cost" and question.limits.budget is None
    return "time" if offers and own and by_cost else question.rank


def _add_simulated(
    draft: _Draft,
    evaluator: Evaluator,
    question: _Question,
    places: Sequence[Machines],
    progress: Callable[[int], None] | None,
) -> None:
    """Simulate the job in every way on all machines.

    Raises:
        ConfigError: no machines, or none of them can be simulated.
        GraphError: the graph has no training step.
        EngineError: workers die over and over, or there is no cluster.
    """
    from driple.planning.places import least_needed
    from driple.planning.remedies import remedy_of
    from driple.planning.search import search

    draft.job, draft.evaluator = evaluator.variants.given, evaluator
    ways = question.ways
    if question.engine == "local" and question.processes == 1:
        search_result = search(evaluator, places, ways, progress)
    else:
        with open_engine(question.engine, workers=question.processes) as engine:
            search_result = search(evaluator, places, ways, progress, engine)
    draft.tried = search_result.tried
    draft.offers += search_result.offers
    running = {offer.name for offer in draft.offers}
    lost = [one for one in search_result.refused if one.name not in running]
    draft.refused += least_needed(lost)
    draft.remarks += search_result.unanswered(ways.schemes) if search_result.offers else []
    if any(offer.may_be_recommended for offer in draft.offers):
        return
    too_large = any(one.needed_bytes is not None for one in search_result.refused)
    if too_large and not draft.job.has_unknown:
        draft.remedy = remedy_of(evaluator, places)
    if not draft.offers and draft.remedy is None:
        reason = _commonest(draft.refused) or "there are none"
        raise ConfigError(
            f"none of these machines can run the job: {reason}; choose others (--instance)"
        )


def _commonest(refused: Sequence[Refused]) -> str:
    """The reason that most have; empty if there is none."""
    reasons = Counter(one.reason for one in refused)
    return reasons.most_common(1)[0][0] if reasons else ""


def _assumptions(draft: _Draft, question: _Question) -> Assumptions | None:
    from driple.planning.assumptions import assumptions_of

    if draft.job is None or draft.evaluator is None:
        return None
    sizes = {offer.variant.batch_size for offer in draft.offers if offer.variant is not None}
    return assumptions_of(
        draft.job.graph,
        draft.evaluator.amount,
        batch_size=draft.evaluator.variants.usual.batch_size,
        global_batch=question.ways.global_batch,
        batches_differ=len(sizes) > 1,
    )
