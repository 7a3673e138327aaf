"""Bytes a second that one core of this machine copies: the CPU rows of the catalogue of devices.

python -m scripts.bench.core
"""

from __future__ import annotations

import time

import numpy as np

ELEMENTS, RUNS = 2**27, 9  # 1 GiB in double precision, past any cache


def main() -> None:
    """Print the median of some copies; a copy reads and writes every byte."""
    source, target = np.ones(ELEMENTS), np.zeros(ELEMENTS)
    rates = []
    for _ in range(RUNS):
        begin = time.process_time()
        np.copyto(target, source)
        rates.append(2 * source.nbytes / (time.process_time() - begin))
    print(f"{np.median(rates) / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
