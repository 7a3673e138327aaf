"""Pictures of `driple stalls`: where the time of an iteration goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from driple.cli.plot import save_picture

if TYPE_CHECKING:
    from driple.stalls.cost import Offer
    from driple.stalls.record import Profile

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
    command = shorten(
        " ".join(profile.about["command"]), 80, placeholder=" ...", break_on_hyphens=False
    )
    axis.set_title(command, fontsize=9, loc="left", pad=22)
    axis.legend(
        handles=[Patch(color=COLOURS[name], label=name) for name in COLOURS if name in used],
        fontsize=8, ncols=len(COLOURS), frameon=False, loc="lower left", bbox_to_anchor=(0, 0.99),
    )  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)


def plot_offers(offers: Sequence[Offer], path: Path) -> None:
    """Draw time and cost of an epoch on every instance, the cheapest on top; as in figures 10, 12.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    from driple.stalls.cost import duration_text, price_text

    rows = range(len(offers))
    figure, (time, cost) = plt.subplots(
        1, 2, sharey=True, figsize=(9, 1.4 + 0.24 * len(offers)), width_ratios=(1, 1)
    )
    longest_s = max(offer.epoch_s for offer in offers)
    unit, unit_s = next(
        (pair for pair in (("hours", 3600), ("minutes", 60)) if longest_s >= pair[1]),
        ("seconds", 1),
    )
    lengths = [offer.epoch_s / unit_s for offer in offers]
    alone = [
        long / (1 + (offer.communication_pct or 0.0) / 100)
        for long, offer in zip(lengths, offers, strict=True)
    ]
    waiting = [long - one for long, one in zip(lengths, alone, strict=True)]
    time.barh(rows, alone, color=COLOURS["compute"])
    time.barh(rows, waiting, left=alone, color=COLOURS["network"])
    dollars = [offer.epoch_cost or 0.0 for offer in offers]
    cost.barh(rows, dollars, color=COLOURS["interconnect"])
    for row, offer in zip(rows, offers, strict=True):
        time.annotate(
            f" {duration_text(offer.epoch_s)}", (lengths[row], row), va="center", fontsize=7
        )
        price = "no price" if offer.epoch_cost is None else price_text(offer.epoch_cost)
        cost.annotate(f" {price}", (dollars[row], row), va="center", fontsize=7)
    marks = {"simulated": "", "measured": " (measured)"}
    names = [f"{offer.name}{marks.get(offer.provenance, '')}" for offer in offers]
    time.set_yticks(rows, names, fontsize=8)
    time.invert_yaxis()
    time.set_xlabel(f"{unit} of an epoch", fontsize=9)
    cost.set_xlabel("$ of an epoch", fontsize=9)
    parts = {"compute": "one device alone", "network": "added by exchange of gradients"}
    time.legend(
        handles=[Patch(color=COLOURS[key], label=label) for key, label in parts.items()],
        fontsize=8, ncols=2, frameon=False, loc="lower left", bbox_to_anchor=(0, 1),
    )  # fmt: skip
    for axis in (time, cost):
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.12)
        axis.margins(y=0.02)
    figure.tight_layout()
    save_picture(figure, path)
