"""What a graph says of a step's memory: its tensors, its parameters and their blocks, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import ConfigError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import TensorRole
from driple.memory.step_memory import BatchedMemory, StepMemory
from tests.memory.two_layers import FLOAT, HALF, lifetimes_of, two_layers


def rows_of(step: StepMemory) -> list[tuple[int, ...]]:
    columns = (step.nbytes, step.made_by, step.freed_after, step.roles)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_tensors_that_are_neither_parameters_nor_states() -> None:
    """A life that ends after the step ends with its number of nodes, 4."""
    step = StepMemory.of(two_layers())
    assert rows_of(step) == [
        (64, -1, 4, TensorRole.INPUT), (700, 0, 3, TensorRole.ACTIVATION),
        (300, 1, 2, TensorRole.ACTIVATION), (120, 2, 4, TensorRole.GRADIENT),
        (40, 3, 4, TensorRole.GRADIENT),
    ]  # fmt: skip
    assert not step.is_cast.any() and not step.computes_in_half
    assert (step.num_nodes, step.passes, step.framework) == (4, 1, "pytorch")
    assert step.update == two_layers().update
    assert not step.is_lower_bound and not step.has_images
    assert step.known == {}
    assert len({id(step.known), id(replace(step, passes=2).known)}) == 2


def test_parameters_and_their_blocks() -> None:
    """`a` is read at nodes 0 and 3, `b` at 1 and 2; each is complete at its last node."""
    weights = StepMemory.of(two_layers()).weights
    assert weights.nbytes.tolist() == [40, 8, 120]
    assert weights.elements.tolist() == [10, 2, 30]
    assert weights.is_trained.tolist() == [True, False, True]
    assert weights.gradient_at.tolist() == [3, -1, 2]
    assert weights.trained_bytes == 160
    assert weights.sharers.tolist() == [1.0, 1.0, 1.0]
    # Two layers of their own names are no repeated blocks: all is gathered together.
    assert weights.block_of.tolist() == [0, 0, 0]
    assert (weights.forward_at.tolist(), weights.forward_end.tolist()) == ([0], [1])
    assert (weights.backward_at.tolist(), weights.complete_at.tolist()) == ([2], [3])


def test_repeated_layers_are_blocks() -> None:
    """The first is read at nodes 0 and 3, the second at 1 and 2; the rest has no number."""
    graph = two_layers()
    names = ("layers.0.weight", "layers.0.bias", "layers.1.weight")
    table = replace(graph.parameters, names=names)
    weights = StepMemory.of(replace(graph, parameters=table)).weights
    assert weights.block_of.tolist() == [0, 0, 1]
    assert weights.forward_at.tolist() == [0, 1] and weights.forward_end.tolist() == [0, 1]
    assert weights.backward_at.tolist() == [3, 2] and weights.complete_at.tolist() == [3, 2]


def test_a_block_is_complete_when_its_last_parameter_was_read() -> None:
    """The frozen `a.bias`, at node 3, after both gradients."""
    graph = two_layers()
    table = replace(
        graph.parameters,
        readers=np.array([(0, 0), (1, 0), (2, 1), (2, 2), (1, 3)], dtype=np.int32),
        gradients=np.array([(2, 2), (0, 2)], dtype=np.int32),
    )
    weights = StepMemory.of(replace(graph, parameters=table)).weights
    assert weights.gradient_at.tolist() == [2, -1, 2]
    assert weights.complete_at.tolist() == [3]


def test_a_parameter_without_a_gradient_is_not_trained() -> None:
    """Even where the table says so."""
    graph = two_layers()
    table = replace(graph.parameters, is_trained=np.ones(3, dtype=np.bool_))
    weights = StepMemory.of(replace(graph, parameters=table)).weights
    assert weights.is_trained.tolist() == [True, False, True]


def test_a_table_that_differs_from_the_tensors_is_not_used() -> None:
    """Parameters are tensors like all others then; nothing can be sharded."""
    graph = two_layers()
    nbytes = graph.lifetimes.nbytes.copy()
    nbytes[2] = 121
    step = StepMemory.of(replace(graph, lifetimes=replace(graph.lifetimes, nbytes=nbytes)))
    assert len(step.weights.nbytes) == 0 and step.weights.trained_bytes == 0
    assert [row[0] for row in rows_of(step) if row[3] == TensorRole.PARAMETER] == [40, 8, 121]


def test_parameters_of_no_bytes_have_no_tensor() -> None:
    """Their rows are still of the table: it is known which are which."""
    graph = two_layers()
    table = replace(graph.parameters, nbytes=np.array([40, 0, 120]), elements=np.array([10, 0, 30]))
    lives = [
        (40, -1, 9, TensorRole.PARAMETER), (120, -1, 9, TensorRole.PARAMETER),
        (8, -1, 9, TensorRole.PARAMETER), (64, -1, 9, TensorRole.INPUT),
    ]  # fmt: skip
    step = StepMemory.of(replace(graph, parameters=table, lifetimes=lifetimes_of(lives)))
    assert step.weights.nbytes.tolist() == [40, 0, 120]
    assert [row[0] for row in rows_of(step)] == [8, 64]  # a buffer stays


def with_op(kind: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> OpGraph:
    """The step whose first op is another one."""
    graph = two_layers()
    return replace(
        graph,
        signatures=(*graph.signatures, OpSignature(kind, inputs, outputs)),
        signature_of=np.array([1, 0, 0, 0], dtype=np.int32),
    )


WEIGHT = Tensor((4, 4), FLOAT, is_parameter=True)
SMALL = Tensor((4, 4), HALF)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "is_cast"),
    [
        ("cast", (WEIGHT,), (SMALL,), True),
        ("copy", (WEIGHT,), (SMALL,), True),
        ("matmul", (WEIGHT,), (SMALL,), False),
        ("cast", (Tensor((4, 4), FLOAT),), (SMALL,), False),
        ("cast", (WEIGHT, WEIGHT), (SMALL,), False),
        ("cast", (WEIGHT,), (SMALL, SMALL), False),
        ("cast", (WEIGHT,), (Tensor((4, 4), FLOAT),), False),
        ("cast", (Tensor((4, 4), HALF, is_parameter=True),), (SMALL,), False),
    ],
)
def test_a_parameter_that_is_cast_to_half(
    kind: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], is_cast: bool
) -> None:
    step = StepMemory.of(with_op(kind, inputs, outputs))
    assert step.is_cast.tolist() == [False, is_cast, False, False, False]
    assert step.computes_in_half is is_cast


@pytest.mark.parametrize(
    ("kind", "shape", "has_images"),
    [
        ("conv", (8, 3, 4, 4), True), ("conv", (8, 3, 4), False), ("conv", None, False),
        ("matmul", (8, 3, 4, 4), False),
    ],
)  # fmt: skip
def test_samples_are_images_where_two_dimensions_are_convolved(
    kind: str, shape: tuple[int, ...] | None, has_images: bool
) -> None:
    step = StepMemory.of(with_op(kind, (), (Tensor(shape, FLOAT),)))
    assert step.has_images is has_images


def test_passes_are_the_turns_of_the_forward_pass() -> None:
    graph = replace(two_layers(), executions=np.array([4, 4, 4, 3]))
    assert StepMemory.of(graph).passes == 4


def test_what_is_not_known_is_a_lower_bound_or_refused() -> None:
    graph = two_layers()
    with pytest.raises(GraphError, match="how long its tensors live"):
        StepMemory.of(replace(graph, lifetimes=lifetimes_of([])))
    assert StepMemory.of(graph).passes == 1


def test_between_and_beyond_two_batch_sizes() -> None:
    """An activation of 700 bytes at 4 samples and 900 at 6 has 100 more a sample, and 300 at 0."""
    few = StepMemory.of(two_layers())
    many = replace(few, nbytes=few.nbytes + np.array([32, 200, 0, 0, 0]))
    line = BatchedMemory.between((4, few), (6, many))
    assert line.batch_size == 4 and line.step is few
    assert line.bytes_each.tolist() == [16, 100, 0, 0, 0]
    assert line.at(4).nbytes.tolist() == few.nbytes.tolist()
    assert line.at(6).nbytes.tolist() == many.nbytes.tolist()
    assert line.at(5).nbytes.tolist() == [80, 800, 300, 120, 40]
    assert line.at(14).nbytes.tolist() == [224, 1700, 300, 120, 40]
    steep = BatchedMemory.between((4, few), (5, replace(few, nbytes=few.nbytes + 700)))
    assert steep.at(1).nbytes.min() == 0


@pytest.mark.parametrize("name", ["made_by", "freed_after", "count", "batch"])
def test_another_step_is_no_line(name: str) -> None:
    few = StepMemory.of(two_layers())
    other = few
    if name in {"made_by", "freed_after"}:
        changed = getattr(few, name).copy()
        changed[1] += 1
        other = replace(few, **{name: changed})
    if name == "count":
        other = replace(few, nbytes=few.nbytes[:-1])
    with pytest.raises(ConfigError, match="not the same job"):
        BatchedMemory.between((4, few), (4 if name == "batch" else 8, other))
    with pytest.raises(ConfigError, match="not the same job"):
        BatchedMemory.between((8, few), (4, few))
