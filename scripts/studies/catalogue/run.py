"""Compare the catalogue's graphs with those that tf_cnn_benchmarks builds: page.md.

    python -m scripts.studies.catalogue.run FOLDER [--only resnet50] [--report-only]

FOLDER holds graphs of training steps (.pb, .pb.gz) and list.json, a list of objects with the keys
file, model, data_set, batch_size, optimizer, precision, data_format, mode (`parameter_server`,
`parameter_server_ps2`, `parameter_server_async`, `independent` or `replicated`) and
trainable_parameters. Models that the catalogue does not hold for a data set are passed over. Each
row is kept in rows.json; stop it at any time, the same command goes on. It needs
TensorFlow.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from driple.errors import ConfigError
from driple.files import write_whole
from driple.graph import graph_from_graphdef_bytes, read_graph
from driple.graph.opgraph import OpGraph
from driple.opcost import cost_of_graph
from driple.settings import Setting
from driple.simulate.device import shipped_calibration
from driple.simulate.run import simulate
from driple.zoo.counts import OP_KINDS, kind_counts
from driple.zoo.graphmode import begin_graph_mode
from driple.zoo.lists import paper_workloads
from driple.zoo.workload import Workload
from scripts.shipped import DOCS
from scripts.studies.kit.tables import markdown

ROWS = DOCS / "catalogue" / "rows.json"
PAGE = DOCS / "catalogue.md"
SETTINGS = ("V100-P1w2/ho-PCIe", "V100-R1/ho-PCIe")
PLACED = Setting.parse(SETTINGS[0])
SYNCHRONOUS = ("parameter_server", "parameter_server_ps2")  # with one server, with two
ONE_MACHINE = ("independent", "replicated")  # modes without a parameter server
STEPS = 20
FIGURES = {
    "num_ops": ("ops", 1.0),
    "parameters": ("parameters, M", 1e6),
    "flops": ("FLOPs of a step, G", 1e9),
    "bytes": ("bytes of all outputs, MB", 1e6),
    "sent_bytes": ("sent, MB", 1e6),
    "received_bytes": ("received, MB", 1e6),
    **{f"step_s {name}": (f"step on {name}, s", 1.0) for name in SETTINGS},
}

HEAD = """\
# The catalogue's graphs against the originals

Made by `python -m scripts.studies.catalogue.run FOLDER`.

**Question.** Is a graph of the catalogue the graph that the model's original code builds? If it is
not, what was validated or learned on the catalogue does not hold for people's graphs.

**Data.** Training graphs of tf_cnn_benchmarks (repository tensorflow/benchmarks, commit 8fb7907),
built with TensorFlow 2.21 in graph mode without a change to its models, and the catalogue's graphs
of the same model, batch size, optimizer, precision and data format. Ops, FLOPs and bytes are those
that the reader keeps of one worker's step; step times are simulated. The first number of a cell is
the original's; the difference of the catalogue's graph is in brackets.
"""
KINDS_HEAD = """\
Ops of the worker by kind, where gradients count with their layers, and moving averages and updates
on the server. In brackets: the catalogue's number, where it differs.
"""
LIMITS = """\
**Limits.**
- Text models are not compared: OpenNMT-tf 1 does not run with TensorFlow 2.
- Workers of a synchronous original exchange tokens through queues, and each applies its own
  gradients. The catalogue adds gradients up first (`SyncReplicasOptimizer`), hence a few more ops.
- DenseNet follows tf_cnn_benchmarks, not the paper of the model: its transitions keep two growth
  rates of channels (0.36 million parameters for densenet40_k12; 1.02 million are published).
- An independent original has no server, and a replicated one has two towers on two GPUs, of which
  the reader keeps one. Their all-reduce is not in the catalogue's graph, which shows on small
  models.
- The value of the loss, which both programs fetch, is not in the numbers where no update needs it.
  An asynchronous graph of the catalogue has it: 11 % of the ops of ResNet-50, with no effect on
  its step time.
