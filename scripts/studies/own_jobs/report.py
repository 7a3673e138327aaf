"""Page from results.jsonl."""

from __future__ import annotations

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.own_jobs.run import RESULTS


def parts() -> Parts:
    """Tables and numbers."""
    rows = read_results(RESULTS)
    jobs, draws = pick(rows, kind="job"), pick(rows, kind="draw")
    ratios = np.array([row["predicted_s"] / row["step_s"] for row in jobs])
    busy = np.array([row["predicted_busy_s"] / row["busy_s"] for row in jobs])
    ends = np.array([row["ends_s"] for row in jobs])
    seconds = np.array([row["step_s"] for row in jobs])
    inside = (ends[:, 0] <= seconds) & (seconds <= ends[:, 1])

    def quantiles(values: np.ndarray) -> str:
        median, ninth = np.quantile(100 * np.abs(values - 1), [0.5, 0.9])
        return f"{median:.0f} % in the median, {ninth:.0f} % at the 90th percentile"

    def mean(name: str) -> str:
        median, ninth = np.mean([row[name] for row in draws], axis=0)
        return f"{median:.1f} % in the median, {ninth:.1f} % at the 90th percentile"

    table = markdown(
        ["job", "precision", "step, ms", "answered", "interval", "kernels run", "predicted / so"],
        [
            [
                row["job"],
                row["precision"],
                f"{1e3 * row['step_s']:.1f}",
                f"{1e3 * row['predicted_s']:.1f}",
                f"{1e3 * row['ends_s'][0]:.1f} to {1e3 * row['ends_s'][1]:.1f}"
                + ("" if holds else ", outside"),
                f"{row['busy_s'] / row['step_s']:.0%}",
                f"{row['predicted_busy_s'] / row['busy_s']:.2f}",
            ]
            for row, holds in zip(jobs, inside.tolist(), strict=True)
        ],
        right=True,
    )
    return {
        "jobs": table,
        "count": str(len(jobs)),
        "untold": quantiles(ratios),
        "ratio": f"{np.median(ratios):.2f}",
        "inside": f"{inside.sum()} of {len(jobs)}",
        "width": f"{np.median(ends[:, 1] / ends[:, 0]):.1f}",
        "busy": quantiles(busy),
        "tuned": mean("all_pct"),
        "tuned_host": mean("host_pct"),
        "tuned_inside": f"{np.mean([row['inside'] for row in draws]):.0%}",
        "host_factor": f"{np.median([row['host_factor'] for row in draws]):.1f}",
        "draws": str(len(draws)),
    }
