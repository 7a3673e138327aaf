"""The five steps of a stall profile, and the stalls as their differences (section IV-B).

    1  one device, synthetic data            interconnect stall = 2 - 1
    2  all devices, synthetic data           network stall      = 5 - 2
    3  all devices, real data, cold caches   prep stall         = 4 - 2
    4  all devices, real data, cached        fetch stall        = 3 - 4
    5  several machines, synthetic data

Steps 1 and 5 and their stalls are Stash's; steps 2 to 4 are those of DS-Analyzer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from driple.checks import check_number, check_whole
from driple.errors import ConfigError

__all__ = ["DIFFERENCES", "STEPS", "Difference", "Plan", "ProfileStep"]

# Warm-up iterations identify the training loader, time the gradients, and let DDP order its
# buckets.
LEAST_WARMUP = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileStep:
    """One configuration in which the training script runs.

    Attributes:
        number: as in the paper.
        title: description.
        synthetic: the first batch is kept on the device and returned repeatedly.
        cold: the caches of the file system are cleared first.
    """

    number: int
    title: str
    synthetic: bool = True
    cold: bool = False


STEPS: Mapping[int, ProfileStep] = MappingProxyType(
    {
        step.number: step
        for step in (
            ProfileStep(number=1, title="one device, synthetic data"),
            ProfileStep(number=2, title="all devices of a machine, synthetic data"),
            ProfileStep(number=3, title="real data, caches cleared", synthetic=False, cold=True),
            ProfileStep(number=4, title="real data, cached", synthetic=False),
            ProfileStep(number=5, title="several machines, synthetic data, as many devices"),
        )
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Definition of a stall as the difference of two steps.

    Attributes:
        name: name of the stall.
        slower: number of the step with the stall.
        faster: number of the step without it.
        bases: steps whose time is 100 %; the first measured one is used.
    """

    name: str
    slower: int
    faster: int
    bases: tuple[int, ...]


# In the paper, the interconnect stall is relative to the time of a single GPU, the network stall to
# that of a single instance (section V), and the stalls of CPU and disk to the total training time
# (figure 4): step 3, which includes all stalls of one machine, or step 4 if step 3 is missing.
DIFFERENCES = (
    Difference(name="interconnect", slower=2, faster=1, bases=(1,)),
    Difference(name="network", slower=5, faster=2, bases=(2,)),
    Difference(name="prep", slower=4, faster=2, bases=(3, 4)),
    Difference(name="fetch", slower=3, faster=4, bases=(3,)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Plan of a profile.

    Attributes:
        processes: devices of a machine, with one training process each.
        machines: machines of step 5, which share the processes.
        network_bits_per_s: rate of the emulated network if one machine emulates several; None for
            real machines.
        iterations: timed iterations per launch.
        warmup: warm-up iterations per launch.
        repeats: launches of each step, interleaved.
        timeout_s: launch timeout, seconds.
        tries: maximum tries of a launch that other programs or machines disturb; the least
            disturbed one is kept.
        seed: random seed, so that every launch sees the same samples.
    """

    processes: int
    machines: int = 2
    network_bits_per_s: float | None = None
    iterations: int = 10
    warmup: int = 5
    repeats: int = 3
    timeout_s: float = 600.0
    tries: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError on invalid values."""
        check_whole("--devices", self.processes, 1)
        check_whole("--set machines", self.machines, 1)
        check_whole("--set iterations", self.iterations, 2)
        check_whole("--set warmup", self.warmup, LEAST_WARMUP)
        check_whole("--set repeats", self.repeats, 1)
        check_whole("--set tries", self.tries, 1)
        check_number("--set timeout", self.timeout_s, above=0)
        if self.network_bits_per_s is not None:
            check_number("--set bandwidth", self.network_bits_per_s, above=0)
            if self.machines < 2 or self.processes % self.machines:
                raise ConfigError(
                    f"{self.processes} processes cannot be shared among {self.machines} machines "
                    "of step 5; give --devices that --set machines=N (2 or more) divides"
                )
