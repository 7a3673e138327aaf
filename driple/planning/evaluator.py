"""Simulate candidates: what does not change between them is worked out once.

    Candidate (place, scheme, variant) --Evaluator--> Offer, or Refused
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.catalog.catalog import Catalog
from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import CatalogError, DripleError, GraphError
from driple.estimation.stated_error import JobKind, StatedError, job_kind, stated_error
from driple.jobs.load import Job
from driple.memory.estimate import MemoryEstimate, memory_of
from driple.planning.amount import Amount
from driple.planning.offers import Offer
from driple.planning.places import Candidate, Refused
from driple.planning.prices import PriceBook
from driple.planning.step_parts import StepParts, device_parts, exchange_words
from driple.planning.variants import JobVariants, Variant
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from driple.units import format_size

__all__ = ["Evaluator", "memory_reason"]

_STEPS = 20
_NO_BF16 = "bf16"


@dataclass(frozen=True, slots=True)
class _Ready:
    """A variant of the job, ready to be simulated."""

    job: Job
    prepared: PreparedJob
    kind: JobKind


class Evaluator:
    """Time, memory and cost of candidates for one job.

    Args:
        variants: of the job.
        amount: that is trained.
        book: of prices.
        catalog: devices and links; as installed by default.
        calibration: of the simulator; as installed by default.
    """

    def __init__(
        self,
        variants: JobVariants,
        amount: Amount,
        book: PriceBook,
        catalog: Catalog | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.variants, self.amount, self.book, self.catalog = variants, amount, book, catalog
        self.calibration = calibration or shipped_calibration()
        self._ready: dict[int, _Ready] = {}
        self._alone: dict[tuple[int, str], tuple[float, StepParts]] = {}
        self._memory: dict[tuple[object, ...], MemoryEstimate] = {}

    def ready(self, variant: Variant, setting: Setting) -> _Ready:
        """A variant read and prepared for the devices of a setting."""
        job = self.variants.job(variant, setting)
        if id(job) not in self._ready:  # jobs are kept by the variants, so that ids stay theirs
            self._ready[id(job)] = _Ready(job, PreparedJob.of_job(job), job_kind(job.graph, job.cost))
        return self._ready[id(job)]

    def memory(self, variant: Variant, setting: Setting) -> MemoryEstimate | None:
        """Memory of a device; None where the graph does not show how long its tensors live."""
        job = self.ready(variant, setting).job
        machines = setting.cluster.machines
        key = (
            id(job), setting.worker.name, setting.scheme, setting.num_workers, len(machines),
        )  # fmt: skip
        if key not in self._memory:
            try:
                self._memory[key] = memory_of(job, setting, self.catalog)
            except GraphError:
                return None
        return self._memory[key]

    def refusal(self, candidate: Candidate) -> str:
        """Why a candidate cannot run; empty if it may."""
        worker = candidate.setting.worker
        if _NO_BF16 in candidate.variant.precision.replace("bfloat16", _NO_BF16):
            try:
                has_format = bool(worker.bf16_flops)
            except CatalogError as error:
                return str(error)
            if not has_format:
                return (
                    f"the job computes in bfloat16, which a {worker.name} ({worker.generation}) "
                    "only emulates; train in float16 there"
                )
        memory = self.memory(candidate.variant, candidate.setting)
        if memory is not None and memory.fits == "no":
            return memory_reason(memory, candidate.setting)
        return ""

    def offer(self, candidate: Candidate) -> Offer | Refused:
        """Time, cost and memory of a candidate, or why it cannot run."""
        name = candidate.place.name
        try:
            reason = self.refusal(candidate)
            return Refused(name=name, reason=reason) if reason else self._offer(candidate)
        except DripleError as error:
            return Refused(name=name, reason=str(error))

    def _offer(self, candidate: Candidate) -> Offer:
        place, setting, variant = candidate.place, candidate.setting, candidate.variant
        ready = self.ready(variant, setting)
        one_s, alone = self._by_itself(ready, setting)
        topology, all_s, parts = topology_of(setting), one_s, alone
        if setting.num_workers > 1:
            all_s = simulated_step_s(ready.prepared, setting, self.calibration, num_steps=_STEPS)
            parts = alone.with_exchange(all_s, exchange_words(topology))
        unknown = ready.job.unknown_words
        error = (
            StatedError(runs=unknown)
            if unknown
            else stated_error(setting, ready.kind, topology=topology)
        )
        price = None if unknown else self.book.price(place.one, place.instance)
        no_price = unknown or ("" if price else self.book.why_none(place.one, place.instance))
        return Offer(
            name=place.name,
            candidate=candidate,
            instance=place.instance,
            machines=place.machines,
            devices=setting.num_workers,
            iteration_s=all_s,
            samples=self.amount.samples,
            samples_per_s=candidate.samples_per_step / all_s,
            communication_pct=100 * parts.exchange_s / one_s,
            price=price,
            no_price=no_price,
            error=error,
            memory=self.memory(variant, setting),
            parts=parts,
        )

    def _by_itself(self, ready: _Ready, setting: Setting) -> tuple[float, StepParts]:
        """A step of one device alone, and its parts, scaled to the simulated time."""
        key = (id(ready.job), setting.worker.name)
        if key not in self._alone:
            alone = machines_setting(self.catalog or _hardware(), setting.worker)
            one_s = simulated_step_s(ready.prepared, alone, self.calibration, num_steps=_STEPS)
            parts = device_parts(ready.prepared, alone, self.calibration)
            self._alone[key] = (one_s, parts.scaled(one_s))
        return self._alone[key]


def memory_reason(memory: MemoryEstimate, setting: Setting) -> str:
    """Why a job does not fit, in words."""
    needs = memory.device_total or memory.reserved or memory.allocated
    room = memory.capacity_bytes or 0.0
    largest = f"; the largest part is {memory.largest}" if memory.largest else ""
    return (
        f"each device needs {format_size(needs.value)}, a {setting.worker.name} has "
        f"{format_size(room)}{largest}"
    )


def _hardware() -> Catalog:
    from driple.catalog import shipped_hardware

    return shipped_hardware()
