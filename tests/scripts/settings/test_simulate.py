"""Simulating shipped graphs again, on two workloads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from types import ModuleType

import pytest

from driple.cluster.setting import SIMULATED_SETTINGS, Setting
from driple.dataset.example import graph_hash
from driple.dataset.store import read_dataset, write_dataset
from driple.dataset.tables import read_table
from driple.errors import DatasetError

DATASETS = Path(__file__).parents[3] / "datasets" / "settings"
FIRST, OTHER = "CPU-P1w2/ho-400M", "CPU-P2w2/ho-200M"


def test_graphs_of_a_data_set_are_simulated_on_other_settings(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same workloads, with simulated labels and the same reader; then one of them alone."""
    name = Setting.parse(FIRST).file_name
    whole = read_dataset(DATASETS / name)
    small = replace(whole, examples=tuple(e for e in whole.examples if e.family == "lenet")[:2])
    write_dataset(small, tmp_path / name)
    monkeypatch.setattr(program, "SETTINGS", tmp_path)
    monkeypatch.setattr(program, "STEPS", 2)
    store = program.stored_again(FIRST, tmp_path / "graphs")
    program.simulate_all(store, [OTHER], tmp_path / "out", processes=1)
    dataset = read_dataset(tmp_path / "out" / Setting.parse(OTHER).file_name)
    assert dataset.setting == OTHER
    assert sorted(dataset.workloads) == sorted(small.workloads)
    assert {item.label_source for item in dataset.examples} == {"simulated"}
    assert dataset.reader_version == whole.reader_version
    fewer = replace(whole, examples=small.examples[:1])
    rmtree(tmp_path / name)
    write_dataset(fewer, tmp_path / name)
    store = program.stored_again(FIRST, tmp_path / "fewer")
    program.simulate_all(store, [OTHER], tmp_path / "out", processes=1)
    (example,) = read_dataset(tmp_path / "out" / Setting.parse(OTHER).file_name).examples
    shared = read_table(tmp_path / "out" / "zoo" / "graphs.parquet", ["graph"])
    assert shared["graph"].to_pylist() == [graph_hash(example.graph)]  # the other one is dropped


def test_a_setting_whose_file_was_deleted_is_simulated_from_another_ones_graphs(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All simulated settings have the same graphs, so that any of them will do."""
    graphs = [
        dict(zip(*(table[name].to_pylist() for name in ("workload", "graph")), strict=True))
        for table in (
            read_table(DATASETS / Setting.parse(name).file_name / "examples.parquet")
            for name in SIMULATED_SETTINGS
        )
    ]
    assert all(each == graphs[0] for each in graphs)
    assert program.whole_setting() == program.FIRST_SIMULATED

    monkeypatch.setattr(program, "SETTINGS", tmp_path)
    for name in (program.FIRST_SIMULATED, "2080Ti-P1w2"):
        folder = tmp_path / Setting.parse(name).file_name
        folder.mkdir()
        (folder / "examples.parquet").touch()
    with pytest.raises(DatasetError, match="no simulated data set"):
        program.whole_setting()
    (folder / "dataset.json").touch()
    assert program.whole_setting() == "2080Ti-P1w2/ho-PCIe"
