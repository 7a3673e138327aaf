"""`plan`: what an epoch takes and costs on each instance, and which to rent.

JOB -> simulated offers;  stall profiles -> measured offers;  both -> PlanResult
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from driple.api.results import Cell, Result, estimate, job_facts
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.estimation.compare import MethodTime
from driple.jobs.load import Job, JobOptions, JobSource, load_job
from driple.planning.cost import Offer, Refused, recommendation

if TYPE_CHECKING:
    from driple.catalog import Catalog, Instance
    from driple.planning.assumptions import Assumptions
    from driple.simulate.calibration import Calibration

__all__ = ["PlanResult", "plan"]

_LEVEL = 0.9  # of intervals that come from the 90th percentile of known errors


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanResult(Result):
    """Instances in the order of their price per epoch, and which to rent.

    Attributes:
        job: the training job; None if all offers were measured.
        offers: with and without a price.
        refused: instances that cannot run the job.
        assumptions: what the simulated offers rest on; None if all were measured.
        no_price: why there are no prices; empty if there are.
        recommendation: which instance to rent; None without prices.
        remarks: what a user should know of the devices, one sentence each.
    """

    job: Job | None
    offers: tuple[Offer, ...]
    refused: tuple[Refused, ...]
    assumptions: Assumptions | None
    no_price: str
    recommendation: str | None
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple plan --json` prints."""
        assumed = self.assumptions
        return {
            "question": "plan",
            "job": None if self.job is None else job_facts(self.job),
            "no_price": self.no_price or None,
            "assumptions": None if assumed is None else assumed.to_json_dict(),
            "offers": [_offer_dict(one) for one in self.offers],
            "refused": [to_dict(one) for one in self.refused],
            "recommendation": self.recommendation,
            "remarks": list(self.remarks),
        }

    def rows(self) -> list[dict[str, Cell]]:
        """One row per offer."""
        return [
            {
                "instance": one.name,
                "devices": one.devices,
                "iteration_time_s": one.iteration_s,
                "communication_pct": one.communication_pct,
                "epoch_s": one.epoch_s,
                "price_per_hour": one.per_hour,
                "epoch_cost": one.epoch_cost,
                "source": one.provenance,
            }
            for one in self.offers
        ]


def _offer_dict(offer: Offer) -> dict[str, Json]:
    """One offer; the interval of times and costs comes from the simulator's known error."""
    is_measured = offer.provenance == "measured"
    p90 = None if offer.error is None else offer.error.p90

    def number(value: float | None) -> dict[str, Json] | None:
        if value is None:
            return None
        if is_measured:
            return estimate(value, "measured", "measured")
        known = None if offer.error is None else offer.error.interval_of(value)
        ends = MethodTime(
            method="simulator", iteration_time_s=value, p90=p90, calibrated_s=known
        ).interval_s
        return estimate(value, "simulator", ends=ends, level=_LEVEL)

    return {
        "name": offer.name,
        "devices": offer.devices,
        "setting": offer.setting,
        "source": offer.provenance,
        "iteration_time_s": number(offer.iteration_s),
        "communication_pct": None
        if offer.communication_pct is None
        else estimate(
            offer.communication_pct,
            "measured" if is_measured else "simulator",
            "measured" if is_measured else "simulated",
        ),
        "epoch_s": number(offer.epoch_s),
        "epoch_cost": number(offer.epoch_cost),
        "price_per_hour": offer.per_hour,
        "stated_error": None if offer.error is None else offer.error.to_dict(),
    }


