"""Parameters and phases of TensorFlow's steps, against what is known of these models."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.graph import read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.graph.tf.reader import graph_from_text

ROOT = Path(__file__).parents[3]
RESNET50 = read_graph(ROOT / "datasets/examples/resnet50.pbtxt")
GRAPHS = ROOT / "tests/data/graphs"


def flops_in(graph: OpGraph, phase: Phase) -> float:
    cost = cost_of_graph(graph)
    return float((cost.flops * cost.executions)[graph.phases == phase].sum())


def test_resnet50_has_its_published_parameters_each_with_one_gradient() -> None:
    """25.56 million; its batches lie in variables too, which are no parameters."""
    table = RESNET50.parameters
    assert table.elements.sum() == 25_559_081
    assert table.nbytes.sum() == 4 * 25_559_081
    assert len(table.names) == len(set(table.names)) == 161
    assert table.is_trained.all()
    assert sorted(table.gradients[:, 0].tolist()) == list(range(161))
    assert set(table.readers[:, 0].tolist()) == set(range(161))


def test_filters_are_read_by_convolutions_and_their_gradients_completed_by_weight_decay() -> None:
    table, kinds = RESNET50.parameters, RESNET50.kinds
    filters = {int(i) for i, node in table.readers if kinds[node] == "conv"}
    assert len(filters) == 53
    # Weight decay is added to the gradient of the filter.
    makers = {int(i): kinds[node] for i, node in table.gradients}
    assert {makers[i] for i in filters} == {"add_n"}


def test_the_backward_pass_has_twice_the_flops_and_all_gradients() -> None:
    assert len(RESNET50.phases) == RESNET50.num_nodes
    ratio = flops_in(RESNET50, Phase.BACKWARD) / flops_in(RESNET50, Phase.FORWARD)
    assert ratio == pytest.approx(2, rel=0.03)
    phase_of = dict(zip(RESNET50.kinds, RESNET50.phases.tolist(), strict=True))
    assert phase_of["conv"] == phase_of["max_pool"] == Phase.FORWARD
    assert phase_of["conv_filter_gradient"] == phase_of["relu_gradient"] == Phase.BACKWARD
    forward = RESNET50.phases == Phase.FORWARD
    assert not [kind for kind, first in zip(RESNET50.kinds, forward, strict=True)
                if first and kind.endswith("_gradient")]  # fmt: skip


def test_without_names_of_scopes_the_op_types_of_gradients_tell() -> None:
    """ResNet-20 with its scope renamed: all but constants, shapes and the mean's gradient."""
    text = (ROOT / "datasets/examples/resnet20.pbtxt").read_text()
    named, bare = (graph_from_text(one) for one in (text, text.replace("gradients/", "g/")))
    assert not [name for name in bare.names if "gradient" in name]
    flops = cost_of_graph(named).flops
    assert flops[named.phases != bare.phases].sum() < 1e-3 * flops.sum()
    assert bare.parameters.elements.sum() == named.parameters.elements.sum() == 269_722


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("keras_adamw", 890), ("keras_gru", 723), ("keras_lstm", 903), ("ps_training", 105_194)],
)
def test_updates_written_as_arithmetic_train_the_variables_and_not_their_slots(
    name: str, parameters: int
) -> None:
    graph = read_graph(GRAPHS / f"{name}.pb.gz")
    table = graph.parameters
    assert table.elements.sum() == parameters
    assert set(table.gradients[:, 0].tolist()) == set(range(len(table.names)))
    backward = graph.phases[table.gradients[:, 1]]
    assert (backward == Phase.BACKWARD).all()


def test_the_update_is_named_in_words_with_its_states() -> None:
    """ResNet-50 by momentum: one state, five passes over all that servers hold."""
    update = RESNET50.update
    received = RESNET50.received_bytes
    assert (update.optimizer, update.num_kernels) == ("momentum", 161)
    assert (update.state_bytes, update.moved_bytes) == (received, 5 * received)
    assert read_graph(GRAPHS / "ps_training.pb.gz").update.optimizer == "adam"


def test_a_graph_that_does_not_train_has_no_parameters_and_is_all_forward() -> None:
    graph = read_graph(ROOT / "tests/data/cases/08_inference_only.pbtxt")
    assert graph.parameters.names == ()
    assert not graph.phases.any()
