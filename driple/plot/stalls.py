"""Picture of `driple profile show`: where the time of an iteration goes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

if TYPE_CHECKING:
    from driple.profiler.stall_profile import StallProfile

__all__ = ["COLOURS", "Bar", "bars_of", "plot_profile"]

COLOURS = {
    "compute": "#9aa5b1",
    "interconnect": "#3b6ea8",
    "network": "#1f3a5f",
    "prep": "#e0a458",
    "fetch": "#b5542d",
}
# Steps that each add a stall to the one before: one machine with real data, several machines.
_CHAINS = ((1, 2, 4, 3), (1, 2, 5))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A measured step, and what its time is made of.

    Attributes:
        step: whose time it is.
        base: the step that it begins with.
        stalls: their names, in the order in which they are added to the base.
    """

    step: int
    base: int
    stalls: tuple[str, ...]


def bars_of(measured: Container[int]) -> list[Bar]:
    """A bar for the last measured step of each chain, once each; nothing of steps not measured."""
    from driple.profiler.steps import DIFFERENCES

    between = {(one.faster, one.slower): one.name for one in DIFFERENCES}
    by_step: dict[int, Bar] = {}
    for chain in _CHAINS:
        done = [step in measured for step in chain]
        if not any(done):
            continue
        last = max(place for place, known in enumerate(done) if known)
        first = last
        while first and done[first - 1]:
            first -= 1
        names = tuple(between[pair] for pair in pairwise(chain[first : last + 1]))
        by_step[chain[last]] = Bar(step=chain[last], base=chain[first], stalls=names)
    bars = list(by_step.values())
    held = {step for bar in bars for step in _steps_within(bar)}
    return [bar for bar in bars if bar.step not in held]


def _steps_within(bar: Bar) -> set[int]:
    """The steps whose time a bar shows on its way to its own."""
    return {
        step
        for chain in _CHAINS
        if bar.step in chain and bar.base in chain
        for step in chain[chain.index(bar.base) : chain.index(bar.step)]
    }


def plot_profile(profile: StallProfile, path: Path) -> None:
    """Draw a bar of an iteration for one machine and one for several, of the steps measured.

    Stalls below zero are not drawn; the table has them.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from matplotlib.patches import Patch

    from driple.profiler.steps import STEPS

    plt = pyplot()
    stalls, times = profile.stalls(), profile.times
    bars = bars_of(times)
    figure, axis = plt.subplots(figsize=(8, 1.4 + 0.6 * len(bars)))
    used = ["compute"]
    for row, bar in enumerate(bars):
        base = times[bar.base]
        left = 1e3 * sum(base.values()) / len(base)
        axis.barh(row, left, color=COLOURS["compute"], height=0.6)
        for name in bar.stalls:
            stall = stalls[name]
            wide = 1e3 * max(stall.seconds, 0.0)
            axis.barh(row, wide, left=left, color=COLOURS[name], height=0.6)
            left += wide
            used.append(name)
            if stall.interval_s is not None:
                low, high = (1e3 * bound for bound in stall.interval_s)
                axis.plot(
                    [left - wide + low, left - wide + high], [row, row], color="black", linewidth=1
                )
    titles = [STEPS[bar.step].title.replace(", ", ",\n") for bar in bars]
    axis.set_yticks(range(len(bars)), titles, fontsize=9)
    begun = sorted({bar.base for bar in bars})
    first = "compute" if begun == [1] else " or ".join(f"step {step}" for step in begun)
    axis.invert_yaxis()
    axis.set_xlabel("ms of an iteration; lines: 95 % interval of the stall", fontsize=9)
    command = shorten(
        " ".join(profile.about.command), 80, placeholder=" ...", break_on_hyphens=False
    )
    axis.set_title(command, fontsize=9, loc="left", pad=22)
    axis.legend(
        handles=[
            Patch(color=COLOURS[name], label=first if name == "compute" else name)
            for name in COLOURS
            if name in used
        ],
        fontsize=8, ncols=len(COLOURS), frameon=False, loc="lower left", bbox_to_anchor=(0, 0.99),
    )  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)