def plan(
    job: JobSource | None = None,
    *,
    options: JobOptions | None = None,
    samples: int | None = None,
    instances: Sequence[str] = (),
    machines: Sequence[int] = (1,),
    catalogs: Sequence[Path] = (),
    profiles: Sequence[tuple[Path, str]] = (),
    day: datetime.date | None = None,
    deadline_h: float | None = None,
) -> PlanResult:
    """What an epoch takes and costs on each instance, and which instance to rent.

    Instances with a profile are measured; all others are simulated from the job, without stalls of
    CPU and disk. Instances whose devices are too small are refused.

    Args:
        job: JOB as on the command line, a graph or a `Job`; None with profiles alone.
        options: batch size, shapes of inputs and the like.
        samples: of an epoch; if None, those of the job's or the profile's data set, and ImageNet
            for models of images.
        instances: names; `p3` is all of P3; all known if empty.
        machines: numbers of instances of a kind.
        catalogs: own devices, links, instances and prices (TOML), which take precedence.
        profiles: (folder of a stall profile, name of the instance that it was taken on).
        day: date of the prices; the newest if None.
        deadline_h: hours that an epoch may take at most.

    Raises:
        ConfigError: neither job nor profile, no batch size, no samples of a job that is not of
            images, or no instance that can run the job.
        GraphError: a job that cannot be read, or contains no training step.
        MeasureError: a profile that does not contain what a cost needs.
    """
    from driple.catalog import read_catalog, shipped_catalog

    _check_job(job, options, profiles)
    catalog = read_catalog(catalogs) if catalogs else None
    known = (catalog or shipped_catalog()).instances
    draft = _Draft(offers=_measured_offers(profiles, known, samples, day))
    if job is not None:
        done = {offer.name for offer in draft.offers}
        chosen = _chosen(known, instances, machines, done)
        loaded = load_job(job, options)
        if loaded.batch_size is None:
            raise ConfigError("a graph does not state its batch size; give --batch-size")
        _add_simulated(draft, loaded, chosen, samples=samples, day=day, catalog=catalog)
        if draft.no_price:
            draft.offers = [_without_price(offer, loaded) for offer in draft.offers]
    draft.offers.sort(key=lambda offer: (offer.epoch_cost is None, offer.epoch_cost or 0.0))
    return PlanResult(
        job=draft.job,
        offers=tuple(draft.offers),
        refused=tuple(draft.refused),
        assumptions=draft.assumptions,
        no_price=draft.no_price,
        recommendation=None if draft.no_price else recommendation(draft.offers, deadline_h),
        remarks=tuple(draft.remarks),
    )


def _check_job(
    job: JobSource | None, options: JobOptions | None, profiles: Sequence[tuple[Path, str]]
) -> None:
    """Refuse what needs no reading."""
    if job is None and not profiles:
        raise ConfigError("give a JOB, or --profile FOLDER=INSTANCE")
    if job is None and options is not None and options.given:
        raise ConfigError(
            f"{' and '.join(options.given)}: for JOB, and none is given; leave them out"
        )
    batch_size = None if options is None else options.batch_size
    if isinstance(job, str | Path) and batch_size is None and Path(job).exists():
        raise ConfigError("a graph file does not state its batch size; give --batch-size")


@dataclass(kw_only=True, slots=True)
class _Draft:
    """A result in the making."""

    offers: list[Offer]
    job: Job | None = None
    refused: list[Refused] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    no_price: str = ""
    assumptions: Assumptions | None = None


def _without_price(offer: Offer, job: Job) -> Offer:
    """A simulated offer without price and known error; a measured one as it is."""
    from driple.estimation.stated_error import StatedError

    if offer.provenance != "simulated":
        return offer
    unknown = StatedError(runs=job.unknown_words)
    return replace(offer, per_hour=None, epoch_cost=None, error=unknown)


