"""Bytes that an op reads and writes, the ops that only copy, and those that do not even that.

An op reads all its inputs once and writes all its outputs once, unless a table here says otherwise:
views move nothing, gathers read only what they pick, scatters touch only the rows of their updates.
What caches save is left to the device model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from driple.graph.cost.elementwise import RANDOM
from driple.graph.cost.shapes import UnknownShapeError, shape_out
from driple.graph.cost.sparse import SCATTER_FLOPS, SEGMENTS_BY_INDEX, picked_elements
from driple.graph.datatypes import BYTES_OF
from driple.graph.signature import OpSignature

__all__ = ["MOVES", "bytes_moved", "is_free"]

_DEFAULT_BYTES = 4


def bytes_moved(op: OpSignature) -> tuple[float, float]:
    """Bytes that one execution reads and writes; what has no shape counts nothing."""
    written = float(sum(tensor.nbytes for tensor in op.outputs))
    if op.op_type in _READS_WHAT_IT_WRITES:
        return written, written
    if op.op_type in _ONLY_WRITES:
        return 0.0, written
    special = _SPECIAL.get(op.op_type)
    if special is not None:
        try:
            return special(op)
        except UnknownShapeError:
            pass  # as of any other op
    return float(sum(tensor.nbytes for tensor in op.inputs)), written


@cache
def is_free(op_type: str) -> bool:
    """Whether an op neither computes nor moves bytes of the device's memory.

    That are names, views, control flow, handles of what lies elsewhere, what the host does (files,
    summaries), and transfers between devices, whose time the network model counts.
    """
    if op_type in _FREE:
        return True
    return op_type not in MOVES and _FREE_PATTERN.fullmatch(op_type) is not None


def _nbytes(op: OpSignature, *positions: int) -> float:
    """Cost of reading some of the inputs."""
    return float(sum(op.inputs[i].nbytes for i in positions if i < len(op.inputs)))


def _row_bytes(op: OpSignature, elements: int, position: int) -> float:
    """Bytes of elements of the type of an input."""
    return float(elements * BYTES_OF.get(op.inputs[position].dtype, _DEFAULT_BYTES))


def _scatter(op: OpSignature) -> tuple[float, float]:
    """Variable, indices, updates: rows are changed in place."""
    return _nbytes(op, 1, 2, 2), _nbytes(op, 2)


def _scatter_update(op: OpSignature) -> tuple[float, float]:
    return _nbytes(op, 1, 2), _nbytes(op, 2)


def _assign(op: OpSignature) -> tuple[float, float]:
    """A variable behind a handle takes the value."""
    return _nbytes(op, 1), _nbytes(op, 1)


def _assign_sum(op: OpSignature) -> tuple[float, float]:
    return 2 * _nbytes(op, 1), _nbytes(op, 1)


def _segments_by_index(op: OpSignature) -> tuple[float, float]:
    """Rows that indices pick, those indices, and the segments' numbers."""
    written = float(sum(tensor.nbytes for tensor in op.outputs))
    return _row_bytes(op, picked_elements(op), 0) + _nbytes(op, 1, 2), written


def _sparse_dense(op: OpSignature) -> tuple[float, float]:
    """Indices, values, and a row of the dense matrix for each value."""
    columns = shape_out(op, 0, 2)[-1]
    if len(op.inputs) < 4:
        raise UnknownShapeError(f"{op.op_type}: the dense matrix is unknown")
    rows = _row_bytes(op, op.inputs[1].elements * columns, 3)
    return _nbytes(op, 0, 1) + rows, float(op.outputs[0].nbytes)


_SPECIAL: Mapping[str, Callable[[OpSignature], tuple[float, float]]] = MappingProxyType(
    {
        # A Tensor op's result is a tensor of its own, copied as a whole.
        **{
            name: _scatter
            for name in SCATTER_FLOPS
            if not name.startswith(("Tensor", "ScatterNdN"))
        },
        **dict.fromkeys(
            (
                "ScatterUpdate",
                "ScatterNdUpdate",
                "ResourceScatterUpdate",
                "ResourceScatterNdUpdate",
                "InplaceUpdate",
            ),
            _scatter_update,
        ),
        **dict.fromkeys(("AssignVariableOp", "AssignVariableXlaConcatND"), _assign),
        **dict.fromkeys(("AssignAddVariableOp", "AssignSubVariableOp"), _assign_sum),
        **dict.fromkeys(SEGMENTS_BY_INDEX, _segments_by_index),
        "SparseTensorDenseMatMul": _sparse_dense,
    }
)

