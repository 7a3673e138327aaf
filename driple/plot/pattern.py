"""`--plot`: the predicted burst and idle pattern of the four resources over a few iterations."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driple.errors import ConfigError, MissingExtraError, install_hint
from driple.files import atomic_replace, wrap_os_error
from driple.plot.canvas import pyplot
from driple.trace.targets import RESOURCES, UNITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driple.inspector.predict import Prediction

__all__ = ["TITLES", "check_picture", "plot_predictions", "save_picture"]

TITLES = {
    "device_util": "device utilisation",
    "device_mem_util": "device-memory utilisation",
    "net_tx": "network TX",
    "net_rx": "network RX",
}
_ITERATIONS = 5
_MOST_WHISKERS = 100
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def check_picture(path: Path) -> None:
    """Refuse what no picture can be written to, before any work is done.

    Raises:
        ConfigError: the file's ending is no picture format.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--plot writes .png, .svg or .pdf, got '{path.name}'")
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            f"--plot needs matplotlib, which is not installed; {install_hint('plot')}"
        )


def plot_predictions(predictions: Sequence[Prediction], path: Path, *, title: str) -> None:
    """Draw one row per resource, one line per setting, and save the picture.

    Whiskers are the intervals of what has any: upright on each burst for its amount, lying at the
    first burst's end for its duration and at the second's start for the idle duration. The
    iteration time and its interval stand beside the setting's name.

    Raises:
        ConfigError: the file's ending is no picture format, or it cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    check_picture(path)

    plt = pyplot()
    span_s = _ITERATIONS * max(item.iteration_time_s for item in predictions)
    figure, axes = plt.subplots(len(RESOURCES), 1, sharex=True, figsize=(8, 6.5))
    for axis, (i, resource) in zip(axes, enumerate(RESOURCES), strict=True):
        for colour, prediction in zip(_COLOURS, predictions, strict=False):
            amount, burst_s, idle_s = (float(value) for value in prediction.targets.values[i])
            times, heights = _square_wave(amount, burst_s, idle_s, span_s)
            label = f"{prediction.setting}: {_iteration(prediction)}"
            axis.plot(times, heights, color=colour, linewidth=1.2, label=label)
            axis.fill_between(times, heights, color=colour, alpha=0.15, linewidth=0)
            if prediction.target_ends is not None:
                ends = prediction.target_ends[i].tolist()
                _whiskers(axis, (amount, burst_s, idle_s), ends, span_s, colour)
        axis.set_ylabel(UNITS[resource])
        axis.set_title(TITLES[resource], loc="left", fontsize=9)
        axis.set_ylim(bottom=0)
        axis.margins(y=0.15)
        axis.spines[["top", "right"]].set_visible(False)
    kinds = sorted(
        {
            "uncalibrated" if item.level is None else f"{item.level:.0%}"
            for item in predictions
            if item.ends is not None
        }
    )
    sure = f"; whiskers: {' or '.join(kinds)} intervals"
    axes[-1].set_xlabel(f"time (s){sure if kinds else ''}")
    axes[-1].set_xlim(0, span_s)
    top = 1.0
    if len(predictions) > 1:
        figure.suptitle(f"{title}: predicted use of resources", fontsize=11)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=8, loc="upper center", ncol=2, frameon=False,
                      bbox_to_anchor=(0.5, 0.965))  # fmt: skip
        top -= 0.03 * ((len(labels) + 1) // 2)
    else:
        (prediction,) = predictions
        figure.suptitle(
            f"{title} on {prediction.setting}: predicted {_iteration(prediction)}", fontsize=11
        )
    figure.tight_layout(rect=(0, 0, 1, top))
    save_picture(figure, path)


def _iteration(prediction: Prediction) -> str:
    """The iteration time and its interval, in words."""
    words = f"iteration {prediction.iteration_time_s:.3f} s"
    if prediction.ends is None:
        return words
    low, high = prediction.ends[-1]
    return f"{words} ({low:.3f} to {high:.3f})"


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all, and free it.

    Raises:
        ConfigError: it cannot be written.
    """
    from matplotlib import pyplot as plt

    form = path.suffix.removeprefix(".")
    # No date, so that the same picture is the same file.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    try:
        with wrap_os_error(ConfigError, f"write --plot {path}"), atomic_replace(path) as (part,):
            figure.savefig(part, dpi=130, format=form, metadata=undated)
    finally:
        plt.close(figure)


def _whiskers(
    axis: Axes,
    figures: tuple[float, float, float],
    ends: Sequence[Sequence[float]],
    span_s: float,
    colour: str,
) -> None:
    """Intervals of burst amount, burst duration and idle duration, as error bars."""
    amount, burst_s, idle_s = figures
    around = [
        # A share over 100 % lies outside of its interval, which a GPU's counter bounds.
        (max(value - low, 0.0), max(high - value, 0.0))
        for value, (low, high) in zip(figures, ends, strict=True)
    ]
    style: dict[str, Any] = {"color": colour, "fmt": "none", "elinewidth": 0.9, "capsize": 2.5}
    period = burst_s + idle_s
    count = min(int(span_s / period) + 1, _MOST_WHISKERS) if period > 0 else 1
    middles = [number * period + burst_s / 2 for number in range(count)]
    upright = [[side] * count for side in around[0]]
    axis.errorbar(middles, [amount] * count, yerr=upright, **style)
    for time_s, share, sides in ((burst_s, 0.6, around[1]), (period, 0.3, around[2])):
        axis.errorbar([time_s], [share * amount], xerr=[[side] for side in sides], **style)


def _square_wave(
    amount: float, burst_s: float, idle_s: float, span_s: float
) -> tuple[list[float], list[float]]:
    """Corner points of bursts of `amount` from time 0 on; idle gaps are drawn as zero."""
    times, heights, now = [0.0], [0.0], 0.0
    period = burst_s + idle_s
    if period <= 0:
        return [0.0, span_s], [0.0, 0.0]
    while now < span_s and len(times) < 4000:
        times += [now, now, now + burst_s, now + burst_s]
        heights += [0.0, amount, amount, 0.0]
        now += period
    return times, heights
