"""Data sets of settings that nobody measured: every graph of a store on every setting.

    GraphStore, settings -> tasks of an engine, one shard of graphs at a time -> FOLDER/parts/*.json
                         -> FOLDER/SETTING/ (labels), FOLDER/zoo/ (graphs, stored once for all)

A part that is written is not simulated again, so a run that was stopped goes on there. The parts
are deleted when all data sets are written.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driple.checks import check_fields, check_whole
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.codec import from_json, to_json
from driple.dataset.example import Dataset, Detail, Example
from driple.dataset.graph_store import GraphStore
from driple.dataset.store import write_dataset
from driple.engine.engine import open_engine
from driple.errors import DatasetError
from driple.files import atomic_write, wrap_os_error
from driple.graph.opgraph import OpGraph
from driple.jobs.catalogue import model_of
from driple.jobs.workload import Workload
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import Calibration, shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from driple.storedfiles import read_json
from driple.trace.provenance import Provenance
from driple.trace.targets import FIGURES, NUM_TARGETS, RESOURCES, Targets

__all__ = ["SHARED_GRAPHS", "SimulationPlan", "simulate_store"]

SHARED_GRAPHS = "zoo"  # folder of the graphs beside the data sets
_PARTS = "parts"
_ADVICE = "delete it, and run again"
# Workers take turns on the same servers, so many of them show as much in fewer steps.
_MOST_WORKER_STEPS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedRow:
    """One workload on one setting, as a part holds it.

    Attributes:
        workload: name of the workload.
        setting: full name of the setting.
        targets: the twelve targets, in the order of `TARGET_NAMES`.
        iteration_time_s: seconds of an iteration.
        patterns: patterns of bursts, by resource.

    Raises:
        ConfigError: another number of targets, or other resources.
    """

    workload: str
    setting: str
    targets: tuple[float, ...]
    iteration_time_s: float
    patterns: Mapping[str, str]

    def __post_init__(self) -> None:
        check_whole("number of targets", len(self.targets), NUM_TARGETS, NUM_TARGETS)
        check_fields("patterns", self.patterns, RESOURCES)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationPlan:
    """Configuration of a simulated data set.

    Attributes:
        settings: all of them, for each graph.
        num_steps: most steps of the fastest worker.
        seed: random seed of the differences between steps.
    """

    settings: tuple[Setting, ...]
    num_steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        """Labels are those of counters, whose window must be known.

        Raises:
            CatalogError: no source states it for a device, as for those of AMD.
        """
        for setting in self.settings:
            _ = setting.worker.counter_window_s

    def steps_on(self, setting: Setting) -> int:
        """Steps of each worker on a setting; fewer where many workers share servers."""
        if not scheme_named(setting.scheme.name).uses_servers:
            return self.num_steps
        return max(20, min(self.num_steps, _MOST_WORKER_STEPS // setting.num_workers))


def simulate_store(
    store: GraphStore,
    plan: SimulationPlan,
    out: str | Path,
    *,
    calibration: Calibration | None = None,
    processes: int = 2,
    engine: str = "local",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Simulate every graph of a store on every setting, and write a data set for each.

    Args:
        store: the graphs.
        plan: settings and steps.
        out: folder of the data sets; made if need be.
        calibration: what devices and links reach of their peaks; by default as installed.
        processes: how many simulate at the same time.
        engine: `local` or `ray`.
        progress: called with (shards done, shards in all).

    Returns:
        Folders of the data sets.

    Raises:
        DatasetError: the store or the folder cannot be read or written.
        GraphError: a graph lacks the signatures of its ops.
        SettingError: a setting that cannot be simulated.
        EngineError: workers die over and over.
    """
    folder = Path(out)
    parts = folder / _PARTS
    with wrap_os_error(DatasetError, f"write {parts}"):
        parts.mkdir(parents=True, exist_ok=True)
    shards = sorted({shard for shard, _ in store.places.values()})
    files = {shard: parts / f"{_key(store, shard, plan, calibration)}.json" for shard in shards}
    todo = [shard for shard in shards if not files[shard].exists()]
    progress(len(shards) - len(todo), len(shards))
    if todo:
        shared = _Simulated(store=store, plan=plan, calibration=calibration)
        with open_engine(engine, workers=min(processes, len(todo))) as running:
            parts_made = running.stream(_simulate_shard, shared, todo)
            for number, (shard, part) in enumerate(zip(todo, parts_made, strict=True), 1):
                atomic_write(files[shard], part, error=DatasetError)
                progress(len(shards) - len(todo) + number, len(shards))
    rows = {shard: _read_part(files[shard]) for shard in shards}
    graphs = dict(store.graphs())
    places = []
    for setting in plan.settings:
        reached = calibration or shipped_calibration(setting)
        about = Provenance(
            label_source="simulated",
            licence="Apache-2.0",
            steps=plan.steps_on(setting),
            seed=plan.seed,
            iteration_time_error=reached.error_of(setting, topology_of(setting).joined_by or ""),
            calibration=reached.about,
        )
        dataset = Dataset(
            name=setting.file_name,
            setting=setting.name,
            examples=_examples(setting, rows, graphs),
            about=about,
            reader_version=store.reader_version,
        )
        write_dataset(dataset, folder / setting.file_name, graphs_in=SHARED_GRAPHS)
        places.append(folder / setting.file_name)
    with wrap_os_error(DatasetError, f"delete {parts}"):
        shutil.rmtree(parts)
    return places


