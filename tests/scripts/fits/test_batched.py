"""Two batch sizes tell every other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import device_named
from driple.errors import ConfigError, GraphError
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.prepared_job import PreparedJob, Program
from scripts.fits.batched import BatchedGraph
from tests.simulate.jobs import EFFICIENCY, net

V100 = CalibratedDevice(device_named("V100"), EFFICIENCY, "V100")


@pytest.mark.parametrize("batch_size", [8, 16, 48, 512])
def test_times_are_those_of_the_graph_at_that_batch_size(batch_size: int) -> None:
    graph = BatchedGraph.of((16, net(16)), (32, net(32)))
    wanted = PreparedJob(net(batch_size)).times(V100)
    times = graph.job(batch_size, Program()).times(V100)
    for name in ("duration_s", "busy_s", "memory_s"):
        np.testing.assert_allclose(getattr(times, name), getattr(wanted, name), rtol=1e-9)


def test_other_pairs_are_refused() -> None:
    with pytest.raises(GraphError, match="one model at growing batch sizes"):
        BatchedGraph.of((16, net(16)), (32, net(32, depth=4)))
    with pytest.raises(GraphError, match="growing"):
        BatchedGraph.of((32, net(32)), (16, net(16)))


def test_a_batch_size_off_the_line_is_refused() -> None:
    batched = BatchedGraph.of((16, net(16)), (32, net(32)))
    with pytest.raises(ConfigError, match="batch_size must be a whole number of at least 1"):
        batched.table(0)
    table = batched.tables[0]
    falling = replace(batched, tables=(table, replace(table, moved=table.moved / 4)))
    with pytest.raises(GraphError, match=r"sizes of ops fall to -.* at this batch size"):
        falling.table(64)
