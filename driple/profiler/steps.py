"""The five steps of a stall profile, and which stall is the difference of which two (section IV-B).

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

# The first iterations tell which loader trains, time the gradients, and let DDP order its buckets.
LEAST_WARMUP = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileStep:
    """One way to run the training script.

    Attributes:
        number: as in the paper.
        title: in words.
        synthetic: the first batch is kept on the device and given again and again.
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
    """A stall: by how much one step is slower than another.

    Attributes:
        name: of the stall.
        slower: number of the step that has it.
        faster: number of the step that does not.
        bases: steps whose time is 100 %; the first that was measured is taken.
    """

    name: str
    slower: int
    faster: int
    bases: tuple[int, ...]


# The paper relates the interconnect stall to the time of a single GPU, the network stall to that of
# a single instance (section V), and the stalls of CPU and disk to the total training time (figure
# 4): that of step 3, which has all stalls of one machine in it, or of step 4 where 3 is left out.
DIFFERENCES = (
    Difference(name="interconnect", slower=2, faster=1, bases=(1,)),
    Difference(name="network", slower=5, faster=2, bases=(2,)),
    Difference(name="prep", slower=4, faster=2, bases=(3, 4)),
    Difference(name="fetch", slower=3, faster=4, bases=(3,)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How a script is profiled.

    Attributes:
        processes: devices of a machine; one process trains on each.
        machines: of step 5; they share the processes among them.
        network_bits_per_s: rate of the links that stand in for a network, where one machine stands
            in for several; None leaves that to real machines.
        iterations: that are timed in a launch.
        warmup: iterations before them.
        repeats: launches of each step, interleaved.
        timeout_s: of one launch.
        tries: of a launch that other programs or machines disturb; the least disturbed is kept.
        seed: of the random generators, so that every launch sees the same samples.
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
        """Refuse what makes no sense."""
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
