"""Page and picture from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from scripts.settings.shipped import FIRST
from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.results import Row, mean_and_std, pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.simulation_to_real.run import (
    ANEW,
    MEASURED,
    OTHER,
    RESULTS,
    SAME,
    SIMULATOR,
)
from scripts.studies.transfer.run import SIZES

HOME = Path(__file__).parent
COLOURS = {ANEW: "#999999", OTHER: "#e0b050", SAME: "#c8612c", MEASURED: "#3b6ea8"}
TIME = "iteration_time_mape_pct"


def table(rows: Sequence[Row], targets: Sequence[str], name: str, digits: int) -> list[str]:
    """Means over seeds by setting, and over all settings."""
    lines = []
    chosen = [(SIMULATOR, 0), (SAME, 0)]
    chosen += [(way, size) for size in SIZES for way in COLOURS]
    for way, size in chosen:
        by_target = [pick(rows, way=way, size=size, target=target) for target in targets]
        means = [mean_and_std(some, name)[0] for some in by_target if some]
        cells = [f"{mean_and_std(some, name)[0]:.{digits}f}" if some else "-" for some in by_target]
        cells.append(f"{np.mean(means):.{digits}f}" if len(means) == len(targets) else "-")
        lines.append([way, str(size), *cells])
    return markdown(["", "measured labels", *targets, "mean"], lines)


def mean_over(
    rows: Sequence[Row], targets: Sequence[str], name: str, *, way: str, size: int
) -> float:
    """Mean over settings of one error's mean over seeds."""
    by_target = [pick(rows, way=way, size=size, target=target) for target in targets]
    return float(np.mean([mean_and_std(some, name)[0] for some in by_target]))


def curves(rows: Sequence[Row], targets: Sequence[str], path: Path) -> None:
    """Error against measured labels, on the settings that every way has."""
    drawn, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    for axis, name, words in (
        (axes[0], "nrmse", "average NRMSE"),
        (axes[1], TIME, "error of the iteration time (%)"),
    ):
        for way, colour in COLOURS.items():
            sizes = (0, *SIZES) if way == SAME else SIZES
            means = [mean_over(rows, targets, name, way=way, size=n) for n in sizes]
            axis.plot(sizes, means, color=colour, marker="o", markersize=4, label=way)
        alone = mean_over(rows, targets, name, way=SIMULATOR, size=0)
        axis.axhline(alone, color="#c8612c", linewidth=0.8, linestyle="--", label=SIMULATOR)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("measured labels to learn from", fontsize=8)
        axis.set_ylabel(words, fontsize=8)
        plain(axis)
    axes[1].legend(fontsize=7, frameon=False, loc="lower left")
    drawn.suptitle(f"mean over the settings other than {FIRST}", fontsize=9)
    drawn.tight_layout()
    save(drawn, path)


def stored() -> tuple[list[Row], list[str]]:
    """All rows, and their settings, the first setting first."""
    rows = read_results(RESULTS)
    return rows, sorted({row["target"] for row in rows}, key=lambda name: (name != FIRST, name))


def parts() -> Parts:
    """Tables and numbers of the page."""
    rows, targets = stored()
    others = [target for target in targets if target != FIRST]
    ways = {"simulator": SIMULATOR, "same": SAME, "alone": ANEW, "measured": MEASURED}
    places = (("simulator", 0), ("same", 0), ("same", 20), ("same", 40), ("alone", 20),
              ("alone", 40), ("measured", 20))  # fmt: skip
    return {
        "seeds": str(len({row["seed"] for row in rows})),
        "nrmse": table(rows, targets, "nrmse", 4),
        "times": table(rows, targets, TIME, 1),
        **{
            f"{name}_{size}": f"{mean_over(rows, others, TIME, way=ways[name], size=size):.1f}"
            for name, size in places
        },
    }


def pictures() -> None:
    """Draw the picture."""
    rows, targets = stored()
    curves(rows, [target for target in targets if target != FIRST], HOME / "sizes.png")
