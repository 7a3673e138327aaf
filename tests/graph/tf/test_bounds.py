"""Files made to hang, crash, bloat or mislead the reader; and lists of data types."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from driple.errors import GraphError
from driple.graph import graph_from_graphdef_bytes, graph_from_text, read_graph
from driple.graph.tf.functions import inline_functions
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.places import parse_device
from driple.graph.tf.raw import RawFunction, RawGraph, RawNode
from driple.graph.tf.sizes import output_size
from driple.render.remarks import sentences
from tests.graph.graphs import node_text, plain, protobuf_reads


def test_functions_that_double_at_each_level_are_refused_at_once() -> None:
    """Calls vanish and the last body is empty: the number of nodes never grows, 2^60 calls do."""
    functions = {"f60": RawFunction("f60")}
    for i in range(60):
        body = [
            RawNode(name, "PartitionedCall", functions={"f": (f"f{i + 1}",)}) for name in ("a", "b")
        ]
        functions[f"f{i}"] = RawFunction(f"f{i}", nodes=body)
    call = RawNode("call", "PartitionedCall", functions={"f": ("f0",)})
    with pytest.raises(GraphError, match="calls"):
        inline_functions(RawGraph(nodes=[call], functions=functions))


def test_control_inputs_times_input_less_nodes_are_bounded() -> None:
    """30,000 control inputs into a body of 30,000 constants would be 9 * 10^8 edges."""
    many = 30_000
    body = [RawNode(f"c{i}", "Const") for i in range(many)]
    call = RawNode(
        "call",
        "PartitionedCall",
        inputs=[f"^n{i}" for i in range(many)],
        functions={"f": ("f",)},
    )
    with pytest.raises(GraphError, match="control inputs"):
        inline_functions(RawGraph(nodes=[call], functions={"f": RawFunction("f", nodes=body)}))


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000])
def test_odd_output_numbers_are_no_crash(number: str) -> None:
    """A digit that int() refuses, and more digits than it takes."""
    function = RawFunction("f", ["x"], ["y"], [], {"y": "x"})
    call = RawNode("call", "PartitionedCall", inputs=["a"], functions={"f": ("f",)})
    reader = RawNode("r", "Relu", inputs=[f"call:{number}"])
    graph = RawGraph(nodes=[RawNode("a", "Const"), call, reader], functions={"f": function})
    assert [node.inputs for node in inline_functions(graph).nodes] == [[], ["a"]]


@pytest.mark.parametrize("device", ["/task:\u00b2", "/task:" + "9" * 5000, "/gpu:\u00b2"])
def test_odd_device_numbers_are_no_crash(device: str) -> None:
    """Device strings are free text in a file."""
    parse_device(device)


def test_job_names_may_hold_digits() -> None:
    """TensorFlow's job names are letters, digits and underscores."""
    assert parse_device("/job:worker2/task:1/device:GPU:0").job == "worker2"
    assert parse_device("/job:ps_1/replica:0/task:3").task == 3


def test_more_dimensions_than_tensorflow_has_are_refused() -> None:
    """The product of a million large dimensions would take minutes."""
    node = RawNode("n", "Relu", shapes=((2**62,) * 1_000_000,), types={"T": (1,)})
    with pytest.raises(GraphError, match="rank 1000000"):
        output_size(node)


def test_outputs_of_a_loop_have_their_own_types() -> None:
    """`T` of While and IdentityN is a list, one type for each output: int32, half, double."""
    node = RawNode("w", "While", shapes=((10,), (10,), (10,)), types={"T": (3, 19, 2)})
    assert output_size(node).tensor_bytes == 40 + 20 + 80


@pytest.mark.parametrize("data", [b"\n\x00", b"\n\x03\n\x01a"])
def test_nodes_without_name_or_op_are_no_graph(data: bytes) -> None:
    """Any small protobuf parses as a GraphDef; its nodes tell that it is none."""
    with pytest.raises(GraphError, match="without a name or an op"):
        graph_from_graphdef_bytes(data)


def test_a_file_without_shapes_says_so_even_if_it_has_ops_without_outputs() -> None:
    """Every real training graph has a NoOp."""
    report = graph_from_text(node_text("a", "Relu") + node_text("b", "NoOp", "^a")).report
    assert "every tensor size is 0" in " ".join(sentences(report.notes))


@pytest.mark.parametrize(
    "text",
    [
        'node {\n  name: "a"\n  op: "A"\n}\nversions {\n  }\n  node {\n  name: "b"\n  op: "B"\n}\n',
        'node {\n  name: "a"\n  op: "A"\n  attr {\n    key: "k"\n    value {\n      i: 1\n      }\n'
        '      }\n      input: "b"\n      experimental_debug_info {\n      more {\n'
        "    }\n  }\n}\n",
    ],
)
def test_misleading_indentation_changes_nothing(text: str) -> None:
    """Lines that look like the end of a node, or like its field, and are not."""
    assert plain(raw_from_text(text)) == protobuf_reads(text)


def test_functions_with_attributes_and_windows_line_ends() -> None:
    """A call whose `func` holds attributes of its own, as tf.function writes it."""
    text = (
        'node {\n  name: "a"\n  op: "PartitionedCall"\n  attr {\n    key: "f"\n    value {\n'
        '      func {\n        name: "g"\n        attr {\n          key: "T"\n          value {\n'
        "            type: DT_FLOAT\n          }\n        }\n      }\n    }\n  }\n}\n"
    )
    graph = raw_from_text(text)
    assert graph.nodes[0].functions == {"f": ("g",)}
    assert plain(raw_from_text(text.replace("\n", "\r\n"))) == plain(graph)


@pytest.mark.parametrize("layout", ["printed", "one line"])
def test_large_constants_cost_little_memory(layout: str) -> None:
    """8 MB of escaped tensor content: a few copies of the text, not a hundred."""
    content = "\\000a\\n" * 1_200_000
    text = (
        'node {\n  name: "a"\n  op: "Const"\n  attr {\n    key: "value"\n    value {\n'
        f'      tensor {{\n        tensor_content: "{content}"\n      }}\n    }}\n  }}\n}}\n'
    )
    if layout == "one line":
        text = text.replace("\n", " ")
    tracemalloc.start()
    raw_from_text(text)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 8 * len(text)


def test_many_gzip_members_take_linear_time(tmp_path: Path) -> None:
    """200,000 empty members of 20 bytes: refused in a moment, not copied 200,000 times."""
    path = tmp_path / "many.gz"
    path.write_bytes(gzip.compress(b"") * 200_000)
    with pytest.raises(GraphError, match="over 100000 members"):
        read_graph(path)
