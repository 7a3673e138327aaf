"""One way to train a job, with its time, its cost, its memory and its bottleneck.

    Candidate (place, scheme, variant) -> Evaluator -> Offer;  profile of an instance -> Offer

Simulated steps leave out stalls of CPU and disk; measured ones include those of cached data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.catalog import Instance, Price
from driple.errors import ConfigError, MeasureError
from driple.planning.amount import AmountAsked
from driple.planning.prices import PriceBook
from driple.remarks import Remark
from driple.units import HOUR_S

if TYPE_CHECKING:
    from driple.answers.error_statement import StatedError
    from driple.answers.method_answer import MethodAnswer
    from driple.answers.slow_hosts import SlowHost
    from driple.answers.step_parts import StepParts
    from driple.estimate import Source
    from driple.memory.largest import LargestBatches
    from driple.memory.memory_estimate import MemoryEstimate
    from driple.planning.places import Candidate
    from driple.planning.variants import Variant
    from driple.profiler.stall_profile import StallProfile

__all__ = ["Offer", "measured_offer", "needed_bytes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """One way to train a job.

    Attributes:
        name: of the machines: `2xp3.8xlarge` is two of that instance.
        candidate: machines, scheme, and way of training; None for a measurement.
        instance: that is rented; None for a setting of the user's own.
        machines: number of instances; 1 for a setting of the user's own.
        devices: total number of devices.
        iteration_s: iteration time of all devices, seconds.
        samples: trained on in all.
        samples_per_s: of all devices.
        communication_pct: communication stall, percent of an iteration on one device; None if
            unknown.
        price: of one machine (of all machines for a setting of the user's own); None without one.
        no_price: why there is none.
        provenance: `simulated` or `measured`.
        answer: of the simulator, with its error and a slower host; None for a measurement.
        memory: of the device with least room; None for a measurement, or if it is unknown.
        parts: where the time of a step goes; None for a measurement.
        largest: the largest batches that fit there; None if they are not known.
    """

    name: str
    candidate: Candidate | None = None
    instance: Instance | None = None
    machines: int = 1
    devices: int
    iteration_s: float
    samples: float
    samples_per_s: float
    communication_pct: float | None = None
    price: Price | None = None
    no_price: Remark | None = None
    provenance: Source = "simulated"
    answer: MethodAnswer | None = None
    memory: MemoryEstimate | None = None
    parts: StepParts | None = None
    largest: LargestBatches | None = None

    @property
    def setting(self) -> str:
        """Name of machines and scheme; empty for a measurement."""
        return "" if self.candidate is None else self.candidate.setting.name

    @property
    def scheme(self) -> str:
        """How the work is distributed; empty for a measurement."""
        return "" if self.candidate is None else self.candidate.setting.scheme.suffix

    @property
    def variant(self) -> Variant | None:
        """Batch, passes, recomputation and precision; None for a measurement."""
        return None if self.candidate is None else self.candidate.variant

    @property
    def training_s(self) -> float:
        """Time of the whole training, seconds."""
        return self.samples / self.samples_per_s

    @property
    def per_hour(self) -> float | None:
        """Price of all machines per hour; None without one."""
        return None if self.price is None else self.price.per_hour * self.machines

    @property
    def cost(self) -> float | None:
        """Cost of the whole training; None without a price."""
        per_hour = self.per_hour
        return None if per_hour is None else self.training_s / HOUR_S * per_hour

    @property
    def error(self) -> StatedError | None:
        """Error of the simulator on similar published runs; None for a measurement."""
        return None if self.answer is None else self.answer.stated

    @property
    def slow_host(self) -> SlowHost | None:
        """The step on a slower host; None where that does not matter, and for a measurement."""
        return None if self.answer is None else self.answer.slow_host

    @property
    def factors(self) -> tuple[float, float] | None:
        """On time and cost, to the ends of the 90 % interval; None if the error is not known."""
        return None if self.answer is None else self.answer.factors

    @property
    def error_factors(self) -> tuple[float, float] | None:
        """The same by the errors of published runs alone, without a slower host."""
        return None if self.answer is None else self.answer.error_factors

    @property
    def fits(self) -> str | None:
        """Whether it fits in the memory of the devices; None if that is not known."""
        return None if self.memory is None else self.memory.fits

    @property
    def fits_words(self) -> str:
        """Whether it fits, and of unlike devices the one with least room; empty if not known."""
        if self.memory is None or self.fits is None:
            return ""
        return f"{self.fits} ({self.memory.device})" if self.memory.device else self.fits

    @property
    def memory_bytes(self) -> float | None:
        """Bytes of a device that are in use; None if that is not known."""
        return None if self.memory is None else needed_bytes(self.memory)

    @property
    def may_be_recommended(self) -> bool:
        """Whether nothing speaks against its memory."""
        return self.fits in {None, "yes"}

    @property
    def may_not_fit(self) -> bool:
        """Whether the upper end of the interval of its memory is more than its devices have."""
        memory = self.memory
        return memory is not None and memory.has_upper_end and not memory.surely_fits

    @property
    def full_name(self) -> str:
        """Machines, scheme and variant: `p4d.24xlarge (fsdp, batch 8, full checkpointing)`."""
        if self.variant is None:
            return self.name
        scheme = f"{self.scheme}, " if self.devices > 1 else ""
        return f"{self.name} ({scheme}{self.variant.name})"


def needed_bytes(memory: MemoryEstimate) -> float | None:
    """What a device shows, or the best that is known of it; None if nothing is."""
    return None if memory.needed is None else memory.needed.value


def measured_offer(
    profile: StallProfile,
    instance: Instance,
    book: PriceBook,
    asked: AmountAsked,
) -> Offer:
    """Time and cost on a profiled instance: of cached data, or of synthetic data if missing.

    Args:
        profile: profile taken on that instance.
        instance: the instance.
        book: of prices.
        asked: samples of an epoch, else those of the profiled script's loader; and epochs.

    Raises:
        ConfigError: an amount in tokens, or in samples where the profile does not state its batch.
        MeasureError: the profile has neither step 4 nor 2, or no length of an epoch.
    """
    if asked.tokens is not None:
        raise ConfigError(
            f"--tokens counts texts of known length, and the profile {profile.folder} states no "
            "length; give --samples N"
        )
    times, stalls = profile.times, profile.stalls()
    step = next((step for step in (4, 2) if step in times), None)
    if step is None:
        raise MeasureError(
            f"{profile.folder} has neither step 2 nor step 4, which a cost needs; run driple "
            f"profile run --output {profile.folder} again"
        )
    launch = next(item for (number, _), item in sorted(profile.launches.items()) if number == step)
    values = [*times[step].values()]
    iteration_s = sum(values) / len(values)
    per_step = (launch.batch_size or 0) * launch.processes
    iterations: float | None = profile.batches_per_epoch
    if asked.samples is not None:
        if not per_step:
            raise ConfigError(
                f"--samples needs the batch size, which the script's loader did not report to the "
                f"profile {profile.folder}; leave --samples out"
            )
        iterations = asked.samples / per_step
    if iterations is None:
        raise MeasureError(
            f"{profile.folder} does not tell how long an epoch is, since the script's loader has "
            "no length; give --samples"
        )
    samples = iterations * asked.epochs * (per_step or 1)
    price = book.price(instance.name, instance)
    return Offer(
        name=instance.name,
        instance=instance,
        devices=instance.num_devices,
        iteration_s=iteration_s,
        samples=samples,
        samples_per_s=(per_step or 1) / iteration_s,
        communication_pct=stalls["interconnect"].pct if "interconnect" in stalls else None,
        price=price,
        no_price=None if price is not None else book.why_none(instance.name, instance),
        provenance="measured",
    )
