"""Simulate candidates: what does not change between them is worked out once.

Candidate (place, scheme, variant) --Evaluator--> Offer, or Refused
"""

from __future__ import annotations

from dataclasses import replace

from driple.answers.by_simulator import ask_step
from driple.answers.ready_job import ReadyJob
from driple.answers.step_parts import alone_of, parts_of
from driple.catalog.catalog import Catalog
from driple.cluster.setting import Setting
from driple.errors import ConfigError, DripleError, GraphError
from driple.memory.estimate import MemoryEstimate, memory_of, memory_of_places
from driple.memory.place import MemoryPlace, gpu_kinds
from driple.memory.step_memory import BatchedMemory
from driple.planning.amount import Amount
from driple.planning.offers import Offer, needed_bytes
from driple.planning.places import Candidate, Refused
from driple.planning.prices import PriceBook
from driple.planning.variants import JobVariants, Variant
from driple.quantities import size
from driple.simulate.calibration import Calibration
from driple.simulate.place import place_of

__all__ = ["Evaluator", "memory_reason"]

_FEW, _MANY = 4, 8  # batches between which tensors grow in proportion
_NO_BF16 = "bf16"
_Places = tuple[MemoryPlace, ...]


class Evaluator:
    """Time, memory and cost of candidates for one job.

    Attributes:
        largest: the largest batch that fitted, by what decides it; where to look first.

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
        self.calibration = calibration
        self._ready: dict[int, ReadyJob] = {}
        self._memory: dict[tuple[int, _Places], MemoryEstimate | None] = {}
        self.largest: dict[object, int] = {}  # batches that fitted alike candidates
        self._lines: dict[tuple[int, int], BatchedMemory | None] = {}
        self._may_fit: dict[tuple[int, int, _Places], bool] = {}

    def ready(self, variant: Variant, setting: Setting) -> ReadyJob:
        """A variant read and prepared for the devices of a setting."""
        job = self.variants.job(variant, setting)
        # Jobs are kept by the variants, so that ids stay theirs.
        return self._ready.setdefault(id(job), ReadyJob(job))

    def memory(self, candidate: Candidate) -> MemoryEstimate | None:
        """Memory of the device with least room; None if it is unknown how long tensors live."""
        setting, room = candidate.setting, candidate.place.capacity_bytes
        job = self.ready(candidate.variant, setting).job
        key = (id(job), _like(MemoryPlace.of_job(job, setting, room)))
        if key not in self._memory:
            try:
                self._memory[key] = memory_of(job, setting, capacity_bytes=room)
            except GraphError:
                self._memory[key] = None
        return self._memory[key]

    def may_fit(self, candidate: Candidate) -> bool:
        """Whether a candidate will fit, without reading it where its batch size alone is new."""
        variant = candidate.variant
        line = self._line(variant, candidate.setting)
        if line is None:
            memory = self.memory(candidate)
            return memory is None or memory.fits in {None, "yes"}
        places = MemoryPlace.of_job(
            self.variants.given, candidate.setting, candidate.place.capacity_bytes
        )
        key = (id(line), variant.batch_size, _like(places))
        if key not in self._may_fit:
            found = memory_of_places(line.at(variant.batch_size), places)
            self._may_fit[key] = found.fits in {None, "yes"}
        return self._may_fit[key]

    def _line(self, variant: Variant, setting: Setting) -> BatchedMemory | None:
        """Memory at every batch size; None if it does not grow in proportion, or is unknown."""
        passes = min(variant.grad_accumulation, 2)  # more passes need no more memory
        few, many = (
            self.ready(replace(variant, batch_size=size, grad_accumulation=passes), setting).job
            for size in (_FEW, _MANY)
        )
        key = (id(few), id(many))
        if key not in self._lines:
            try:
                self._lines[key] = BatchedMemory.between((_FEW, few.graph), (_MANY, many.graph))
            except (ConfigError, GraphError):
                self._lines[key] = None
        return self._lines[key]

    def refusal(self, candidate: Candidate) -> Refused | None:
        """Why a candidate cannot run; None if it may."""
        name, setting = candidate.place.name, candidate.setting
        in_half = _NO_BF16 in candidate.variant.precision.replace("bfloat16", _NO_BF16)
        devices = [device for device, _ in gpu_kinds(setting.cluster)] if in_half else []
        for device in devices:
            if not device.bf16_flops:
                reason = (
                    f"the job computes in bfloat16, which {device.name} ({device.generation}) only "
                    "emulates; train in float16 there"
                )
                return Refused(name=name, reason=reason)
        memory = self.memory(candidate)
        if memory is None or memory.fits != "no":
            return None
        return Refused(
            name=name,
            reason=memory_reason(memory, candidate),
            needed_bytes=needed_bytes(memory),
        )

    def offer(self, candidate: Candidate) -> Offer | Refused:
        """Time, cost and memory of a candidate, or why it cannot run."""
        try:
            return self.refusal(candidate) or self._offer(candidate)
        except DripleError as error:
            return Refused(name=candidate.place.name, reason=str(error))

    def _offer(self, candidate: Candidate) -> Offer:
        machines, setting, variant = candidate.place, candidate.setting, candidate.variant
        ready = self.ready(variant, setting)
        place = place_of(setting, self.calibration)
        answer = ask_step(ready, place)
        parts = parts_of(ready, place, answer.step_s)
        unknown = ready.job.unknown
        price = None if unknown is not None else self.book.price(machines.one, machines.instance)
        why_none = None if price else self.book.why_none(machines.one, machines.instance)
        return Offer(
            name=machines.name,
            candidate=candidate,
            instance=machines.instance,
            machines=machines.machines,
            devices=setting.num_workers,
            iteration_s=answer.step_s,
            samples=self.amount.samples,
            samples_per_s=candidate.samples_per_step / answer.step_s,
            communication_pct=None
            if parts is None
            else 100 * parts.exchange_s / alone_of(ready, place).step_s,
            price=price,
            no_price=unknown or why_none,
            answer=answer,
            memory=self.memory(candidate),
            parts=parts,
        )


def _like(places: _Places) -> _Places:
    """Places where a job needs as much: whole models are the same on any number of devices."""
    return tuple(
        replace(
            place,
            shards=1 if place.is_replicated else place.shards,
            replicas=min(place.replicas, 2),
        )
        for place in places
    )


def memory_reason(memory: MemoryEstimate, candidate: Candidate) -> str:
    """Why a job does not fit, in words."""
    setting = candidate.setting
    scheme = f"{setting.scheme.suffix}, " if setting.num_workers > 1 else ""
    needs, room = needed_bytes(memory) or 0.0, memory.capacity_bytes or 0.0
    largest = f"; the largest part is {memory.largest}" if memory.largest else ""
    return (
        f"each device needs {size(needs)} ({scheme}{candidate.variant.name}), and "
        f"{memory.device or setting.worker.name} has {size(room)}{largest}"
    )
