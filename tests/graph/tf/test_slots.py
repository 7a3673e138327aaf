"""Updates that a graph writes as arithmetic: one gradient crosses, the arithmetic does not."""

from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.graph import graph_from_text, read_graph
from driple.memory.least import least_memory
from driple.profiler.communication import gradients_of_job
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from tests.graph.graphs import node_text

GPU, SERVER = "/job:worker/task:0/device:GPU:0", "/job:ps/task:0"
DATA = Path(__file__).parents[2] / "data/graphs"
W = "40x30"
BYTES = 40 * 30 * 4


def variable(name: str, device: str = "", shape: str = W) -> str:
    """A variable and the op that reads it."""
    return node_text(name, "VariableV2", device=device, shape=shape) + node_text(
        f"{name}/read", "Identity", name, device=device, shape=shape
    )


def layer(worker: str = "", server: str = "") -> str:
    """A dense layer up to the gradient `g` of its variable `w`."""
    return "".join(
        (
            node_text("x", "Placeholder", device=worker, shape="16x40"),
            variable("w", server),
            node_text("y", "MatMul", "x", "w/read", device=worker, shape="16x30"),
            node_text("gradients/y_grad", "Mul", "y", "y", device=worker, shape="16x30"),
            node_text("gradients/g", "MatMul", "x", "gradients/y_grad", device=worker, shape=W),
        )
    )


def adam(gradient: str, worker: str = "", server: str = "") -> str:
    """Adam with weight decay, as BERT writes it: three assignments for each variable."""

    def op(name: str, kind: str, *inputs: str) -> str:
        return node_text(name, kind, *inputs, device=worker, shape=W)

    numbers = "".join(
        node_text(name, "Const", device=worker, shape="1") for name in ("b1", "b2", "c1", "c2", "e")
    )
    return numbers + "".join(
        (
            variable("m", server),
            variable("v", server),
            op("m_old", "Mul", "b1", "m/read"),
            op("m_add", "Mul", "c1", gradient),
            op("m_new", "Add", "m_old", "m_add"),
            op("v_old", "Mul", "b2", "v/read"),
            op("square", "Square", gradient),
            op("v_add", "Mul", "c2", "square"),
            op("v_new", "Add", "v_old", "v_add"),
            op("root", "Sqrt", "v_new"),
            op("below", "Add", "root", "e"),
            op("ratio", "RealDiv", "m_new", "below"),
            op("decay", "Mul", "e", "w/read"),
            op("change", "Add", "ratio", "decay"),
            op("w_new", "Sub", "w/read", "change"),
            node_text("set_m", "Assign", "m", "m_new", device=server, shape=W),
            node_text("set_v", "Assign", "v", "v_new", device=server, shape=W),
            node_text("set_w", "Assign", "w", "w_new", device=server, shape=W),
            node_text("train", "NoOp", "^set_m", "^set_v", "^set_w"),
        )
    )


def test_without_devices_one_gradient_and_one_variable_cross() -> None:
    """The arithmetic runs beside the variables; the worker keeps the forward and backward pass."""
    graph = graph_from_text(layer() + adam("gradients/g"))
    assert graph.layout == "unplaced"
    assert (graph.sent_bytes, graph.received_bytes) == (BYTES, BYTES)
    assert set(graph.names) == {"y", "gradients/y_grad", "gradients/g"}
    assert least_memory(graph).states_bytes == 2 * BYTES


def test_on_one_machine_and_after_an_all_reduce_it_is_the_same() -> None:
    """A device of a worker, or a ring, names no server."""
    single = graph_from_text(layer("/gpu:0", "/gpu:0") + adam("gradients/g", "/gpu:0", "/gpu:0"))
    reduced = node_text("sum", "HorovodAllreduce", "gradients/g", shape=W)
    ring = graph_from_text(layer() + reduced + adam("sum"))
    assert (single.layout, ring.layout) == ("one_machine", "all_reduce")
    for graph in (single, ring):
        assert (graph.sent_bytes, graph.received_bytes) == (BYTES, BYTES)


