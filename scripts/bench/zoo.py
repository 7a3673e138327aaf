"""Time to build the graphs of the catalogue: a sample of it, with two processes.

    python -m scripts.bench.zoo [--every 12]

Run it on a machine where nothing else runs. The goal for the whole catalogue is 45 minutes and
40 MB. Every n-th workload of the sorted catalogue is built into a temporary folder;
the whole is the sample's time times n, with --every 1 the time itself.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.graph_store import build_graphs
from driple.jobs.lists import paper_workloads

SETTING = "V100-P1w2/ho-PCIe"
PROCESSES = 2


def main() -> None:
    """Build, print seconds and bytes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=12)
    every = parser.parse_args().every
    whole = sorted(paper_workloads(), key=lambda job: job.name)
    some = whole[::every]
    with tempfile.TemporaryDirectory(prefix="driple-zoo-") as folder:
        begin = time.perf_counter()
        build_graphs(some, Setting.parse(SETTING), folder, processes=PROCESSES)
        seconds = time.perf_counter() - begin
        size = sum(file.stat().st_size for file in Path(folder).glob("*"))
    share = len(whole) / len(some)
    print(
        f"{len(some)} of {len(whole)} workloads: {seconds:.0f} s on {PROCESSES} processes, "
        f"{size / 1e6:.1f} MB"
    )
    if every > 1:
        print(f"the whole catalogue: {share * seconds / 60:.0f} minutes")


if __name__ == "__main__":
    main()
