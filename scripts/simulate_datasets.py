"""Simulate the settings of datasets/ again, from the graphs that lie there.

    python scripts/simulate_datasets.py [--what table6,measured] [--processes 2]

    table6     the fourteen settings of the Driple paper and the rings: datasets/
    measured   the measured settings once more, for the same workloads: datasets/simulated-cpu/

What is simulated of a workload on one setting does not depend on what was measured there; see
scripts/calibrate.py and scripts/calibrate_cpu.py for what the simulators were fitted to. Stop it at
any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from shipped import (
    DATASETS,
    FIRST,
    FIRST_SIMULATED,
    SIMULATED_CPU,
    measured_folders,
    simulated_folders,
)

from driple.cluster.setting import Setting
from driple.dataset.graph_store import store_graphs
from driple.dataset.simulated import SimulationPlan, simulate_store
from driple.dataset.store import read_dataset
from driple.graph.opgraph import OpGraph

STEPS = 50
SHARD = 28  # graphs


def simulate_all(first: str, settings: list[str], out: Path, processes: int) -> None:
    """Simulate the graphs of one data set on some settings.

    Args:
        first: setting whose data set holds the graphs.
        settings: names.
        out: folder of the data sets.
        processes: that simulate at the same time.
    """
    parsed = Setting.parse(first)
    data = read_dataset(DATASETS / parsed.file_name)
    graphs = {
        item.workload: item.graph for item in data.examples if isinstance(item.graph, OpGraph)
    }
    names = sorted(graphs)
    with tempfile.TemporaryDirectory(prefix="driple-graphs-") as folder:
        for begin in range(0, len(names), SHARD):
            some = {name: graphs[name] for name in names[begin : begin + SHARD]}
            store = store_graphs(some, parsed, Path(folder), reader_version=data.reader_version)
        made = simulate_store(
            store,
            SimulationPlan(
                settings=tuple(Setting.parse(name) for name in settings), num_steps=STEPS
            ),
            out,
            processes=processes,
            progress=lambda done, total: print(f"{done} of {total} shards", flush=True),
        )
    for place in made:
        print(f"wrote {place.relative_to(DATASETS)}")


def main() -> None:
    """Simulate what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", default="table6,measured")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    wanted = arguments.what.split(",")
    if "table6" in wanted:
        settings = list(simulated_folders())
        simulate_all(FIRST_SIMULATED, settings, DATASETS, arguments.processes)
    if "measured" in wanted:
        simulate_all(FIRST, list(measured_folders()), SIMULATED_CPU, arguments.processes)


if __name__ == "__main__":
    main()
