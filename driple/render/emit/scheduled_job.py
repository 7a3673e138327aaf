"""`ScheduledJob`: what any scheduler needs to know of one training, from `predict` or `plan`.

    Answer + steps or samples -> ScheduledJob        PlanResult -> ScheduledJob of its choice

The command that trains is the user's own, and each file marks where it goes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.errors import ConfigError
from driple.quantities import duration, size

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.api.predicting import Answer
    from driple.catalog import Instance, Price
    from driple.cluster.cluster import Host
    from driple.cluster.setting import Setting
    from driple.memory.memory_estimate import MemoryEstimate
    from driple.planning.offers import Offer

__all__ = [
    "HERE",
    "MASTER_PORT",
    "NEEDS_AMOUNT",
    "SCRIPT",
    "ScheduledJob",
    "TrainingAmount",
    "scheduled_answer",
    "scheduled_offers",
    "scheduled_plan",
]

SCRIPT = "YOUR_TRAINING_SCRIPT.py"
HERE = "REPLACE the line below by the command that starts your training on one machine"
MASTER_PORT = 29500
_MOST_NAME = 40
_MINUTE_S = 60
_ROUNDING = 1e-9  # of a quotient that is a whole number
NEEDS_AMOUNT = (  # of predict
    "--emit states a training time and needs to know how much is trained; give "
    "--set training_steps=N, or --set samples=N or --set tokens=N, and --set epochs=N"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingAmount:
    """How much an answer of `predict` is to train.

    Attributes:
        steps: updates of the parameters; None: by samples.
        samples: of an epoch; None: those of the job's data set, or by tokens.
        tokens: of an epoch; None: by samples.
        epochs: how often the samples are trained on; None if the user gave none.
    """

    steps: float | None = None
    samples: float | None = None
    tokens: float | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        """Refuse no amount, and two that may contradict each other.

        Raises:
            ConfigError: which value is needed, or is one too many.
        """
        stated = {"training_steps": self.steps, "samples": self.samples, "tokens": self.tokens}
        names = [name for name, value in stated.items() if value is not None]
        if len(names) > 1 or (self.steps is not None and self.epochs is not None):
            raise ConfigError(
                f"--set {names[0]} and --set {[*names, 'epochs'][1]} both state the amount; give "
                "one of them"
            )
        if not names and self.epochs is None:
            raise ConfigError(NEEDS_AMOUNT)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob:
    """One training on the machines that it gets.

    Attributes:
        name: that all schedulers take: letters, digits and dashes.
        facts: what the numbers rest on, a line each.
        num_machines: machines.
        num_devices: devices of each machine.
        device: their name in the catalogue.
        training_s: expected time of the training, seconds.
        lower_s: lower end of its 90 % interval; None if the error is not known.
        limit_s: upper end of it, or the deadline of a plan; None if neither is known.
        host: processors and main memory of each machine.
        instance: that is rented; None for machines of one's own.
        price: of one instance; None without one.
    """

    name: str
    facts: tuple[str, ...]
    num_machines: int
    num_devices: int
    device: str
    training_s: float
    lower_s: float | None
    limit_s: float | None
    host: Host
    instance: Instance | None = None
    price: Price | None = None

    @property
    def expected_minutes(self) -> int:
        """The expected time in whole minutes, at least 1."""
        return _minutes(self.training_s)

    @property
    def limit_minutes(self) -> int | None:
        """The limit, rounded up to minutes; None if it is not known."""
        return None if self.limit_s is None else _minutes(self.limit_s)

    @property
    def host_memory_mb(self) -> int | None:
        """Main memory of a machine, MB = 10^6 bytes; None if it is not known."""
        memory = self.host.memory_bytes
        return None if memory is None else int(memory / 1e6)

    @property
    def cpus(self) -> int | None:
        """Virtual CPUs of a machine; None if they are not known."""
        return None if self.host.num_cpus is None else int(self.host.num_cpus)


def scheduled_answer(answer: Answer, amount: TrainingAmount) -> ScheduledJob:
    """The training of one answer of `predict`.

    Args:
        answer: of one setting.
        amount: how much is trained.

    Raises:
        ConfigError: the samples are not known, the setting has servers or no GPU, the job does not
            fit, or no time is known.
    """
    setting, time = answer.setting, answer.iteration_time_s
    if setting.num_servers or setting.on_cpu:
        raise ConfigError(
            f"--emit writes files for GPUs that train with PyTorch, and {setting.name} is not of "
            "them; give --setting, such as --setting 8xH100"
        )
    memory = None if answer.memory is None else answer.memory.estimate
    if memory is not None and memory.fits == "no":
        raise ConfigError(
            f"{answer.job.name} does not fit on {setting.name}, so there is nothing to submit; "
            "driple predict without --emit says what would help"
        )
    factor = _steps_of_samples(answer, amount) if amount.steps is None else amount.steps
    interval, machines = time.interval, setting.cluster.machines
    high = None if interval is None or interval.high is None else factor * interval.high
    low = None if interval is None else factor * interval.low
    return ScheduledJob(
        name=_name(answer.job.name),
        facts=_facts(
            f"Training of {answer.job.name} on {setting.name}: {factor:,.0f} steps of "
            f"{duration(time.value)}, predicted by Driple.",
            _time_line(factor * time.value, low, high),
            memory,
            f"Set in your script: batch of a device {answer.job.batch_size or 'as you have it'}, "
            f"gradient accumulation {answer.job.grad_accumulation}, precision "
            f"{answer.job.precision or 'as you have it'}.",
        ),
        num_machines=len(machines),
        num_devices=len(machines[0].devices),
        device=setting.device,
        training_s=factor * time.value,
        lower_s=low,
        limit_s=high,
        host=machines[0].host,
        instance=_instance_of(setting),
    )


def scheduled_plan(result: PlanResult) -> ScheduledJob:
    """The training of the offer that a plan recommends.

    Without a known error, the limit is the deadline of the plan, if there is one.

    Raises:
        ConfigError: nothing is recommended, or what is recommended was measured.
    """
    best = result.choice.best
    if best is None:
        raise ConfigError(
            "--emit needs a recommended offer, and there is none; driple plan without --emit says "
            "why"
        )
    return _scheduled_offer(result, best)


def scheduled_offers(result: PlanResult) -> list[ScheduledJob]:
    """The training of each simulated offer that may be recommended, in the order of the plan."""
    return [
        _scheduled_offer(result, offer)
        for offer in result.offers
        if offer.candidate is not None and offer.may_be_recommended
    ]


def _scheduled_offer(result: PlanResult, offer: Offer) -> ScheduledJob:
    if offer.candidate is None:
        raise ConfigError(
            f"--emit is for offers that were simulated, and {offer.name} was measured; give a JOB"
        )
    machines, ends = offer.candidate.setting.cluster.machines, offer.factors
    high = None if ends is None or math.isinf(ends[1]) else ends[1] * offer.training_s
    low = None if ends is None else ends[0] * offer.training_s
    name = "a job" if result.job is None else result.job.name
    variant = offer.variant
    return ScheduledJob(
        name=_name("job" if result.job is None else result.job.name),
        facts=_facts(
            f"Training of {name} on {offer.full_name}, planned by Driple.",
            _time_line(offer.training_s, low, high),
            offer.memory,
            ""
            if variant is None
            else f"Set in your script: batch of a device {variant.batch_size}, gradient "
            f"accumulation {variant.grad_accumulation}, activation checkpointing "
            f"{variant.activation_checkpointing}, precision "
            f"{variant.precision or 'as you have it'}, scheme {offer.scheme}.",
        ),
        num_machines=len(machines),
        num_devices=len(machines[0].devices),
        device=offer.candidate.setting.device,
        training_s=offer.training_s,
        lower_s=low,
        limit_s=result.limits.deadline_s if high is None else high,
        host=machines[0].host,
        instance=offer.instance,
        price=offer.price,
    )


def _steps_of_samples(answer: Answer, amount: TrainingAmount) -> float:
    """Steps until all samples were trained on."""
    from driple.api.throughput import throughput_of

    job, samples = answer.job, amount.samples
    if amount.tokens is not None:
        if job.seq_len is None:
            raise ConfigError(f"samples of {job.name} are no tokens; give --set samples=N")
        samples = math.ceil(amount.tokens / job.seq_len)
    if samples is None:
        samples = job.samples
    if samples is None:
        raise ConfigError(NEEDS_AMOUNT)
    throughput = throughput_of(answer)
    if throughput is None:
        raise ConfigError(
            f"the batch size of {job.name} is not known, so samples state no time; give "
            "--set training_steps=N"
        )
    per_step = throughput.samples_per_s.value * answer.iteration_time_s.value
    epochs = 1.0 if amount.epochs is None else amount.epochs
    return math.ceil((1 - _ROUNDING) * epochs * samples / per_step)


def _instance_of(setting: Setting) -> Instance | None:
    """The instance that a setting is called by; None of other names."""
    from driple.catalog import shipped_catalog

    match = re.match(r"(?:\d+x)?([^/]+)", setting.name)
    return None if match is None else shipped_catalog().instances.get(match[1])


def _facts(
    title: str, time_line: str, memory: MemoryEstimate | None, script: str
) -> tuple[str, ...]:
    """Lines of comments: what it is, how long it takes, whether it fits, what to set."""
    needed = None if memory is None else memory.needed
    fits = "" if memory is None or needed is None else (
        f"Memory of each device: {size(needed.value)}; fits: {memory.fits or 'unknown'}."
    )  # fmt: skip
    return tuple(" ".join(line.split()) for line in (title, time_line, fits, script) if line)


def _time_line(training_s: float, low_s: float | None, high_s: float | None) -> str:
    if low_s is None:
        return f"Estimate: {duration(training_s)}; its error is not known."
    end = "no limit" if high_s is None else duration(high_s)
    return f"Estimate: {duration(training_s)}, 90 % interval {duration(low_s)} to {end}."


def _minutes(seconds: float) -> int:
    return max(math.ceil(seconds / _MINUTE_S), 1)


def _name(source: str) -> str:
    bare = re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:_MOST_NAME].strip("-")
    return f"driple-{bare or 'job'}"
