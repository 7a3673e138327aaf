"""Which nodes are kept as the worker's."""

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.raw import RawNode
from driple.graph.select import Device, parse_device, select_nodes


def kept(*nodes: tuple[str, str], edges: tuple[tuple[int, int], ...] = ()) -> tuple[list[int], str]:
    """Positions of the kept nodes of (op, device) pairs, and the notes."""
    raw = [RawNode(f"n{i}", op, device) for i, (op, device) in enumerate(nodes)]
    selection = select_nodes(raw, np.array(edges, dtype=np.int32).reshape(-1, 2))
    return np.flatnonzero(selection.kept).tolist(), " ".join(selection.notes)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("", Device()),
        ("/job:worker/replica:0/task:3/device:GPU:1", Device("worker", 3, "GPU", 1)),
        ("/job:worker/task:0", Device("worker", 0)),
        ("/device:CPU:0", Device(None, None, "CPU", 0)),
        ("/gpu:2", Device(None, None, "GPU", 2)),
        ("/job:ps/cpu:0", Device("ps", None, "CPU", 0)),
        ("/job:worker/device:XLA_GPU:0", Device("worker", None, "XLA_GPU", 0)),
    ],
)
def test_device_strings(text: str, device: Device) -> None:
    """Full and partial ones, old and new spelling."""
    assert parse_device(text) == device


def test_gpus_of_the_worker_win() -> None:
    """One worker, one GPU: the lowest task and index; its CPU and the servers are left out."""
    found, notes = kept(
        ("MatMul", "/job:worker/task:0/device:GPU:0"),
        ("MatMul", "/job:worker/task:0/device:GPU:1"),
        ("MatMul", "/job:worker/task:1/device:GPU:0"),
        ("Const", "/job:worker/task:0/device:CPU:0"),
        ("VariableV2", "/job:ps/task:0"),
        ("Relu", "/job:worker/task:0/gpu:0"),
    )
    assert found == [0, 5]
    assert "3 GPUs" in notes


def test_without_gpus_it_is_the_worker_job_without_its_input_pipeline() -> None:
    """A CPU worker; the chief counts as a worker only if there is no worker."""
    found, _ = kept(
        ("Conv2D", "/job:worker/task:0/device:CPU:0"),
        ("VariableV2", "/job:worker/task:0"),
        ("IteratorGetNext", "/job:worker/task:0"),
        ("ApplyAdam", "/job:ps/task:0/device:CPU:0"),
        ("Conv2D", "/job:chief/task:0"),
        ("Conv2D", "/job:worker/task:1"),
    )
    assert found == [0, 1]
    assert kept(("Conv2D", "/job:chief/task:0"), ("NoOp", "/job:ps/task:0"))[0] == [0]


def test_nodes_without_a_device_follow_kept_neighbours() -> None:
    """One step away from a kept node, unless variable or input pipeline."""
    found, notes = kept(
        ("MatMul", "/job:worker/task:0/device:GPU:0"),
        ("Const", ""),
        ("Const", ""),
        ("VariableV2", ""),
        ("Relu", ""),
        edges=((1, 0), (3, 0), (0, 4), (2, 3)),
    )
    assert found == [0, 1, 4]
    assert "of the nodes without a device, 2 follow their neighbours and 2 are left out" in notes


def test_chains_of_nodes_without_a_device_follow_to_their_end() -> None:
    """Any number of steps through such nodes; not through others, nor to far constants."""
    placed = [("MatMul", "/job:worker/task:0/device:GPU:0"), ("Relu", "/job:ps/task:0")]
    chain = [("Relu", "")] * 5
    others = [("Const", ""), ("Relu", ""), ("Assign", ""), ("Exp", ""), ("ApplyAdam", "")]
    path = tuple((i, i + 1) for i in range(2, 6))
    found, notes = kept(
        *placed,
        *chain,
        *others,
        edges=((0, 2), *path, (7, 3), (1, 8), (6, 9), (9, 10), (6, 11)),
    )
    assert found == [0, 2, 3, 4, 5, 6]
    assert "of the nodes without a device, 5 follow their neighbours and 5 are left out" in notes


def test_a_long_chain_takes_linear_time() -> None:
    """100,000 nodes, each one step from the next."""
    num_nodes = 100_000
    chain = np.stack([np.arange(num_nodes - 1), np.arange(1, num_nodes)], axis=1).astype(np.int32)
    nodes = [RawNode(f"n{i}", "Relu", "" if i else "/job:worker/task:0") for i in range(num_nodes)]
    assert select_nodes(nodes, chain[::-1]).kept.all()


def test_a_gpu_without_a_job_is_the_named_workers() -> None:
    """Partial devices beside full ones: the session's own worker, with a GPU if one has it."""
    worker = "/job:worker/task:0/device:CPU:0"
    found, notes = kept(
        ("MatMul", "/device:GPU:0"), ("Relu", "/job:worker/task:0/device:GPU:0"), ("Const", worker)
    )
    assert (found, notes) == ([0, 1], "")
    assert kept(("MatMul", "/device:GPU:0"), ("Const", worker), ("Relu", "/gpu:1"))[0] == [0]
    found, _ = kept(
        ("MatMul", "/device:GPU:0"),
        ("Relu", "/job:worker/task:1/device:GPU:0"),
        ("Const", worker),
        ("Exp", "/job:chief/task:0/device:GPU:0"),
        ("Exp", "/task:2/device:GPU:0"),
    )
    assert found == [0, 1]
    assert kept(("MatMul", "/gpu:0"), ("VariableV2", "/job:ps/task:0"))[0] == [0]