- The graph of an original computes its learning rate on the worker's CPU; the catalogue's learning
  rate is a constant.
"""


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
    """What is compared of one graph."""
    remote = {item.op_type: item.num_nodes for item in graph.remote}
    updates = sum(n for kind, n in remote.items() if kind.startswith(("Apply", "ResourceApply")))
    made = {
        "num_ops": graph.num_nodes,
        "parameters": parameters,
        "flops": cost_of_graph(graph).total_flops,
        "bytes": int(graph.tensor_bytes.sum()),
        "sent_bytes": graph.sent_bytes,
        "received_bytes": graph.received_bytes,
        "kinds": kind_counts(graph.op_types),
        "moving averages": remote.get("AssignSub", 0),
        "updates": updates,
    }
    for name in settings:
        setting = Setting.parse(name)
        run = simulate(graph, setting, shipped_calibration(setting), num_steps=STEPS)
        made[f"step_s {name}"] = run.iteration_time_s
    return made


def compare(entry: dict[str, Any]) -> dict[str, Any]:
    """One row: figures of the original and of the catalogue's graph."""
    from driple.zoo.training import ClusterShape, build_training_step, graphdef_of

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


def figure_table(rows: list[dict[str, Any]]) -> list[str]:
    """Original figure and the catalogue's difference from it."""
    head = ["workload", "mode", *(title for title, _ in FIGURES.values())]
    body = []
    for row in rows:
        cells = []
        for key, (_, unit) in FIGURES.items():
            server_only = key.endswith("_bytes") and row["mode"] in ONE_MACHINE
            if key not in row["original"] or server_only:
                cells.append("")
                continue
            theirs, mine = row["original"][key], row["catalogue"][key]
            cells.append(f"{theirs / unit:.4g} ({100 * (mine / theirs - 1):+.2f} %)")
        body.append([row["workload"], row["mode"], *cells])
    return markdown(head, body)


def kind_table(rows: list[dict[str, Any]]) -> list[str]:
    """Ops by kind: the original's number, and the catalogue's where it differs."""
    head = ["workload", *OP_KINDS, "moving averages", "updates"]
    body = []
    for row in rows:
        cells = []
        for name in head[1:]:
            theirs, mine = (
                row[side]["kinds"].get(name, row[side].get(name))
                for side in ("original", "catalogue")
            )
            cells.append(f"{theirs}" if theirs == mine else f"{theirs} ({mine})")
        body.append([row["workload"], *cells])
    return markdown(head, body)


def report(rows: list[dict[str, Any]]) -> str:
    """The page."""
    served = [row for row in rows if row["mode"] not in ONE_MACHINE]
    worst = {
        title: max(abs(row["catalogue"][key] / row["original"][key] - 1) for row in served)
        for key, (title, _) in FIGURES.items()
    }
    largest = "; ".join(f"{name.split(',')[0]} {100 * most:.1f} %" for name, most in worst.items())
    return "\n".join(
        [
            HEAD,
            f"**Result.** Largest differences over {len(served)} graphs with parameter servers: "
            f"{largest}.",
            "",
            *figure_table(rows),
            "",
            KINDS_HEAD,
            *kind_table(served),
            "",
            LIMITS,
        ]
    )


def main() -> None:
    """Compare what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="workloads or modes with this in their names")
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else []
    done = {(row["workload"], row["mode"]) for row in rows}
    if not arguments.report_only:
        if arguments.folder is None:
            raise ConfigError("no folder of original graphs was given; name one, or --report-only")
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
            ROWS.parent.mkdir(exist_ok=True)
            write_whole(ROWS, (json.dumps(rows, indent=1) + "\n").encode(), error=ConfigError)
    write_whole(PAGE, report(rows).encode(), error=ConfigError)


if __name__ == "__main__":
    main()
