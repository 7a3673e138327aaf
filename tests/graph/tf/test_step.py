"""What one step runs: ancestors of updates, the choice of a train op, and what is left out."""

import pytest

from driple.errors import GraphError
from driple.graph.tf.links import GraphLinks, edges_of, in_order
from driple.graph.tf.raw import RawNode
from driple.graph.tf.step import TrainStep, find_step
from driple.render.remarks import sentence

Row = tuple[str, str, tuple[str, ...]]
# A step of a dense layer: variable w, its gradient g.
LAYER: list[Row] = [
    ("x", "Placeholder", ()),
    ("w", "VariableV2", ()),
    ("read", "Identity", ("w",)),
    ("y", "MatMul", ("x", "read")),
    ("g", "MatMul", ("x", "y")),
    ("rate", "Const", ()),
    ("up", "ApplyGradientDescent", ("w", "rate", "g")),
]
NEEDED = {"x", "w", "read", "y", "g", "rate", "up"}


def step_of(*rows: Row, target: str | None = None, named: tuple[str, ...] = ()) -> TrainStep:
    """The step of (name, op, inputs) rows."""
    nodes = [RawNode(name, op, "", list(inputs)) for name, op, inputs in rows]
    edges, is_control, inputs, _ = edges_of(nodes)
    links = GraphLinks.of(len(nodes), edges, is_control)
    return find_step(nodes, inputs, links, in_order(nodes, edges), target=target, named=named)


def running(*rows: Row, target: str | None = None, named: tuple[str, ...] = ()) -> set[str]:
    """Names of the nodes that run."""
    step = step_of(*rows, target=target, named=named)
    return {row[0] for row, runs in zip(rows, step.runs, strict=True) if runs}


def test_initialisers_savers_and_summaries_do_not_run() -> None:
    """They are counted by what they are for."""
    rows: list[Row] = [
        *LAYER,
        ("init", "RandomUniform", ()),
        ("set", "Assign", ("w", "init")),
        ("save", "SaveV2", ("read",)),
        ("back", "RestoreV2", ()),
        ("reset", "Assign", ("w", "back")),
        ("tag", "Const", ()),
        ("curve", "ScalarSummary", ("tag", "y")),
        ("slot", "VariableV2", ()),
        ("train", "NoOp", ("^up",)),
    ]
    step = step_of(*rows)
    assert running(*rows) == NEEDED
    assert step.is_training
    assert step.target == "train"
    assert step.left_out == {
        "savers": 3,
        "summaries": 2,
        "initialisers": 2,
        "unused variables": 1,
        "not needed by an update": 1,  # the train op itself: a NoOp computes nothing
    }


@pytest.mark.parametrize(
    "update",
    [
        *("ApplyAdam", "ResourceApplyMomentum", "SparseApplyFtrl", "ResourceSparseApplyAdagrad"),
        *("AccumulatorApplyGradient", "SparseAccumulatorApplyGradient"),
    ],
)
def test_what_an_optimizer_does_is_an_update(update: str) -> None:
    """With or without a train op."""
    rows: list[Row] = [*LAYER[:-1], ("up", update, ("w", "rate", "g"))]
    assert running(*rows) == NEEDED
    assert step_of(*rows).is_training
    assert step_of(*rows).target == ""


def test_moving_averages_count_wherever_they_are() -> None:
    """A light update that the train op does not wait for; not one with its own forward pass."""
    rows: list[Row] = [
        *LAYER,
        ("train", "NoOp", ("^up",)),
        ("mean", "VariableV2", ()),
        ("difference", "Sub", ("mean", "y")),
        ("average", "AssignSub", ("mean", "difference")),
        ("eval", "MatMul", ("x", "read")),
        ("total", "VariableV2", ()),
        ("metric", "AssignAdd", ("total", "eval")),
    ]
    assert running(*rows) == NEEDED | {"mean", "difference", "average"}


def test_a_plain_assign_counts_only_if_the_train_op_leads_to_it() -> None:
    """A counter that the train op sets, beside an initialiser that nothing sets in a step."""
    rows: list[Row] = [
        *LAYER,
        ("n", "VariableV2", ()),
        ("more", "Add", ("n", "rate")),
        ("count", "Assign", ("n", "more")),
        ("other", "Assign", ("n", "rate")),
        ("train", "NoOp", ("^up", "^count")),
    ]
    assert running(*rows) == NEEDED | {"n", "more", "count"}


