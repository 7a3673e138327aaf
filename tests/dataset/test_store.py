"""A data set comes back from disk as it was, and a damaged one is refused with one line."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from driple.dataset import Dataset, graph_hash, merge_examples, read_dataset, write_dataset
from driple.dataset.tables import read_table, write_table
from driple.errors import DatasetError
from driple.graph import READER_VERSION
from driple.graph.opgraph import (
    FRAMEWORKS,
    LAYOUTS,
    Layout,
    OpGraph,
    ReadReport,
    RemoteOps,
    Traffic,
)
from driple.graph.opkind import KINDS
from driple.graph.signature import OpSignature, Tensor
from driple.remarks import Remark
from driple.trace.provenance import Provenance
from tests.dataset.examples import SETTING, chain_graph, example, synthetic_dataset

NAMES = ("dataset.json", "examples.parquet", "graphs.parquet")


def assert_same_graph(read: OpGraph, wanted: OpGraph) -> None:
    """All fields equal, arrays in dtype too."""
    own = ("edges", "is_control", "tensor_elements", "tensor_bytes", "signature_of", "executions")
    pairs = [(getattr(read, name), getattr(wanted, name)) for name in own]
    crossing = ("received_bytes", "readers", "sent_bytes", "senders")
    pairs += [(getattr(read.traffic, name), getattr(wanted.traffic, name)) for name in crossing]
    for a, b in pairs:
        assert (a.dtype, a.shape, a.tolist()) == (b.dtype, b.shape, b.tolist())
    plain = ("names", "op_types", "devices", "signatures", "remote", "report", "framework")
    for name in plain:
        assert getattr(read, name) == getattr(wanted, name)


def edit_column(file: Path, name: str, values: list[Any] | None) -> None:
    """Replace a column of a Parquet file by other values, or drop it."""
    table = parquet.read_table(file)
    position = table.column_names.index(name)
    table = (
        table.drop_columns([name])
        if values is None
        else table.set_column(position, name, pa.array(values))
    )
    parquet.write_table(table, file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of four workloads on disk."""
    write_dataset(synthetic_dataset(4), tmp_path / "set")
    return tmp_path / "set"


def test_reading_gives_back_what_was_written(folder: Path) -> None:
    """Labels to the last bit, details with their types, graphs in every field, provenance."""
    wanted, read = synthetic_dataset(4), read_dataset(folder)
    assert (read.name, read.setting, read.about) == ("synthetic", SETTING, wanted.about)
    assert read.workloads == wanted.workloads
    assert np.array_equal(read.targets(), wanted.targets())
    for restored, other in zip(read.examples, wanted.examples, strict=True):
        assert (restored.family, restored.details, restored.label_source) == (
            other.family,
            other.details,
            other.label_source,
        )
        assert restored.iteration_time_s == other.iteration_time_s
        assert_same_graph(restored.graph, other.graph)


TEXT = st.text(max_size=8)
KIND = st.sampled_from(sorted(KINDS))


def _traffic(nbytes: list[int], readers: list[tuple[int, int]]) -> Traffic:
    return Traffic(
        received_bytes=np.array(nbytes, dtype=np.int64),
        readers=np.array(readers, dtype=np.int32).reshape(-1, 2),
        sent_bytes=np.array(nbytes[:1], dtype=np.int64),
        senders=np.zeros(1, dtype=np.int32),
    )


def _described(signature_of: list[int], executions: list[int]) -> dict[str, Any]:
    """Signatures with everything that one can hold; none if there is no node."""
    shapes = (None, (), (3, -1), (2**40,))
    table = tuple(
        OpSignature.of_op_type(
            f"op{i}", (Tensor(shapes[i % 4], i, i % 2 == 0),), (), (("ksize", (1, i)),)
        )
        for i in range(max(signature_of, default=-1) + 1)
    )
    return {
        "signatures": table,
        "signature_of": np.array(signature_of, dtype=np.int32),
        "executions": np.array(executions, dtype=np.int64),
    }


def _updated(framework: str, rows: list[tuple[str, str, int, int]]) -> dict[str, Any]:
    """Remote ops, of kinds of their own where they are not TensorFlow's."""
    remote = tuple(
        RemoteOps.of_op_type(op_type, num_nodes=n, tensor_bytes=b)
        if framework == "tensorflow"
        else RemoteOps(op_type=op_type, kind=kind, num_nodes=n, tensor_bytes=b)
        for op_type, kind, n, b in rows
    )
    return {"framework": framework, "remote": remote}


