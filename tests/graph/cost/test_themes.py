"""Closed forms of sparse ops, images, linear algebra and losses, worked out by hand."""

from __future__ import annotations

from math import log2

import pytest

from driple.graph.cost import cost_of_op
from driple.graph.cost.formulas import has_formula
from driple.graph.cost.products import product_of
from driple.graph.opkind import family_of
from driple.graph.signature import OpSignature, Tensor
from driple.graph.tf.op_kinds import kind_of_op_type
from tests.graph.cost.ops import op

TABLE, INDICES, ROWS = (32_000, 512), (64,), (64, 512)
PICTURES, GRID = (4, 32, 32, 16), (4, 64, 64, 16)
IMAGE, MADE = (2, 4, 16, 16, 3), (2, 4, 8, 8, 5)
WINDOW = (1, 3, 3, 3, 5)


@pytest.mark.parametrize(
    ("signature", "flops"),
    [
        # Each picked row is added once; each element of a segment too.
        (op("SparseSegmentSum", TABLE, INDICES, INDICES, out=(8, 512)), 64 * 512),
        (op("SparseSegmentMeanGrad", (8, 512), INDICES, INDICES, (), out=TABLE), 64 * 512),
        (op("UnsortedSegmentSum", ROWS, INDICES, (), out=TABLE), 64 * 512),
        (op("UnsortedSegmentMax", ROWS, INDICES, (), out=(8, 512)), 64 * 512),
        (op("SegmentSum", ROWS, INDICES, out=(8, 512)), 64 * 512),
        (op("ScatterAdd", TABLE, INDICES, ROWS, out=TABLE), 64 * 512),
        (op("ResourceScatterAdd", (), INDICES, ROWS, out=[]), 64 * 512),
        (op("TensorScatterAdd", TABLE, (64, 1), ROWS, out=TABLE), 64 * 512),
        (op("ScatterUpdate", TABLE, INDICES, ROWS, out=TABLE), 0),
        (op("AssignAdd", TABLE, TABLE, out=TABLE), 32_000 * 512),
        (op("AssignAddVariableOp", (), TABLE, out=[]), 32_000 * 512),
        # A row of 128 for each of 1000 values.
        (op("SparseTensorDenseMatMul", (1000, 2), (1000,), (2,), (500, 128), out=(300, 128)),
         2 * 1000 * 128),
        (op("SparseMatMul", (32, 64), (64, 10), out=(32, 10)), 2 * 32 * 64 * 10),
        (op("SparseReduceSum", (1000, 2), (1000,), (2,), (1,), out=(300,)), 1000),
        # Two of 64 and of 64 x 1 numbers.
        (op("LogUniformCandidateSampler", (32, 1), out=[(64,), (32, 1), (64,)]), 4 * (64 + 32)),
        (op("Bincount", (1000,), (), (0,), out=(10,)), 1000),
        # 50 steps, 4 sequences of 28 classes with 10 labels in all.
        (op("CTCLoss", (50, 4, 28), (10, 2), (10,), (4,), out=[(4,), (50, 4, 28)]),
         7 * 50 * 4 * 28 + 2 * 50 * 24 * 6),
        (op("SparseSoftmaxCrossEntropyWithLogits", (32, 1000), (32,), out=[(32,), (32, 1000)]),
         7 * 32 * 1000),
        (op("Conv3D", IMAGE, WINDOW, out=MADE), 2 * 2 * 4 * 8 * 8 * 5 * 9 * 3),
        (op("Conv3DBackpropInputV2", (5,), WINDOW, MADE, out=IMAGE), 2 * 2 * 4 * 8 * 8 * 5 * 9 * 3),
        (op("Conv3DBackpropFilterV2", IMAGE, (5,), MADE, out=WINDOW),
         2 * 2 * 4 * 8 * 8 * 5 * 9 * 3),
        # The window of a dilated convolution has as many points; the copies around it move.
        (op("Conv2D", PICTURES, (3, 3, 16, 8), out=(4, 32, 32, 8), dilations=(1, 2, 2, 1)),
         2 * 4 * 32 * 32 * 8 * 9 * 16),
        (op("SpaceToBatchND", PICTURES, (2,), (2, 2), out=(16, 16, 16, 16)), 0),
        (op("BatchToSpaceND", (16, 16, 16, 16), (2,), (2, 2), out=PICTURES), 0),
        (op("MaxPool3D", (2, 8, 8, 8, 3), out=(2, 4, 4, 4, 3), ksize=(1, 2, 2, 2, 1)),
         2 * 64 * 3 * 8),
        (op("AvgPool3DGrad", (5,), (2, 4, 4, 4, 3), out=(2, 8, 8, 8, 3), ksize=(1, 2, 2, 2, 1)),
         2 * 2 * 64 * 3 * 8),
        (op("MaxPoolGradWithArgmax", GRID, PICTURES, PICTURES, out=GRID), 4 * 32 * 32 * 16),
        (op("ResizeBilinear", PICTURES, (2,), out=GRID), 9 * 4 * 64 * 64 * 16),
        (op("ResizeBilinearGrad", GRID, PICTURES, out=PICTURES), 8 * 4 * 64 * 64 * 16),
        (op("ResizeNearestNeighbor", PICTURES, (2,), out=GRID), 0),
        (op("CropAndResize", PICTURES, (9, 4), (9,), (2,), out=(9, 7, 7, 16)), 9 * 9 * 49 * 16),
        (op("CropAndResizeGradImage", (9, 7, 7, 16), (9, 4), (9,), (4,), out=PICTURES),
         8 * 9 * 49 * 16),
        (op("NonMaxSuppressionV3", (1024, 4), (1024,), (), (), (), out=(100,)),
         1024 * 10 + 16 * 1024 * 100),
        (op("FakeQuantWithMinMaxVars", (32, 10), (), (), out=(32, 10)), 7 * 320),
        (op("Betainc", (10,), (10,), (10,), out=(10,)), 10),
        (op("Cholesky", (5, 30, 30), out=(5, 30, 30)), 5 * 30**3 / 3),
        (op("MatrixInverse", (30, 30), out=(30, 30)), 2 * 30**3),
        (op("MatrixSolve", (30, 30), (30, 4), out=(30, 4)), 2 / 3 * 30**3 + 2 * 30**2 * 4),
        (op("MatrixTriangularSolve", (30, 30), (30, 4), out=(30, 4)), 30**2 * 4),
        (op("Svd", (50, 30), out=[(30,), (50, 30), (30, 30)]), 4 * 50**2 * 30 + 22 * 30**3),
        (op("Svd", (30, 50), out=[(30,), (0,), (0,)]), 2 * 50 * 30**2 + 2 * 30**3),
        (op("Qr", (50, 30), out=[(50, 30), (30, 30)]), 4 * 30**2 * (50 - 10)),
        (op("FFT2D", (3, 16, 16), out=(3, 16, 16)), 5 * 3 * 256 * 8),
        (op("RFFT", (3, 64), (1,), out=(3, 33)), 2.5 * 3 * 64 * 6),
        (op("StatelessRandomNormalV2", (2,), (1,), (1,), (), out=(10, 10)), 100),
        (op("Cumprod", (10, 10), (), out=(10, 10)), 100),
    ],
)  # fmt: skip
def test_flops(signature: OpSignature, flops: float) -> None:
    cost = cost_of_op(signature)
    assert cost.known
    assert cost.flops == pytest.approx(flops)


