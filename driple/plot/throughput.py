"""Pictures of `driple sweep TRACE`: the curve, and the synthetic trace (figure 7 of Li et al.)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

if TYPE_CHECKING:
    from driple.async_sgd.compiled import CompiledJob
    from driple.async_sgd.origin import PlatformRecord
    from driple.async_sgd.scaling import Chunk, SimulatedThroughput

__all__ = ["plot_curve", "plot_overhead", "plot_timeline"]

_OWN, _OTHERS = "#1f4e79", ("#bbbbbb", "#d95f02", "#7570b3", "#66a61e")
_KINDS = {"worker": "#c44e52", "server": "#8c564b", "downlink": "#dd8452", "uplink": "#55a868"}
_STEPS = 3  # of the slowest worker, drawn
_MOST_WORKERS = 6


def plot_curve(
    curve: Sequence[SimulatedThroughput],
    baselines: Sequence[Mapping[str, float]],
    knee: int | None,
    path: Path,
    *,
    title: str,
) -> None:
    """Draw examples/s against workers, ours with its interval, the coarser models thin.

    Raises:
        ConfigError: the picture cannot be written.
    """
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6.5, 4))
    workers = [made.num_workers for made in curve]
    for name, colour in zip(baselines[0], _OTHERS, strict=True):
        values = [row[name] for row in baselines]
        axis.plot(workers, values, color=colour, linewidth=1, linestyle="--", label=name)
    own = [made.examples_per_s for made in curve]
    axis.fill_between(
        workers,
        [made.interval[0] for made in curve],
        [made.interval[1] for made in curve],
        color=_OWN,
        alpha=0.2,
        linewidth=0,
    )
    axis.plot(workers, own, color=_OWN, marker="o", markersize=3.5, label="simulated, 95 %")
    if knee is not None:
        axis.axvline(knee, color="#888888", linewidth=0.7)
        axis.annotate(
            "one more adds < 10 %", (knee, 0.03 * max(own)), fontsize=7, rotation=90,
            xytext=(3, 0), textcoords="offset points",
        )  # fmt: skip
    axis.set_ylim(0, 1.35 * max(own))
    axis.locator_params(axis="x", integer=True)
    axis.set_xlabel("workers")
    axis.set_ylabel("examples/s")
    axis.set_title(f"{title}: simulated from a trace of one worker", fontsize=10)
    axis.legend(fontsize=8, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)


def plot_timeline(job: CompiledJob, chunks: Sequence[Chunk], step_s: float, path: Path) -> None:
    """Draw what each worker does on each resource over some steps.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from matplotlib.patches import Patch

    from driple.async_sgd.chrome import resource_names

    plt = pyplot()
    names = resource_names(job.num_servers)
    workers = sorted({chunk.worker for chunk in chunks})
    shown = workers[:_MOST_WORKERS]
    end_s = min(_STEPS * step_s, max(chunk.end_s for chunk in chunks))
    rows = len(names)
    figure, axis = plt.subplots(figsize=(10, 0.8 + 0.26 * rows * len(shown)))
    for worker in shown:
        for resource, name in enumerate(names):
            kind = name.split()[0]
            spans = [
                (chunk.begin_s, chunk.end_s - chunk.begin_s)
                for chunk in chunks
                if chunk.worker == worker
                and chunk.resource == resource
                and chunk.begin_s < end_s
                and chunk.end_s > chunk.begin_s
            ]
            y = worker * (rows + 1) + resource
            axis.broken_barh(spans, (y - 0.4, 0.8), color=_KINDS[kind], linewidth=0)
    axis.set_yticks(
        [worker * (rows + 1) + (rows - 1) / 2 for worker in shown],
        [f"worker {worker}" for worker in shown],
        fontsize=8,
    )
    axis.invert_yaxis()
    axis.set_xlim(0, end_s)
    axis.set_xlabel("time (s)", fontsize=8)
    axis.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in _KINDS.items()],
        fontsize=8, ncols=4, frameon=False, loc="lower left", bbox_to_anchor=(0, 1),
    )  # fmt: skip
    more = len(workers) - len(shown)
    if more:
        axis.text(1, 1.01, f"and {more} more workers", fontsize=8, ha="right", va="bottom",
                  transform=axis.transAxes)  # fmt: skip
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)


def plot_overhead(platform: PlatformRecord, path: Path) -> None:
    """Draw what receiving tensors cost, and the fitted line (figure 10 of Li et al.).

    Args:
        platform: what was measured, with its tensors.
        path: picture to write.

    Raises:
        ConfigError: the picture cannot be written.
    """
    import numpy as np

    plt = pyplot()
    sizes = np.array(platform.sizes) / 1e6
    seconds = 1e3 * np.array(platform.overhead_s)
    line = platform.overhead
    each = np.unique(sizes)
    figure, axis = plt.subplots(figsize=(6, 3.4))
    axis.plot(sizes, seconds, "o", color="#bbbbbb", markersize=3, label="a tensor")
    typical = [np.quantile(seconds[sizes == size], 0.25) for size in each]
    axis.plot(each, typical, "o", color=_OWN, markersize=4.5, label="lower quartile of a size")
    reach = np.array([0.0, float(each.max())])
    axis.plot(
        reach,
        1e3 * line.s + 1e9 * line.s_per_byte * reach,
        color=_OTHERS[1],
        linewidth=1.2,
        label=f"{1e3 * line.s:.2f} ms + {1e9 * line.s_per_byte:.2f} ms/MB, "
        f"R² {platform.r_squared:.2f}",
    )
    axis.set_ylim(0, 1.3 * max(*typical, float(np.quantile(seconds, 0.8))))
    axis.set_xlabel("tensor (MB)", fontsize=8)
    axis.set_ylabel("from last packet to use (ms)", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.legend(fontsize=7, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_picture(figure, path)
