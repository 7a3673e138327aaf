"""Compare the catalogue's graphs with those that tf_cnn_benchmarks builds: rows.json.

    python -m scripts.studies.catalogue.run FOLDER [--only resnet50]

FOLDER holds graphs of training steps (.pb, .pb.gz) and list.json, a list of objects with the keys
file, model, data_set, batch_size, optimizer, precision, data_format, mode (`parameter_server`,
`parameter_server_ps2`, `parameter_server_async`, `independent` or `replicated`) and
trainable_parameters. Models that the catalogue does not hold for a data set are passed over. Each
row is kept in rows.json; stop it at any time, the same command goes on. It needs TensorFlow.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.graph import graph_from_graphdef_bytes, read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.jobs.lists import paper_workloads
from driple.jobs.tensorflow.graphmode import begin_graph_mode
from driple.jobs.workload import Workload
from driple.simulate.calibration import shipped_calibration
from driple.simulate.run import simulate
from scripts.studies.catalogue.counts import kind_counts

ROWS = Path(__file__).parent / "rows.json"
SETTINGS = ("V100-P1w2/ho-PCIe", "V100-R1/ho-PCIe")
PLACED = Setting.parse(SETTINGS[0])
SYNCHRONOUS = ("parameter_server", "parameter_server_ps2")  # with one server, with two
ONE_MACHINE = ("independent", "replicated")  # modes without a parameter server
STEPS = 20


def workload_of(entry: dict[str, Any]) -> Workload:
    """The catalogue's workload of an original graph."""
    return Workload(
        model=entry["model"],
        data_set=entry["data_set"],
        batch_size=entry["batch_size"],
        optimizer=entry["optimizer"],
        sync=entry["mode"] in SYNCHRONOUS,
        precision=entry["precision"],
        data_format=entry["data_format"],
    )


def figures_of(graph: OpGraph, parameters: int, settings: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of one graph that are compared."""
    remote = {item.op_type: item.num_nodes for item in graph.remote}
    updates = sum(n for kind, n in remote.items() if kind.startswith(("Apply", "ResourceApply")))
    figures = {
        "num_ops": graph.num_nodes,
        "parameters": parameters,
        "flops": cost_of_graph(graph).total_flops,
        "bytes": int(graph.tensor_bytes.sum()),
        "sent_bytes": graph.sent_bytes,
        "received_bytes": graph.received_bytes,
        "kinds": kind_counts(graph.kinds),
        "moving averages": remote.get("AssignSub", 0),
        "updates": updates,
    }
    for name in settings:
        setting = Setting.parse(name)
        run = simulate(graph, setting, shipped_calibration(setting), num_steps=STEPS)
        figures[f"step_s {name}"] = run.iteration_time_s
    return figures


def compare(entry: dict[str, Any]) -> dict[str, Any]:
    """One row: numbers of the original and of the catalogue's graph."""
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of

    settings = SETTINGS[1:] if entry["mode"] in ONE_MACHINE else SETTINGS
    job = workload_of(entry)
    step = build_training_step(job, ClusterShape.of(PLACED), task=0)
    ours = graph_from_graphdef_bytes(graphdef_of(step))
    original = read_graph(entry["file"])
    return {
        "workload": job.name,
        "mode": entry["mode"],
        "original": figures_of(original, entry["trainable_parameters"], settings),
        "catalogue": figures_of(ours, step.num_parameters, settings),
    }


def main() -> None:
    """Compare what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="workloads or modes with this in their names")
    arguments = parser.parse_args()
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else []
    done = {(row["workload"], row["mode"]) for row in rows}
    begin_graph_mode()
    pairs = {(job.model, job.data_set) for job in paper_workloads()}
    for entry in json.loads((arguments.folder / "list.json").read_text()):
        key = (workload_of(entry).name, entry["mode"])
        held = (entry["model"], entry["data_set"]) in pairs
        if not held or key in done or arguments.only not in " ".join(key):
            continue
        rows.append(compare(entry))
        done.add(key)
        print(*key, flush=True)
        atomic_write(ROWS, (json.dumps(rows, indent=1) + "\n").encode(), error=ConfigError)


if __name__ == "__main__":
    main()
