"""Page and pictures from runs.jsonl, points.jsonl and streams.jsonl."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.throughput.figures import draw_curves, draw_errors, draw_overhead
from scripts.studies.throughput.predict import HTTP_2_WINDOW_BYTES, METHODS, OURS, WINDOW_BYTES
from scripts.studies.throughput.run import LOOKED_AT, SERVER_SHARE, WORKER_SHARES, read_runs

HOME = Path(__file__).parent
FEWEST = 2  # workers whose prediction is one: that of one worker is what was profiled


def errors_pct(points: list[Row], method: str, kind: str = "predicted") -> np.ndarray:
    """Absolute errors of the throughput, in percent of the measured one."""
    return np.array([100 * abs(point[kind][method] / point["measured"] - 1) for point in points])


def summary(points: list[Row], kind: str = "predicted") -> list[str]:
    """Errors of each method over all points with several workers."""
    rows = []
    for method in METHODS:
        errors = errors_pct(points, method, kind)
        rows.append([
            method,
            f"{errors.mean():.1f} %", f"{np.median(errors):.1f} %",
            f"{np.quantile(errors, 0.95):.1f} %", f"{errors.max():.1f} %",
            f"{(errors > 15).sum()} of {len(errors)}",
        ])  # fmt: skip
    head = ["method", "mean", "median", "95th percentile", "worst", "above 15 %"]
    return markdown(head, rows, right=True)


def streams() -> list[str]:
    """Errors of the ends of downlink streams."""
    rows = [
        [
            row["case"],
            *(
                f"{100 * value:.1f} %"
                for window in (WINDOW_BYTES, HTTP_2_WINDOW_BYTES)
                for value in row[str(int(window))]
            ),
        ]
        for row in read_results(HOME / "streams.jsonl")
    ]
    names = ["average", "median", "95 %", "maximum"]
    return markdown(["case", *names, *(f"{name}, 64 KiB" for name in names)], rows, right=True)


def platform_table(platforms: Mapping[str, Row]) -> list[str]:
    """Rate of a connection on each link, and the time that receiving takes."""
    return markdown(
        ["link", "a connection gets", "receiving costs", "R^2"],
        [
            [
                rate,
                f"{found['bytes_per_s'] / 1e6:.2f} of {found['bits_per_s'] / 8e6:.2f} MB/s",
                f"{1e3 * found['overhead']['s']:.2f} ms + "
                f"{1e9 * found['overhead']['s_per_byte']:.2f} ms/MB",
                f"{found['r_squared']:.2f}",
            ]
            for rate, found in sorted(platforms.items())
        ],
        right=True,
    )


def machine(runs: list[Row], points: list[Row]) -> dict[str, str]:
    """Load of the machine during the runs that were kept."""
    host = [run for run in runs if run["kind"] == "host"]
    measured = [run for run in runs if run["kind"] == "run"]
    kept = [run for run in measured if not run["refused"]]
    by_workers: dict[int, list[float]] = defaultdict(list)
    for point in points:
        by_workers[point["workers"]] += point["cpu_ratios"]
    every = [ratio for ratios in by_workers.values() for ratio in ratios]
    return {
        "host": f"{host[-1]['cpu']}, {host[-1]['cores']} cores, Linux {host[-1]['kernel']}",
        "server_share": f"{SERVER_SHARE}",
        "worker_shares": ", ".join(
            f"{share} of a core for each of {most} workers" for most, share in WORKER_SHARES.items()
        ),
        "num_runs": f"{len(measured)}",
        "num_refused": f"{len(measured) - len(kept)}",
        "idle_cores": f"{min(run['idle_cores'] for run in kept):.2f}",
        "other_cores": f"{max(run['other_cores'] for run in kept):.2f}",
        "steal_cores": f"{max(run['steal_cores'] for run in kept):.2f}",
        "beside_busy": f"{min(run['speed_beside_busy'] for run in host):.0%}",
        "cpu_ratios": ", ".join(
            f"{np.mean(ratios):.2f} ({count})"
            for count, ratios in sorted(by_workers.items())
            if count >= FEWEST
        ),
        "cpu_range": f"{min(every):.2f} to {max(every):.2f}",
    }


def stored() -> tuple[list[Row], list[Row], dict[str, Row]]:
    """Runs, predicted points, and links by rate."""
    runs = read_runs(HOME)
    platforms = {run["rate"]: run for run in runs if run["kind"] == "platform"}
    return runs, read_results(HOME / "points.jsonl"), platforms


def parts() -> Parts:
    """Tables and numbers of the page."""
    runs, points, platforms = stored()
    several = [point for point in points if point["workers"] >= FEWEST]
    ours = errors_pct(several, OURS)
    others = {name: errors_pct(several, name).mean() for name in METHODS[2:]}
    best = min(others, key=lambda name: others[name])
    return {
        "num_cases": f"{len({point['case'] for point in points})}",
        "num_points": f"{len(points)}",
        "mean": f"{ours.mean():.1f}",
        "worst": f"{ours.max():.1f}",
        "best": best,
        "best_mean": f"{others[best]:.1f}",
        "summary": summary(several),
        "unseen": summary([point for point in several if point["case"] not in LOOKED_AT]),
        "steady": summary(several, "steady"),
        "two_servers": summary([point for point in several if point["case"].endswith("-ps2")]),
        "streams": streams(),
        "platform": platform_table(platforms),
        **machine(runs, points),
    }


def pictures() -> None:
    """Draw the pictures."""
    _, points, platforms = stored()
    draw_curves(points, METHODS, HOME / "curves.png")
    draw_errors(
        [point for point in points if point["workers"] >= FEWEST], METHODS, HOME / "errors.png"
    )
    draw_overhead(platforms, HOME / "overhead.png")