def _measured_offers(
    profiles: Sequence[tuple[Path, str]],
    known: Mapping[str, Instance],
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    from driple.planning.cost import measured_offer
    from driple.profiler.stall_profile import read_profile

    for folder, name in profiles:
        if name not in known:
            raise ConfigError(
                f"--profile needs FOLDER=INSTANCE with an instance such as p3.8xlarge (there are "
                f"{', '.join(known)}), got '{folder}={name}'"
            )
    return [
        measured_offer(read_profile(folder), known[name], samples=samples, date=day)
        for folder, name in profiles
    ]


def _chosen(
    known: Mapping[str, Instance], names: Sequence[str], counts: Sequence[int], done: set[str]
) -> list[tuple[Instance, int]]:
    """Instances and how many of each, without those that were measured."""
    from driple.planning.instances import choose_instances

    return [
        (item, count)
        for item in choose_instances(known, names)
        for count in counts
        if count > 1 or item.name not in done
    ]


def _add_simulated(
    draft: _Draft,
    job: Job,
    chosen: Sequence[tuple[Instance, int]],
    *,
    samples: int | None,
    day: datetime.date | None,
    catalog: Catalog | None,
) -> None:
    """Simulate the job on all instances that may be large enough.

    Raises:
        ConfigError: none of them is.
        GraphError: the graph has no training step.
    """
    from driple.estimation.stated_error import job_kind
    from driple.memory.least import device_memory_bytes, least_memory
    from driple.planning.assumptions import assumptions_of
    from driple.planning.cost import (
        refused_for_facts,
        refused_for_memory,
        refused_for_precision,
        simulated_offer,
    )
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    calibration, graph = shipped_calibration(), job.graph
    batch_size = cast("int", job.batch_size)
    epoch, samples_from = _samples(job, samples)
    draft.job = job
    draft.assumptions = assumptions_of(
        graph, batch_size=batch_size, samples=epoch, samples_from=samples_from
    )
    draft.no_price = _why_no_price(job)
    least, kind, large = least_memory(graph), job_kind(graph, job.cost), []
    for item, count in chosen:
        refused = (
            refused_for_facts(item, count, catalog)
            or refused_for_memory(least, item, count, catalog)
            or refused_for_precision(draft.assumptions.precision, item, count, catalog)
        )
        if refused is None:
            large.append((item, count))
        else:
            draft.refused.append(refused)
    if not large and not draft.offers and draft.refused:
        largest = max(chosen, key=lambda pair: device_memory_bytes(pair[0], catalog))
        reason = draft.refused[chosen.index(largest)].reason
        raise ConfigError(
            f"none of these instances can run the job: {reason}; choose others (--instance)"
        )
    prepared = PreparedJob(graph, cost=job.cost)
    draft.offers += [
        simulated_offer(
            prepared,
            item,
            calibration,
            batch_size=batch_size * job.grad_accumulation,
            samples=epoch,
            machines=count,
            date=day,
            kind=kind,
            catalog=catalog,
        )
        for item, count in large
    ]
    draft.remarks += _doubts(calibration, [item for item, _ in large], catalog)


def _samples(job: Job, samples: int | None) -> tuple[int, str]:
    """Samples of an epoch, and where the number comes from.

    Raises:
        ConfigError: neither option nor data set states them, and the job is not of images.
    """
    from driple.jobs.pytorch.workloads import IMAGENET_SAMPLES

    if samples is not None:
        return samples, "--samples"
    if job.samples is not None:
        return job.samples, "its data set"
    if not job.reads_images:
        raise ConfigError(f"the samples of an epoch of {job.name} are not known; give --samples N")
    return IMAGENET_SAMPLES, "ImageNet, since --samples is not given"


def _why_no_price(job: Job) -> str:
    """Why the job has no price; empty if it has one."""
    if not job.has_unknown:
        return ""
    options = job.options_that_set
    advice = f"; set them with {options}" if options else ""
    return f"no price and no recommendation: {job.unknown_words}, so times are too short{advice}"


def _doubts(
    calibration: Calibration, chosen: Sequence[Instance], catalog: Catalog | None
) -> tuple[str, ...]:
    """What stands in for devices and links without published runs, in the order of their names."""
    from driple.catalog import shipped_hardware
    from driple.cluster.topology import topology_of
    from driple.planning.instances import instance_setting

    hardware = catalog or shipped_hardware()
    places = [
        topology_of(instance_setting(item, catalog=catalog))
        for item in chosen
        if item.num_devices > 1
    ]
    links = {place.link: place.joined_by for place in places if place.joined_by is not None}
    devices = [hardware.device(name) for name in sorted({item.device for item in chosen})]
    return calibration.assumptions(devices, [links[name] for name in sorted(links)])
