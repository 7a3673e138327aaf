"""Picture of one step: phases of the device, and how each resource is used in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import TITLES, check_picture, save_picture
from driple.step.phases import EXCHANGE, HOST, PHASE_WORDS
from driple.trace.targets import NETWORK, RESOURCES, UNITS
from driple.units import counted, format_range, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driple.estimate import Interval
    from driple.inspector.predict import Prediction
    from driple.step.profile import Burst, StepProfile, Usage

__all__ = ["check_picture", "plot_step"]

_COLOURS = {
    "forward": "#6baed6",
    "recompute": "#c6dbef",
    "backward": "#fd8d3c",
    "computing": "#a1b8a0",
    "update": "#74c476",
    EXCHANGE: "#d9d9d9",
    HOST: "#f0f0f0",
}
_MEMORY, _LINK, _BURST = "#9e9ac8", "#2c7fb8", "#b30000"
_HATCH = "////"
_LEAST_SHOWN = 0.005  # of a step: shorter phases are left out of the legend
# Ends of steps up to which their time is shown in microseconds and milliseconds.
_SCALES = ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"))


def plot_step(
    step: StepProfile,
    path: Path,
    *,
    title: str,
    interval: Interval | None = None,
    prediction: Prediction | None = None,
) -> None:
    """Draw one row per resource over one step, and save the picture.

    Filled: what happens, in the colours of the phases on the device; lines: the bursts, as high as
    their mean; grey: the device waits for other devices; hatched: it waits for its host.

    Args:
        step: what the simulator gives, as long as the iteration time of the answer.
        path: file of the picture.
        title: job, setting and method.
        interval: of the iteration time; None if it is not known.
        prediction: an inspector's answer, whose numbers stand over the rows.

    Raises:
        ConfigError: the picture cannot be written.
    """
    check_picture(path)

    plt = pyplot()
    scale, unit = next(
        ((factor, name) for end_s, factor, name in _SCALES if step.step_s < end_s), (1.0, "s")
    )
    figure, axes = plt.subplots(len(RESOURCES), 1, sharex=True, figsize=(9, 8))
    waits = _waits(step)
    for axis, (name, usage) in zip(axes, step.usage().items(), strict=True):
        for start_s, end_s in waits:
            axis.axvspan(start_s * scale, end_s * scale, color=_COLOURS[EXCHANGE], linewidth=0)
        if name in NETWORK:
            _draw_link(axis, step, name, scale)
        else:
            _draw_device(axis, step, name, scale)
        _draw_bursts(axis, usage.bursts, step.step_s, scale)
        words = _words(name, usage) if prediction is None else _predicted(name, prediction)
        axis.set_title(f"{TITLES[name]}: {words}", loc="left", fontsize=9)
        axis.set_ylabel(UNITS[name])
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0)
    axes[-1].set_xlim(0, step.step_s * scale)
    by = (
        ""
        if prediction is None
        else "; phases and bursts of the simulator, numbers of the inspector"
    )
    axes[-1].set_xlabel(f"time in the step ({unit}){by}")
    figure.suptitle(f"{title} step of {_step_words(step, interval)}", fontsize=11)
    _legend(figure, step)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    save_picture(figure, path)


def _waits(step: StepProfile) -> list[tuple[float, float]]:
    """Start and end of the times between spans of the device, seconds."""
    waits, now_s = [], 0.0
    for start_s, end_s in [*((one.start_s, one.end_s) for one in step.device), (step.step_s, 0.0)]:
        if start_s > now_s:
            waits.append((now_s, start_s))
        now_s = end_s
    return waits


def _draw_device(axis: Axes, step: StepProfile, name: str, scale: float) -> None:
    """Shares of each phase; above those of kernels, what the device waits for meanwhile."""
    is_util = name == "device_util"
    for span in step.device:
        start, width = span.start_s * scale, span.length_s * scale
        share = span.busy_share if is_util else span.memory_share
        colour = _COLOURS[span.phase] if is_util else _MEMORY
        axis.bar(start, 100 * share, width, align="edge", color=colour, linewidth=0)
        if not is_util:
            continue
        above = 100 * share
        for more, wait in ((span.exchange_share, EXCHANGE), (span.host_share, HOST)):
            if more > 0:
                hatch = _HATCH if wait == HOST else None
                axis.bar(start, 100 * more, width, bottom=above, align="edge", hatch=hatch,
                         color=_COLOURS[wait], edgecolor="#bdbdbd", linewidth=0)  # fmt: skip
                above += 100 * more
    axis.set_ylim(0, 105)


def _draw_link(axis: Axes, step: StepProfile, name: str, scale: float) -> None:
    """Rates of the network."""
    spans = step.tx if name == "net_tx" else step.rx
    for span in spans:
        axis.bar(
            span.start_s * scale,
            span.bytes_per_s / 1e6,
            (span.end_s - span.start_s) * scale,
            align="edge",
            color=_LINK,
            linewidth=0,
        )
    if not spans:
        axis.set_ylim(0, 1)
        axis.set_yticks([0])


def _draw_bursts(axis: Axes, bursts: Iterable[Burst], step_s: float, scale: float) -> None:
    """A line over each burst; one that goes on in the next step comes back at the begin."""
    for burst in bursts:
        pieces = [(burst.start_s, min(burst.end_s, step_s))]
        if burst.end_s > step_s:
            pieces.append((0.0, burst.end_s - step_s))
        for start_s, end_s in pieces:
            axis.plot(
                [start_s * scale, end_s * scale], [burst.amount] * 2, color=_BURST, linewidth=2
            )


def _words(name: str, usage: Usage) -> str:
    """The three targets of a resource."""
    if not usage.num_bursts:
        return "not used"
    amount = f"{usage.burst_amount:,.0f} {UNITS[name]}"
    if usage.idle_s <= 0:
        return f"{amount} throughout"
    count = counted(usage.num_bursts, "burst")
    each = "" if usage.num_bursts == 1 else " each"
    times = f"{three_digits(usage.burst_s)} s{each}, idle {three_digits(usage.idle_s)} s"
    return f"{count} of {amount}, {times}"


def _step_words(step: StepProfile, interval: Interval | None) -> str:
    """Seconds of the step, and its interval."""
    words = f"{three_digits(step.step_s)} s"
    return words if interval is None else f"{words} ({format_range(interval.low, interval.high)})"


def _predicted(name: str, prediction: Prediction) -> str:
    """The three numbers of an inspector, which imitates counters with windows of their own."""
    amount, burst_s, idle_s = prediction.targets.values[RESOURCES.index(name)].tolist()
    counted = "" if name in NETWORK else ", as NVML would show it"
    return (
        f"{amount:,.0f} {UNITS[name]} for {three_digits(burst_s)} s, "
        f"idle {three_digits(idle_s)} s{counted}"
    )


def _legend(figure: Figure, step: StepProfile) -> None:
    """Phases that the step has, and the line of bursts."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(
            facecolor=_COLOURS[name],
            hatch=_HATCH if name == HOST else None,
            edgecolor="#bdbdbd",
            linewidth=0,
            label=PHASE_WORDS[name],
        )
        for name, seconds in step.phases_s().items()
        if seconds >= _LEAST_SHOWN * step.step_s
    ]
    handles.append(Line2D([], [], color=_BURST, linewidth=2, label="bursts, at their mean"))
    figure.legend(handles=handles, loc="lower center", ncol=4, fontsize=8, frameon=False)
