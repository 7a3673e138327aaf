"""Reading whole files: formats, bounds, real graphs, damage."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.errors import GraphError
from driple.graph import graph_from_graphdef_bytes, graph_from_text, read_graph
from driple.graph.tf.graphdef import message_class, raw_from_message
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.text_containers import raw_of_any_text
from driple.render.remarks import sentence, sentences
from tests.graph.graphs import node_text, plain

REAL = Path(__file__).parents[2] / "data/graphs"
EXAMPLE = Path(__file__).parents[3] / "datasets/examples/resnet50.pbtxt"
REAL_GRAPHS = sorted(REAL.glob("*.pb.gz"))

SMALL = (
    node_text("x", "Const", shape="2x3")
    + node_text("w", "VariableV2", device="/job:ps/task:0", shape="3x4")
    + node_text("y", "MatMul", "x", "w", "^x", device="/job:worker/task:0", shape="2x4")
)


def binary_of(text: str) -> bytes:
    """The same graph as binary."""
    message = text_format.Parse(text, message_class("GraphDef")())
    return bytes(message.SerializeToString())


def test_nodes_edges_and_sizes_of_a_small_graph() -> None:
    """Data and control edges, sizes, what was left out, all by hand."""
    graph = graph_from_text(SMALL)
    assert graph.names == ("x", "y")
    assert graph.op_types == ("Const", "MatMul")
    assert graph.edges.tolist() == [[0, 1], [0, 1]]
    assert graph.is_control.tolist() == [False, True]
    assert graph.tensor_elements.tolist() == [6, 8]
    assert graph.tensor_bytes.tolist() == [24, 32]
    (left_out,) = graph.remote
    assert (left_out.op_type, left_out.num_nodes, left_out.tensor_bytes) == ("VariableV2", 1, 48)
    assert (graph.sent_bytes, graph.received_bytes) == (0, 48)
    assert graph.report.nodes_in_file == 3
    assert graph.op_type_counts() == {"Const": 1, "MatMul": 1}


def test_bytes_that_cross_are_counted_once_per_tensor() -> None:
    """A parameter that two ops read comes once; a gradient that a server takes twice goes once."""
    worker, server = "/job:worker/task:0", "/job:ps/task:0"
    graph = graph_from_text(
        node_text("w", "VariableV2", device=server, shape="10")
        + node_text("a", "Relu", "w", device=worker, shape="10")
        + node_text("b", "AddN", "w", "a", "^late", device=worker, shape="20")
        + node_text("late", "NoOp", device=server, shape="500")
        + node_text("u", "ApplyAdam", "w", "b", device=server, shape="10")
        + node_text("v", "ApplyAdam", "w", "b", device=server, shape="10")
    )
    assert (graph.received_bytes, graph.sent_bytes) == (40, 80)
    assert graph.traffic.received_bytes.tolist() == [40]
    assert graph.traffic.readers.tolist() == [[0, 0], [0, 1]]
    assert graph.traffic.sent_bytes.tolist() == [80]
    assert graph.traffic.senders.tolist() == [1]


def test_every_format_reads_alike(tmp_path: Path) -> None:
    """Text, binary, both gzipped, SavedModel file and folder."""
    binary = binary_of(SMALL)
    saved = message_class("SavedModel")()
    saved.saved_model_schema_version = 1
    saved.meta_graphs.add().graph_def.node.add(name=b"serve", op=b"NoOp")
    meta = saved.meta_graphs.add()
    meta.meta_info_def.tags.append(b"train")
    meta.graph_def.ParseFromString(binary)
    files = {
        "a.pbtxt": SMALL.encode(),
        "a.pb": binary,
        "a.pbtxt.gz": gzip.compress(SMALL.encode()),
        "two.gz": gzip.compress(binary[:40]) + gzip.compress(binary[40:]),
        "saved_model.pb": saved.SerializeToString(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    expected = graph_from_text(SMALL)
    for name in (*files, "."):
        graph = read_graph(tmp_path / name)
        assert graph.names == expected.names, name
        assert (graph.edges == expected.edges).all()
        assert graph.remote == expected.remote
    assert "train" in sentence(read_graph(tmp_path / "saved_model.pb").report.notes[0])


def test_a_meta_file_is_its_graph(tmp_path: Path) -> None:
    """By hand, with and without what stands before the graph; and one that TensorFlow 2.21 wrote.

    That one: a dense layer and Adam, by tf.compat.v1.train.export_meta_graph with a saver,
    strip_default_attrs=True.
    """
    meta = message_class("MetaGraphDef")()
    meta.graph_def.ParseFromString(binary_of(SMALL))
    path = tmp_path / "model.meta"
    for tags in ([], [b"train", b"gpu"]):
        meta.meta_info_def.tags.extend(tags)
        path.write_bytes(meta.SerializeToString())
        graph = read_graph(path)
        assert graph.names == ("x", "y")
        assert "MetaGraphDef" in " ".join(sentences(graph.report.notes))
    # A version and a list of ops, then a name that is protobuf too: all of it parses as a GraphDef.
    odd = binary_of('node { name: "xa" op: "Relu" }')
    info = b"\n\x01v\x12\x05\n\x03\n\x01A"
    path.write_bytes(b"\n" + bytes([len(info)]) + info + b"\x12" + bytes([len(odd)]) + odd)
    assert read_graph(path).names == ("xa",)
    adam = read_graph(REAL / "adam_v1.meta.gz")
    assert {"MatMul", "ReluGrad"} <= set(adam.op_types)
    elsewhere = {group.op_type: group.num_nodes for group in adam.remote}
    assert (elsewhere["ApplyAdam"], elsewhere["VariableV2"]) == (2, 8)
    assert "RandomUniform" not in elsewhere
    assert adam.report.left_out["initialisers"] > 0
    assert adam.report.target == "Adam"


@pytest.mark.parametrize("path", REAL_GRAPHS, ids=lambda path: path.name)
def test_real_graphs_read_alike_from_text_and_binary(path: Path) -> None:
    """TensorFlow's own graphs: our text reader against protobuf's."""
    graph = read_graph(path)
    assert graph.num_nodes > 10
    assert len(set(graph.names)) == graph.num_nodes
    assert (graph.edges >= 0).all()
    assert (graph.edges < graph.num_nodes).all()
    data = gzip.decompress(path.read_bytes())
    if data[0] == 0x08:
        return
    message = message_class("GraphDef").FromString(data)
    text = text_format.MessageToString(message)
    assert plain(raw_from_text(text)) == plain(raw_from_message(message))
    assert plain(raw_from_text(" ".join(text.split("\n")))) == plain(raw_from_message(message))


def test_there_are_real_graphs_of_each_kind() -> None:
    """Loops of both kinds, functions, SavedModel, PS training."""
    assert {path.name for path in REAL_GRAPHS} >= {
        "ps_training.pb.gz",
        "functions.pb.gz",
        "saved_model.pb.gz",
        "loops_v1.pb.gz",
    }
    functions = read_graph(REAL / "functions.pb.gz")
    assert functions.report.nodes_inlined > 10
    assert not {"PartitionedCall", "StatefulPartitionedCall"} & set(functions.op_types)
    loops = read_graph(REAL / "loops_v1.pb.gz")
    assert {"Enter", "NextIteration"} <= set(loops.op_types)


def test_the_example_is_a_resnet_50_on_its_worker() -> None:
    """3,000 nodes and more in the file; 53 convolutions, forward and both gradients."""
    graph = read_graph(EXAMPLE)
    counts = graph.op_type_counts()
    assert graph.report.nodes_in_file > 3000
    assert counts["Conv2D"] == counts["Conv2DBackpropFilter"] == 53
    message = message_class("GraphDef")()
    text_format.Parse(EXAMPLE.read_text(), message, allow_unknown_field=True)
    assert plain(raw_from_text(EXAMPLE.read_text())) == plain(raw_from_message(message))


def test_remarks_are_counted_and_said() -> None:
    """Unknown dimensions, no shapes, no types, dangling inputs, missing functions."""
    report = graph_from_text(
        node_text("a", "Relu", "gone", shape="-1x2")
        + node_text("b", "Relu")
        + 'node { name: "c" op: "Odd" attr { key: "_output_shapes" value { list { shape { dim { '
        'size: 2 } } } } } }\nnode { name: "d" op: "PartitionedCall" attr { key: "f" value { '
        'func { name: "lost" } } } }'
    ).report
    assert (report.unknown_dimensions, report.nodes_without_shape, report.dangling_inputs) == (
        0,  # no input leaves a size open: nothing that an option could set
        2,
        1,
    )
    assert report.unresolved_functions == ("lost",)
    said = " ".join(sentences(report.notes))
    for word in ("only the data decide", "no known shape", "data type", "not in the file", "lost"):
        assert word in said
    assert "every tensor size is 0" in sentence(
        graph_from_text(node_text("a", "Relu")).report.notes[-1]
    )


def test_loops_are_fine_and_other_cycles_are_not() -> None:
    """A cycle through NextIteration is a loop; any other is an error."""
    loop = (
        node_text("enter", "Enter")
        + node_text("merge", "Merge", "enter", "next")
        + node_text("next", "NextIteration", "merge")
    )
    assert graph_from_text(loop).num_edges == 3
    with pytest.raises(GraphError, match="cycle"):
        graph_from_text(node_text("a", "Relu", "b") + node_text("b", "Relu", "a"))


def test_node_order_changes_nothing_but_the_numbers() -> None:
    """The same names, edges between names, and sizes."""
    nodes = [
        node_text(f"n{i}", "Relu", *(f"n{j}" for j in range(i)), shape=f"{i + 1}") for i in range(5)
    ]
    forward, backward = graph_from_text("".join(nodes)), graph_from_text("".join(nodes[::-1]))

    def named(graph: object) -> tuple[object, object]:
        edges = {(graph.names[a], graph.names[b]) for a, b in graph.edges}
        return edges, dict(zip(graph.names, graph.tensor_bytes.tolist(), strict=True))

    assert named(forward) == named(backward)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"\x0a\xff\xff\xff\x0fabc", "cut off"),
        (b"\x08\x01", "no meta graph"),
        (b"\x1f\x8b\x08\x00", "cut off"),
        (b"\x1f\x8bgarbage", "corrupt"),
        (b'node { name: "\xff" }', "UTF-8"),
        (b"just prose, no graph at all", "line 1"),
        (b"versions { producer: 1 }", "no GraphDef"),
        (bytes(range(256)) * 10, "GraphDef"),
    ],
)
def test_bad_files_get_one_line_with_their_path(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """What was found, where, and what to do."""
    path = tmp_path / "graph.bin"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=message) as error:
        read_graph(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """The system's reason is passed on."""
    with pytest.raises(GraphError, match="No such file"):
        read_graph(tmp_path / "none.pb")
    with pytest.raises(GraphError, match="directory"):
        read_graph(tmp_path)


