"""Time and cost of an epoch on each instance, and a recommendation (sections V-A2, V-B2, V-C).

Job, Instance, machines   -> simulated iteration -> Offer (epoch, cost) -> recommendation
Profile of that instance  -> measured iteration  -> Offer

Simulated iterations exclude CPU and disk stalls; measured ones include those of cached data.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass

from driple.catalog import Instance, shipped_hardware
from driple.catalog.catalog import Catalog
from driple.checks import check_number, check_whole
from driple.errors import ConfigError, MeasureError
from driple.estimation.stated_error import JobKind, StatedError, stated_error
from driple.jobs.pytorch.workloads import IMAGENET_SAMPLES
from driple.memory.least import LeastMemory, device_memory_bytes
from driple.planning.instances import device_alone, instance_setting
from driple.profiler.stall_profile import StallProfile
from driple.simulate.calibration import Calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from driple.units import HOUR_S, format_duration, format_size

__all__ = [
    "Offer",
    "Refused",
    "measured_offer",
    "price_text",
    "recommendation",
    "refused_for_facts",
    "refused_for_memory",
    "refused_for_precision",
    "simulated_offer",
]

_STEPS = 20
_MOST_NAMED = 3  # maximum number of instances that a recommendation advises against
_SAME_SPEED, _TWICE = 1.05, 2.0  # ratios of times
_WHOLE_PRICE = 100.0  # prices from here on are printed without cents


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Training on one instance, or on several of the same type.

    Attributes:
        name: name of the instance; `p3.8xlarge*2` is two of them.
        devices: total number of devices.
        iteration_s: iteration time of all devices, seconds.
        communication_pct: communication stall, percent of an iteration on one device; None if
            unknown.
        epoch_s: time of an epoch, seconds.
        epoch_cost: cost of an epoch; None without a price.
        per_hour: price of all machines per hour; None without one.
        provenance: `simulated` or `measured`.
        setting: the simulated setting; empty for a measurement.
        error: error of the simulator on similar published runs; None for a measurement.
    """

    name: str
    devices: int
    iteration_s: float
    communication_pct: float | None
    epoch_s: float
    epoch_cost: float | None
    per_hour: float | None
    provenance: str
    setting: str = ""
    error: StatedError | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """An instance that cannot run the job, or cannot be simulated.

    Attributes:
        name: name of the instance; `p3.8xlarge*2` is two of them.
        reason: the job's requirement, and what the instance offers.
    """

    name: str
    reason: str


def refused_for_facts(
    instance: Instance, machines: int = 1, catalog: Catalog | None = None
) -> Refused | None:
    """Reason why an instance cannot be simulated (catalogue fields that are missing), or None.

    Args:
        instance: the instance.
        machines: number of instances.
        catalog: devices and links; the shipped catalogue by default.
    """
    known = catalog or shipped_hardware()
    missing = known.missing_for_simulation(known.device(instance.device))
    facts = [f"{name} of a {instance.device}" for name in missing]
    if machines > 1 and instance.network_gbps is None:
        facts.append("its network_gbps")
    if not facts:
        return None
    reason = f"the catalogue does not state {', '.join(facts)}; add it in a file of your own"
    return Refused(name=_named(instance, machines), reason=reason)


def refused_for_memory(
    least: LeastMemory, instance: Instance, machines: int = 1, catalog: Catalog | None = None
) -> Refused | None:
    """Reason why a job does not fit in the memory of an instance's devices; None if it may fit.

    Args:
        least: minimum memory of the job on each device.
        instance: the instance.
        machines: number of instances.
        catalog: devices and links; the shipped catalogue by default.
    """
    there = device_memory_bytes(instance, catalog)
    if least.total_bytes <= there:
        return None
    reason = (
        f"each device needs {least.sentence()}, a {instance.device} of {instance.name} has "
        f"{format_size(there)}"
    )
    return Refused(name=_named(instance, machines), reason=reason)


def refused_for_precision(
    precision: str, instance: Instance, machines: int = 1, catalog: Catalog | None = None
) -> Refused | None:
    """Reason why a precision cannot be simulated on an instance's devices; None if it can.

    PyTorch emulates bfloat16 on devices without it; no published run gives the speed of that.

    Args:
        precision: precision of convolutions and matrix products, as `precision_of` names it.
        instance: the instance.
        machines: number of instances.
        catalog: devices and links; the shipped catalogue by default.
    """
    device = (catalog or shipped_hardware()).device(instance.device)
    if "bfloat16" not in precision or device.bf16_flops:
        return None
    reason = (
        f"the job computes in bfloat16, which a {device.name} ({device.generation}) only emulates; "
        "train in float16 there"
    )
    return Refused(name=_named(instance, machines), reason=reason)


