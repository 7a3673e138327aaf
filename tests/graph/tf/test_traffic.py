"""What crosses between machines: each tensor once for each device that reads it."""

from driple.graph import OpGraph, graph_from_text
from tests.graph.graphs import node_text

GPU, CPU = "/job:worker/task:0/device:GPU:0", "/job:worker/task:0/device:CPU:0"
SERVER, OTHER = "/job:ps/task:0", "/job:ps/task:1"


def graph_of(*texts: str) -> OpGraph:
    """The graph of some nodes, with a step that ends in an update of `w` by `g`."""
    return graph_from_text("".join(texts))


def crossing(graph: OpGraph) -> tuple[list[int], list[int]]:
    """Bytes of messages received and sent, sorted."""
    return sorted(graph.traffic.received_bytes.tolist()), sorted(graph.traffic.sent_bytes.tolist())


def test_one_output_crosses_not_all_of_its_node() -> None:
    """The mean of a batch norm leaves; its activation stays."""
    graph = graph_of(
        node_text("w", "VariableV2", device=SERVER, shape="10"),
        node_text("x", "Relu", "w", device=GPU, shape="10"),
        'node { name: "s" op: "Split" input: "x" device: "' + GPU + '"'
        ' attr { key: "T" value { type: DT_FLOAT } } attr { key: "_output_shapes" value { list {'
        " shape { dim { size: 1000 } } shape { dim { size: 3 } } } } } }\n",
        node_text("g", "AddN", "x", device=GPU, shape="10"),
        node_text("u", "ApplyGradientDescent", "w", "s:1", "g", device=SERVER, shape="10"),
    )
    assert crossing(graph) == ([40], [12, 40])


def test_two_servers_get_a_tensor_twice_and_two_readers_on_one_once() -> None:
    """Once for each destination."""
    graph = graph_of(
        node_text("w", "VariableV2", device=SERVER, shape="10"),
        node_text("v", "VariableV2", device=OTHER, shape="10"),
        node_text("x", "AddN", "w", "v", device=GPU, shape="10"),
        node_text("y", "AddN", "x", "w", device=GPU, shape="10"),
        node_text("c", "Const", device=SERVER),
        node_text("u", "ApplyGradientDescent", "w", "c", "y", device=SERVER, shape="10"),
        node_text("a", "AssignAdd", "w", "y", device=SERVER, shape="10"),
        node_text("t", "ApplyGradientDescent", "v", "c", "y", device=OTHER, shape="10"),
    )
    assert crossing(graph) == ([40, 40], [40, 40])


def test_input_and_other_processors_of_the_worker_cross_pcie() -> None:
    """Only what comes from a server counts; its readers are those on the compute device."""
    graph = graph_of(
        node_text("w", "VariableV2", device=SERVER, shape="10"),
        node_text("q", "FIFOQueueV2", device=CPU),
        node_text("data", "QueueDequeueV2", "q", device=CPU, shape="5000"),
        node_text("half", "Cast", "w", device=CPU, shape="10"),
        node_text("y", "AddN", "half", "data", device=GPU, shape="10"),
        node_text("back", "Mul", "y", "y", device=CPU, shape="10"),
        node_text("u", "ApplyGradientDescent", "w", "w", "back", device=SERVER, shape="10"),
    )
    assert crossing(graph) == ([40], [40])
    assert graph.names == ("y",)
    assert graph.traffic.readers.tolist() == [[0, 0]]
    assert graph.traffic.senders.tolist() == [0]


def test_control_edges_carry_nothing() -> None:
    """Waiting for a server's op is no transfer."""
    graph = graph_of(
        node_text("w", "VariableV2", device=SERVER, shape="10"),
        node_text("late", "AssignAdd", "w", "w", device=SERVER, shape="9000"),
        node_text("y", "AddN", "w", "^late", device=GPU, shape="10"),
        node_text("u", "ApplyGradientDescent", "w", "w", "y", device=SERVER, shape="10"),
    )
    assert crossing(graph) == ([40], [40])


def test_without_servers_a_variable_is_fetched_once_however_often_it_is_read() -> None:
    """Where the graph names servers, each reading is a tensor of its own."""

    def reads_twice(device: str) -> OpGraph:
        return graph_of(
            node_text("w", "VariableV2", device=device, shape="10"),
            node_text("r", "Identity", "w", device=device, shape="10"),
            node_text("s", "Identity", "w", device=device, shape="10"),
            node_text("y", "AddN", "r", "s", device=device and GPU, shape="10"),
            node_text("u", "ApplyGradientDescent", "w", "w", "y", device=device, shape="10"),
        )

    assert crossing(reads_twice("")) == ([40], [40])
    assert crossing(reads_twice(SERVER)) == ([40, 40], [40])
