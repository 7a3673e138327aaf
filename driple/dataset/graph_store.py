"""Graphs of many workloads on disk, each stored once, and built by several processes.

    workloads -> processes with TensorFlow -> OpGraphs -> FOLDER/shard-*.parquet, FOLDER/index.json
    FOLDER, workload -> OpGraph

Entry points: `build_graphs`, `store_graphs`, `GraphStore`. A shard holds the graphs of a run of
workloads under their content hashes; the index names shard and hash of each workload, and is
written after every shard, so a build that was killed goes on there. Reading needs no TensorFlow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.example import graph_hash
from driple.dataset.graphtable import graphs_from_table, graphs_to_table
from driple.dataset.tables import read_table, write_table
from driple.engine.engine import open_engine
from driple.errors import ConfigError, DatasetError
from driple.files import atomic_replace, atomic_write, wrap_os_error
from driple.graph.opgraph import OpGraph
from driple.graph.version import FIRST_READER_VERSION, READER_VERSION
from driple.jobs.tensorflow.graphmode import begin_graph_mode
from driple.jobs.workload import Workload
from driple.storedfiles import read_json

__all__ = ["GraphStore", "build_graphs", "store_graphs"]

FORMAT = 1  # of the index; raise it when an older Driple could not read what is written
INDEX_FILE = "index.json"
# TensorFlow keeps something of every graph; a process is replaced before that fills the memory.
_GRAPHS_PER_PROCESS = 60


@dataclass(frozen=True, slots=True)
class GraphStore:
    """Graphs that were built, by workload.

    Attributes:
        folder: where they lie.
        setting: full name of the setting on which they are placed.
        places: name of each workload -> file of its shard, content hash.
        reader_version: version of the reader that made them.
    """

    folder: Path
    setting: str
    places: dict[str, tuple[str, str]]
    reader_version: int = READER_VERSION

    @classmethod
    def open(cls, folder: str | Path) -> GraphStore:
        """The store in a folder.

        Raises:
            DatasetError: no index there, a damaged one, or one of a newer format.
        """
        file = Path(folder) / INDEX_FILE
        try:
            index = read_json(file)
            if index["format"] > FORMAT:
                raise DatasetError(
                    f"{file} has format {index['format']}, this Driple reads up to {FORMAT}; "
                    "update Driple"
                )
            places = {str(job): (str(at[0]), str(at[1])) for job, at in index["workloads"].items()}
            version = int(index.get("reader_version", FIRST_READER_VERSION))
            return cls(Path(folder), str(index["setting"]), places, version)
        except FileNotFoundError:
            raise DatasetError(
                f"{folder} holds no graphs of the catalogue: it has no {INDEX_FILE}; run driple "
                "jobs build --list paper (driple predict FILE --method simulator simulates a graph "
                "file of your own)"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise DatasetError(f"cannot read {file}: {error}; build the graphs again") from error

    def graph(self, workload: str) -> OpGraph:
        """The graph of one workload.

        Raises:
            DatasetError: it is not in the store, or its shard is damaged.
        """
        if workload not in self.places:
            raise DatasetError(f"{self.folder} has no graph of '{workload}'; build it")
        shard, key = self.places[workload]
        return self._shard(shard)[key]

    def graphs(self) -> Iterator[tuple[str, OpGraph]]:
        """Every workload and its graph, one shard in memory at a time."""
        by_shard = sorted(self.places.items(), key=lambda item: item[1][0])
        for shard, entries in groupby(by_shard, key=lambda item: item[1][0]):
            graphs = self._shard(shard)
            for workload, (_, key) in entries:
                yield workload, graphs[key]

    def _shard(self, name: str) -> dict[str, OpGraph]:
        file = self.folder / Path(name).name
        graphs = graphs_from_table(read_table(file), file)
        for key, graph in graphs.items():
            if graph_hash(graph) != key:
                raise DatasetError(f"{file}: graph {key[:12]} was altered; build the graphs again")
        wanted = {key for shard, key in self.places.values() if shard == name}
        if not wanted <= set(graphs):
            raise DatasetError(f"{file} lacks graphs of the index; build the graphs again")
        return graphs


def build_graphs(
    workloads: Sequence[Workload],
    setting: Setting,
    folder: str | Path,
    *,
    processes: int = 2,
    engine: str = "local",
    progress: Callable[[str, int, int], None] | None = None,
) -> GraphStore:
    """Build the graphs of workloads, as far as the folder does not hold them yet or any more.

    Args:
        workloads: what to build; those of one model and data set share a shard.
        setting: the cluster on which they are placed.
        folder: made if need be.
        processes: how many build at the same time; each holds TensorFlow (half a gigabyte).
        engine: `local` or `ray`.
        progress: called with the last workload, how many are done, and how many there are.

    Raises:
        ConfigError: the folder holds graphs of another setting or of another version of the
            reader, or there is no such model.
        DatasetError: the folder cannot be read or written.
        EngineError: workers die over and over.
    """
    place = Path(folder)
    store = _opened(place, setting, READER_VERSION)
    kept = {name for name, (shard, _) in store.places.items() if (place / shard).exists()}
    todo = sorted(
        (job for job in dict.fromkeys(workloads) if job.name not in kept),
        key=lambda job: (job.model, job.data_set),
    )
    report = progress or (lambda *_: None)
    done, total = len(workloads) - len(todo), len(workloads)
    report("", done, total)
    if not todo:
        return store
    with open_engine(engine, workers=processes, tasks_per_worker=_GRAPHS_PER_PROCESS) as running:
        built = running.stream(_build, setting, todo)
        for _, jobs in groupby(todo, key=lambda job: (job.model, job.data_set)):
            graphs = {}
            for job in jobs:
                graphs[job.name] = next(built)
                done += 1
                report(job.name, done, total)
            store = _with_shard(store, graphs)
    return store


def store_graphs(
    graphs: Mapping[str, OpGraph],
    setting: Setting,
    folder: str | Path,
    *,
    reader_version: int = READER_VERSION,
) -> GraphStore:
    """Put graphs that are there already into a store, as one shard.

    Args:
        graphs: graphs by workload.
        setting: the cluster on which they are placed.
        folder: made if need be.
        reader_version: version of the reader that made them.

    Raises:
        ConfigError: the folder holds graphs of another setting, or of another version of the
            reader.
        DatasetError: the folder cannot be read or written.
    """
    return _with_shard(_opened(Path(folder), setting, reader_version), dict(graphs))


def _opened(folder: Path, setting: Setting, reader_version: int) -> GraphStore:
    with wrap_os_error(DatasetError, f"write graphs into {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder / INDEX_FILE).exists():
        return GraphStore(folder, setting.name, {}, reader_version)
    store = GraphStore.open(folder)
    if store.setting != setting.name:
        raise ConfigError(
            f"{folder} holds graphs of {store.setting}, not of {setting.name}; "
            "choose another folder"
        )
    if store.reader_version != reader_version:
        raise ConfigError(
            f"{folder} holds graphs of reader version {store.reader_version}, and these are of "
            f"version {reader_version}; choose another folder, or delete this one"
        )
    return store


def _with_shard(store: GraphStore, graphs: dict[str, OpGraph]) -> GraphStore:
    """The store with one more shard, written to the disk."""
    keys = {workload: graph_hash(graph) for workload, graph in graphs.items()}
    digest = hashlib.sha256("\n".join(graphs).encode()).hexdigest()[:16]
    shard = f"shard-{digest}.parquet"
    table, encodings = graphs_to_table({keys[name]: graph for name, graph in graphs.items()})
    file = store.folder / shard
    with wrap_os_error(DatasetError, f"write {file}"), atomic_replace(file) as (part,):
        write_table(table, part, encodings)
    places = store.places | {workload: (shard, key) for workload, key in keys.items()}
    index = {
        "format": FORMAT,
        "setting": store.setting,
        "reader_version": store.reader_version,
        "workloads": places,
    }
    text = json.dumps(index, indent=1) + "\n"
    atomic_write(store.folder / INDEX_FILE, text.encode(), error=DatasetError)
    return GraphStore(store.folder, store.setting, places, store.reader_version)


def _build(setting: Setting, workload: Workload) -> OpGraph:
    """The graph of one workload; in a process of its own, as TensorFlow's mode is its process's."""
    begin_graph_mode()
    from driple.graph import graph_from_graphdef_bytes
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of

    step = build_training_step(workload, ClusterShape.of(setting), task=0)
    return graph_from_graphdef_bytes(graphdef_of(step))
