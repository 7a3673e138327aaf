"""What a plan says beside its offers: what is not known of machines, devices and prices.

PlacesAsked, Job, shown offers -> Remarks
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driple.api.arguments import measured_over, settings_of
from driple.api.device_remarks import device_remarks
from driple.jobs.load import Job
from driple.jobs.training_config import undecided_remark
from driple.remarks import Remark, remark

if TYPE_CHECKING:
    from driple.api.plan_places import PlacesAsked
    from driple.catalog.catalog import Catalog
    from driple.planning.offers import Offer
    from driple.planning.variants import JobVariants

__all__ = ["doubts_of", "remarks_of_machine", "why_no_price"]


def remarks_of_machine(places: PlacesAsked, catalog: Catalog | None) -> list[Remark]:
    """What a machine file leaves open of the settings, each once."""
    from driple.simulate.own_machine import machine_remarks

    own = places.machine
    if own is None:
        return []
    settings = settings_of(places.settings, catalog, places.options, own)
    each = [known for setting in settings for known in machine_remarks(own, setting)]
    return [*dict.fromkeys([*each, *measured_over(own, places.catalogs)])]


def why_no_price(job: Job | None) -> Remark | None:
    """Why the job has no price; None if it has one."""
    if job is not None and job.undecided:
        return undecided_remark(job.undecided)
    if job is None or job.unknown is None:
        return None
    return remark("no_price", unknown=job.unknown, options=job.options_that_set)


def doubts_of(shown: Sequence[Offer], variants: JobVariants) -> list[Remark]:
    """What stands in for devices and links of these offers, and what they lack."""
    from driple.cluster.topology import topology_of
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.run import calibration_assumptions

    calibration = shipped_calibration()
    remarks: dict[Remark, None] = {}
    for offer in shown:
        if offer.candidate is not None:
            setting = offer.candidate.setting
            job = variants.job(offer.candidate.variant, setting)
            remarks |= dict.fromkeys(calibration_assumptions(topology_of(setting), calibration))
            remarks |= dict.fromkeys(device_remarks(job, setting, "simulator"))
    return [*remarks]
