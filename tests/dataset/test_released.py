"""A file of the form of the public Driple data becomes a data set; anything else is refused."""

from __future__ import annotations

import pickle
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from driple.cluster.setting import Setting
from driple.dataset import read_dataset, released, write_dataset
from driple.dataset.example import merge_examples
from driple.dataset.released import read_released
from driple.dataset.split import given_split
from driple.errors import DatasetError, MissingExtraError
from driple.features import GroupedGraph
from driple.trace.targets import TARGET_NAMES
from tests.dataset.examples import example

SETTING = Setting.parse("V100-P1w2/ho-PCIe")
ROOT = Path(__file__).resolve().parents[2]
SIZES = {"train": (4, 3), "val": (2,), "test": (3,)}


def content(num_groups: int = 5) -> tuple[dict[str, list[torch.Tensor]], ...]:
    """Three dictionaries with numbers that tell where they stand."""
    random = torch.Generator().manual_seed(0)
    adjacency, features, labels = {}, {}, {}
    for part, sizes in SIZES.items():
        adjacency[part] = [torch.zeros(size, num_groups, num_groups) for size in sizes]
        for batch in adjacency[part]:
            batch[:, 0, 1] = batch[:, 1, 0] = batch[:, 1, 3] = 1.0  # the last only one way
            batch[:, 2, 2] = 1.0  # a loop
        features[part] = [torch.rand(size, num_groups, 3, generator=random) for size in sizes]
        for batch in features[part]:
            batch[:, 4] = 0.0  # fills up
            batch[:, :4, 1] = 7.0  # nodes of a group
        labels[part] = [1.0 + torch.arange(12.0).repeat(size, 1) for size in sizes]
    return adjacency, features, labels


def saved(folder: Path, what: object) -> Path:
    file = folder / "public.pkl"
    torch.save(what, file)
    return file


def test_examples_keep_their_parts_and_order(tmp_path: Path) -> None:
    data = read_released(saved(tmp_path, content()), SETTING)
    split = given_split(data.examples)
    assert split is not None
    assert [len(part) for part in (split.train, split.validation, split.test)] == [7, 2, 3]
    assert data.is_grouped
    assert {item.label_source for item in data.examples} == {"published"}


def test_targets_and_features_change_places(tmp_path: Path) -> None:
    given = content()
    data = read_released(saved(tmp_path, given), SETTING)
    first = data.examples[0]
    targets = dict(zip(TARGET_NAMES, first.targets.flat.tolist(), strict=True))
    # Stored as memory, device, RX, TX; idle, burst, amount; the numbers are 1 to 12.
    assert targets["device_mem_util.idle_duration"] == 1
    assert targets["device_mem_util.burst_duration"] == 2
    assert targets["device_mem_util.burst_amount"] == 3
    assert targets["device_util.idle_duration"] == 4
    assert targets["net_rx.burst_amount"] == 9
    assert targets["net_tx.idle_duration"] == 10
    longer = targets["net_tx.idle_duration"] + targets["net_tx.burst_duration"]
    assert first.iteration_time_s == longer
    assert isinstance(first.graph, GroupedGraph)
    stored = given[1]["train"][0][0, :4].numpy()  # tensor size, group size, frequency
    np.testing.assert_array_equal(first.graph.features, stored[:, [2, 0, 1]])
    assert first.graph.edges.tolist() == [[0, 1], [1, 3]]
    assert first.graph.num_nodes == 28


def test_written_and_read_again_it_is_the_same(tmp_path: Path) -> None:
    data = read_released(saved(tmp_path, content()), SETTING)
    write_dataset(data, tmp_path / "set")
    again = read_dataset(tmp_path / "set")
    assert again.workloads == data.workloads
    np.testing.assert_array_equal(again.targets(), data.targets())
    for restored, other in zip(again.examples, data.examples, strict=True):
        np.testing.assert_array_equal(restored.graph.edges, other.graph.edges)
        np.testing.assert_array_equal(restored.graph.tensor_bytes, other.graph.tensor_bytes)


def test_grouped_and_whole_graphs_do_not_mix(tmp_path: Path) -> None:
    data = read_released(saved(tmp_path, content()), SETTING)
    whole = replace(example("chain8/b1"), setting=SETTING.name)
    with pytest.raises(DatasetError, match="mixes"):
        merge_examples(data, [whole])


class Evil:
    """What a pickle may do."""

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return (exec, ("raise SystemExit('it ran')",))


