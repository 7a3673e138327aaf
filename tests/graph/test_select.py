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
    assert "2 node(s) without a device" in notes


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