# Ops that copy: bytes, no arithmetic.
MOVES = frozenset(
    {
        "Concat", "ConcatV2", "ParallelConcat", "Split", "SplitV", "Slice", "StridedSlice",
        "StridedSliceGrad", "StridedSliceAssign", "ResourceStridedSliceAssign",
        "TensorStridedSliceUpdate", "Pad", "PadV2", "MirrorPad", "MirrorPadGrad", "Transpose",
        "ConjugateTranspose", "Tile", "Pack", "Unpack", "Gather", "GatherV2", "GatherNd",
        "ResourceGather", "ResourceGatherNd", "ScatterNd", "Cast", "Fill", "Empty", "ZerosLike",
        "OneHot",
        "OnesLike", "Copy", "DeepCopy", "CopyHost", "Reverse", "ReverseV2", "ReverseSequence",
        "DynamicStitch", "ParallelDynamicStitch", "DynamicPartition", "BroadcastTo", "Unique",
        "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "ListDiff", "ExtractImagePatches",
        "ExtractVolumePatches", "ExtractGlimpse", "ExtractGlimpseV2", "Assign", "AssignVariableOp",
        "ScatterUpdate", "ScatterNdUpdate", "ResourceScatterUpdate", "ResourceScatterNdUpdate",
        "InplaceUpdate", "TensorScatterUpdate", "ResizeNearestNeighbor", "DrawBoundingBoxes",
        "DrawBoundingBoxesV2", "RandomCrop", "SpaceToDepth", "DepthToSpace", "SpaceToBatch",
        "SpaceToBatchND", "BatchToSpace", "BatchToSpaceND", "Roll", "RandomShuffle",
        "StatelessShuffle", "InvertPermutation", "DataFormatVecPermute", "DataFormatDimMap",
        "UnravelIndex", "Diag", "DiagPart", "MatrixDiag", "MatrixDiagV2", "MatrixDiagV3",
        "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixSetDiag",
        "MatrixSetDiagV2", "MatrixSetDiagV3", "MatrixBandPart", "BatchMatrixDiag",
        "BatchMatrixDiagPart", "BatchMatrixSetDiag", "BatchMatrixBandPart", "_HostCast",
        "Complex", "Real", "Imag",
        "TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3", "TensorArrayScatter",
        "TensorArrayScatterV2", "TensorArrayScatterV3", "TensorArrayRead", "TensorArrayReadV2",
        "TensorArrayReadV3", "TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3",
        "TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3", "TensorArraySplit",
        "TensorArraySplitV2", "TensorArraySplitV3", "TensorArrayPack", "TensorArrayUnpack",
        "TensorListStack", "TensorListGetItem", "TensorListSetItem", "TensorListFromTensor",
        "TensorListGather", "TensorListScatter", "TensorListScatterV2",
        "TensorListScatterIntoExistingList", "TensorListConcat", "TensorListConcatV2",
        "TensorListConcatLists", "TensorListSplit", "TensorListPushBack", "TensorListPushBackBatch",
        "TensorListPopBack", "StackPush", "StackPop", "StackPushV2", "StackPopV2", "SparseToDense",
        "SparseConcat", "SparseSplit", "SparseSlice", "SparseSliceGrad", "SparseReorder",
        "SparseFillEmptyRows", "DenseToDenseSetOperation",
        "DenseToSparseSetOperation", "SparseToSparseSetOperation", "StringToHashBucket",
        "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber", "SparseCross",
        "SparseCrossV2", "SparseCrossHashed",
        "CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2", "CudnnRNNParamsToCanonical",
        "CudnnRNNParamsToCanonicalV2", "LookupTableFind", "LookupTableFindV2",
    }
)  # fmt: skip
# Of their inputs they read only what they hand on.
_READS_WHAT_IT_WRITES = frozenset(
    {
        "Slice", "StridedSlice", "Gather", "GatherV2", "GatherNd", "ResourceGather",
        "ResourceGatherNd", "RandomCrop", "ExtractGlimpse", "ExtractGlimpseV2", "MatrixDiagPart",
        "MatrixDiagPartV2", "MatrixDiagPartV3", "DiagPart", "SparseSlice", "TensorArrayRead",
        "TensorArrayReadV2", "TensorArrayReadV3", "TensorArrayGather", "TensorArrayGatherV2",
        "TensorArrayGatherV3", "TensorArrayPack", "TensorArrayConcatV2", "TensorArrayConcatV3",
        "TensorListGetItem", "TensorListStack", "TensorListGather", "TensorListConcat",
        "TensorListConcatV2", "TensorListPopBack",
    }
)  # fmt: skip
_ONLY_WRITES = frozenset(
    {"Fill", "Empty", "ZerosLike", "OnesLike", "OneHot", "Range", "LinSpace", *RANDOM}
)
_FREE = frozenset(
    {
        # Names, views and sizes.
        "Const", "HostConst", "_EagerConst", "ImmutableConst", "Placeholder", "PlaceholderV2",
        "PlaceholderWithDefault", "FakeParam", "Identity", "IdentityN", "Snapshot", "RefIdentity",
        "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3",
        "DebugGradientIdentity", "DebugGradientRefIdentity", "GuaranteeConst",
        "Reshape", "ExpandDims", "Squeeze", "Bitcast", "EnsureShape", "Shape", "ShapeN", "Size",
        "Rank", "VariableShape", "BroadcastGradientArgs", "BroadcastArgs", "ConcatOffset",
        "StopGradient", "PreventGradient", "SparseReshape", "_Arg", "_Retval", "_DeviceArg",
        "_DeviceRetval", "_ListToArray", "_ArrayToList",
        # Control flow.
        "NoOp", "ControlTrigger", "Enter", "RefEnter", "Exit", "RefExit", "Merge", "RefMerge",
        "Switch", "RefSwitch", "_SwitchN", "NextIteration", "RefNextIteration", "LoopCond",
        "ToBool", "Assert", "CheckNumerics", "CheckNumericsV2", "DeviceIndex", "CountUpTo",
        "ResourceCountUpTo",
        # Handles.
        "Variable", "VariableV2", "VarHandleOp", "_VarHandlesOp", "TemporaryVariable",
        "DestroyTemporaryVariable", "ReadVariableOp", "_ReadVariablesOp", "VarIsInitializedOp",
        "IsVariableInitialized", "DestroyResourceOp", "DisableCopyOnRead", "TensorArray",
        "TensorArrayV2", "TensorArrayV3", "TensorArraySize", "TensorArraySizeV2",
        "TensorArraySizeV3", "TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3",
        "TensorArrayGradWithShape", "TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3",
        "TensorListReserve", "TensorListResize", "EmptyTensorList", "TensorListElementShape",
        "TensorListLength", "Stack", "StackV2", "StackClose", "StackCloseV2", "CudnnRNNParamsSize",
        "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter",
        "StatelessRandomGetKeyCounterAlg", "RngReadAndSkip", "RngSkip",
        # Inputs that another thread has made by then.
        "Stage", "Unstage", "StagePeek", "StageSize", "StageClear",
        # What the host does.
        "ScalarSummary", "HistogramSummary", "ImageSummary", "AudioSummary", "AudioSummaryV2",
        "TensorSummary", "TensorSummaryV2", "MergeSummary", "WriteSummary", "WriteScalarSummary",
        "WriteHistogramSummary", "WriteImageSummary", "WriteAudioSummary", "WriteGraphSummary",
        "WriteRawProtoSummary", "SummaryWriter", "CreateSummaryFileWriter", "FlushSummaryWriter",
        "CloseSummaryWriter", "MergeV2Checkpoints", "AsString", "Print",
        "PrintV2", "Timestamp",
        # Transfers.
        "Send", "Recv", "_Send", "_Recv", "_HostSend", "_HostRecv",
    }
)  # fmt: skip
# Transfers of all kinds; tables, iterators and queues, whose elements another thread makes; text
# and files, which the host alone handles. Decoding and parsing are left to be reported.
_FREE_PATTERN = re.compile(
    r"Horovod\w+|_?Nccl\w+|Collective\w+|Ring(?:Allreduce|Broadcast)|BytepsPushPull"
    r"|Optional\w+|\w*Iterator\w*|\w*Queue\w*|\w*HashTable\w*|InitializeTable\w*|LookupTable\w+"
    r"|\w*Dataset\w*|\w*Reader\w*|String\w+|Substr|\w*Regex\w*|Unicode\w+|ReduceJoin|Sharded\w+"
    r"|Save\w*|Restore\w*"
)