def test_control_edges_lead_to_side_effects_only() -> None:
    """A gate of gradients does not run a gradient that nobody reads, nor what that reads."""
    rows: list[Row] = [
        *LAYER[:-1],
        ("images", "Conv2DBackpropInput", ("y", "only")),
        ("only", "Exp", ("y",)),
        ("log", "Print", ("y",)),
        ("gate", "NoOp", ("^g", "^images", "^log")),
        ("gated", "Identity", ("g", "^gate")),
        ("up", "ApplyGradientDescent", ("w", "rate", "gated")),
    ]
    assert running(*rows) == NEEDED | {"gated", "log"}


def gan(*more: Row) -> list[Row]:
    """Two train ops; that of d needs more."""
    return [
        *LAYER,
        ("train_g", "NoOp", ("^up",)),
        ("v", "VariableV2", ()),
        ("z", "MatMul", ("y", "v")),
        ("h", "MatMul", ("z", "z")),
        ("up_v", "ApplyAdam", ("v", "rate", "h")),
        ("train_d", "NoOp", ("^up_v",)),
        *more,
    ]


def test_the_largest_of_several_train_ops_is_taken_and_they_are_named() -> None:
    """`--target` takes another."""
    step = step_of(*gan())
    assert step.train_ops == ("train_d", "train_g")
    assert step.target == "train_d"
    assert "--set target" in sentence(step.notes[0])
    assert running(*gan()) == NEEDED - {"up", "g"} | {"v", "z", "h", "up_v"}
    assert running(*gan(), target="train_g") == NEEDED
    assert running(*gan(), named=("train_g:0",)) == NEEDED
    both = gan(("train", "NoOp", ("^train_g", "^train_d")))
    assert step_of(*both).train_ops == ("train",)
    assert running(*both) == NEEDED | {"v", "z", "h", "up_v"}


@pytest.mark.parametrize(("target", "message"), [("nobody", "train_d"), ("y", "no update")])
def test_a_wrong_target_is_refused(target: str, message: str) -> None:
    """With the train ops that there are."""
    with pytest.raises(GraphError, match=message):
        step_of(*gan(), target=target)


def test_updates_beside_the_train_op_are_a_step_of_their_own() -> None:
    """One waits for one small update; the others have no train op, and are the larger step."""
    rows: list[Row] = [
        *gan()[:-1],
        ("u", "VariableV2", ()),
        ("up_u", "ApplyAdam", ("u", "rate", "h")),
    ]
    assert running(*rows) == NEEDED | {"v", "z", "h", "up_v", "u", "up_u"}


def test_accumulated_gradients_belong_to_what_applies_them() -> None:
    """Synchronous training: the chief takes from an accumulator what workers added to it."""
    rows: list[Row] = [
        *LAYER[:-1],
        ("sum", "ConditionalAccumulator", ()),
        ("add", "AccumulatorApplyGradient", ("sum", "rate", "g")),
        ("take", "AccumulatorTakeGradient", ("sum", "rate")),
        ("up", "ApplyGradientDescent", ("w", "rate", "take")),
        ("chief", "NoOp", ("^up",)),
        ("train", "NoOp", ("^add",)),
    ]
    assert running(*rows) == NEEDED | {"sum", "add", "take"}
    assert step_of(*rows).target == "chief"


def test_gradients_without_updates_are_handed_on() -> None:
    """A graph that a worker fetches gradients of."""
    rows: list[Row] = [*LAYER[:-1], ("gradients/relu", "ReluGrad", ("g", "y"))]
    step = step_of(*rows)
    assert step.is_training
    assert [rows[i][0] for i in step.handed_on] == ["gradients/relu"]
    assert "gradients/relu" in running(*rows)


def test_training_by_hand_is_training() -> None:
    """Without gradient ops: a factor of a product is changed by what follows from the product."""
    rows: list[Row] = [*LAYER[:-1], ("less", "Sub", ("read", "g")), ("up", "Assign", ("w", "less"))]
    train: Row = ("train", "NoOp", ("^up",))
    assert step_of(*rows, train).is_training
    assert running(*rows, train) == NEEDED - {"rate"} | {"less"}


@pytest.mark.parametrize(
    "rows",
    [
        LAYER[:4],
        [*LAYER[:4], ("total", "VariableV2", ()), ("metric", "AssignAdd", ("total", "y"))],
        [*LAYER[:4], ("init", "RandomUniform", ()), ("set", "Assign", ("w", "init"))],
    ],
)
def test_no_update_of_what_is_trained_is_no_training(rows: list[Row]) -> None:
    """A forward pass, one with a metric, one with an initialiser; described all the same."""
    assert not step_of(*rows).is_training
    assert {"x", "w", "read", "y"} <= running(*rows)
    assert "init" not in running(*rows)
