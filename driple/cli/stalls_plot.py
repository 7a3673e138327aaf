"""Pictures of `driple stalls`: where the time of an iteration goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.plot import save_picture

if TYPE_CHECKING:
    from driple.stalls.profiler import Profile

__all__ = ["COLOURS", "plot_profile"]

COLOURS = {
    "compute": "#9aa5b1",
    "interconnect": "#3b6ea8",
    "network": "#1f3a5f",
    "prep": "#e0a458",
    "fetch": "#b5542d",
}
# What each bar is made of, from the left; the first is a step's time, the others are stalls.
_BARS = {
    "one machine, real data": ("interconnect", "prep", "fetch"),
    "several machines, synthetic data": ("interconnect", "network"),
}


def plot_profile(profile: Profile, path: Path) -> None:
    """Draw a bar of an iteration for one machine and one for several.

    Stalls below zero are not drawn; the title tells nothing of them, the table does.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    stalls, times = profile.stalls(), profile.times
    first = times.get(1) or times.get(2) or next(iter(times.values()))
    compute_ms = 1e3 * sum(first.values()) / len(first)
    figure, axis = plt.subplots(figsize=(8, 2.6))
    used = ["compute"]
    for row, names in enumerate(_BARS.values()):
        left = compute_ms
        axis.barh(row, compute_ms, color=COLOURS["compute"], height=0.6)
        for name in names:
            if name not in stalls:
                continue
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
    axis.set_yticks(range(len(_BARS)), [*_BARS], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlabel("ms of an iteration; lines: 95 % interval of the stall", fontsize=9)
    axis.set_title(" ".join(profile.about["command"])[:90], fontsize=9, loc="left", pad=22)
    axis.legend(
        handles=[Patch(color=COLOURS[name], label=name) for name in COLOURS if name in used],
        fontsize=8, ncols=len(COLOURS), frameon=False, loc="lower left", bbox_to_anchor=(0, 0.99),
    )  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)
