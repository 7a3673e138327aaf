"""Keras' GRU and LSTM, whose backward pass takes the shapes of operands from lists."""

from pathlib import Path

import numpy as np
import pytest

from driple.graph import ReadOptions, read_graph
from driple.graph.cost import cost_of_graph

DATA = Path(__file__).parents[1] / "data/graphs"
TURNS, INPUTS, UNITS, CLASSES, BATCH = 7, 5, 12, 3, 16


@pytest.mark.parametrize(("name", "num_gates"), [("gru", 3), ("lstm", 4)])
def test_products_of_the_backward_loop_have_the_whole_batch(name: str, num_gates: int) -> None:
    """In a turn: x W and h U, the gradients of W and U, and that of h; none of the inputs."""
    graph = read_graph(DATA / f"keras_{name}.pb.gz", options=ReadOptions(batch_size=BATCH))
    cost = cost_of_graph(graph)
    products = (cost.flops * cost.executions)[np.array(graph.op_types) == "MatMul"].sum()
    of_x, of_h = INPUTS * num_gates * UNITS, UNITS * num_gates * UNITS
    dense = 3 * UNITS * CLASSES
    assert products == 2 * BATCH * (TURNS * (2 * of_x + 3 * of_h) + dense)
    assert graph.report.unknown_share == 0