@pytest.mark.parametrize(
    ("signature", "read", "written"),
    [
        (op("ResourceGather", (), INDICES, out=ROWS), 64 * 512 * 4, 64 * 512 * 4),
        (op("ResourceGatherNd", (), (64, 1), out=ROWS), 64 * 512 * 4, 64 * 512 * 4),
        # Rows that indices pick, then both lists of 64 numbers; here of 4 bytes.
        (op("SparseSegmentSum", TABLE, INDICES, INDICES, out=(8, 512)),
         64 * 512 * 4 + 2 * 64 * 4, 8 * 512 * 4),
        # In place: rows and updates are read, rows written; the table stays where it is.
        (op("ScatterAdd", TABLE, INDICES, ROWS, out=TABLE), 2 * 64 * 512 * 4 + 256, 64 * 512 * 4),
        (op("ResourceScatterUpdate", (), INDICES, ROWS, out=[]), 64 * 512 * 4 + 256, 64 * 512 * 4),
        (op("AssignVariableOp", (), ROWS, out=[]), 64 * 512 * 4, 64 * 512 * 4),
        (op("AssignSubVariableOp", (), ROWS, out=[]), 2 * 64 * 512 * 4, 64 * 512 * 4),
        (op("SparseTensorDenseMatMul", (1000, 2), (1000,), (2,), TABLE, out=(300, 512)),
         3000 * 4 + 1000 * 512 * 4, 300 * 512 * 4),
        (op("StatelessTruncatedNormalV2", (2,), (1,), (1,), (), out=(10, 10)), 0, 400),
        (op("TensorListPushBack", (), ROWS, out=[()]), 64 * 512 * 4 + 4, 4),
    ],
)  # fmt: skip
def test_bytes(signature: OpSignature, read: float, written: float) -> None:
    cost = cost_of_op(signature)
    assert cost.known
    assert (cost.bytes_read, cost.bytes_written) == (read, written)


