"""Picture of `driple sweep` without servers: samples/s against what is varied most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.errors import ConfigError
from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture
from driple.units import format_rate

if TYPE_CHECKING:
    from driple.api.sweeping import SweepResult

__all__ = ["plot_devices"]

_AXES = {
    "workers": "devices",
    "bandwidth_bits_per_s": "rate of the link, bit/s",
    "batch_size": "samples per device",
}
_MOST_LINES = 10


def plot_devices(result: SweepResult, path: Path) -> None:
    """Draw samples per second against the axis with most values; a line for each of the others.

    Beside numbers of devices, a dashed line is that of perfect scaling.

    Args:
        result: a sweep of devices.
        path: picture to write.

    Raises:
        ConfigError: the batch size is not known, or the picture cannot be written.
    """
    rates = result.estimates.get("samples_per_s")
    if rates is None:
        raise ConfigError("the batch size is not known, so that there are no samples/s to draw")
    clusters = {name: result.clusters[name] for name in _AXES}
    machines = result.clusters["machines"]
    if len(set(machines)) > 1:  # the link within a machine is none of those that vary
        clusters["bandwidth_bits_per_s"] = [
            None if count == 1 else rate
            for count, rate in zip(machines, clusters["bandwidth_bits_per_s"], strict=True)
        ]
    varied = max(_AXES, key=lambda name: len({*clusters[name]} - {None}))
    others = [name for name in _AXES if name != varied and len({*clusters[name]} - {None}) > 1]
    lines: dict[tuple[float | None, ...], list[tuple[float, float]]] = {}
    for i, value in enumerate(rates.value):
        at = clusters[varied][i]
        if at is not None:
            key = tuple(clusters[name][i] for name in others)
            lines.setdefault(key, []).append((at, value))
    figure, axis = pyplot().subplots(figsize=(8, 4.5))
    for key in [*lines][:_MOST_LINES]:
        points = sorted(lines[key])
        label = ", ".join(map(_words, others, key))
        axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label or None)
    efficiency = result.estimates.get("scaling_efficiency_pct")
    if varied == "workers" and efficiency is not None:
        alone = [
            100 * rate / (share * (count or 1))
            for rate, share, count in zip(
                rates.value, efficiency.value, clusters["workers"], strict=True
            )
        ]
        most = max(count or 1 for count in clusters["workers"])
        axis.plot([1, most], [alone[0], most * alone[0]], "--", color="#999999", label="perfect")
    if varied == "bandwidth_bits_per_s":
        axis.set_xscale("log")
    if others or varied == "workers":
        axis.legend(fontsize=8, frameon=False)
    axis.set_xlabel(_AXES[varied])
    axis.set_ylabel("samples per second")
    axis.set_ylim(bottom=0)
    name = "" if result.job is None else result.job.name
    axis.set_title(f"{name}: simulated", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)


def _words(name: str, value: float | None) -> str:
    """A value of an axis in a legend."""
    if value is None:
        return "one machine"
    if name == "bandwidth_bits_per_s":
        return format_rate(value)
    return f"{value:.0f} {'devices' if name == 'workers' else 'samples per device'}"
