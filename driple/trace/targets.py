"""The twelve numbers that Driple predicts: four resources times three figures, in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "FIGURES",
    "NETWORK",
    "NUM_TARGETS",
    "RESOURCES",
    "TARGET_NAMES",
    "UNITS",
    "Targets",
    "impossible_numbers",
]

NETWORK = ("net_tx", "net_rx")
RESOURCES = ("device_util", "device_mem_util", *NETWORK)
FIGURES = ("burst_amount", "burst_duration", "idle_duration")
NUM_TARGETS = len(RESOURCES) * len(FIGURES)
TARGET_NAMES = tuple(f"{resource}.{figure}" for resource in RESOURCES for figure in FIGURES)

_NETWORK_ROWS = [RESOURCES.index(name) for name in NETWORK]

# Unit of the burst amount of each resource, and of every duration.
UNITS = {
    "device_util": "%",
    "device_mem_util": "%",
    "net_tx": "MB/s",
    "net_rx": "MB/s",
    "burst_duration": "s",
    "idle_duration": "s",
}


@dataclass(frozen=True, slots=True)
class Targets:
    """The twelve targets of one workload on one setting.

    Attributes:
        values: shape [4, 3], float64; rows in the order of `RESOURCES`, columns in the order of
            `FIGURES` (burst amount in the resource's unit, durations in seconds).
    """

    values: npt.NDArray[np.float64]

    @property
    def flat(self) -> npt.NDArray[np.float64]:
        """Shape [12], in the order of `TARGET_NAMES`."""
        return self.values.reshape(NUM_TARGETS)

    @property
    def iteration_time_s(self) -> float:
        """Seconds per training iteration: the longer period of network TX and RX.

        A period is a burst and the gap after it. It equals the iteration time (paper, section
        5.5.2) if each iteration has one burst. Parameters or gradients that move in several bursts
        make the period shorter than the iteration, and almost nothing makes it longer, so the
        longer of the two is the better estimate (docs/decisions/0004-label-grid.md).
        """
        periods_s = self.values[_NETWORK_ROWS, 1] + self.values[_NETWORK_ROWS, 2]
        return float(periods_s.max())

    def to_dict(self) -> dict[str, dict[str, float]]:
        """`{resource: {figure: value}}`, as in the JSON of `driple predict`."""
        return {
            resource: {figure: float(self.values[i, j]) for j, figure in enumerate(FIGURES)}
            for i, resource in enumerate(RESOURCES)
        }


def impossible_numbers(targets: Targets) -> list[str]:
    """Impossible values, as text: numbers below 0, or a step that takes no time."""
    impossible = [
        f"{name} {value:.4g} {_unit(name)}"
        for name, value in zip(TARGET_NAMES, targets.flat.tolist(), strict=True)
        if value < 0
    ]
    if targets.iteration_time_s <= 0:
        impossible.append(f"iteration time {targets.iteration_time_s:.4g} s")
    return impossible


def _unit(target: str) -> str:
    resource, figure = target.split(".")
    return UNITS[resource] if figure == "burst_amount" else UNITS[figure]
