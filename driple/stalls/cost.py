"""What an epoch takes and costs on each instance, and which to rent (sections V-A2, V-B2, V-C).

Job, Instance, machines   -> simulated iteration -> Offer (epoch, cost) -> recommendation
Profile of that instance  -> measured iteration  -> Offer

Simulated iterations have no stalls of CPU or disk in them; measured ones have those of cached data.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from driple.checks import check_number, check_whole
from driple.errors import ConfigError, MeasureError
from driple.settings import Setting
from driple.simulate.device import Calibration
from driple.simulate.job import Job
from driple.simulate.run import simulate
from driple.stalls.instances import Instance
from driple.stalls.record import Profile
from driple.stalls.workloads import IMAGENET_SAMPLES

__all__ = ["Offer", "measured_offer", "recommendation", "simulated_offer"]

_STEPS = 20
_HOUR_S = 3600.0
_MOST_NAMED = 3  # instances that a recommendation advises against


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Training on an instance, or on several of a kind.

    Attributes:
        name: of the instance; `p3.8xlarge*2` is two of them.
        devices: in all.
        iteration_s: seconds of an iteration of all devices.
        communication_pct: what exchange adds to it, in percent of an iteration on one device; None
            if that is not known.
        epoch_s: seconds of an epoch.
        epoch_cost: of an epoch; None without a price.
        per_hour: price of all machines; None without one.
        provenance: `simulated` or `measured`.
        setting: that was simulated; empty if it was measured.
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


def simulated_offer(
    job: Job,
    instance: Instance,
    calibration: Calibration,
    *,
    batch_size: int,
    samples: int = IMAGENET_SAMPLES,
    machines: int = 1,
    date: datetime.date | None = None,
) -> Offer:
    """An epoch on an instance that nobody here has.

    Args:
        job: the training job of one worker.
        instance: to rent.
        calibration: of the simulator.
        batch_size: samples of a device in an iteration, as the graph has them.
        samples: of an epoch.
        machines: instances, joined by their network.
        date: of the price; the newest by default.

    Raises:
        ConfigError: numbers below 1, or machines without a network.
        SettingError: a device or link that the simulator does not know.
    """
    check_whole("--batch-size", batch_size, 1)
    check_whole("--samples", samples, 1)
    check_whole("--machines", machines, 1)
    setting = instance.setting(machines)
    alone = Setting(
        device=instance.device, num_servers=0, num_workers=1, network=instance.interconnect
    )
    one_s = simulate(job, alone, calibration, num_steps=_STEPS).iteration_time_s
    # A ring over machines crosses their interconnects too: the slowest link counts (IV-B2).
    rings = [setting] if setting.num_workers > 1 else []
    if machines > 1 and instance.devices > 1:
        rings.append(replace(alone, num_workers=setting.num_workers))
    found = [simulate(job, ring, calibration, num_steps=_STEPS).iteration_time_s for ring in rings]
    all_s = max([one_s, *found])
    return _offer(
        instance,
        machines,
        iteration_s=all_s,
        communication_pct=100 * (all_s - one_s) / one_s,
        iterations=samples / (batch_size * setting.num_workers),
        date=date,
        provenance="simulated",
        setting=setting.name,
    )


def measured_offer(
    profile: Profile,
    instance: Instance,
    *,
    samples: int | None = None,
    date: datetime.date | None = None,
) -> Offer:
    """An epoch on an instance that was profiled: on cached data, or on synthetic data without.

    Args:
        profile: taken on that instance.
        instance: it was taken on.
        samples: of an epoch; by default as many as the profiled script's loader has.
        date: of the price.

    Raises:
        MeasureError: the profile has neither step 4 nor 2, or does not tell the epoch.
    """
    times, stalls = profile.times, profile.stalls()
    step = next((step for step in (4, 2) if step in times), None)
    if step is None:
        raise MeasureError(
            f"{profile.folder} has neither step 2 nor step 4, which a cost needs; run driple "
            f"stalls run --out {profile.folder} again"
        )
    launch = next(item for (number, _), item in sorted(profile.launches.items()) if number == step)
    iterations: float | None = profile.batches_per_epoch
    if samples is not None and launch["batch_size"]:
        iterations = samples / (launch["batch_size"] * launch["processes"])
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
) -> Offer:
    price = instance.price(date)
    per_hour = None if price is None else price.per_hour * machines
    epoch_s = iterations * iteration_s
    return Offer(
        name=instance.name if machines == 1 else f"{instance.name}*{machines}",
        devices=instance.devices * machines,
        iteration_s=iteration_s,
        communication_pct=communication_pct,
        epoch_s=epoch_s,
        epoch_cost=None if per_hour is None else epoch_s / _HOUR_S * per_hour,
        per_hour=per_hour,
        provenance=provenance,
        setting=setting,
    )


def recommendation(offers: Sequence[Offer], deadline_h: float | None = None) -> str:
    """Which to rent, in a sentence: the cheapest, the fastest, and what is not worth its price.

    Args:
        offers: to choose from; those without a price do not count.
        deadline_h: hours that an epoch may take.

    Raises:
        ConfigError: no offer has a price.
    """
    priced = [(offer.epoch_cost, offer) for offer in offers if offer.epoch_cost is not None]
    if not priced:
        raise ConfigError("no instance has a price; add one with --instances FILE.yaml")
    if deadline_h is not None:
        check_number("--deadline", deadline_h, above=0)
        in_time = [pair for pair in priced if pair[1].epoch_s <= deadline_h * _HOUR_S]
        if not in_time:
            _, first = min(priced, key=lambda pair: pair[1].epoch_s)
            return (
                f"No instance does an epoch within {deadline_h:g} h; the fastest is {first.name}: "
                f"{_told(first)}."
            )
        _, best = min(in_time, key=_by_cost)
        return f"Rent {best.name}: {_told(best)}, the least of all within {deadline_h:g} h."
    _, cheapest = min(priced, key=_by_cost)
    _, fastest = min(priced, key=lambda pair: (pair[1].epoch_s, pair[0]))
    if fastest is cheapest:
        sentence = f"Rent {cheapest.name}: {_told(cheapest)}, the cheapest and the fastest of all"
    else:
        sentence = (
            f"Rent {cheapest.name}: {_told(cheapest)}, the least of all; if that is too long, "
            f"{fastest.name} is the fastest: {_told(fastest)}"
        )
    beaten = [offer.name for cost, offer in sorted(priced, key=_by_cost, reverse=True)
              if _beaten(cost, offer, priced)]  # fmt: skip
    if beaten:
        named = ", ".join(beaten[:_MOST_NAMED])
        more = len(beaten) - _MOST_NAMED
        and_more = f" and {more} more" if more > 0 else ""
        sentence += f"; not worth the price, as others are as fast for less: {named}{and_more}"
    return f"{sentence}."


def _by_cost(pair: tuple[float, Offer]) -> tuple[float, float]:
    return pair[0], pair[1].epoch_s


def _beaten(cost: float, offer: Offer, priced: Sequence[tuple[float, Offer]]) -> bool:
    """Whether another is as fast and costs less, or is faster and costs no more."""
    return any(
        (other_cost < cost and other.epoch_s <= offer.epoch_s)
        or (other_cost <= cost and other.epoch_s < offer.epoch_s)
        for other_cost, other in priced
    )


def _told(offer: Offer) -> str:
    hours = offer.epoch_s / _HOUR_S
    long = f"{hours:.2g} h" if hours >= 0.1 else f"{offer.epoch_s:.3g} s"
    cost: Any = offer.epoch_cost
    return f"an epoch in {long} for ${cost:.3g}"
