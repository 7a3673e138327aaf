"""Where nodes run: device strings, colocation, handles, and what no device is named for."""

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.tf.links import GraphLinks, edges_of, in_order
from driple.graph.tf.places import DevicePlace, Places, parse_device, place_nodes
from driple.graph.tf.raw import RawNode
from driple.render.remarks import sentences

GPU = "/job:worker/task:0/device:GPU:0"
CPU = "/job:worker/task:0/device:CPU:0"
SERVER = "/job:ps/task:0"


def node(
    name: str, op: str, *inputs: str, on: str = "", near: str = "", kind: int | None = None
) -> RawNode:
    """A node; `near` is what `_class` names, `kind` its attribute T."""
    return RawNode(
        name,
        op,
        on,
        list(inputs),
        types={} if kind is None else {"T": (kind,)},
        colocated=(near,) if near else (),
    )


def placed(*nodes: RawNode) -> Places:
    """Places of a graph of which all nodes run."""
    edges, is_control, inputs, _ = edges_of(nodes)
    links = GraphLinks.of(len(nodes), edges, is_control)
    runs = np.ones(len(nodes), dtype=np.bool_)
    return place_nodes(nodes, inputs, links, in_order(nodes, edges), runs)


def kept(*nodes: RawNode) -> list[str]:
    """Names of the nodes on the worker's compute device."""
    stays_here = placed(*nodes).kept
    return [one.name for one, stays in zip(nodes, stays_here, strict=True) if stays]


def remote(*nodes: RawNode) -> list[str]:
    """Names of the nodes on other machines."""
    is_remote = placed(*nodes).is_remote
    return [one.name for one, away in zip(nodes, is_remote, strict=True) if away]


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("", DevicePlace()),
        ("/job:worker/replica:0/task:3/device:GPU:1", DevicePlace("worker", 3, "GPU", 1)),
        ("/job:worker/task:0", DevicePlace("worker", 0)),
        ("/device:CPU:0", DevicePlace(None, None, "CPU", 0)),
        ("/gpu:2", DevicePlace(None, None, "GPU", 2)),
        ("/job:ps/cpu:0", DevicePlace("ps", None, "CPU", 0)),
        ("/job:worker/device:XLA_GPU:0", DevicePlace("worker", None, "XLA_GPU", 0)),
    ],
)
def test_device_strings(text: str, device: DevicePlace) -> None:
    """Full and partial ones, old and new spelling."""
    assert parse_device(text) == device


def test_one_worker_and_one_gpu_are_kept() -> None:
    """The lowest task and index; its CPU and the servers are left out, and a note says so."""
    nodes = (
        node("a", "MatMul", on=GPU),
        node("b", "MatMul", on="/job:worker/task:0/device:GPU:1"),
        node("c", "MatMul", on="/job:worker/task:1/device:GPU:0"),
        node("d", "Relu", on=CPU),
        node("w", "VariableV2", on=SERVER),
        node("e", "Relu", on="/job:worker/task:0/gpu:0"),
    )
    assert kept(*nodes) == ["a", "e"]
    assert remote(*nodes) == ["c", "w"]
    places = placed(*nodes)
    assert "3 GPUs" in " ".join(sentences(places.notes))
    assert places.is_apart.tolist() == [False, True, False, False, False, False]
    assert places.layout == "servers"


def test_a_worker_without_a_gpu_keeps_all_but_its_input() -> None:
    """The chief counts as the worker only if there is no worker."""
    nodes = (
        node("a", "Conv2D", on=CPU),
        node("b", "IteratorGetNext", on="/job:worker/task:0"),
        node("c", "Conv2D", on="/job:chief/task:0"),
        node("d", "Conv2D", on="/job:worker/task:1"),
    )
    assert kept(*nodes) == ["a"]
    assert kept(node("c", "Conv2D", on="/job:chief/task:0"), node("w", "Variable", on=SERVER)) == [
        "c"
    ]


def test_a_partial_device_belongs_to_the_named_worker() -> None:
    """`/gpu:0` beside full devices, as a session of that worker resolves it."""
    assert kept(node("a", "MatMul", on="/device:GPU:0"), node("b", "Relu", on=GPU)) == ["a", "b"]
    assert kept(node("a", "MatMul", on="/gpu:0"), node("w", "Variable", on=SERVER)) == ["a"]
    assert kept(node("a", "MatMul", on="/cpu:0"), node("b", "Relu", on="/job:worker/task:0")) == [
        "a",
        "b",
    ]


def test_nodes_without_a_device_run_on_the_worker() -> None:
    """As TensorFlow places them in the session's own task; also behind a node on a server."""
    nodes = (
        node("w", "VariableV2", on=SERVER),
        node("r", "Identity", "w", near="w"),
        node("a", "MatMul", "r", on=GPU),
        node("b", "Relu", "a"),
        node("c", "Exp", "r", on=SERVER),
        node("d", "Tanh", "c"),
    )
    assert kept(*nodes) == ["a", "b", "d"]
    assert remote(*nodes) == ["w", "r", "c"]


