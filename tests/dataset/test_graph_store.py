"""The store of built graphs: resumable, stored once, and refused when damaged."""

import json
from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.dataset.example import graph_hash
from driple.dataset.graph_store import GraphStore, build_graphs, store_graphs
from driple.errors import ConfigError, DatasetError
from driple.graph import READER_VERSION
from driple.jobs import Workload
from tests.dataset.examples import chain_graph

SETTING = Setting.parse("V100-P2w2/ho-PCIe")
JOBS = tuple(
    Workload.parse(name)
    for name in (
        "lenet/mnist/b2/sgd/sync",
        "lenet/mnist/b4/sgd/sync",
        "alexnet/cifar10/b2/adam/async/fp16/nchw",
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of the three graphs, built by one process."""
    place = tmp_path_factory.mktemp("graphs")
    seen: list[tuple[str, int, int]] = []
    build_graphs(JOBS[:2], SETTING, place, processes=1, progress=lambda *step: seen.append(step))
    assert seen == [("", 0, 2), (JOBS[0].name, 1, 2), (JOBS[1].name, 2, 2)]
    return place


def test_graphs_come_back_and_a_second_build_adds_what_is_missing(folder: Path) -> None:
    """Finished graphs are not built again, and batch sizes differ in the tensor sizes alone."""
    before = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    seen: list[tuple[str, int, int]] = []
    build_graphs(JOBS, SETTING, folder, processes=1, progress=lambda *step: seen.append(step))
    assert seen == [("", 2, 3), (JOBS[2].name, 3, 3)]
    assert {file: file.stat().st_mtime_ns for file in before} == before
    store = GraphStore.open(folder)
    graphs = dict(store.graphs())
    assert set(graphs) == {job.name for job in JOBS}
    small, large = (graphs[job.name] for job in JOBS[:2])
    assert small.op_types == large.op_types
    assert np.array_equal(small.edges, large.edges)
    assert small.tensor_bytes.sum() < large.tensor_bytes.sum()
    again = store.graph(JOBS[2].name)
    assert graph_hash(again) == graph_hash(graphs[JOBS[2].name])
    assert "Transpose" in again.op_types


def test_a_shard_that_was_deleted_is_built_again(folder: Path) -> None:
    """The same bytes, under the same name; the index does not change."""
    index = (folder / "index.json").read_bytes()
    shard, _ = GraphStore.open(folder).places[JOBS[0].name]
    before = (folder / shard).read_bytes()
    (folder / shard).unlink()
    build_graphs(JOBS[:2], SETTING, folder, processes=1)
    assert (folder / shard).read_bytes() == before
    assert (folder / "index.json").read_bytes() == index


def test_nodes_of_ray_build_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    build_graphs(JOBS[:2], SETTING, tmp_path, processes=2, engine="ray")
    shard, _ = GraphStore.open(folder).places[JOBS[0].name]
    assert (tmp_path / shard).read_bytes() == (folder / shard).read_bytes()


def test_a_store_belongs_to_one_setting(folder: Path) -> None:
    """Graphs of another setting are not mixed in."""
    with pytest.raises(ConfigError, match="V100-P2w2/ho-PCIe, not of CPU"):
        build_graphs(JOBS, Setting.parse("CPU-P1w2"), folder)


def test_what_is_damaged_or_missing_is_told(folder: Path, tmp_path: Path) -> None:
    """No index, a newer one, a broken one, a missing shard, an unknown workload."""
    with pytest.raises(DatasetError, match=r"no index\.json"):
        GraphStore.open(tmp_path)
    store = GraphStore.open(folder)
    with pytest.raises(DatasetError, match="no graph of 'resnet20'"):
        store.graph("resnet20")
    index = json.loads((folder / "index.json").read_text())
    for text, message in (
        (json.dumps({**index, "format": 99}), "format 99"),
        ("{", "cannot read"),
        (json.dumps({**index, "workloads": [1]}), "cannot read"),
    ):
        (tmp_path / "index.json").write_text(text)
        with pytest.raises(DatasetError, match=message):
            GraphStore.open(tmp_path)
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(DatasetError, match="missing"):
        GraphStore.open(tmp_path).graph(JOBS[0].name)


def test_graphs_that_are_there_already_are_stored(tmp_path: Path) -> None:
    """Shard by shard; each comes back under its workload's name."""
    graphs = {f"net/data/b{n}/sgd/sync": chain_graph(n) for n in (3, 4, 5)}
    for name, graph in graphs.items():
        store_graphs({name: graph}, SETTING, tmp_path)
    store = GraphStore.open(tmp_path)
    assert {name: graph_hash(graph) for name, graph in store.graphs()} == {
        name: graph_hash(graph) for name, graph in graphs.items()
    }
    with pytest.raises(ConfigError):
        store_graphs(graphs, Setting.parse("CPU-P1w2"), tmp_path)


def test_graphs_of_two_readers_are_not_mixed(tmp_path: Path) -> None:
    """The index knows the version; one without is of the first, and takes no newer graphs."""
    graphs = {"net/data/b3/sgd/sync": chain_graph(3)}
    assert store_graphs(graphs, SETTING, tmp_path).reader_version == READER_VERSION
    assert GraphStore.open(tmp_path).reader_version == READER_VERSION
    index = json.loads((tmp_path / "index.json").read_text())
    del index["reader_version"]
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert GraphStore.open(tmp_path).reader_version == 1
    more = {"net/data/b4/sgd/sync": chain_graph(4)}
    with pytest.raises(
        ConfigError, match=f"reader version 1, and these are of version {READER_VERSION}"
    ):
        store_graphs(more, SETTING, tmp_path)
    assert store_graphs(more, SETTING, tmp_path, reader_version=1).reader_version == 1
