"""A timeline counted by hand, and what a step of PyTorch keeps from its begin to its end."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dataclasses import replace  # noqa: E402

from torch import nn  # noqa: E402

from driple.errors import GraphError  # noqa: E402
from driple.graph.opgraph import OpGraph  # noqa: E402
from driple.graph.step_facts import TensorLifetimes  # noqa: E402
from driple.graph.torch.step import StepOptions, traced_step  # noqa: E402
from driple.memory.timeline import step_timeline  # noqa: E402

WIDTH, SAMPLES = 64, 32
WEIGHT = 4 * WIDTH * WIDTH
ROW = 4 * SAMPLES * WIDTH


def traced(**options: object) -> OpGraph:
    """Two linear layers without biases."""
    with torch.device("meta"):
        model = nn.Sequential(
            nn.Linear(WIDTH, WIDTH, bias=False), nn.Tanh(), nn.Linear(WIDTH, WIDTH, bias=False)
        )
        inputs = torch.zeros(SAMPLES, WIDTH)
    return traced_step(model, inputs, lambda made: made.sum(), StepOptions(**options))  # type: ignore[arg-type]


def test_hand_counted_lifetimes() -> None:
    """Three tensors over four nodes: one from before, one of two nodes, one that stays."""
    graph = traced()
    lives = TensorLifetimes(
        nbytes=np.array([100, 600, 512]),
        made_by=np.array([-1, 1, 2], dtype=np.int32),
        freed_after=np.array([graph.num_nodes, 2, graph.num_nodes], dtype=np.int32),
        roles=np.array([0, 4, 1], dtype=np.int8),
    )
    given = replace(graph, lifetimes=lives, update=replace(graph.update, temporary_bytes=7))
    timeline = step_timeline(given, rounding=1)
    assert timeline.total_bytes[:5].tolist() == [100, 700, 1212, 612, 612]
    assert timeline.total_bytes[-1] == 619
    assert (timeline.peak_at, timeline.peak_bytes) == (2, 1212)
    assert timeline.at_peak()["temporary"] == 600
    assert step_timeline(given).total_bytes[:3].tolist() == [512, 1536, 2048]


def test_a_step_begins_with_the_model_and_ends_with_its_gradients() -> None:
    """Parameters, states and batch always; the gradients one by one, the last layer's first."""
    graph = traced(optimizer="adam")
    timeline = step_timeline(graph, rounding=1)
    by_kind = dict(zip(("parameters", "gradients", "optimizer"), timeline.nbytes.T, strict=False))
    assert by_kind["parameters"][0] == pytest.approx(2 * WEIGHT, abs=4)
    assert (by_kind["optimizer"] == 4 * WEIGHT).all()
    assert sorted(set(by_kind["gradients"].tolist())) == [0, WEIGHT, 2 * WEIGHT]
    assert by_kind["gradients"][-1] == 2 * WEIGHT
    assert timeline.nbytes[:, 5].tolist() == [ROW] * (graph.num_nodes + 1)
    assert timeline.is_peak_in_update, "foreach Adam makes a list of roots"
    assert graph.update.temporary_bytes == 2 * WEIGHT


def test_gradients_of_earlier_passes_are_there_in_the_forward_pass() -> None:
    """With accumulation nothing begins without gradients."""
    graph = traced(grad_accumulation=4)
    gradients = step_timeline(graph, rounding=1).nbytes[:, 1]
    assert (gradients == 2 * WEIGHT).all()


@pytest.mark.parametrize(
    ("optimizer", "times"), [("sgd", 0), ("momentum", 0), ("adam", 1), ("adam-fused", 0)]
)
def test_temporary_memory_of_an_update(optimizer: str, times: int) -> None:
    """Lists of temporaries of foreach implementations; fused ones have none."""
    assert traced(optimizer=optimizer).update.temporary_bytes == 2 * WEIGHT * times


def test_modules_at_the_peak_add_up() -> None:
    """Each byte at the peak belongs to one module and kind."""
    timeline = step_timeline(traced(optimizer="momentum"), rounding=1)
    for kind, nbytes in timeline.at_peak().items():
        of_modules = sum(one.nbytes for one in timeline.modules if one.kind == kind)
        assert of_modules == pytest.approx(nbytes, abs=8)


def test_a_graph_without_lifetimes_is_refused() -> None:
    """Nothing is made up for it."""
    with pytest.raises(GraphError, match="how long its tensors live"):
        step_timeline(replace(traced(), lifetimes=TensorLifetimes()))
