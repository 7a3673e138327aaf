"""A step of a user's own model by its functions, as the child process that runs them makes it."""

from __future__ import annotations

from driple.graph.opgraph import OpGraph
from driple.jobs.own_request import OwnModel
from driple.jobs.pytorch.own_model import step_of_own_model


def graph_of_functions(
    model: str, dataset: str, loss: str | None, batch_size: int
) -> tuple[OpGraph, int | None]:
    """The graph, and samples of an epoch, of `FILE.py:FUNCTION` each."""
    step = step_of_own_model(OwnModel(model=model, data=dataset, loss=loss, batch_size=batch_size))
    return step.graph, step.samples