def test_colocation_handles_and_constants_follow() -> None:
    """`_class`, what takes a handle or reference first, a constant with its only readers."""
    nodes = (
        node("w", "VarHandleOp", on=SERVER),
        node("read", "ReadVariableOp", "w"),
        node("rows", "ResourceGather", "w", "ids"),
        node("ids", "Const", on=GPU),
        node("a", "MatMul", "read", "rows", on=GPU),
        node("rate", "Const"),
        node("near", "Const", near="w"),
        node("up", "ResourceApplyGradientDescent", "w", "rate", "a"),
        node("size", "Shape", "read"),
        node("both", "Const"),
        node("b", "Mul", "a", "both", on=GPU),
        node("c", "Assign", "v", "both"),
        node("v", "VariableV2", on=SERVER),
    )
    assert remote(*nodes) == ["w", "read", "rows", "rate", "near", "up", "size", "c", "v"]
    assert kept(*nodes) == ["ids", "a", "both", "b"]


def test_chains_of_colocation_end_at_the_last() -> None:
    """A gradient of a gradient; a circle of `_class` does no harm."""
    nodes = (
        node("w", "VariableV2", on=SERVER),
        node("a", "Mul", "w", near="w"),
        node("b", "Mul", "a", near="a"),
        node("c", "Relu", "b", on=GPU, near="d"),
        node("d", "Relu", "c", near="c"),
    )
    assert remote(*nodes) == ["w", "a", "b"]


def test_without_servers_changed_variables_are_taken_out() -> None:
    """With what runs beside them; variables that no step changes stay, as the worker's own."""
    nodes = (
        node("w", "VariableV2"),
        node("r", "Identity", "w"),
        node("frozen", "VariableV2"),
        node("f", "Identity", "frozen"),
        node("x", "Placeholder"),
        node("a", "MatMul", "x", "r"),
        node("b", "MatMul", "a", "f"),
        node("up", "ApplyGradientDescent", "w", "rate", "b"),
        node("rate", "Const"),
    )
    assert remote(*nodes) == ["w", "r", "up", "rate"]
    assert kept(*nodes) == ["frozen", "f", "a", "b"]
    assert placed(*nodes).layout == "unplaced"
    saved = (*nodes, node("save", "SaveV2", "f"))
    assert {"frozen", "f"} <= set(remote(*saved))
    on_one = [RawNode(n.name, n.op, "/device:CPU:0", n.inputs) for n in nodes]
    assert placed(*on_one).layout == "one_machine"
    assert remote(*on_one) == ["w", "r", "up", "rate"]


@pytest.mark.parametrize("op", ["HorovodAllreduce", "NcclAllReduce", "CollectiveReduceV2"])
def test_collectives_make_an_all_reduce_job(op: str) -> None:
    """Whatever devices say."""
    assert placed(node("a", "MatMul", on="/gpu:0"), node("g", op, "a")).layout == "all_reduce"


@pytest.mark.parametrize("op", ["AccumulateNV2", "ScatterNd", "TensorScatterAdd", "Approximate"])
def test_pure_ops_of_similar_names_are_kept(op: str) -> None:
    """They compute on tensors."""
    assert kept(node("a", op)) == ["a"]


def test_what_only_feeds_the_input_pipeline_is_beside_it() -> None:
    """Decoding runs on the processor, not on the compute device."""
    nodes = (
        node("name", "Const"),
        node("file", "ReadFile", "name"),
        node("image", "DecodeJpeg", "file"),
        node("small", "ResizeBilinear", "image"),
        node("q", "FIFOQueueV2"),
        node("put", "QueueEnqueueV2", "q", "small"),
        node("take", "QueueDequeueV2", "q"),
        node("a", "Conv2D", "take"),
    )
    assert kept(*nodes) == ["a"]


def test_a_long_chain_takes_linear_time() -> None:
    """100,000 nodes, each one step from the next."""
    nodes = [
        node(f"n{i}", "Relu", *([f"n{i - 1}"] if i else []), on="" if i else CPU)
        for i in range(100_000)
    ]
    assert placed(*nodes).kept.all()


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a", "Relu", on=SERVER), node("w", "VariableV2", on="/job:ps/task:1")],
        [node("d", "RangeDataset"), node("x", "Placeholder")],
        [node("i", "IteratorGetNext", on="/job:worker/task:0")],
    ],
)
def test_nothing_left_is_an_error(nodes: list[RawNode]) -> None:
    """A graph all on parameter servers, or without any op of a worker."""
    with pytest.raises(GraphError, match="parameter servers or input pipeline"):
        placed(*nodes)
