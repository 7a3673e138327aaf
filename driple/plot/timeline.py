"""Picture of a simulation: what every worker's device and network do over a few iterations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import TITLES, check_picture, save_picture
from driple.trace.targets import RESOURCES, UNITS

if TYPE_CHECKING:
    from driple.simulate.run import Simulation

__all__ = ["check_picture", "plot_timeline"]

_ITERATIONS = 4
_MOST_WORKERS = 4
_SAMPLES = 1600  # over the picture's width
_FINE, _SEEN = "#9ecae1", "#d62728"


def plot_timeline(simulation: Simulation, path: Path, *, title: str) -> None:
    """Draw one row per resource and one column per worker, and save the picture.

    Filled: what happens; the line over the device's rows: what NVML would show of it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from driple.simulate.counters import traces_of_worker

    plt = pyplot()
    workers = simulation.records[:_MOST_WORKERS]
    ends = simulation.records[0].step_ends_s
    last = min(_ITERATIONS, len(ends) - 1)
    start_s, end_s = ends[0], ends[last]
    figure, axes = plt.subplots(
        len(RESOURCES),
        len(workers),
        sharex=True,
        sharey="row",
        squeeze=False,
        figsize=(3.5 + 3.5 * len(workers), 7),
    )
    period_s = (end_s - start_s) / _SAMPLES
    for column, record in enumerate(workers):
        fine = traces_of_worker(record, period_s=period_s, start_s=start_s, end_s=end_s, window_s=0)
        seen = traces_of_worker(
            record,
            period_s=period_s,
            start_s=start_s,
            end_s=end_s,
            window_s=simulation.topology.workers[column].known_window_s or 0.0,
        )
        axes[0, column].set_title(
            f"worker {column}: {simulation.topology.devices[column]}", fontsize=9
        )
        for row, resource in enumerate(RESOURCES):
            axis = axes[row, column]
            times = fine[resource].time_s - start_s
            axis.fill_between(
                times,
                fine[resource].amount,
                color=_FINE,
                linewidth=0,
                step="pre",
                label="each moment",
            )
            if seen[resource].counter_period_s:
                axis.plot(times, seen[resource].amount, color=_SEEN, linewidth=1, label="NVML")
            for end in ends[: last + 1]:
                axis.axvline(end - start_s, color="#bbbbbb", linewidth=0.6)
            axis.set_ylim(bottom=0)
            axis.margins(x=0, y=0.1)
            axis.tick_params(labelsize=7)
            axis.spines[["top", "right"]].set_visible(False)
            if column == 0:
                axis.set_ylabel(f"{TITLES[resource]}\n({UNITS[resource]})", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("time (s)", fontsize=8)
    more = len(simulation.records) - len(workers)
    rest = f" (first {len(workers)} of {len(simulation.records)} workers)" if more else ""
    figure.suptitle(f"{title} on {simulation.setting.name}: simulated{rest}", fontsize=11)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", fontsize=7, frameon=False)
    figure.tight_layout()
    save_picture(figure, path)