def test_a_cpu_without_a_job_is_the_named_workers() -> None:
    """Where the worker has no GPU, all its devices count."""
    assert kept(("MatMul", "/cpu:0"), ("Relu", "/job:worker/task:0"))[0] == [0, 1]


def test_without_a_device_type_nodes_of_a_gpu_worker_follow_their_neighbours() -> None:
    """TensorFlow puts them on the GPU if it can; those of other workers stay out."""
    worker = "/job:worker/task:0"
    nodes = (
        ("MatMul", worker + "/device:GPU:0"),
        ("Relu", worker),
        ("VariableV2", worker),
        ("Relu", "/job:worker/task:1"),
        ("Relu", worker),
        ("Relu", worker + "/device:CPU:0"),
        ("Exp", ""),
        ("Tanh", "/task:0"),
    )
    found, notes = kept(*nodes, edges=((0, 1), (2, 0), (0, 3), (5, 0), (1, 6), (6, 7)))
    assert found == [0, 1, 6, 7]
    assert "of the nodes without a device type, 2 follow their neighbours and 2" in notes


@pytest.mark.parametrize(
    "update",
    [
        *("ApplyAdam", "ResourceApplyMomentum", "SparseApplyFtrl", "ResourceSparseApplyAdagrad"),
        *("AssignAdd", "AssignSubVariableOp", "AssignVariableOp", "ScatterAdd", "ScatterNdUpdate"),
        *("ResourceScatterSub", "AccumulatorApplyGradient", "SparseConditionalAccumulator"),
    ],
)
def test_updates_of_variables_stay_with_them(update: str) -> None:
    """On the parameter server, with or without devices elsewhere in the graph."""
    edges = ((0, 1), (1, 2))
    assert kept(("VariableV2", ""), ("MatMul", ""), (update, ""), edges=edges)[0] == [1]
    placed = ("MatMul", "/job:worker/task:0")
    assert kept(("VariableV2", ""), placed, (update, ""), edges=edges)[0] == [1]


@pytest.mark.parametrize("op", ["AccumulateNV2", "ScatterNd", "TensorScatterAdd", "Approximate"])
def test_pure_ops_of_similar_names_are_kept(op: str) -> None:
    """They compute on tensors."""
    assert kept((op, ""))[0] == [0]


def test_initialisers_are_left_out_without_devices() -> None:
    """What comes from no variable and ends in assignments only; a backward pass stays."""
    nodes = (
        ("VariableV2", ""),  # 0
        ("Const", ""),  # 1: shape of the initial value
        ("RandomUniform", ""),  # 2: initial value
        ("Assign", ""),  # 3
        ("Const", ""),  # 4: read by the initialiser and by the step
        ("Identity", ""),  # 5: read of the variable
        ("Sub", ""),  # 6: gradient descent written by hand
        ("Assign", ""),  # 7
        ("Const", ""),  # 8: read by nobody
    )
    edges = ((1, 2), (4, 2), (0, 3), (2, 3), (0, 5), (5, 6), (4, 6), (6, 7), (0, 7))
    assert kept(*nodes, edges=edges)[0] == [4, 5, 6, 8]


def test_without_devices_variables_and_pipeline_are_left_out() -> None:
    """Everything else is the worker's."""
    found, notes = kept(
        ("VariableV2", ""),
        ("Assign", ""),
        ("PrefetchDataset", ""),
        ("IteratorV2", ""),
        ("DecodeJpeg", ""),
        ("Conv2D", ""),
        ("Identity", ""),
        ("FIFOQueueV2", ""),
        ("QueueDequeueManyV2", ""),
        ("SaveV2", ""),
        ("NextIteration", ""),
    )
    assert found == [5, 6, 10]
    assert "no node names a device" in notes


def test_one_machine_without_jobs() -> None:
    """`/cpu:0` alone names no worker: as without devices, but nothing needs saying."""
    assert kept(("Conv2D", "/cpu:0"), ("VariableV2", "/cpu:0"))[0] == [0]
    assert kept(("Conv2D", "/gpu:0"), ("VariableV2", "/cpu:0"))[0] == [0]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("ApplyAdam", "/job:ps/task:0"), ("VariableV2", "/job:ps/task:1")], "parameter servers"),
        ([("VariableV2", ""), ("RangeDataset", "")], "variables and input pipeline"),
        ([("IteratorGetNext", "/job:worker/task:0")], "input pipeline"),
    ],
)
def test_nothing_left_is_an_error(nodes: list[tuple[str, str]], message: str) -> None:
    """A graph all on parameter servers, or without any op of a worker."""
    with pytest.raises(GraphError, match=message):
        kept(*nodes)