def test_a_directory_names_the_graph_files_in_it(tmp_path: Path) -> None:
    """As a checkpoint's folder has them."""
    for name in ("model.ckpt-5.meta", "graph.pbtxt", "graph.pb.gz", "model.ckpt-5.index"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(GraphError, match=r"in it: graph.pb.gz, graph.pbtxt, model.ckpt-5.meta$"):
        read_graph(tmp_path)


NODE = 'node { name: "x" op: "Placeholder" } node { name: "y" op: "Tanh" input: "x" }'
OTHER = 'node { name: "other" op: "Tanh" }'
META = """meta_info_def { tags: "train" } graph_def { %s } saver_def { filename_tensor_name: "s" }
collection_def { key: "train_op" value { node_list { value: "y" } } }"""


def test_a_saved_model_as_text_is_read(tmp_path: Path) -> None:
    """From its folder too, and of several meta graphs the one for training."""
    serving = f'meta_graphs {{ meta_info_def {{ tags: "serve" }} graph_def {{ {OTHER} }} }}'
    text = f"saved_model_schema_version: 1 {serving} meta_graphs {{ {META % NODE} }}"
    (tmp_path / "saved_model.pbtxt").write_text(text)
    for path in (tmp_path, tmp_path / "saved_model.pbtxt"):
        graph = read_graph(path)
        assert graph.names == ("y",)
        assert "reading the one tagged train" in " ".join(sentences(graph.report.notes))


def test_a_meta_graph_as_text_is_read_with_its_train_op() -> None:
    raw, notes = raw_of_any_text(META % NODE)
    assert [node.name for node in raw.nodes] == ["x", "y"]
    assert raw.train_ops == ("y",)
    assert "MetaGraphDef" in sentence(notes[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("saved_model_schema_version: 1", "no meta graph"),
        ('meta_info_def { tags: "train" }', "no graph_def"),
        ("meta_graphs: 3", "a message"),
    ],
)
def test_text_that_holds_no_graph_is_refused(text: str, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        raw_of_any_text(text)


def test_text_around_a_graph_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read with all that is in it, unlike a graph alone."""
    monkeypatch.setattr("driple.graph.tf.text_containers.MAX_CONTAINER_CHARS", 50)
    with pytest.raises(GraphError, match="save it in binary form"):
        raw_of_any_text(META % NODE)
    raw_of_any_text(NODE)


def test_large_files_and_zip_bombs_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A sparse 2 GB file costs nothing; a bomb stops at the limit."""
    huge = tmp_path / "huge.pb"
    with huge.open("wb") as file:
        file.truncate(2 * 2**30)
    with pytest.raises(GraphError, match="--set max_mib"):
        read_graph(huge)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(GraphError, match="when unpacked"):
        read_graph(bomb, max_bytes=1_000_000)
    small = tmp_path / "small.pbtxt"
    small.write_text(SMALL)
    with pytest.raises(GraphError, match="--set max_mib"):
        read_graph(small, max_bytes=len(SMALL) - 1)
    assert read_graph(small, max_bytes=len(SMALL)).num_nodes == 2


def test_names_twice_are_refused() -> None:
    """Two nodes of one name cannot be told apart."""
    with pytest.raises(GraphError, match="twice"):
        graph_from_text(node_text("a", "Relu") * 2)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_binary_gives_a_graph_or_our_error(data: st.DataObject) -> None:
    """Flipped, cut and inserted bytes never raise anything else."""
    content = bytearray(binary_of(SMALL))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        if not content:
            return
    try:
        graph = graph_from_graphdef_bytes(bytes(content))
    except GraphError:
        return
    assert np.isfinite(graph.tensor_bytes).all()


def test_reading_text_imports_neither_protobuf_nor_tensorflow() -> None:
    """A text graph needs NumPy only; a binary one protobuf, never TensorFlow."""
    program = (
        "import sys; from driple.graph import read_graph; "
        f"read_graph({str(EXAMPLE)!r}); "
        "print(any(name.startswith(('google', 'tensorflow')) for name in sys.modules)); "
        f"read_graph({str(REAL / 'ps_training.pb.gz')!r}); "
        "print(any(name.startswith('tensorflow') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
