"""What a user may change of the methods, checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.checks import MOST_SEED, check_choice, check_number, check_whole
from driple.errors import ConfigError
from driple.graph.placement import STRATEGIES, Strategy

if TYPE_CHECKING:
    from driple.inspector.host import HostTuning

__all__ = ["LEAST_STEPS", "MOST_STEPS", "USUAL", "MethodOptions"]

LEAST_STEPS, MOST_STEPS = 2, 100_000  # simulated


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodOptions:
    """Options of the methods.

    Attributes:
        preset: which inspector of the setting.
        num_steps: steps to simulate; `NUM_STEPS` if None.
        seed: random seed of the simulated jitter between steps.
        placement: how variables are spread over servers.
        datasets: folder of data sets with measured values; ./datasets if None.
        host_us_per_op: microseconds of the host to hand one op to a GPU.
        host: what the user measured of this machine.

    Raises:
        ConfigError: a number out of range, or an unknown placement.
    """

    preset: str = "default"
    num_steps: int | None = None
    seed: int = 0
    placement: Strategy = "round_robin"
    datasets: Path | None = None
    host_us_per_op: float | None = None
    host: HostTuning | None = None

    def __post_init__(self) -> None:
        check_choice("--set placement", self.placement, STRATEGIES)
        check_whole("--set seed", self.seed, 0, MOST_SEED)
        if self.num_steps is not None:
            check_whole("--set steps", self.num_steps, LEAST_STEPS, MOST_STEPS)
        if self.host_us_per_op is not None:
            check_number("--set host_us_per_op", self.host_us_per_op, above=0)

    def check_method(self, method: str) -> None:
        """Raise ConfigError where another method would leave the host's speed out."""
        if self.host is not None and method != "inspector":
            raise ConfigError(
                "--set host changes what an inspector of a measured setting answers, and the "
                f"method is {method}; leave it out"
            )
        if self.host_us_per_op is not None and method != "simulator":
            raise ConfigError(
                f"--set host_us_per_op changes the simulator's answer, and the method is {method}; "
                "give --method simulator"
            )


USUAL = MethodOptions()
"""What an answer rests on where the user changes nothing."""
