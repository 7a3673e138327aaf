"""Simulate the settings of datasets/ again, from the graphs that lie there.

    python -m scripts.settings.simulate [--what gpu,cpu] [--graphs FOLDER] [--processes 2]
                                        [--settings V100-P1w2,8xH100]

    gpu        the fourteen settings of the Driple paper, and GPUs of today: datasets/
    cpu        the measured settings once more, for the same workloads:
    datasets/settings/simulated-cpu/

The graphs are those in datasets/, which all simulated settings share, or for `gpu` those that
`driple jobs build --list paper --setting V100-P1w2 -o FOLDER` made. What is simulated of a workload
on one setting does not depend on what
was measured there; see scripts/fits/calibration_gpu.py and scripts/fits/calibration_cpu.py
for what the simulators were fitted to. Stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from driple.cluster.setting import SIMULATED_SETTINGS, Setting
from driple.dataset.graph_store import GraphStore, store_graphs
from driple.dataset.graphtable import ENCODINGS, HASH_COLUMN
from driple.dataset.simulated import SHARED_GRAPHS, SimulationPlan, simulate_store
from driple.dataset.store import ABOUT_FILE, EXAMPLES_FILE, GRAPHS_FILE, SHARED_KEY, read_dataset
from driple.dataset.tables import read_table, write_table
from driple.errors import DatasetError
from driple.files import atomic_replace
from driple.graph.opgraph import OpGraph
from scripts.settings.shipped import (
    FIRST,
    FIRST_SIMULATED,
    SETTINGS,
    SIMULATED_CPU,
    measured_folders,
)

STEPS = 50
SHARD = 28  # graphs


def simulate_all(store: GraphStore, settings: list[str], out: Path, processes: int) -> None:
    """Simulate the graphs of a store on some settings.

    Args:
        store: the graphs.
        settings: names.
        out: folder of the data sets.
        processes: that simulate at the same time.
    """
    plan = SimulationPlan(settings=tuple(map(Setting.parse, settings)), num_steps=STEPS)
    folders = simulate_store(
        store,
        plan,
        out,
        processes=processes,
        progress=lambda done, total: print(f"{done} of {total} shards", flush=True),
    )
    for place in folders:
        print(f"wrote {place.relative_to(SETTINGS)}")
    drop_unused(out)


def drop_unused(folder: Path) -> None:
    """Drop the shared graphs that no data set of a folder has any more."""
    file = folder / SHARED_GRAPHS / GRAPHS_FILE
    used = {
        key
        for about in folder.glob(f"*/{ABOUT_FILE}")
        if json.loads(about.read_bytes()).get(SHARED_KEY) == SHARED_GRAPHS
        for key in read_table(about.parent / EXAMPLES_FILE, ["graph"])["graph"].to_pylist()
    }
    table = read_table(file)
    kept = [key in used for key in table[HASH_COLUMN].to_pylist()]
    if not all(kept):
        with atomic_replace(file) as (part,):
            write_table(table.filter(kept), part, ENCODINGS)


def whole_setting() -> str:
    """The first simulated setting whose data set is there whole; all have the same graphs.

    Raises:
        DatasetError: none is.
    """
    for name in (FIRST_SIMULATED, *SIMULATED_SETTINGS):
        folder = SETTINGS / Setting.parse(name).file_name
        if all((folder / file).exists() for file in (ABOUT_FILE, EXAMPLES_FILE)):
            return name
    raise DatasetError(f"{SETTINGS} has no simulated data set; give --graphs")


def stored_again(setting: str, folder: Path) -> GraphStore:
    """The graphs of a setting's data set as a store of many small shards."""
    parsed = Setting.parse(setting)
    data = read_dataset(SETTINGS / parsed.file_name)
    graphs = {
        item.workload: item.graph for item in data.examples if isinstance(item.graph, OpGraph)
    }
    names = sorted(graphs)
    for begin in range(0, len(names), SHARD):
        some = {name: graphs[name] for name in names[begin : begin + SHARD]}
        store = store_graphs(some, parsed, folder, reader_version=data.reader_version)
    return store


def main() -> None:
    """Simulate what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--what", default="gpu,cpu")
    parser.add_argument("--settings", default="", help="those alone, in place of all")
    parser.add_argument("--graphs", type=Path, help="store of graphs, for gpu")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    wanted = arguments.what.split(",")
    chosen = {Setting.parse(name).name for name in arguments.settings.split(",") if name}
    with tempfile.TemporaryDirectory(prefix="driple-graphs-") as temporary:
        folder = Path(temporary)
        if "gpu" in wanted:
            store = (
                GraphStore.open(arguments.graphs)
                if arguments.graphs
                else stored_again(whole_setting(), folder / "gpu")
            )
            settings = [name for name in SIMULATED_SETTINGS if not chosen or name in chosen]
            simulate_all(store, settings, SETTINGS, arguments.processes)
        if "cpu" in wanted:
            store = stored_again(FIRST, folder / "cpu")
            settings = [name for name in measured_folders() if not chosen or name in chosen]
            simulate_all(store, settings, SIMULATED_CPU, arguments.processes)


if __name__ == "__main__":
    main()