@st.composite
def graphs(draw: st.DrawFn) -> OpGraph:
    """Any graph, also without nodes, edges or remote ops, with any text in its names."""
    num_nodes = draw(st.integers(0, 6))
    num_edges = draw(st.integers(0, 8)) if num_nodes else 0
    node = st.integers(0, max(0, num_nodes - 1))
    big = st.integers(0, 2**62)

    framework = draw(st.sampled_from(FRAMEWORKS))

    def many(of: st.SearchStrategy[Any], count: int) -> list[Any]:
        return draw(st.lists(of, min_size=count, max_size=count))

    return OpGraph(
        names=tuple(many(TEXT, num_nodes)),
        op_types=tuple(many(TEXT, num_nodes)),
        devices=tuple(many(TEXT, num_nodes)),
        edges=np.array(many(st.tuples(node, node), num_edges), dtype=np.int32).reshape(-1, 2),
        is_control=np.array(many(st.booleans(), num_edges), dtype=np.bool_),
        tensor_elements=np.array(many(big, num_nodes), dtype=np.int64),
        tensor_bytes=np.array(many(big, num_nodes), dtype=np.int64),
        traffic=_traffic(many(big, 2), many(st.tuples(st.integers(0, 1), node), num_edges))
        if num_nodes
        else Traffic(),
        **_described(many(node, num_nodes), many(big, num_nodes)),
        **_updated(framework, draw(st.lists(st.tuples(TEXT, KIND, big, big), max_size=3))),
        report=ReadReport(
            nodes_in_file=draw(st.integers(0, 99)),
            notes=tuple(map(Remark.of_text, draw(st.lists(TEXT, max_size=2)))),
        ),
    )


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(graphs(), max_size=4, unique_by=graph_hash))
def test_any_graph_survives(tmp_path: Path, many: list[OpGraph]) -> None:
    """Every field of every graph comes back, whatever is in it."""
    examples = tuple(replace(example(f"w{i}"), graph=graph) for i, graph in enumerate(many))
    folder = Path(mkdtemp(dir=tmp_path))
    write_dataset(Dataset(name="any", setting=SETTING, examples=examples), folder)
    read_back = read_dataset(folder).examples
    assert len(read_back) == len(many)
    for restored, graph in zip(read_back, many, strict=True):
        assert_same_graph(restored.graph, graph)


def test_a_data_set_is_replaced_only_where_nothing_is_lost(tmp_path: Path) -> None:
    both = (example("a"), example("b"))
    write_dataset(Dataset(name="d", setting=SETTING, examples=both), tmp_path)
    write_dataset(Dataset(name="d", setting=SETTING, examples=(*both, example("c"))), tmp_path)
    simulated = tuple(replace(one, label_source="simulated") for one in (*both, example("c")))
    elsewhere = "V100-P1w2/ho-PCIe"
    moved = tuple(replace(one, setting=elsewhere) for one in (*both, example("c")))
    place = tmp_path / "simulated"  # can be made again
    write_dataset(Dataset(name="d", setting=SETTING, examples=simulated), place)
    write_dataset(Dataset(name="d", setting=SETTING, examples=simulated[:1]), place)
    for setting, others in ((SETTING, both), (SETTING, simulated), (elsewhere, moved)):
        with pytest.raises(DatasetError, match=r"3 workloads, and . would be lost"):
            write_dataset(Dataset(name="d", setting=setting, examples=others), tmp_path)
    assert [one.workload for one in read_dataset(tmp_path).examples] == ["a", "b", "c"]


def test_a_graph_is_stored_once(tmp_path: Path) -> None:
    """Workloads with equal graphs share one row, and one object once read."""
    graph = chain_graph(9)
    examples = tuple(replace(example(f"w{i}"), graph=graph) for i in range(3))
    write_dataset(Dataset(name="d", setting=SETTING, examples=examples), tmp_path)
    assert parquet.read_metadata(tmp_path / "graphs.parquet").num_rows == 1
    read_back = read_dataset(tmp_path).examples
    assert read_back[0].graph is read_back[2].graph
    assert json.loads((tmp_path / "dataset.json").read_text())["num_graphs"] == 1


