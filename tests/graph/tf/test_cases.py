"""Small graphs of faults seen on public training graphs, with the correct values.

Each is one kind of fault in its smallest form. Unless stated otherwise it is a convolution of batch
32, 14.8 GFLOP a product, with its filter of 294,912 bytes on a parameter server. Times are relative
to those of the control graph.
"""

from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.errors import GraphError
from driple.graph import OpGraph, ReadOptions, read_graph, require_training
from driple.graph.cost import cost_of_graph
from driple.render.remarks import sentence
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import assumptions_on
from driple.simulate.run import simulate

CASES = Path(__file__).parents[2] / "data/cases"
FILTER = 3 * 3 * 64 * 128 * 4
PRODUCT = 2 * 32 * 56 * 56 * 128 * 3 * 3 * 64
# File (its number stands first): GFLOP of products, bytes sent, bytes received.
VALUES = {
    "01": (2 * PRODUCT, FILTER, FILTER),
    # The batch mean of 128 channels goes; gamma and beta come.
    "02": (2 * PRODUCT, FILTER + 512, FILTER + 2 * 512),
    "03": (2 * PRODUCT, FILTER, FILTER),
    "04": (2 * PRODUCT, FILTER, FILTER),
    "05": (2 * PRODUCT, FILTER, FILTER),
    "07": (2 * PRODUCT, FILTER, FILTER),
    "14": (2 * PRODUCT, FILTER, FILTER),
    "15": (2 * PRODUCT, FILTER, FILTER),
    "17_": (2 * 3 * 50 * 16 * 256 * 128, 131_072, 131_072),
    "17b": (2 * 3 * 50 * 16 * 256 * 128, 131_072, 131_072),
    "19": (2 * 3 * 50 * 16 * 256 * 128, 131_072, 131_072),
}


def path_of(number: str) -> Path:
    """The file of a case."""
    (path,) = CASES.glob(f"{number}*")
    return path


def case(number: str, **options: object) -> OpGraph:
    """The graph of a case."""
    return read_graph(path_of(number), options=ReadOptions(**options))  # type: ignore[arg-type]


def seconds(graph: OpGraph) -> float:
    """Simulated step time on V100-P1w2."""
    setting = Setting.parse("V100-P1w2")
    return simulate(graph, setting, shipped_calibration(), num_steps=20).iteration_time_s


@pytest.mark.parametrize("number", VALUES)
def test_products_and_traffic(number: str) -> None:
    """FLOPs to 2 % (element-wise ops add a little), bytes exactly."""
    flops, sent, received = VALUES[number]
    graph = case(number)
    assert cost_of_graph(graph).total_flops == pytest.approx(flops, rel=0.02)
    assert (graph.sent_bytes, graph.received_bytes) == (sent, received)
    assert graph.is_training
    assert not graph.report.unknown_share


@pytest.mark.parametrize("number", ["02", "03", "04", "05", "07", "15"])
def test_times_are_those_of_the_control(number: str) -> None:
    """Faults moved them by factors of 3 to 36."""
    assert seconds(case(number)) == pytest.approx(seconds(case("01")), rel=0.05)


def test_one_machine_sends_nothing_until_a_setting_has_servers() -> None:
    """The graph's own placement has no traffic; the assumption for servers is stated."""
    graph = case("14")
    assert graph.layout == "one_machine"
    assert graph.placed_bytes == (0, 0)
    servers = Setting.parse("V100-P1w2")
    assert "placed on" in sentence(assumptions_on(graph, servers)[0])
    assert case("15").layout == "unplaced"
    assert assumptions_on(case("15"), servers)
    assert case("01").layout == "servers"
    assert not assumptions_on(case("01"), servers)


@pytest.mark.parametrize("number", ["08", "09", "21b"])
def test_no_training_step_is_refused(number: str) -> None:
    """It is read and described, but predictions of it are refused."""
    graph = case(number)
    assert cost_of_graph(graph).total_flops > 0
    with pytest.raises(GraphError, match="no training step"):
        require_training(graph)


def test_shapes_follow_from_attributes() -> None:
    """Without `_output_shapes`: a product of [8, 784] and [784, 10], and its softmax."""
    graph = case("09")
    assert graph.report.nodes_without_shape == 0
    assert cost_of_graph(graph).total_flops == 2 * 8 * 784 * 10 + 5 * 8 * 10


def test_three_dimensional_convolutions_have_a_cost() -> None:
    """33.3 GFLOP, and no op without a formula."""
    cost = cost_of_graph(case("10"))
    assert cost.total_flops == pytest.approx(33.3e9, rel=0.01)
    assert not cost.unknown


def test_the_batch_is_bound_or_reported() -> None:
    """`--batch-size 32` gives the graph of batch 32; without it nodes count as of one sample."""
    bound, open_ = case("11", batch_size=32), case("11")
    control = case("01")
    assert cost_of_graph(bound).total_flops == cost_of_graph(control).total_flops
    assert (bound.sent_bytes, bound.received_bytes) == (FILTER, FILTER)
    assert seconds(bound) == pytest.approx(seconds(control), rel=0.05)
    assert bound.report.unknown_share == 0
    assert open_.report.unknown_share > 0
    assert "--batch-size" in sentence(open_.report.notes[0])


def test_an_unknown_shape_that_follows_costs_no_time() -> None:
    """Cases 16 and 16b: equal FLOPs, and now equal times."""
    assert seconds(case("16_")) == pytest.approx(seconds(case("16b")), rel=0.01)
    assert cost_of_graph(case("16_")).total_flops == cost_of_graph(case("16b")).total_flops


@pytest.mark.parametrize("number", ["18_", "18b"])
def test_a_git_lfs_pointer_is_recognised(number: str) -> None:
    """It is a few lines of text that stand for the file."""
    with pytest.raises(GraphError, match="Git LFS pointer, not a graph; run git lfs pull"):
        case(number)


def test_only_looked_up_rows_of_an_embedding_cross() -> None:
    """`_class` puts the Gather beside its table of 120 MB: 38,400 bytes of rows come."""
    assert case("21b").received_bytes == 38_400
