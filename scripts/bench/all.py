"""Every benchmark, one after another: reading, grouping, training step, predicting, the command.

    python -m scripts.bench.all

Run it on a machine where nothing else runs. Each part can be run alone: bench_read.py,
bench_inspector.py, bench_predict.py, bench_throughput.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PARTS = ("bench_read.py", "bench_inspector.py", "bench_predict.py", "bench_throughput.py")


def main() -> None:
    """A process per part, so that none warms up another."""
    for part in PARTS:
        print(f"== {part}", flush=True)
        subprocess.run([sys.executable, str(Path(__file__).with_name(part))], check=True)


if __name__ == "__main__":
    main()