def simulated_offer(
    job: PreparedJob,
    instance: Instance,
    calibration: Calibration,
    *,
    batch_size: int,
    samples: int = IMAGENET_SAMPLES,
    machines: int = 1,
    date: datetime.date | None = None,
    kind: JobKind | None = None,
    catalog: Catalog | None = None,
) -> Offer:
    """Simulated time and cost of an epoch on an instance.

    A graph with unknown sizes or loop turns gets no price: each counts as 1, so its time is too
    short.

    Args:
        job: the training job of one worker.
        instance: the instance.
        calibration: calibration of the simulator.
        batch_size: samples per device and iteration, as in the graph.
        samples: samples per epoch.
        machines: number of instances, joined by their network.
        date: date of the price; the newest by default.
        kind: kind of the job; computed by `job_kind` by default.
        catalog: devices and links; the shipped catalogue by default.

    Raises:
        ConfigError: numbers below 1, or machines without a network.
        SettingError: a device or link that is not in the catalogue.
    """
    check_whole("--batch-size", batch_size, 1)
    check_whole("--samples", samples, 1)
    check_whole("--machines", machines, 1)
    setting = instance_setting(instance, machines, catalog)
    alone = device_alone(instance, catalog)
    one_s = simulated_step_s(job, alone, calibration, num_steps=_STEPS)
    all_s = one_s
    if setting.num_workers > 1:  # an exchange never shortens a step, except by jitter
        found_s = simulated_step_s(job, setting, calibration, num_steps=_STEPS)
        all_s = max(one_s, found_s)
    return _offer(
        instance,
        machines,
        iteration_s=all_s,
        communication_pct=100 * (all_s - one_s) / one_s,
        iterations=samples / (batch_size * setting.num_workers),
        date=date,
        provenance="simulated",
        setting=setting.name,
        error=stated_error(setting, kind or job.graph),
        priced=not job.graph.report.has_unknown,
    )


def measured_offer(
    profile: StallProfile,
    instance: Instance,
    *,
    samples: int | None = None,
    date: datetime.date | None = None,
) -> Offer:
    """Time and cost of an epoch on a profiled instance: cached data, or synthetic data if missing.

    Args:
        profile: profile taken on that instance.
        instance: the instance.
        samples: samples per epoch; those of the profiled script's loader by default.
        date: date of the price.

    Raises:
        MeasureError: the profile has neither step 4 nor 2, or no length of an epoch.
    """
    times, stalls = profile.times, profile.stalls()
    step = next((step for step in (4, 2) if step in times), None)
    if step is None:
        raise MeasureError(
            f"{profile.folder} has neither step 2 nor step 4, which a cost needs; run driple "
            f"profile run --output {profile.folder} again"
        )
    launch = next(item for (number, _), item in sorted(profile.launches.items()) if number == step)
    iterations: float | None = profile.batches_per_epoch
    if samples is not None and launch.batch_size:
        iterations = samples / (launch.batch_size * launch.processes)
    if iterations is None:
        raise MeasureError(
            f"{profile.folder} does not tell how long an epoch is, since the script's loader has "
            "no length; give --samples"
        )
    values = [*times[step].values()]
    return _offer(
        instance,
        1,
        iteration_s=sum(values) / len(values),
        communication_pct=stalls["interconnect"].pct if "interconnect" in stalls else None,
        iterations=iterations,
        date=date,
        provenance="measured",
    )


def _offer(
    instance: Instance,
    machines: int,
    *,
    iteration_s: float,
    communication_pct: float | None,
    iterations: float,
    date: datetime.date | None,
    provenance: str,
    setting: str = "",
    error: StatedError | None = None,
    priced: bool = True,
) -> Offer:
    price = instance.price(date) if priced else None
    per_hour = None if price is None else price.per_hour * machines
    epoch_s = iterations * iteration_s
    return Offer(
        name=_named(instance, machines),
        devices=instance.num_devices * machines,
        iteration_s=iteration_s,
        communication_pct=communication_pct,
        epoch_s=epoch_s,
        epoch_cost=None if per_hour is None else epoch_s / HOUR_S * per_hour,
        per_hour=per_hour,
        provenance=provenance,
        setting=setting,
        error=error,
    )


