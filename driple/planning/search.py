"""Every way to train a job that is worth a look, and what each of them takes.

    places x schemes x recomputation x precision x batches -> Candidate -> Evaluator -> SearchResult
    the same of each kind of device, a task of an engine -> SearchResult, merged in order

With a global batch, batch x passes x devices is that number in every candidate. Where batches are
free, two are tried: the largest that fits, and the largest that fits by the upper end of its
interval too; a smaller one is no faster for the same samples. Without a global batch, these are
powers of two and three times such powers, and the user's own batch and twice that are tried too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from driple.checks import check_whole
from driple.cluster.schemes import SchemeChoice
from driple.errors import ConfigError, DripleError, GraphError, SettingError
from driple.graph.torch.options import PRECISIONS
from driple.jobs.own_model import kept_processes
from driple.memory.last_that import last_that
from driple.planning.degrees import degrees_to_try
from driple.planning.evaluator import Evaluator, passes_kept
from driple.planning.offers import Offer
from driple.planning.places import (
    ANY_SCHEME,
    Candidate,
    Machines,
    Refused,
    check_degrees_fit,
    least_needed,
    schemes_for,
)
from driple.planning.variants import Variant
from driple.remarks import Remark, remark
from driple.schemes.registry import scheme_asked
from driple.step.splittable import splittable
from driple.units import counted

if TYPE_CHECKING:
    from driple.engine.engine import Engine

__all__ = ["VARY", "Asked", "SearchResult", "candidates_of", "search"]

VARY = ("batch", "checkpointing", "precision")
_LARGEST_BATCH = 1024  # that is tried on a device of its own accord
_ROUND = sorted({2**k for k in range(11)} | {3 * 2**k for k in range(9)})  # batches of a device
_HALF_OF = {"fp32": "amp-bf16", "tf32": "amp-bf16"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What may differ between candidates.

    Attributes:
        schemes: names; if empty those that suit the machines; `any` adds degrees of tensor, expert
            and pipeline parallelism that fit machines and model.
        usual_scheme: of the training config, for machines that state none; empty if it has none.
        vary: what of the job may be changed, of `VARY`.
        global_batch: samples of all devices per update; None leaves it to batch and devices.
        fixed_batch: whether the user gave the batch of a device.

    Raises:
        ConfigError: something else to vary, a global batch below 1, or parameter servers.
        SettingError: no such scheme.
    """

    schemes: tuple[str, ...] = ()
    usual_scheme: str = ""
    vary: tuple[str, ...] = ("checkpointing",)
    global_batch: int | None = None
    fixed_batch: bool = False

    def __post_init__(self) -> None:
        odd = [name for name in self.vary if name not in VARY]
        if odd:
            raise ConfigError(
                f"--set vary must name some of {', '.join(VARY)} or none, got '{odd[0]}'"
            )
        for name in self.schemes:
            if name != ANY_SCHEME and scheme_asked(name).uses_servers:
                raise ConfigError(f"--scheme {name} needs parameter servers, which no plan has")
        if self.global_batch is not None:
            check_whole("--global-batch", self.global_batch, 1)


@dataclass(kw_only=True, slots=True)
class SearchResult:
    """What a search has found.

    Attributes:
        offers: that can run, in the order in which they were tried.
        refused: that cannot, one reason for each scheme and way of training.
        of_scheme: the same by the name of the scheme.
        tried: number of candidates.
    """

    offers: list[Offer] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    of_scheme: dict[str, list[Refused]] = field(default_factory=dict)
    tried: int = 0

    def refuse(self, scheme: str, refused: Refused) -> None:
        """Add what cannot run in a scheme."""
        self.refused.append(refused)
        self.of_scheme.setdefault(scheme, []).append(refused)

    def add(self, other: SearchResult) -> None:
        """Add what another part of the search has found."""
        self.offers += other.offers
        self.tried += other.tried
        self.refused += other.refused
        for scheme, refused in other.of_scheme.items():
            self.of_scheme.setdefault(scheme, []).extend(refused)

    def unanswered(self, schemes: Sequence[str]) -> list[Remark]:
        """Why some of the schemes that were asked for run on none of the machines.

        Args:
            schemes: names, as a user gives them.
        """
        running = {offer.scheme for offer in self.offers}
        remarks = []
        for name in schemes:
            scheme = name if name == ANY_SCHEME else SchemeChoice.parse(name).suffix
            lost = least_needed(self.of_scheme.get(scheme, []))
            if lost and scheme not in running:
                # Machines that degrees do not fit come first, then those that the model refuses.
                remarks.append(remark("scheme_refused", scheme=name, reason=lost[-1].reason))
        return remarks


