"""Elements and bytes of a node's outputs."""

import pytest

from driple.errors import GraphError
from driple.graph.tf.raw import RawNode, Shape
from driple.graph.tf.sizes import output_size


def size(op: str, *shapes: Shape, **types: int | tuple[int, ...]) -> tuple[int, int]:
    """Elements and bytes."""
    as_tuples = {
        key: value if isinstance(value, tuple) else (value,) for key, value in types.items()
    }
    output = output_size(RawNode("n", op, shapes=shapes, types=as_tuples))
    return output.elements, output.tensor_bytes


@pytest.mark.parametrize(
    ("op", "shapes", "types", "expected"),
    [
        ("Conv2D", ((2, 3, 4),), {"T": 1}, (24, 96)),
        ("Conv2D", ((2, 3, 4),), {"T": 19}, (24, 48)),
        ("VariableV2", ((10,),), {"dtype": 102}, (10, 80)),
        ("Cast", ((10,),), {"SrcT": 1, "DstT": 9}, (10, 80)),
        ("Shape", ((4,),), {"T": 1, "out_type": 3}, (4, 16)),
        ("GatherV2", ((5, 2),), {"Tindices": 9, "Tparams": 1}, (10, 40)),
        ("Equal", ((8,),), {"T": 1}, (8, 8)),
        ("RandomUniform", ((8,),), {"T": 3, "dtype": 1}, (8, 32)),
        ("IteratorGetNext", ((8, 2), (8,)), {"output_types": (1, 9)}, (24, 128)),
        ("Split", ((4,), (4,)), {"T": 1}, (8, 32)),
        ("Const", ((),), {"dtype": 3}, (1, 4)),
        ("Relu", ((3, 0),), {"T": 1}, (0, 0)),
        ("FusedBatchNormV3", ((6,), (2,), (2,)), {"T": 19, "U": 1}, (10, 12 + 16)),
        ("FusedBatchNormGradV2", ((6,), (2,), (2,), (0,)), {"T": 19, "U": 1}, (10, 12 + 16)),
        ("FusedBatchNorm", ((6,), (2,), (2,)), {"T": 1}, (10, 40)),
        ("Rank", ((),), {"T": 2}, (1, 4)),
        ("Shape", ((4,),), {"T": 2}, (4, 16)),
        ("Shape", ((4,),), {"T": 19, "out_type": 9}, (4, 32)),
        ("ShapeN", ((4,), (2,)), {"T": 2}, (6, 24)),
        ("Size", ((),), {"T": 19, "out_type": 3}, (1, 4)),
        ("ArgMax", ((8,),), {"T": 1, "Tidx": 3}, (8, 64)),
        ("ArgMin", ((8,),), {"T": 1, "Tidx": 3, "output_type": 3}, (8, 32)),
        ("TopKV2", ((8,), (8,)), {"T": 19}, (16, 16 + 32)),
        ("TopKV2", ((8,), (8,)), {"T": 1, "index_type": 9}, (16, 32 + 64)),
        ("RandomUniformInt", ((8,),), {"T": 3, "Tout": 9}, (8, 64)),
        ("Merge", ((8,), ()), {"T": 19}, (9, 16 + 4)),
        ("UniqueV2", ((8,), (8,)), {"T": 9, "Taxis": 9}, (16, 64 + 32)),
        ("MaxPoolWithArgmax", ((8,), (8,)), {"T": 19}, (16, 16 + 64)),
        ("Bitcast", ((8,),), {"T": 1, "type": 19}, (8, 16)),
        ("RFFT", ((8,),), {"Treal": 1, "Tcomplex": 8}, (8, 64)),
    ],
)
def test_sizes_by_hand(
    op: str, shapes: tuple[Shape, ...], types: dict[str, int], expected: tuple[int, int]
) -> None:
    """The attribute that names the output's type decides."""
    assert size(op, *shapes, **types) == expected


def test_unknown_dimensions_count_one_and_are_counted() -> None:
    """An unknown batch size is neither zero nor an error."""
    output = output_size(RawNode("n", "Relu", shapes=((-1, 7, -1),), types={"T": (1,)}))
    assert (output.elements, output.tensor_bytes, output.unknown_dimensions) == (7, 28, 2)


def test_unknown_rank_and_missing_shapes_are_told_apart_from_no_output() -> None:
    """Only the last one is fully known."""
    assert not output_size(RawNode("n", "Relu", shapes=(None,))).has_shape
    assert not output_size(RawNode("n", "Relu")).has_shape
    assert output_size(RawNode("n", "NoOp")).has_shape
    assert output_size(RawNode("n", "Assert", shapes=())).has_shape


def test_missing_types_count_four_bytes_and_are_told() -> None:
    """An op nobody has seen."""
    output = output_size(RawNode("n", "MyOp", shapes=((3,),)))
    assert (output.tensor_bytes, output.has_type) == (12, False)


@pytest.mark.parametrize("shape", [(2**40, 2**40), (-5,)])
def test_absurd_sizes_are_refused(shape: tuple[int, ...]) -> None:
    """No silent overflow."""
    with pytest.raises(GraphError, match="corrupt"):
        size("Relu", shape, T=1)