def _named(instance: Instance, machines: int) -> str:
    return instance.name if machines == 1 else f"{instance.name}*{machines}"


def price_text(price: float) -> str:
    """Dollars without the sign: two decimals, or the first two significant digits if smaller."""
    if price >= _WHOLE_PRICE:
        return f"{price:,.0f}"
    digits = 2 if price >= 1 or price <= 0 else 1 - math.floor(math.log10(price))
    return f"{price:.{max(digits, 2)}f}"


def recommendation(offers: Sequence[Offer], deadline_h: float | None = None) -> str:
    """The cheapest and the fastest instance, and those that cost more and are slower.

    Args:
        offers: candidates; those without a price are ignored.
        deadline_h: maximum time of an epoch, hours.

    Raises:
        ConfigError: no offer has a price, or the deadline is not positive.
    """
    priced = [(offer.epoch_cost, offer) for offer in offers if offer.epoch_cost is not None]
    if not priced:
        raise ConfigError("no instance has a price; add one with --catalog FILE.toml")
    if deadline_h is not None:
        return _in_time(priced, deadline_h)
    _, cheapest = min(priced, key=_by_cost)
    _, fastest = min(priced, key=lambda pair: (pair[1].epoch_s, pair[0]))
    if len(priced) == 1:
        return f"{cheapest.name}: {_epoch_text(cheapest)}."
    if fastest is cheapest:
        parts = [f"Rent {cheapest.name}: {_epoch_text(cheapest)}, the cheapest and the fastest"]
    else:
        parts = [
            f"Rent {cheapest.name}: {_epoch_text(cheapest)}, the cheapest",
            f"the fastest is {fastest.name}: {_epoch_text(fastest)}",
        ]
    beaten = [
        comparison
        for pair in sorted(priced, key=_by_cost, reverse=True)
        if (comparison := _beaten(pair, priced)) is not None
    ]
    parts += beaten[:_MOST_NAMED]
    if len(beaten) > _MOST_NAMED:
        parts.append(f"{len(beaten) - _MOST_NAMED} more cost more and are no faster than another")
    return f"{'; '.join(parts)}."


def _in_time(priced: Sequence[tuple[float, Offer]], deadline_h: float) -> str:
    """The cheapest offer within the deadline."""
    check_number("--deadline", deadline_h, above=0)
    in_time = [pair for pair in priced if pair[1].epoch_s <= deadline_h * HOUR_S]
    if not in_time:
        _, first = min(priced, key=lambda pair: pair[1].epoch_s)
        return (
            f"No instance does an epoch within {deadline_h:g} h; the fastest is {first.name}: "
            f"{_epoch_text(first)}."
        )
    _, best = min(in_time, key=_by_cost)
    return f"Rent {best.name}: {_epoch_text(best)}, the cheapest within {deadline_h:g} h."


def _by_cost(pair: tuple[float, Offer]) -> tuple[float, float]:
    return pair[0], pair[1].epoch_s


def _beaten(pair: tuple[float, Offer], priced: Sequence[tuple[float, Offer]]) -> str | None:
    """The cheapest offer that dominates this one: as fast for less, or faster for no more.

    None if no offer dominates it.
    """
    cost, offer = pair
    better = [
        (other_cost, other)
        for other_cost, other in priced
        if (other_cost < cost and other.epoch_s <= offer.epoch_s)
        or (other_cost <= cost and other.epoch_s < offer.epoch_s)
    ]
    if not better:
        return None
    other_cost, other = min(better, key=_by_cost)
    costs = "costs more than" if other_cost < cost else "costs as much as"
    ratio = offer.epoch_s / other.epoch_s
    if ratio < _SAME_SPEED:
        speed = "is no faster"
    elif ratio < _TWICE:
        speed = f"is {100 * (ratio - 1):.0f} % slower"
    else:
        speed = f"is {ratio:.2g} times slower" if ratio < 100 else f"is {ratio:.0f} times slower"
    return f"{offer.name} {costs} {other.name} and {speed}"


def _epoch_text(offer: Offer) -> str:
    cost = "" if offer.epoch_cost is None else f" for ${price_text(offer.epoch_cost)}"
    return f"an epoch in {format_duration(offer.epoch_s)}{cost}"
