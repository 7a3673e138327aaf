"""`driple plan --plot`: time against cost of every way to train, and those that nothing beats.

PlanResult -> picture: a point is the best way to use some machines; the line joins the Pareto front
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from driple.errors import ConfigError
from driple.planning.ranking import best_by_place, pareto, ranked
from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture
from driple.units import HOUR_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driple.api.plan_results import PlanResult
    from driple.planning.offers import Offer

__all__ = ["plan_figure", "plot_plan"]

_UNITS = (("days", 24 * HOUR_S), ("hours", HOUR_S), ("minutes", 60.0), ("seconds", 1.0))
_OTHER, _FRONT, _BEST, _NO_ROOM = "#9aa5b1", "#1f3a5f", "#b5542d", "#d9dde2"
_FLAT = 0.9  # ratio of costs of neighbours whose names would meet
_MOST_BARS = 25  # of an instance without a price


def plot_plan(result: PlanResult, path: Path) -> None:
    """Draw time and cost of the training, and write the picture.

    Raises:
        ConfigError: there is nothing to draw, or the picture cannot be written.
    """
    save_picture(plan_figure(result), path)


def plan_figure(result: PlanResult) -> Figure:
    """Time against cost; without any price, times alone.

    Raises:
        ConfigError: there is nothing to draw.
    """
    plt = pyplot()
    offers = best_by_place(result.offers, result.rank, result.limits)
    if not offers:
        raise ConfigError("no machines can run the job, so that there is nothing to draw")
    priced = [offer for offer in offers if offer.cost is not None]
    longest_s = max(offer.training_s for offer in priced or offers)
    unit, unit_s = next((pair for pair in _UNITS if longest_s >= pair[1]), _UNITS[-1])
    if not priced:
        return _times(offers, unit, unit_s)
    figure, axis = plt.subplots(figsize=(9, 5.4))
    _points(axis, result, priced, unit_s)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(f"{unit} of the training", fontsize=9)
    axis.set_ylabel("cost of the training, $", fontsize=9)
    _plain_ticks(axis)
    axis.legend(fontsize=8, frameon=False, loc="best")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(0.12)
    title = "" if result.job is None else result.job.name
    axis.set_title(title, fontsize=9, loc="left")
    figure.tight_layout()
    return cast("Figure", figure)


def _points(axis: Axes, result: PlanResult, priced: list[Offer], unit_s: float) -> None:
    """All points, the line through the front, and the recommended one."""
    fitting = [offer for offer in priced if offer.may_be_recommended]
    front = pareto(fitting)
    on_front = {id(offer) for offer in front}
    groups = (
        ("does not fit, or likely not", [one for one in priced if not one.may_be_recommended],
         _NO_ROOM, 18),
        ("fits", [one for one in fitting if id(one) not in on_front], _OTHER, 18),
        ("nothing is both faster and cheaper", front, _FRONT, 34),
    )  # fmt: skip
    for label, some, colour, size in groups:
        if some:
            axis.scatter(
                [offer.training_s / unit_s for offer in some],
                [offer.cost or 0.0 for offer in some],
                s=size, color=colour, label=label, zorder=2,
            )  # fmt: skip
    if front:
        axis.plot(
            [offer.training_s / unit_s for offer in front],
            [offer.cost or 0.0 for offer in front],
            color=_FRONT, linewidth=0.9, zorder=1,
        )  # fmt: skip
    best = result.choice.best
    if best is not None and best.cost is not None:
        axis.scatter(
            [best.training_s / unit_s], [best.cost], s=190, facecolors="none",
            edgecolors=_BEST, linewidths=1.6, label="recommended", zorder=3,
        )  # fmt: skip
    _names(axis, front, best, unit_s)


def _names(axis: Axes, front: list[Offer], best: Offer | None, unit_s: float) -> None:
    """Names of the front's machines: above each point, or below where the next one is as high."""
    named = [*front]
    if best is not None and best.cost is not None and all(best is not one for one in front):
        named.append(best)
    above, last = False, 0.0
    for offer in ranked(named, "time"):
        cost = offer.cost or 0.0
        above = not above if cost > _FLAT * last else True
        last = cost
        axis.annotate(
            offer.name,
            (offer.training_s / unit_s, cost),
            xytext=(4, 6 if above else -13), textcoords="offset points", fontsize=7,
        )  # fmt: skip


def _times(offers: list[Offer], unit: str, unit_s: float) -> Figure:
    """Times alone, the shortest on top."""
    from matplotlib import pyplot as plt

    rows = ranked(offers, "time")[:_MOST_BARS]
    figure, axis = plt.subplots(figsize=(8, 1.2 + 0.26 * len(rows)))
    axis.barh(range(len(rows)), [offer.training_s / unit_s for offer in rows], color=_OTHER)
    axis.set_yticks(range(len(rows)), [offer.name for offer in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(f"{unit} of the training; no price is known", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _plain_ticks(axis: Axes) -> None:
    """Numbers at the ticks as people write them."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        scale.set_major_formatter(FormatStrFormatter("%g"))
        scale.set_minor_formatter(NullFormatter())
        scale.set_tick_params(labelsize=8)
