"""A graph is found in a data set by its content, without reading the other graphs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.dataset.example import graph_hash
from driple.dataset.lookup import find_graph, find_measured_step, read_labels
from driple.dataset.store import write_dataset
from driple.errors import DatasetError
from driple.graph import read_graph
from tests.dataset.examples import synthetic_dataset

ROOT = Path(__file__).parents[2]


MEASURED = ROOT / "datasets/settings/CPU-P1w2_ho-200M"


def test_the_shipped_graph_is_found_where_it_was_measured() -> None:
    """By its step: that data set's graphs were read by an earlier reader, which kept more."""
    graph = read_graph(ROOT / "datasets/examples/resnet20.pbtxt")
    workloads = find_graph(MEASURED, graph_hash(graph)) or find_measured_step(MEASURED, graph)
    assert [item.workload for item in workloads] == ["resnet20/cifar10/b24/adam/sync"]
    assert workloads[0].label_source == "measured"
    assert 0.3 < workloads[0].iteration_time_s < 0.5
    assert find_graph(MEASURED, "0" * 64) == []


def test_a_graph_is_found_by_its_content(tmp_path: Path) -> None:
    """As this version reads it."""
    data = synthetic_dataset(4)
    write_dataset(data, tmp_path)
    wanted = data.examples[2]
    workloads = find_graph(tmp_path, graph_hash(wanted.graph))
    assert wanted.workload in [item.workload for item in workloads]


def test_a_step_that_differs_in_one_op_is_not_found() -> None:
    """A renamed op, or another optimizer."""
    graph = read_graph(ROOT / "datasets/examples/resnet20.pbtxt")
    renamed = replace(graph, names=("another", *graph.names[1:]))
    assert find_measured_step(MEASURED, renamed) == []
    remote = tuple(replace(ops, num_nodes=ops.num_nodes + 1) for ops in graph.remote)
    assert find_measured_step(MEASURED, replace(graph, remote=remote)) == []


def test_a_folder_without_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="missing"):
        find_graph(tmp_path, "0" * 64)


def test_labels_are_read_without_the_graphs(tmp_path: Path) -> None:
    """Setting and targets of every workload, as the data set holds them."""
    data = synthetic_dataset(4)
    write_dataset(data, tmp_path)
    (tmp_path / "graphs.parquet").unlink()
    labels = read_labels(tmp_path)
    assert labels.setting == data.setting
    assert list(labels.targets) == list(data.workloads)
    for example in data.examples:
        assert np.array_equal(labels.targets[example.workload], example.targets.flat)


def test_a_folder_without_labels_is_refused(tmp_path: Path) -> None:
    """Missing, or holding no workload."""
    with pytest.raises(DatasetError, match=r"examples\.parquet"):
        read_labels(tmp_path)
    write_dataset(replace(synthetic_dataset(4), examples=()), tmp_path)
    with pytest.raises(DatasetError, match="holds 0 settings, needed is 1"):
        read_labels(tmp_path)