def _key(
    store: GraphStore, shard: str, plan: SimulationPlan, calibration: Calibration | None
) -> str:
    """Hash of all that decides a part; what a calibration states as its errors does not."""
    graphs = sorted((job, key) for job, (place, key) in store.places.items() if place == shard)
    settings = [setting.name for setting in plan.settings]
    reached = [calibration or shipped_calibration(setting) for setting in plan.settings]
    numbers = [replace(one, errors={}, about={}).to_dict() for one in reached]
    decides = [graphs, settings, plan.num_steps, plan.seed, numbers]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Simulated:
    """What the tasks of all shards share."""

    store: GraphStore
    plan: SimulationPlan
    calibration: Calibration | None


def _simulate_shard(shared: _Simulated, shard: str) -> bytes:
    """Simulate the graphs of a shard on all settings; content of the part."""
    store, plan, calibration = shared.store, shared.plan, shared.calibration
    rows = []
    places = [
        (setting, topology_of(setting), calibration or shipped_calibration(setting))
        for setting in plan.settings
    ]
    for workload, graph in _of_shard(store, shard):
        job = PreparedJob(graph)
        for setting, topology, reached in places:
            simulation = simulate(
                job,
                setting,
                reached,
                num_steps=plan.steps_on(setting),
                seed=plan.seed,
                topology=topology,
            )
            rows.append(
                SimulatedRow(
                    workload=workload,
                    setting=setting.name,
                    targets=tuple(simulation.targets.flat.tolist()),
                    iteration_time_s=simulation.iteration_time_s,
                    patterns=simulation.patterns,
                )
            )
    return json.dumps(to_json(rows)).encode()


def _of_shard(store: GraphStore, shard: str) -> Iterator[tuple[str, OpGraph]]:
    only = {job: place for job, place in store.places.items() if place[0] == shard}
    return GraphStore(store.folder, store.setting, only).graphs()


def _read_part(file: Path) -> list[SimulatedRow]:
    try:
        stored = read_json(file)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{file} is damaged ({error}); {_ADVICE}") from error
    return from_json(
        list[SimulatedRow], stored, where=f"{file} is damaged", error=DatasetError, advice=_ADVICE
    )


def _examples(
    setting: Setting,
    rows: Mapping[str, Sequence[SimulatedRow]],
    graphs: Mapping[str, OpGraph],
) -> tuple[Example, ...]:
    """The simulated workloads of one setting, by name."""
    by_name = {
        row.workload: row for part in rows.values() for row in part if row.setting == setting.name
    }
    return tuple(
        _example(name, row, setting, graphs[name]) for name, row in sorted(by_name.items())
    )


def _example(name: str, row: SimulatedRow, setting: Setting, graph: OpGraph) -> Example:
    job = Workload.parse(name)
    details: dict[str, Detail] = {
        "model": job.model,
        "data_set": job.data_set,
        "batch_size": job.batch_size,
        "optimizer": job.optimizer,
        "sync": job.sync,
        "precision": job.precision,
        "data_format": job.data_format,
    }
    details |= {f"pattern_{resource}": row.patterns[resource] for resource in RESOURCES}
    values = np.array(row.targets, dtype=np.float64).reshape(len(RESOURCES), len(FIGURES))
    return Example(
        workload=name,
        family=model_of(job).family,
        setting=setting.name,
        graph=graph,
        targets=Targets(values),
        iteration_time_s=row.iteration_time_s,
        label_source="simulated",
        details=details,
    )
