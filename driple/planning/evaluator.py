"""Simulate candidates: what does not change between them is worked out once.

Candidate (place, scheme, variant) --Evaluator--> Offer, or Refused
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from driple.answers.methods import Place
from driple.answers.slow_hosts import SlowHost, slow_host
from driple.answers.stated_error import JobKind, StatedError, job_kind, stated_error
from driple.catalog.catalog import Catalog
from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError, DripleError, GraphError
from driple.jobs.load import Job
from driple.memory.estimate import MemoryEstimate, memory_of, memory_of_places
from driple.memory.place import MemoryPlace, gpu_kinds
from driple.memory.step_memory import BatchedMemory
from driple.planning.amount import Amount
from driple.planning.offers import Offer, needed_bytes
from driple.planning.places import Candidate, Refused
from driple.planning.prices import PriceBook
from driple.planning.step_parts import StepParts, device_parts, exchange_words
from driple.planning.variants import JobVariants, Variant
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from driple.units import format_size

__all__ = ["Evaluator", "memory_reason"]

_STEPS = 20
_SIMULATED = (4, 8)  # passes, where more are like these
_FEW, _MANY = 4, 8  # batches between which tensors grow in proportion
_NO_BF16 = "bf16"
_Places = tuple[MemoryPlace, ...]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A variant of the job, ready to be simulated."""

    job: Job
    prepared: PreparedJob
    kind: JobKind


@dataclass(frozen=True, slots=True)
class _Alone:
    """A step of one device alone: its seconds and parts, and the same on a slower host."""

    step_s: float
    parts: StepParts
    slow_host: SlowHost | None


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
        self.calibration = calibration or shipped_calibration()
        self._ready: dict[int, _Ready] = {}
        self._alone: dict[tuple[int, str], _Alone] = {}
        self._memory: dict[tuple[int, _Places], MemoryEstimate | None] = {}
        self.largest: dict[object, int] = {}  # batches that fitted alike candidates
        self._lines: dict[tuple[int, int], BatchedMemory | None] = {}
        self._may_fit: dict[tuple[int, int, _Places], bool] = {}

    def ready(self, variant: Variant, setting: Setting) -> _Ready:
        """A variant read and prepared for the devices of a setting."""
        job = self.variants.job(variant, setting)
        if id(job) not in self._ready:  # jobs are kept by the variants, so that ids stay theirs
            self._ready[id(job)] = _Ready(
                job, PreparedJob.of_job(job), job_kind(job.graph, job.cost)
            )
        return self._ready[id(job)]

    def memory(self, candidate: Candidate) -> MemoryEstimate | None:
        """Memory of the device with least room; None if it is unknown how long tensors live."""
        setting, room = candidate.setting, candidate.place.capacity_bytes
        job = self.ready(candidate.variant, setting).job
        key = (id(job), _like(MemoryPlace.of_kinds(setting, room)))
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
        places = MemoryPlace.of_kinds(candidate.setting, candidate.place.capacity_bytes)
        key = (id(line), variant.batch_size, _like(places))
        if key not in self._may_fit:
            found = memory_of_places(line.at(variant.batch_size), places)
            self._may_fit[key] = found.fits in {None, "yes"}
        return self._may_fit[key]

    def _line(self, variant: Variant, setting: Setting) -> BatchedMemory | None:
        """Memory at every batch size; None if it does not grow in proportion, or is unknown."""
        passes = min(variant.passes, 2)  # more passes need no more memory
        few, many = (
            self.ready(replace(variant, batch_size=size, passes=passes), setting).job
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
        place, setting, variant = candidate.place, candidate.setting, candidate.variant
        ready = self.ready(variant, setting)
        alone = self._by_itself(ready, setting)
        topology, all_s, parts = topology_of(setting), alone.step_s, alone.parts
        if setting.num_workers > 1:
            all_s = self._step_s(variant, setting)
            parts = alone.parts.with_exchange(all_s, exchange_words(topology))
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
            communication_pct=100 * parts.exchange_s / alone.step_s,
            price=price,
            no_price=no_price,
            error=error,
            memory=self.memory(candidate),
            parts=parts,
            slow_host=alone.slow_host,
            alone_s=alone.step_s,
        )

    def _step_s(self, variant: Variant, setting: Setting) -> float:
        """Time of a step of several devices, seconds.

        Where gradients leave in every pass, one pass is like the next, so that of very many passes
        only some are simulated.
        """
        prepared = self.ready(variant, setting).prepared
        rule = scheme_named(setting.scheme.name).rule(prepared.exchange)
        if variant.passes <= _SIMULATED[1] or rule is None or not rule.each_pass:
            return simulated_step_s(prepared, setting, self.calibration, num_steps=_STEPS)
        few_s, many_s = (
            self._step_s(replace(variant, passes=passes), setting) for passes in _SIMULATED
        )
        each_s = (many_s - few_s) / (_SIMULATED[1] - _SIMULATED[0])
        return many_s + (variant.passes - _SIMULATED[1]) * each_s

    def _by_itself(self, ready: _Ready, setting: Setting) -> _Alone:
        """A step of one device alone."""
        key = (id(ready.job), setting.worker.name)
        if key not in self._alone:
            alone = machines_setting(self.catalog or _hardware(), setting.worker)
            one_s = simulated_step_s(ready.prepared, alone, self.calibration, num_steps=_STEPS)
            parts = device_parts(ready.prepared, alone, self.calibration)
            place = Place(setting=alone, topology=topology_of(alone), calibration=self.calibration)
            slow = slow_host(ready.prepared, place, step_s=one_s)
            self._alone[key] = _Alone(one_s, parts.scaled(one_s), slow)
        return self._alone[key]


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
        f"each device needs {format_size(needs)} ({scheme}{candidate.variant.words()}), and "
        f"{memory.device or setting.worker.name} has {format_size(room)}{largest}"
    )


def _hardware() -> Catalog:
    from driple.catalog import shipped_hardware

    return shipped_hardware()