def test_graphs_take_little_room(tmp_path: Path) -> None:
    """A graph of 2,000 nodes takes at most 30 KB."""
    big = replace(example("big"), graph=chain_graph(2000))
    write_dataset(Dataset(name="d", setting=SETTING, examples=(big,)), tmp_path)
    assert (tmp_path / "graphs.parquet").stat().st_size < 30_000


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """Nothing in the files depends on the clock or on chance."""
    for name in ("a", "b"):
        write_dataset(synthetic_dataset(4), tmp_path / name)
    for name in NAMES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_merged_set_takes_the_place_of_the_old_and_leaves_other_files(folder: Path) -> None:
    """Appending means reading, merging and writing; a README in the folder stays."""
    (folder / "README.md").write_text("read me")
    write_dataset(merge_examples(read_dataset(folder), [example("new")]), folder)
    assert len(read_dataset(folder).examples) == 5
    assert sorted(file.name for file in folder.iterdir()) == sorted([*NAMES, "README.md"])


def test_only_adding_survives_a_kill_between_the_renames(folder: Path, tmp_path: Path) -> None:
    """With the new graphs but the old examples in place, the folder reads as the old set."""
    more = merge_examples(read_dataset(folder), [example("new", num_nodes=99)])
    write_dataset(more, tmp_path / "more")
    (tmp_path / "more" / "graphs.parquet").replace(folder / "graphs.parquet")
    assert len(read_dataset(folder).examples) == 4


def test_a_full_disk_leaves_the_old_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be written in full, nothing is replaced and nothing is left behind."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    before = {name: (folder / name).read_bytes() for name in NAMES}
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DatasetError, match="No space left on device; free some space"):
        write_dataset(synthetic_dataset(6), folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize("about", [{"x": float("nan")}, {"label_source": "y"}, {"format": 3}])
def test_provenance_must_be_json(tmp_path: Path, about: dict[str, Any]) -> None:
    """What is not JSON, or would hide a field of the folder, is refused before any writing."""
    with pytest.raises(DatasetError, match="about"):
        write_dataset(
            replace(synthetic_dataset(2), about=Provenance(others=about, label_source="x")),
            tmp_path / "d",
        )
    assert not (tmp_path / "d").exists()


def refused(folder: Path) -> str:
    """The line that reading the folder ends with."""
    with pytest.raises(DatasetError) as caught:
        read_dataset(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("bad", "shown"), [(float("nan"), "nan"), (-1.0, "-1")])
def test_a_bad_label_on_disk_is_refused(folder: Path, bad: float, shown: str) -> None:
    """The line names file, workload, target and value."""
    edit_column(folder / "examples.parquet", "net_rx.idle_duration", [0.1, bad, 0.1, 0.1])
    workload = synthetic_dataset(4).workloads[1]
    message = refused(folder)
    assert f"examples.parquet: workload '{workload}'" in message
    assert f"net_rx.idle_duration is {shown}" in message


@pytest.mark.parametrize(
    ("file", "column", "values", "words"),
    [
        ("examples.parquet", "family", None, "column 'family' is missing"),
        ("examples.parquet", "family", [1, 2, 3, 4], "column 'family' is of type int64"),
        ("examples.parquet", "workload", ["a", "b", "c", "a"], "occurs more than once"),
        ("examples.parquet", "family", ["a", None, "a", "a"], "family is empty"),
        ("examples.parquet", "details", ["{"] * 4, "details are not JSON"),
        ("examples.parquet", "graph", ["f" * 64] * 4, "is not in graphs.parquet"),
        ("examples.parquet", "setting", ["V100"] * 4, "one data set per setting"),
        ("graphs.parquet", "names", None, "column 'names' is missing"),
        ("graphs.parquet", "names", [["a"]] * 4, "damaged"),
        ("graphs.parquet", "names", [["a"], None, [], []], "has empty values"),
        ("graphs.parquet", "op_types", [["a"], [None], [], []], "has empty values"),
        ("graphs.parquet", "devices", [1, 2, 3, 4], "must be list<string>"),
        ("graphs.parquet", "signatures", ["[" * 10_000] * 4, "damaged"),
        ("graphs.parquet", "report", ["["] * 4, "damaged"),
        ("graphs.parquet", "report", ["[" * 100_000] * 4, "damaged"),
        ("graphs.parquet", "report", ['{"notes": 5}'] * 4, "its report: notes must be a list"),
        ("graphs.parquet", "tensor_bytes", [["x"]] * 4, "must be list<int64>"),
        ("graphs.parquet", "graph", ["0" * 64, "1" * 64, "2" * 64, "3" * 64], "content hash"),
    ],
)
def test_damaged_tables_are_refused(
    folder: Path, file: str, column: str, values: list[Any] | None, words: str
) -> None:
    """Missing, mistyped, empty, inconsistent or altered columns end in one line."""
    edit_column(folder / file, column, values)
    assert words in refused(folder)


def test_an_edge_out_of_the_graph_is_refused(folder: Path) -> None:
    """Edges must lead to nodes that are there."""
    table = parquet.read_table(folder / "graphs.parquet")
    edges = [[99 for _ in row] for row in table["edge_sources"].to_pylist()]
    position = table.column_names.index("edge_sources")
    table = table.set_column(position, "edge_sources", pa.array(edges, pa.list_(pa.int32())))
    parquet.write_table(table, folder / "graphs.parquet")
    assert "edges lead outside" in refused(folder)


@pytest.mark.parametrize("name", NAMES)
def test_missing_and_truncated_files_are_refused(folder: Path, name: str) -> None:
    """Each of the three files is needed whole."""
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    assert name in refused(folder)
    (folder / name).unlink()
    assert name in refused(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 3}, "has format 3, this Driple reads up to 2; update Driple"),
        ({"format": None}, "has no format number"),
        ({"setting": 7}, "has no 'setting'"),
    ],
)
def test_the_head_is_checked(folder: Path, change: dict[str, Any], words: str) -> None:
    """A newer format, and a file that is no data set's, are told apart."""
    head = json.loads((folder / "dataset.json").read_text())
    (folder / "dataset.json").write_text(json.dumps(head | change))
    assert words in refused(folder)


