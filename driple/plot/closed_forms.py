"""Pictures of the closed forms: the parts of an iteration as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.plot.canvas import pyplot
from driple.plot.pattern import save_picture

__all__ = ["PART_COLOURS", "plot_parts"]

PART_COLOURS = {
    "pull": "#e0b050",
    "compute": "#3b6ea8",
    "push": "#c8612c",
    "wait": "#999999",
    "aggregation": "#7a5195",
}


def plot_parts(bars: Sequence[tuple[str, Mapping[str, float]]], path: Path, *, title: str) -> None:
    """Draw a stacked bar for each method.

    Args:
        bars: name of a method, seconds of each part.
        path: of the picture.
        title: above it.

    Raises:
        ConfigError: the picture cannot be written.
    """
    from matplotlib.patches import Patch

    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8, 1.3 + 0.55 * len(bars)))
    longest = max(sum(parts.values()) for _, parts in bars)
    for row, (_, parts) in enumerate(bars):
        left = 0.0
        for part, colour in PART_COLOURS.items():
            seconds = parts[part]
            axis.barh(row, seconds, left=left, color=colour, height=0.6)
            if seconds > 0.07 * longest:
                axis.text(left + seconds / 2, row, f"{seconds:.3g} s", ha="center", va="center",
                          fontsize=8, color="white")  # fmt: skip
            left += seconds
        axis.text(left + 0.01 * longest, row, f"{left:.3g} s", va="center", fontsize=8)
    axis.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 1.1 * longest)
    axis.set_xlabel("seconds of an iteration")
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    handles = [Patch(color=colour, label=part) for part, colour in PART_COLOURS.items()]
    figure.legend(handles=handles, ncols=len(PART_COLOURS), loc="lower center",
                  fontsize=8, frameon=False)  # fmt: skip
    figure.tight_layout(rect=(0, 0.25 / figure.get_figheight(), 1, 1))
    save_picture(figure, path)