def search(
    evaluator: Evaluator,
    places: Sequence[Machines],
    asked: Asked,
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> SearchResult:
    """All offers for a job, in an order that does not depend on luck or on the engine.

    Args:
        evaluator: of the job.
        places: machines to try.
        asked: what may differ.
        progress: called after each group of candidates with how many groups there are.
        engine: runs the groups of each kind of device, which share what was worked out, as a task;
            None for a loop in this process.

    Raises:
        SettingError: degrees that were asked for fit none of the machines.
        EngineError: workers die over and over.
    """
    check_degrees_fit(places, asked.schemes)
    result = SearchResult()
    groups = [*_groups(evaluator, places, asked, result)]
    if engine is None:
        for group in groups:
            _try(evaluator, group, asked, result)
            if progress is not None:
                progress(len(groups))
        return result
    of_device: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        of_device.setdefault(group.setting.worker.name, []).append(number)
    tasks = [[groups[number] for number in numbers] for numbers in of_device.values()]
    tried: dict[int, SearchResult] = {}
    streamed = engine.stream(_tried, (evaluator, asked), tasks)
    for numbers, results in zip(of_device.values(), streamed, strict=True):
        tried |= zip(numbers, results, strict=True)
        if progress is not None:
            for _ in numbers:
                progress(len(groups))
    for number in range(len(groups)):
        result.add(tried[number])
    return result


def _tried(shared: tuple[Evaluator, Asked], groups: Sequence[Candidate]) -> list[SearchResult]:
    """What each group has come to: a task of an engine."""
    evaluator, asked = shared
    results = []
    with kept_processes():
        for group in groups:
            result = SearchResult()
            _try(evaluator, group, asked, result)
            results.append(result)
    return results


def _groups(
    evaluator: Evaluator, places: Sequence[Machines], asked: Asked, result: SearchResult
) -> Iterator[Candidate]:
    """Machines with a scheme, recomputation and precision: a candidate for each, batches aside."""
    variants = evaluator.variants
    usual, can_vary = variants.usual, variants.can_vary
    checkpointing, precisions = [usual.activation_checkpointing], [usual.precision]
    if can_vary and "checkpointing" in asked.vary:
        checkpointing = list(dict.fromkeys(["none", usual.activation_checkpointing, "full"]))
    if can_vary and "precision" in asked.vary and usual.precision in PRECISIONS:
        half = _HALF_OF.get(usual.precision, usual.precision)
        precisions = list(dict.fromkeys([usual.precision, half]))
    usual_schemes = [asked.usual_scheme] if asked.usual_scheme else []
    for place in places:
        for scheme in _schemes(evaluator, place, asked.schemes or usual_schemes):
            try:
                setting = place.setting.with_scheme(scheme)
            except SettingError as error:  # such as degrees that do not divide the devices
                suffix = SchemeChoice.parse(scheme).suffix
                result.refuse(suffix, Refused(name=place.name, reason=str(error)))
                continue
            for precision in precisions:
                for name in checkpointing:
                    variant = replace(usual, activation_checkpointing=name, precision=precision)
                    yield Candidate(place=place, setting=setting, variant=variant)


def _schemes(evaluator: Evaluator, place: Machines, asked: Sequence[str]) -> list[str]:
    """Schemes to try on some machines; where any will do, degrees that fit the model, too."""
    is_model = evaluator.variants.can_vary
    named = [name for name in asked if name != ANY_SCHEME]
    if len(named) < len(asked) and place.num_devices == 1:
        return [place.setting.scheme.suffix]
    schemes = schemes_for(place, named, is_model=is_model)
    if len(named) == len(asked) or not is_model or not place.setting.scheme.is_usual:
        return schemes
    try:
        graph = evaluator.ready(evaluator.variants.usual, place.setting).job.graph
    except (ConfigError, GraphError):  # each candidate is refused with its reason
        return schemes
    return list(
        dict.fromkeys([*schemes, *degrees_to_try(place.setting.cluster, splittable(graph))])
    )


def _try(evaluator: Evaluator, group: Candidate, asked: Asked, result: SearchResult) -> None:
    """Add the offers of a group, or why there are none."""
    scheme = group.setting.scheme.suffix
    try:
        candidates = candidates_of(evaluator, group, asked)
    except DripleError as error:
        result.tried += 1
        result.refuse(scheme, Refused(name=group.place.name, reason=str(error)))
        return
    for candidate in candidates:
        result.tried += 1
        offer = evaluator.offer(candidate)
        if isinstance(offer, Offer):
            result.offers.append(offer)
        else:
            result.refuse(scheme, offer)


def candidates_of(evaluator: Evaluator, group: Candidate, asked: Asked) -> list[Candidate]:
    """The candidates of a group: batch of a device and passes per update.

    Raises:
        ConfigError: the global batch cannot be shared out, or the job is a fixed graph.
    """
    variant, replicas = group.variant, group.setting.num_replicas
    usual = evaluator.variants.usual
    if asked.global_batch is None:
        if "batch" not in asked.vary or not evaluator.variants.can_vary:
            return [group]
        given = (usual.batch_size, 2 * usual.batch_size)
        ladder = [replace(variant, batch_size=size) for size in {*_ROUND, *given}]
        asked_for = [replace(group, variant=replace(variant, batch_size=size)) for size in given]
        own = [candidate for candidate in asked_for if evaluator.may_fit(candidate)]
        return [*dict.fromkeys([*own, *_largest_that_fit(evaluator, group, ladder)])]
    share, rest = divmod(asked.global_batch, replicas)
    if rest or not share:
        raise ConfigError(
            f"--global-batch {asked.global_batch} cannot be shared out over "
            f"{counted(replicas, 'device')}"
        )
    is_fixed = asked.fixed_batch and "batch" not in asked.vary
    if is_fixed or not evaluator.variants.can_vary:
        passes, rest = divmod(share, usual.batch_size)
        if rest or not passes:
            raise ConfigError(
                f"--global-batch {asked.global_batch} is {counted(share, 'sample')} for each of "
                f"{counted(replicas, 'device')}, no multiple of the batch of {usual.batch_size}"
            )
        return [replace(group, variant=replace(variant, grad_accumulation=passes))]
    sizes = [2**k for k in range(11) if share % 2**k == 0]
    if share <= _LARGEST_BATCH:
        sizes = sorted({*sizes, share})
    ladder = [replace(variant, batch_size=size, grad_accumulation=share // size) for size in sizes]
    return _largest_that_fit(evaluator, group, ladder)


def _largest_that_fit(
    evaluator: Evaluator, group: Candidate, ladder: Sequence[Variant]
) -> list[Candidate]:
    """The largest batch of some that fits, and the largest that surely does; the smallest if none.

    Args:
        evaluator: of the job.
        group: machines and scheme.
        ladder: ways to train that differ in batch and passes.
    """
    rising = sorted(ladder)
    # The same passes for all, those of the smallest batch, so that memory rises with the batch.
    passes = passes_kept(rising[0], group.setting)
    same = [
        replace(group, variant=replace(variant, grad_accumulation=passes)) for variant in rising
    ]
    last = last_that(lambda number: evaluator.may_fit(same[number]), len(rising))
    sure = last_that(lambda number: evaluator.surely_fits(same[number]), last + 1)
    numbers = sorted({number for number in (sure, last) if number >= 0}) or [0]
    return [replace(group, variant=rising[number]) for number in numbers]