@pytest.mark.parametrize("what", [Evil(), (Evil(), {}, {}), {"a": Evil()}], ids=["all", "in", "at"])
def test_what_would_run_is_refused(tmp_path: Path, what: object) -> None:
    with pytest.raises(DatasetError, match="nothing of it was run"):
        read_released(saved(tmp_path, what), SETTING)
    file = tmp_path / "plain.pkl"
    file.write_bytes(pickle.dumps(what))
    with pytest.raises(DatasetError, match=r"plain\.pkl"):
        read_released(file, SETTING)


def bent(kind: int, part: str, change: object) -> object:
    given = content()
    given[kind][part] = change  # type: ignore[assignment]  # wrong on purpose
    return given


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (torch.zeros(3), "three dictionaries"),
        ((1, 2, 3), "needed is a list of tensors"),
        (content()[:2], "three dictionaries"),
        (bent(0, "train", [torch.zeros(4, 5, 6), torch.zeros(3, 5, 5)]), "shapes"),
        (bent(2, "test", [torch.zeros(3, 11)]), "shapes"),
        (bent(2, "val", []), "unequal numbers of batches"),
        (bent(2, "test", [torch.full((3, 12), torch.nan)]), "NaN"),
        (bent(2, "test", [torch.full((3, 12), -1.0)]), "finite number >= 0"),
        (bent(1, "test", ["text"]), "dense tensor"),
        (bent(0, "val", [torch.zeros(2, 5, 5).to_sparse()]), "dense tensor"),
        (bent(0, "test", [torch.tensor(3.0)]), "shapes"),
        (bent(1, "test", [torch.tensor(3.0)]), "shapes"),
        (bent(2, "test", [torch.tensor(3.0)]), "shapes"),
    ],
)
def test_other_forms_are_refused_in_one_line(tmp_path: Path, what: object, words: str) -> None:
    with pytest.raises(DatasetError, match=words) as caught:
        read_released(saved(tmp_path, what), SETTING)
    assert "\n" not in str(caught.value)
    assert "public.pkl" in str(caught.value)


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, content())
    file.write_bytes(file.read_bytes()[:-200])
    for path in (file, tmp_path / "none.pkl", tmp_path):
        with pytest.raises(DatasetError):
            read_released(path, SETTING)
    for held, words in (
        (b"", r"public\.pkl is empty; restore it$"),
        (b"hello", "is no file of torch"),
    ):
        file.write_bytes(held)
        with pytest.raises(DatasetError, match=words):
            read_released(file, SETTING)


def test_an_old_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights_only does not keep what is promised of it; nothing of the file is read."""
    file = saved(tmp_path, content())
    monkeypatch.setattr(torch, "load", None)
    for version in ("2.9.1+cpu", "2.5.0", "1.13.1", "2", "odd"):
        monkeypatch.setattr(torch, "__version__", version)
        with pytest.raises(MissingExtraError, match=r"pip install 'torch>=2.10'"):
            read_released(file, SETTING)
    monkeypatch.undo()
    for version in ("2.10.0", "2.13.0+cpu", "3.0"):
        monkeypatch.setattr(torch, "__version__", version)
        read_released(file, SETTING)


def test_pyproject_asks_for_the_torch_that_is_needed() -> None:
    """In every extra that has torch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [need for needs in extras["optional-dependencies"].values() for need in needs]
    least = ".".join(map(str, released.LEAST_TORCH))
    assert {need for need in asked if need.startswith("torch>")} == {f"torch>={least}"}


def test_tensors_that_repeat_their_storage_are_refused(tmp_path: Path) -> None:
    """A few bytes, expanded to 51 GB, or listed a million times."""
    adjacency, features, labels = content()
    labels["train"][0] = torch.ones(1).expand(80_000, 80_000)
    with pytest.raises(DatasetError, match="which a file of its size cannot"):
        read_released(saved(tmp_path, (adjacency, features, labels)), SETTING)
    labels["train"] = [torch.ones(1000, 12)] * 100_000
    with pytest.raises(DatasetError, match="which a file of its size cannot"):
        read_released(saved(tmp_path, (adjacency, features, labels)), SETTING)


def test_compressed_files_are_refused(tmp_path: Path) -> None:
    """torch.save does not compress; a small file would unpack to any size."""
    file = saved(tmp_path, content())
    with zipfile.ZipFile(file) as parts:
        members = {name: parts.read(name) for name in parts.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts:
        for name, data in members.items():
            parts.writestr(name, data)
    with pytest.raises(DatasetError, match="compressed parts"):
        read_released(file, SETTING)
