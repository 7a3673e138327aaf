"""Page from results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, mean_and_std, pick, read_results
from scripts.studies.kit.tables import least, markdown
from scripts.studies.several_settings.run import RESULTS, WAYS


def names(rows: Sequence[Row], field: str) -> list[str]:
    """Values of a field, in the order of the rows."""
    return list(dict.fromkeys(row[field] for row in rows))


def table(rows: Sequence[Row], targets: Sequence[str]) -> list[str]:
    """SMAPE, each family counting the same, and the median error of the iteration time."""
    lines, best = [], {}
    values: dict[tuple[str, str], tuple[float, float]] = {}
    for target in targets:
        for way in WAYS:
            mine = pick(rows, target=target, way=way)
            times = np.concatenate([row["time_errors_pct"] for row in mine])
            values[way, target] = (
                mean_and_std(mine, "smape_pct")[0],
                float(np.median(times)),
            )
        best[target] = least({way: values[way, target][0] for way in WAYS})
    for way in WAYS:
        cells = [way]
        for target in targets:
            smape, time = values[way, target]
            text = f"{smape:.1f} ; {time:.1f}"
            cells.append(f"**{text}**" if best[target] == way else text)
        mean = np.mean([values[way, target] for target in targets], axis=0)
        lines.append([*cells, f"{mean[0]:.1f} ; {mean[1]:.1f}"])
    return markdown(["learned from", *targets, "mean"], lines)


def by_family(rows: Sequence[Row], families: Sequence[str]) -> list[str]:
    """SMAPE of each family, over the settings."""
    lines = []
    for way in WAYS:
        cells = [way]
        for family in families:
            mine = pick(rows, family=family, way=way)
            cells.append(f"{mean_and_std(mine, 'smape_pct')[0]:.1f}")
        lines.append(cells)
    return markdown(["learned from", *families], lines)


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    families = sorted(names(rows, "family"))
    return {
        "by_setting": table(rows, names(rows, "target")),
        "by_family": by_family(rows, families),
        "families": str(len(families)),
    }
