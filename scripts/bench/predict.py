"""Wall time and peak memory of `driple predict`, as a user meets it: one process per prediction.

python -m scripts.bench.predict [--runs 5] [--nodes 18758]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.read import EXAMPLE, grown


def measure(graph: Path, runs: int) -> tuple[float, float]:
    """Median seconds, and the largest resident memory in MB."""
    times, peaks = [], []
    for _ in range(runs):
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "driple.cli.main", "predict", str(graph)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"driple predict {graph} failed")
        times.append(time.perf_counter() - started)
        peaks.append(usage.ru_maxrss * 1024 / 1e6)
    return statistics.median(times), max(peaks)


def main() -> None:
    """Print a line per graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=18_758)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.pbtxt"
        large.write_text(grown(EXAMPLE.read_text(), arguments.nodes))
        for name, graph, goal in (
            (EXAMPLE.name, EXAMPLE, 1.0),
            (f"{arguments.nodes} nodes", large, 3.0),
        ):
            seconds, peak_mb = measure(graph, arguments.runs)
            print(
                f"{name:<16} {graph.stat().st_size / 1e6:6.2f} MB  median {seconds:.2f} s "
                f"(goal {goal:.1f} s)  peak {peak_mb:.0f} MB (goal 400 MB)"
            )


if __name__ == "__main__":
    main()
