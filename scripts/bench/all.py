"""The main benchmarks one after another: reading, training step, predicting, throughput.

    python -m scripts.bench.all

Run it on a machine where nothing else runs. Each can be run alone: `python -m scripts.bench.read`.
"""

from __future__ import annotations

import subprocess
import sys

PARTS = ("read", "inspector", "predict", "throughput")


def main() -> None:
    """A process per part, so that none warms up another."""
    for part in PARTS:
        print(f"== {part}", flush=True)
        subprocess.run([sys.executable, "-m", f"scripts.bench.{part}"], check=True)


if __name__ == "__main__":
    main()
