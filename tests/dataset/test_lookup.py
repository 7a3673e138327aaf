"""A graph is found in a data set by its content, without reading the other graphs."""

from pathlib import Path

import pytest

from driple.dataset.example import graph_hash
from driple.dataset.lookup import find_graph
from driple.errors import DatasetError
from driple.graph import read_graph

ROOT = Path(__file__).parents[2]


def test_the_shipped_graph_is_found_where_it_was_measured() -> None:
    key = graph_hash(read_graph(ROOT / "datasets/examples/resnet20.pbtxt"))
    found = find_graph(ROOT / "datasets/CPU-P1w2_ho-200M", key)
    assert [item.workload for item in found] == ["resnet20/cifar10/b24/adam/sync"]
    assert found[0].label_source == "measured"
    assert 0.3 < found[0].iteration_time_s < 0.5
    assert find_graph(ROOT / "datasets/CPU-P1w2_ho-200M", "0" * 64) == []


def test_a_folder_without_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="missing"):
        find_graph(tmp_path, "0" * 64)
