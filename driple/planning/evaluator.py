"""Simulate candidates: what does not change between them is worked out once.

Candidate (place, scheme, variant) --Evaluator--> Offer, or Refused
"""

from __future__ import annotations

from dataclasses import replace

from driple.answers.by_simulator import ask_step
from driple.answers.ready_job import ReadyJob
from driple.answers.step_parts import alone_of, parts_of
from driple.catalog.catalog import Catalog
from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.errors import ConfigError, DripleError, GraphError
from driple.memory.batch_line import MemoryLine
from driple.memory.estimate import memory_of
from driple.memory.largest import LargestBatches, largest_batches
from driple.memory.memory_estimate import MemoryEstimate
from driple.memory.place import MemoryPlace, gpu_kinds
from driple.planning.amount import Amount
from driple.planning.offers import Offer, needed_bytes
from driple.planning.places import Candidate, Refused
from driple.planning.prices import PriceBook
from driple.planning.variants import JobVariants, Variant
from driple.quantities import size
from driple.simulate.place import place_of

__all__ = ["Evaluator", "memory_reason", "passes_kept"]

_LEAST_BATCH = 2  # of a line: of one sample, PyTorch runs other ops
_PASSES = 2
_NO_BF16 = "bf16"
_Places = tuple[MemoryPlace, ...]


class Evaluator:
    """Time, memory and cost of candidates for one job.

    Args:
        variants: of the job.
        amount: that is trained.
        book: of prices.
        catalog: devices and links; as installed by default.
    """

    def __init__(
        self,
        variants: JobVariants,
        amount: Amount,
        book: PriceBook,
        catalog: Catalog | None = None,
    ) -> None:
        self.variants, self.amount, self.book, self.catalog = variants, amount, book, catalog
        self._ready: dict[int, ReadyJob] = {}
        self._memory: dict[tuple[int, _Places], MemoryEstimate | None] = {}
        self._lines: dict[tuple[int, int, Degrees], MemoryLine | None] = {}
        self._at: dict[tuple[int, int, _Places], MemoryEstimate] = {}
        self._largest: dict[tuple[int, _Places], LargestBatches] = {}

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

    def quick_memory(self, candidate: Candidate) -> MemoryEstimate | None:
        """The same without reading a candidate where its batch size alone is new."""
        line = self._line(candidate.variant, candidate.setting)
        if line is None:
            return self.memory(candidate)
        return self._memory_at(line, candidate.variant.batch_size, self._places(candidate))

    def may_fit(self, candidate: Candidate) -> bool:
        """Whether a candidate will fit, by its quick memory."""
        memory = self.quick_memory(candidate)
        return memory is None or memory.fits in {None, "yes"}

    def surely_fits(self, candidate: Candidate) -> bool:
        """Whether it will fit by the upper end of the interval of its quick memory too."""
        memory = self.quick_memory(candidate)
        return memory is not None and memory.surely_fits

    def largest_batches(self, candidate: Candidate) -> LargestBatches | None:
        """The largest batches that fit where a candidate runs; None if that is not known."""
        if not self.variants.can_vary:
            return None
        line = self._line(candidate.variant, candidate.setting)
        if line is None:
            return None
        places = self._places(candidate)
        if any(place.capacity_bytes is None for place in places):
            return None
        key = (id(line), _like(places))
        if key not in self._largest:
            self._largest[key] = largest_batches(
                lambda size: self._memory_at(line, size, places), candidate.variant.batch_size
            )
        return self._largest[key]

    def _places(self, candidate: Candidate) -> _Places:
        room = candidate.place.capacity_bytes
        return MemoryPlace.of_job(self.variants.given, candidate.setting, room)

    def _memory_at(self, line: MemoryLine, size: int, places: _Places) -> MemoryEstimate:
        key = (id(line), size, _like(places))
        if key not in self._at:
            self._at[key] = line.at(size, places)
        return self._at[key]

    def _line(self, variant: Variant, setting: Setting) -> MemoryLine | None:
        """Memory at every batch size; None if it does not grow in proportion, or is unknown."""
        degrees = setting.scheme.degrees
        passes = passes_kept(variant, setting)
        size = max(self.variants.usual.batch_size, _LEAST_BATCH)
        try:
            few, many = (
                self.ready(replace(variant, batch_size=each, grad_accumulation=passes), setting).job
                for each in (size, 2 * size)
            )
        except (ConfigError, GraphError):
            return None
        key = (id(few), id(many), replace(degrees, states=Degrees().states))
        if key not in self._lines:
            try:
                self._lines[key] = MemoryLine.between(few, many, degrees)
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
        place = place_of(setting)
        answer = ask_step(ready, place)
        parts = parts_of(ready, place, answer.step_s)
        unknown = ready.job.unknown
        price = (
            None
            if unknown is not None
            else self.book.price(machines.priced_name, machines.instance)
        )
        why_none = None if price else self.book.why_none(machines.priced_name, machines.instance)
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
            largest=self.largest_batches(candidate),
        )


def passes_kept(variant: Variant, setting: Setting) -> int:
    """Passes of an update that decide its memory: more of them keep no more.

    Gradients are kept from two passes on, activations of as many as a pipeline has stages.
    """
    return min(variant.grad_accumulation, max(_PASSES, _in_flight(setting.scheme.degrees)))


def _in_flight(degrees: Degrees) -> int:
    """Micro-batches from which on a pipeline keeps no more of them."""
    rounds = 1 if degrees.virtual == 1 else 2
    return rounds * degrees.pipeline


def _like(places: _Places) -> _Places:
    """Places where a job needs as much.

    Whole models are the same on any number of devices; hosts count for what is kept on them.
    """
    return tuple(
        replace(
            place,
            shards=1 if place.is_replicated else place.shards,
            replicas=min(place.copies, 2) * place.degrees.tensor * place.degrees.pipeline,
            per_machine=place.per_machine if place.offload else 1,
            host_capacity_bytes=place.host_capacity_bytes if place.offload else None,
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
