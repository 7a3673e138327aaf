"""Make datasets/simulated-cpu: the measured settings once more, simulated, for the same workloads.

    python scripts/simulate_measured.py [--processes 2]

The graphs are those of the measured data set of CPU-P1w2/ho-200M. What is simulated of a workload
on one setting does not depend on what was measured there; see scripts/calibrate_cpu.py for what the
simulator of CPUs was fitted to.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from shipped import DATASETS, FIRST, SIMULATED_CPU, measured_datasets

from driple.dataset.store import read_dataset
from driple.graph.opgraph import OpGraph
from driple.settings import Setting
from driple.simulate.collect import SimulationPlan, simulate_store
from driple.zoo.store import store_graphs

STEPS = 50
SHARD = 28  # graphs


def main() -> None:
    """Simulate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    first = Setting.parse(FIRST)
    data = read_dataset(DATASETS / first.file_name)
    graphs = {
        item.workload: item.graph for item in data.examples if isinstance(item.graph, OpGraph)
    }
    names = sorted(graphs)
    settings = tuple(Setting.parse(item.setting) for item in measured_datasets())
    with tempfile.TemporaryDirectory(prefix="driple-graphs-") as folder:
        for begin in range(0, len(names), SHARD):
            some = {name: graphs[name] for name in names[begin : begin + SHARD]}
            store = store_graphs(some, first, Path(folder))
        made = simulate_store(
            store,
            SimulationPlan(settings=settings, num_steps=STEPS),
            SIMULATED_CPU,
            processes=arguments.processes,
            progress=lambda done, total: print(f"{done} of {total} shards", flush=True),
        )
    for place in made:
        print(f"wrote {place.relative_to(DATASETS)}")


if __name__ == "__main__":
    main()
