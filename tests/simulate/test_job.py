"""A job whose steps no device can take is refused, by every command that asks for its plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import GraphError
from driple.simulate.device import shipped_calibration
from driple.simulate.job import Job
from tests.simulate.jobs import net

DEVICE = shipped_calibration().device("V100")


def test_a_step_without_work_is_refused() -> None:
    """No shapes, no bytes, no time: not a step of 0 s, nor an epoch for $0.00."""
    graph = net(1)
    signatures = tuple(replace(one, inputs=(), outputs=()) for one in graph.signatures)
    job = Job(replace(graph, signatures=signatures))
    with pytest.raises(GraphError, match=r"would take 0 s on V100, as its ops have no work"):
        job.plan(DEVICE, 1, "round_robin")


def test_a_step_of_years_is_refused() -> None:
    """A billion turns of a loop; ten are fine."""
    graph = net(8)
    turns = np.full(graph.num_nodes, 10**9)
    with pytest.raises(GraphError, match="at most 86400 are simulated"):
        Job(replace(graph, executions=turns)).plan(DEVICE, 1, "round_robin")
    Job(replace(graph, executions=turns // 10**8)).plan(DEVICE, 1, "round_robin")