@pytest.mark.parametrize(
    "op_type",
    [
        "HorovodAllreduce", "HorovodBroadcast", "NcclAllReduce", "CollectiveReduceV2", "_Send",
        "_Recv", "VarHandleOp", "ReadVariableOp", "ScalarSummary", "WriteSummary", "SparseReshape",
        "BytepsPushPull",
        "RingAllreduce", "OptionalFromValue", "LookupTableImportV2", "SaveSlices", "Substr",
    ],
)  # fmt: skip
def test_what_the_device_does_not_do_is_free(op_type: str) -> None:
    """Communication is modelled elsewhere."""
    cost = cost_of_op(op(op_type, ROWS, out=ROWS))
    assert (cost.flops, cost.bytes_read, cost.bytes_written, cost.known) == (0, 0, 0, True)


WITHOUT_SHAPES = (
    "AddN", "AddV2", "AvgPool", "AvgPoolGrad", "BatchMatMulV2", "BiasAdd", "BiasAddGrad",
    "BlockLSTM", "CTCLoss", "Cholesky", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput",
    "Conv3D", "CropAndResize", "CudnnRNN", "DepthwiseConv2dNative", "Einsum", "FFT",
    "FusedBatchNormGradV3", "FusedBatchNormV3", "GRUBlockCell", "L2Loss", "LRN", "LSTMBlockCell",
    "LogUniformCandidateSampler", "MatMul", "MatrixSolve", "MaxPool", "MaxPoolGrad", "Mean",
    "NonMaxSuppressionV5", "Qr", "RandomUniform", "Relu", "ResizeBilinear", "ScatterAdd", "Softmax",
    "SparseSegmentSum", "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseMatMul", "Sum",
    "Svd", "TopKV2", "UnsortedSegmentSum",
)  # fmt: skip


@pytest.mark.parametrize("op_type", WITHOUT_SHAPES)
def test_a_formula_without_its_shapes_says_so(op_type: str) -> None:
    """It is reported as unknown; it does not count 0 as if that were known."""
    assert has_formula(kind_of_op_type(op_type))
    bare = Tensor(None, 0)
    for signature in (
        OpSignature.of_op_type(op_type, (bare,) * 5, (bare,) * 3),
        OpSignature.of_op_type(op_type, (), ()),
    ):
        cost = cost_of_op(signature)
        assert (cost.flops, cost.known) == (0, False)


@pytest.mark.parametrize("op_type", ["MaxPool", "AvgPool", "MaxPool3D"])
def test_a_pool_without_its_window_says_so(op_type: str) -> None:
    assert not cost_of_op(op(op_type, GRID, out=PICTURES)).known


def test_convolutions_in_space_are_products() -> None:
    """The same sides as in two dimensions: positions, channels out, window x channels in."""
    signature = op("Conv3D", IMAGE, WINDOW, out=MADE)
    product = product_of(signature, cost_of_op(signature).flops)
    assert product is not None
    assert (product.m, product.n, product.k) == (2 * 4 * 8 * 8, 5, 9 * 3)
    assert [
        family_of(kind_of_op_type(f"Conv3D{end}"))
        for end in ("", "BackpropInputV2", "BackpropFilterV2")
    ] == [
        "convolution",
        "input_gradient",
        "filter_gradient",
    ]


def test_a_sparse_product_is_bound_by_the_rows_that_it_picks() -> None:
    signature = op("SparseTensorDenseMatMul", (1000, 2), (1000,), (2,), (500, 128), out=(300, 128))
    assert product_of(signature, cost_of_op(signature).flops) is None
    assert family_of(signature.kind) == "elementwise"


def test_suppression_compares_each_box_with_those_selected() -> None:
    """Of scores [batch, boxes, classes], each class of each image by itself."""
    outputs = [(2, 100, 4), (2, 100), (2, 100), (2,)]
    signature = op(
        "CombinedNonMaxSuppression", (2, 500, 1, 4), (2, 500, 3), (), (), (), (), out=outputs
    )
    assert cost_of_op(signature).flops == pytest.approx(6 * (500 * log2(500) + 16 * 500 * 100))
