"""Pictures of `driple stalls`: where the time of an iteration goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.plot import save_picture

if TYPE_CHECKING:
    from driple.stalls.cost import Offer
    from driple.stalls.profiler import Profile

__all__ = ["COLOURS", "plot_offers", "plot_profile"]

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


def plot_offers(offers: Sequence[Offer], path: Path) -> None:
    """Draw what an epoch costs against how long it takes; down and to the left is better.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    priced = [(offer.epoch_s / 3600, offer.epoch_cost, offer) for offer in offers
              if offer.epoch_cost is not None]  # fmt: skip
    figure, axis = plt.subplots(figsize=(8, 4.5))
    for hours, dollars, offer in priced:
        filled = offer.provenance == "measured"
        axis.plot(hours, dollars, "o", color=COLOURS["interconnect"], markersize=6,
                  fillstyle="full" if filled else "none")  # fmt: skip
    best, cheapest = [], float("inf")
    for hours, dollars, _ in sorted(priced, key=lambda item: (item[0], item[1])):
        if dollars < cheapest:
            best.append((hours, dollars))
            cheapest = dollars
    axis.plot(*zip(*best, strict=True), color=COLOURS["fetch"], linewidth=1, drawstyle="steps-post",
              label="nothing is faster for less")  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    for place, (hours, dollars, offer) in enumerate(sorted(priced, key=lambda item: item[0])):
        above = 6 if place % 2 else -12
        axis.annotate(offer.name, (hours, dollars), xytext=(5, above), fontsize=7,
                      textcoords="offset points")  # fmt: skip
    axis.set_xlabel("hours of an epoch")
    axis.set_ylabel("$ of an epoch")
    axis.set_title("circles: simulated; dots: measured", fontsize=9, loc="left")
    axis.legend(fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(0.12)
    figure.tight_layout()
    save_picture(figure, path)