def test_with_servers_the_worker_sends_what_tensorflow_sends_and_a_ring_the_gradient() -> None:
    """A placed graph fetches and sends the states too; a ring exchanges each gradient once."""
    graph = graph_from_text(layer(GPU, SERVER) + adam("gradients/g", GPU, SERVER))
    assert graph.layout == "servers"
    assert (graph.sent_bytes, graph.received_bytes) == (3 * BYTES, 3 * BYTES)
    alone = graph.traffic.without_states()
    assert (alone.sent_bytes.tolist(), alone.received_bytes.tolist()) == ([BYTES], [BYTES])
    assert alone.readers[:, 0].tolist() == [0, 0, 0]
    job = PreparedJob(graph)
    device = shipped_calibration().device("V100")
    assert gradients_of_job(job, device).nbytes.tolist() == [BYTES]
    for num_servers, expected in ((0, BYTES), (1, 3 * BYTES)):
        segments = job.plan(device, num_servers, "round_robin").segments
        assert sum(one.nbytes for each in segments for one in each.sends) == expected


def test_a_gradient_that_feeds_a_slot_and_a_sum_with_the_variable_crosses_once() -> None:
    """Adagrad and Ftrl: g * g goes to the slot, g + c * w is divided by its root."""
    update = node_text("c", "Const", shape="1") + "".join(
        (
            variable("a"),
            node_text("square", "Square", "gradients/g", shape=W),
            node_text("set_a", "AssignAdd", "a", "square", shape=W),
            node_text("root", "Sqrt", "set_a", shape=W),
            node_text("shrink", "Mul", "c", "w/read", shape=W),
            node_text("sum", "AddV2", "gradients/g", "shrink", shape=W),
            node_text("change", "RealDiv", "sum", "root", shape=W),
            node_text("set_w", "AssignSub", "w", "change", shape=W),
            node_text("train", "NoOp", "^set_a", "^set_w"),
        )
    )
    graph = graph_from_text(layer() + update)
    assert (graph.sent_bytes, graph.received_bytes) == (BYTES, BYTES)
    assert graph.report.state_bytes == BYTES


def test_a_moving_average_and_a_plain_step_by_hand_stay_where_they_were() -> None:
    """Neither reads a slot: what the worker computed is sent."""
    average = "".join(
        (
            variable("mean", shape="16x30"),
            node_text("away", "Sub", "mean/read", "y", shape="16x30"),
            node_text("less", "AssignSub", "mean", "away", shape="16x30"),
        )
    )
    step = node_text("rate", "Const", shape="1") + "".join(
        (
            node_text("delta", "Mul", "rate", "gradients/g", shape=W),
            node_text("set_w", "AssignSub", "w", "delta", shape=W),
            node_text("train", "NoOp", "^set_w", "^less"),
        )
    )
    graph = graph_from_text(layer() + average + step)
    assert {"away", "delta"} <= set(graph.names)
    assert graph.sent_bytes == BYTES + 16 * 30 * 4
    assert graph.report.state_bytes == 0


@pytest.mark.parametrize("name", ["V100-R2/ho-10G", "V100-P1w2"])
def test_states_are_of_slots_only_where_an_optimizer_has_no_op(name: str) -> None:
    """ApplyMomentum's graph carries no states, on any setting."""
    setting = Setting.parse(name)
    update = node_text("rate", "Const", device=SERVER) + node_text(
        "up", "ApplyGradientDescent", "w", "rate", "gradients/g", device=SERVER, shape=W
    )
    graph = graph_from_text(layer(GPU, SERVER) + update)
    assert not len(graph.traffic.sent_states)
    assert graph.traffic.without_states() is graph.traffic
    device = shipped_calibration().device(setting.device)
    segments = PreparedJob(graph).plan(device, setting.num_servers, "round_robin").segments
    assert sum(one.nbytes for each in segments for one in each.sends) == BYTES


def test_keras_writes_adamw_as_four_assignments() -> None:
    """Embedding 50 x 8, whose gradient is of slices, and dense 48 x 10, of Keras 3."""
    graph = read_graph(DATA / "keras_adamw.pb.gz")
    parameters = 4 * (50 * 8 + 48 * 10 + 10)
    assert graph.received_bytes == pytest.approx(parameters, abs=20)
    assert graph.sent_bytes == pytest.approx(parameters, abs=20)
    assert graph.report.state_bytes == 2 * parameters