def test_a_folder_that_is_no_dataset(tmp_path: Path) -> None:
    """The line says what was looked for."""
    assert "is no data set: it has no dataset.json" in refused(tmp_path)


def test_the_reader_version_is_stored(folder: Path) -> None:
    """It comes back; a data set from before it was written is of the first reader."""
    assert read_dataset(folder).reader_version == READER_VERSION
    write_dataset(replace(read_dataset(folder), reader_version=7), folder)
    assert read_dataset(folder).reader_version == 7
    file = folder / "dataset.json"
    about = json.loads(file.read_text())
    for odd in ("2", 0, 1.5, True):
        file.write_text(json.dumps({**about, "reader_version": odd}))
        with pytest.raises(DatasetError, match="reader version"):
            read_dataset(folder)
    del about["reader_version"]
    file.write_text(json.dumps(about))
    assert read_dataset(folder).reader_version == 1


def test_a_merged_set_is_of_the_older_reader() -> None:
    """New examples beside old ones do not make the old ones new; without any left, they do."""
    old = replace(synthetic_dataset(4), reader_version=1)
    assert merge_examples(old, old.examples[:2]).reader_version == 1
    assert merge_examples(old, old.examples).reader_version == READER_VERSION


def test_texts_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    """Arrow reads them as they are; the line names the file."""
    text = pa.py_buffer(b"\xff\xfe")
    column = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()), text]
    )
    file = tmp_path / "examples.parquet"
    write_table(pa.table({"workload": column}), file, {})
    with pytest.raises(DatasetError, match=r"examples\.parquet.*restore the file"):
        read_table(file)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_graph_says_of_servers_is_stored(layout: Layout, tmp_path: Path) -> None:
    """A one-machine or all-reduce graph stays one, and a graph without a training step too."""
    data = synthetic_dataset(2)
    graphs = [
        replace(item.graph, layout=layout, is_training=layout == "servers")
        for item in data.examples
        if isinstance(item.graph, OpGraph)
    ]
    examples = tuple(
        replace(item, graph=graph) for item, graph in zip(data.examples, graphs, strict=True)
    )
    write_dataset(replace(data, examples=examples), tmp_path)
    for stored in read_dataset(tmp_path).examples:
        assert isinstance(stored.graph, OpGraph)
        assert stored.graph.layout == layout
        assert stored.graph.is_training == (layout == "servers")


def test_a_data_set_of_an_earlier_version_without_an_error_is_read(tmp_path: Path) -> None:
    """It wrote an empty object where the simulator's error is not known."""
    write_dataset(synthetic_dataset(2), tmp_path)
    file = tmp_path / "dataset.json"
    stored = json.loads(file.read_text())
    file.write_text(json.dumps({**stored, "iteration_time_error": {}}))
    assert read_dataset(tmp_path).about.iteration_time_error is None
    file.write_text(json.dumps({**stored, "num_runs": "many"}))
    with pytest.raises(DatasetError, match=r"dataset\.json: num_runs must be .*; restore the file"):
        read_dataset(tmp_path)
