"""Read the graphs of the measured data sets again, with the reader of this program.

    python -m scripts.settings.measured_graphs [--processes 2]

    datasets/settings/CPU*  graph of each workload
        -> built by the catalogue that was measured (an earlier commit), in build/measured-graphs/
        -> read by that commit's reader: its hash must be the one that the labels belong to
        -> read by today's reader -> datasets/settings/CPU*

Labels stay. The catalogue of today builds other graphs for the same names, so that theirs cannot
take the place of what ran. It needs the history of the repository and TensorFlow 2.21, with which
the runs were measured. Stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
COMMIT = "632e5e4a9f633e27c647a6940431c1ff7bc8019b"  # the six settings as they were measured
FOLDER = ROOT / "build" / "measured-graphs"
THEN = FOLDER / "then"  # work tree of the commit
_PER_PROCESS = 30  # graphs, then TensorFlow's memory is given back


class Wanted(NamedTuple):
    """A measured graph: where, of what, and its hash by the reader of that commit."""

    setting: str
    workload: str
    key: str

    @property
    def file(self) -> Path:
        """Where its GraphDef is kept."""
        return FOLDER / f"{self.key}.pb.gz"


def wanted_graphs() -> dict[str, Wanted]:
    """All graphs that were measured, by hash."""
    wanted: dict[str, Wanted] = {}
    for file in sorted((THEN / "datasets").glob("CPU*/examples.parquet")):
        for row in pq.read_table(file, columns=["setting", "workload", "graph"]).to_pylist():
            wanted.setdefault(row["graph"], Wanted(row["setting"], row["workload"], row["graph"]))
    return wanted


def build(wanted: Wanted) -> None:
    """Build a graph with the catalogue of that commit, which is what `driple` is here."""
    training = import_module("driple.zoo.training")
    cluster = training.ClusterShape.of(
        import_module("driple.settings").Setting.parse(wanted.setting)
    )
    workload = import_module("driple.zoo.workload").Workload.parse(wanted.workload)
    content = training.graphdef_of(training.build_training_step(workload, cluster, task=0))
    graph = import_module("driple.graph").graph_from_graphdef_bytes(content)
    key = import_module("driple.dataset.example").graph_hash(graph)
    if key != wanted.key:
        raise SystemExit(
            f"{wanted.workload} on {wanted.setting} gives graph {key[:12]}, and "
            f"{wanted.key[:12]} was measured; use TensorFlow 2.21"
        )
    part = wanted.file.with_suffix(".part")
    part.write_bytes(gzip.compress(content, mtime=0))
    part.rename(wanted.file)


def begin() -> None:
    """Start a process that builds graphs."""
    import_module("driple.zoo.store")._start()


def build_all(processes: int) -> None:
    """Build what is not there yet."""
    todo = [one for one in wanted_graphs().values() if not one.file.exists()]
    context = get_context("spawn")
    with context.Pool(processes, begin, maxtasksperchild=_PER_PROCESS) as pool:
        for done, _ in enumerate(pool.imap_unordered(build, todo), 1):
            print(f"{done} of {len(todo)} graphs", end="\r", flush=True)


def keys_then(name: str) -> dict[str, str]:
    """Hash of each workload's graph in a data set of that commit."""
    file = THEN / "datasets" / name / "examples.parquet"
    rows = pq.read_table(file, columns=["workload", "graph"]).to_pylist()
    return {row["workload"]: row["graph"] for row in rows}


def reread(names: list[str]) -> Iterator[str]:
    """Write the data sets with the graphs as they are read today; a sentence for each."""
    from driple.dataset.store import read_dataset, write_dataset
    from driple.graph import READER_VERSION, graph_from_graphdef_bytes

    known = {}
    for name in names:
        data, keys = read_dataset(ROOT / "datasets" / "settings" / name), keys_then(name)
        examples = []
        for example in data.examples:
            key = keys[example.workload]
            if key not in known:
                content = gzip.decompress((FOLDER / f"{key}.pb.gz").read_bytes())
                known[key] = graph_from_graphdef_bytes(content)
            examples.append(replace(example, graph=known[key]))
        dataset = replace(data, examples=tuple(examples), reader_version=READER_VERSION)
        write_dataset(dataset, ROOT / "datasets" / "settings" / name)
        yield f"{name}: {len(examples)} workloads"


def main() -> None:
    """Build the graphs of then in processes of their own, and read them here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        build_all(arguments.processes)
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not THEN.exists():
        subprocess.run(["git", "worktree", "add", "--detach", THEN, COMMIT], cwd=ROOT, check=True)
    command = [sys.executable, __file__, "--build", "--processes", str(arguments.processes)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(THEN)}, cwd=THEN, check=True)
    names = [folder.name for folder in sorted((ROOT / "datasets" / "settings").glob("CPU*"))]
    for sentence in reread(names):
        print(sentence)


if __name__ == "__main__":
    main()
