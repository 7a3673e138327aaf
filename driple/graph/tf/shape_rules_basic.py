"""Shape functions of element-wise ops, sources, variables, updates, losses and random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.tf.raw import Shape
from driple.graph.tf.shape_call import OpCall, broadcast, merged, rule, size_at

__all__ = ["INPUT_OPS"]

_RESOURCE = 20  # DT_RESOURCE
# Ops, and the number of an input of theirs that is no scalar.
_AXIS_READERS = (
    ("ArgMax", 0), ("BatchMatMul", 0), ("BatchMatMulV2", 0), ("BiasAdd", 0), ("Conv2D", 0),
    ("Conv3D", 0), ("MatMul", 0), ("Reshape", 0), ("Slice", 0), ("Split", 1),
    ("StridedSlice", 0), ("Transpose", 0), ("Unpack", 0), ("SoftmaxCrossEntropyWithLogits", 1),
    ("SparseSoftmaxCrossEntropyWithLogits", 1),
)  # fmt: skip
_SAME = (
    "_HostCast", "Abs", "Acos", "Acosh", "AdjustContrastv2", "AdjustHue", "AdjustSaturation",
    "Angle", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdam",
    "ApplyAdaMax", "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyFtrlV2",
    "ApplyGradientDescent", "ApplyMomentum", "ApplyPowerSign", "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent", "ApplyRMSProp", "Asin", "Asinh", "AssignAdd", "AssignSub",
    "AsString", "Atan", "Atanh", "BiasAdd", "BiasAddV1", "Bitcast", "Bucketize", "Cast", "Ceil",
    "CheckNumerics", "CheckNumericsV2", "Cholesky", "ClipByValue", "CollectiveBcastSend",
    "CollectiveReduce", "CollectiveReduceV2", "ComplexAbs", "Conj", "Copy", "CopyHost", "Cos",
    "Cosh", "CountUpTo", "Cumprod", "Cumsum", "CumulativeLogsumexp", "DebugGradientIdentity",
    "DebugIdentity", "DebugIdentityV2", "DecodeBase64", "DeepCopy", "Dequantize",
    "DestroyTemporaryVariable", "Digamma", "DrawBoundingBoxes", "DrawBoundingBoxesV2", "Elu",
    "EncodeBase64", "Enter", "Erf", "Erfc", "Erfinv", "Exit", "Exp", "Expm1",
    "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel", "FFT", "FFT2D", "FFT3D", "Floor", "Gelu", "GuaranteeConst",
    "HorovodAllreduce", "HorovodBroadcast", "HSVToRGB", "Identity", "IFFT", "IFFT2D", "IFFT3D",
    "Imag", "InplaceAdd", "InplaceSub", "InplaceUpdate", "Inv", "Invert", "InvertPermutation",
    "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "LogSoftmax",
    "LoopCond", "LRN", "MatrixBandPart", "MatrixInverse", "MatrixSetDiag", "MatrixSetDiagV2",
    "MatrixSetDiagV3", "NcclAllReduce", "Ndtri", "Neg", "NextIteration", "OnesLike",
    "PreventGradient", "Print", "QuantizeAndDequantize", "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3", "RandomShuffle", "Real", "Reciprocal", "RefEnter", "RefExit",
    "RefIdentity", "RefNextIteration", "RegexFullMatch", "RegexReplace", "Relu", "Relu6", "Reverse",
    "ReverseSequence", "ReverseV2", "RGBToHSV", "Rint", "RiscAbs", "Roll", "Round", "Rsqrt",
    "ScatterAdd", "ScatterDiv", "ScatterMax", "ScatterMin", "ScatterMul", "ScatterNdAdd",
    "ScatterNdNonAliasingAdd", "ScatterNdSub", "ScatterNdUpdate", "ScatterSub", "ScatterUpdate",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Snapshot", "Softmax", "Softplus", "Softsign",
    "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradDA", "SparseApplyAdagradV2",
    "SparseApplyCenteredRMSProp", "SparseApplyFtrl", "SparseApplyFtrlV2", "SparseApplyMomentum",
    "SparseApplyProximalAdagrad", "SparseApplyProximalGradientDescent", "SparseApplyRMSProp",
    "Sqrt", "Square", "StaticRegexFullMatch", "StaticRegexReplace", "StopGradient",
    "StridedSliceAssign", "StringLength", "StringLower", "StringStrip", "StringToHashBucket",
    "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber", "StringUpper", "Tan",
    "Tanh", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
    "TensorScatterUpdate", "TensorStridedSliceUpdate", "XlaSharding", "ZerosLike",
)  # fmt: skip
_SAME_AS_ALL = (
    "AccumulateNV2", "AddN", "EluGrad", "FakeQuantWithMinMaxVarsGradient", "GeluGrad", "InvGrad",
    "LeakyReluGrad", "LRNGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad",
    "SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad",
)  # fmt: skip
_BROADCAST = (
    "Add", "AddV2", "ApproximateEqual", "Atan2", "Betainc", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "Complex", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "Igamma", "Igammac", "IgammaGradA", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr",
    "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "NotEqual", "Polygamma", "Pow",
    "RealDiv", "RightShift", "SelectV2", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod",
    "Xdivy", "Xlog1py", "Xlogy", "Zeta",
)  # fmt: skip
_SCALAR = (
    "AccumulatorNumAccumulated", "AnonymousSeedGenerator", "AudioSummary", "AudioSummaryV2",
    "BatchDataset", "BatchDatasetV2", "CacheDataset", "ConcatenateDataset", "DatasetCardinality",
    "DummyIterationCounter", "FilterDataset", "FixedLengthRecordDataset",
    "FixedLengthRecordReaderV2", "FlatMapDataset", "GeneratorDataset", "HashTableV2",
    "HistogramSummary", "HorovodLocalRank", "HorovodRank", "HorovodSize", "IdentityReaderV2",
    "ImageSummary", "InterleaveDataset", "IteratorToStringHandle", "L2Loss", "LookupTableSizeV2",
    "MapAndBatchDataset", "MapDataset", "MergeSummary", "ModelDataset", "MutableHashTableV2",
    "MutexV2", "OptimizeDataset", "OptionalFromValue", "OptionalHasValue", "OptionalNone",
    "OptionsDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2", "ParallelInterleaveDataset",
    "ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset", "QueueSize", "QueueSizeV2",
    "RangeDataset", "Rank", "ReadFile", "RepeatDataset", "ResourceAccumulatorNumAccumulated",
    "ScalarSummary", "ShardedFilename", "ShuffleAndRepeatDataset", "ShuffleDataset",
    "ShuffleDatasetV3", "Size", "SkipDataset", "StatelessRandomGetAlg", "SummaryWriter",
    "TakeDataset", "TensorArraySizeV3", "TensorDataset", "TensorListLength", "TensorListSplit",
    "TensorSliceDataset", "TensorSummary", "TensorSummaryV2", "TextLineDataset", "TextLineReaderV2",
    "TFRecordDataset", "TFRecordReaderV2", "VarIsInitializedOp", "WholeFileReaderV2", "ZipDataset",
)  # fmt: skip
# Ops that hand data to a step; an unknown first dimension of theirs is the batch.
INPUT_OPS = frozenset(
    {
        "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "IteratorGetNext",
        "IteratorGetNextSync", "IteratorGetNextAsOptional", "QueueDequeue", "QueueDequeueV2",
        "QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2",
        "Unstage", "StagePeek", "MapUnstage", "RecordInput", "MultiDeviceIteratorGetNextFromShard",
        "InfeedDequeue", "InfeedDequeueTuple", "ParseExample", "ParseExampleV2", "PyFunc",
        "EagerPyFunc", "PyFuncStateless", "ReaderReadUpToV2", "TPUReplicatedInput", "_Arg", "_Recv",
    }
)  # fmt: skip


@rule(*_SAME)
def _same(call: OpCall) -> Sequence[Shape]:
    call.hand_on(0, 0)
    return (call.shape(0),)


@rule(*_SAME_AS_ALL)
def _same_as_all(call: OpCall) -> Sequence[Shape]:
    return (merged(*call.shapes),)


@rule(*_BROADCAST)
def _broadcast(call: OpCall) -> Sequence[Shape]:
    return (broadcast(call.shapes),)


@rule(*_SCALAR)
def _scalar(_: OpCall) -> Sequence[Shape]:
    return ((),)


@rule("IdentityN", "TupleBarrier")
def _each(call: OpCall) -> Sequence[Shape]:
    for number in range(len(call.shapes)):
        call.hand_on(number, number)
    return tuple(call.shapes)


@rule("EnsureShape", "PlaceholderWithDefault")
def _ensured(call: OpCall) -> Sequence[Shape]:
    given = call.listed("shape")
    if call.node.op == "PlaceholderWithDefault":
        return given or (None,)
    return (merged(*given, call.shape(0)),)


@rule("Select")
def _select(call: OpCall) -> Sequence[Shape]:
    return (merged(call.shape(1), call.shape(2)),)


@rule("Const")
def _constant(call: OpCall) -> Sequence[Shape] | None:
    constant = call.node.constant
    return None if constant is None else (constant.shape,)


@rule(
    "Placeholder", "PlaceholderV2", "Variable", "VariableV2", "AutoReloadVariable",
    "TemporaryVariable", "ImmutableConst", "_Arg",
)  # fmt: skip
def _shape_attribute(call: OpCall) -> Sequence[Shape] | None:
    handles = call.listed("_handle_shapes")
    if handles:
        call.create().learn(handles[0])
    elif call.node.types.get("dtype", call.node.types.get("T")) == (_RESOURCE,):
        call.create()
    given = call.listed("shape")
    if given == ((),) and call.node.op == "Placeholder" and not _is_scalar(call):
        return None
    return given or None


def _is_scalar(call: OpCall) -> bool:
    """Whether a placeholder without dimensions is a scalar.

    Graphs before TensorFlow 1.4 write the same for an unknown rank; then `_output_shapes` tells, or
    an op that reads the placeholder and needs an axis.
    """
    if call.node.shapes is not None:
        return call.node.shapes == ((),)
    return not any(call.readers(op, number, (call.at, 0)) for op, number in _AXIS_READERS)


@rule("Assign")
def _assign(call: OpCall) -> Sequence[Shape]:
    if call.number("validate_shape", 1):
        return (merged(call.shape(0), call.shape(1)),)
    return (call.shape(1),)


@rule(
    "NoOp", "ControlTrigger", "Assert", "SaveV2", "Save", "MergeV2Checkpoints",
    "ResourceSparseApplyAdagrad", "ResourceSparseApplyAdagradV2",
    "ResourceSparseApplyMomentum", "ResourceSparseApplyKerasMomentum", "ResourceSparseApplyRMSProp",
    "ResourceSparseApplyCenteredRMSProp", "ResourceSparseApplyFtrl", "ResourceSparseApplyFtrlV2",
    "ResourceSparseApplyAdadelta", "ResourceSparseApplyProximalGradientDescent",
    "ResourceSparseApplyProximalAdagrad", "ResourceScatterAdd", "ResourceScatterSub",
    "ResourceScatterUpdate", "ResourceScatterMul", "ResourceScatterDiv", "ResourceScatterMin",
    "ResourceScatterMax", "ResourceScatterNdAdd", "ResourceScatterNdUpdate", "ResourceScatterNdSub",
    "ResourceStridedSliceAssign", "MakeIterator", "DestroyResourceOp", "DisableCopyOnRead",
    "QueueClose", "QueueCloseV2", "StackClose", "StackCloseV2", "TensorArrayCloseV3",
    "WriteSummary", "WriteScalarSummary", "WriteHistogramSummary", "WriteImageSummary",
    "FlushSummaryWriter", "CloseSummaryWriter", "CreateSummaryFileWriter", "LookupTableImportV2",
    "InitializeTableV2", "InitializeTableFromTextFileV2", "InitializeTable", "LookupTableImport",
    "LookupTableInsertV2", "AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient",
    "SparseAccumulatorApplyGradient", "AccumulatorSetGlobalStep",
    "ResourceAccumulatorSetGlobalStep", "PrintV2", "Abort", "DeleteIterator", "DeleteMemoryCache",
    "_Send", "_HostSend", "InfeedEnqueueTuple", "TPUReplicateMetadata", "DeleteSeedGenerator",
)  # fmt: skip
def _nothing(_: OpCall) -> Sequence[Shape]:
    return ()


@rule(
    "AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "ConditionalAccumulator",
    "SparseConditionalAccumulator",
)  # fmt: skip
def _accumulator(call: OpCall) -> Sequence[Shape] | None:
    if call.node.op.endswith("TakeGradient"):
        holder = call.holder(0)
        return None if holder is None else (holder.read(),)
    holder = call.create()
    for shape in call.listed("shape"):
        holder.learn(shape)
    return ((2,),)


@rule("ResourceConditionalAccumulator")
def _resource_accumulator(call: OpCall) -> Sequence[Shape]:
    holder = call.create()
    for shape in call.listed("shape"):
        holder.learn(shape)
    return ((2,),)


@rule("SparseAccumulatorTakeGradient")
def _sparse_accumulator(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    shape = None if holder is None else holder.read()
    return ((-1,), None if shape is None else (-1, *shape[1:]), (-1,))


@rule("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: OpCall) -> Sequence[Shape]:
    logits = merged(call.shape(0), call.shape(1))
    return (None if logits is None else logits[:1], logits)


@rule("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(call: OpCall) -> Sequence[Shape]:
    logits = call.shape(0)
    labels = merged(call.shape(1), None if logits is None else logits[:1])
    if logits and labels:
        logits = (labels[0] if logits[0] < 0 else logits[0], *logits[1:])
    return labels, logits


@rule(
    "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
    "ParameterizedTruncatedNormal", "StatelessRandomUniform", "StatelessRandomNormal",
    "StatelessTruncatedNormal", "StatelessRandomUniformV2", "StatelessRandomNormalV2",
    "StatelessTruncatedNormalV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessRandomBinomial",
    "StatelessParameterizedTruncatedNormal", "Empty",
)  # fmt: skip
def _random(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(0),)


@rule(
    "StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal", "StatefulUniformInt",
)  # fmt: skip
def _stateful_random(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(2),)


@rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def _key_counter(_: OpCall) -> Sequence[Shape]:
    return ((1,), (2,), ())


@rule("RandomGamma", "RandomPoisson", "RandomPoissonV2")
def _random_gamma(call: OpCall) -> Sequence[Shape]:
    sizes, alpha = call.sizes(0), call.shape(1)
    return (None if sizes is None or alpha is None else (*sizes, *alpha),)


@rule("Multinomial", "StatelessMultinomial")
def _multinomial(call: OpCall) -> Sequence[Shape]:
    logits, drawn = call.shape(0), call.scalar(1)
    return ((size_at(logits, 0), -1 if drawn is None else drawn),)


@rule(
    "UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
    "FixedUnigramCandidateSampler", "AllCandidateSampler", "ThreadUnsafeUnigramCandidateSampler",
)  # fmt: skip
def _candidates(call: OpCall) -> Sequence[Shape]:
    drawn = call.number("num_sampled", -1)
    return ((drawn,), merged(call.shape(0), (-1, call.number("num_true", -1))), (drawn,))


@rule("ComputeAccidentalHits")
def _accidental_hits(_: OpCall) -> Sequence[Shape]:
    return ((-1,), (-1,), (-1,))


@rule("CTCLoss", "CTCLossV2")
def _ctc_loss(call: OpCall) -> Sequence[Shape]:
    logits = call.shape(0)
    return (None if logits is None else logits[1:2], logits)


@rule("RestoreV2")
def _restore(call: OpCall) -> Sequence[Shape] | None:
    count = call.num_types("dtypes")
    return (None,) * count if count else None


@rule("LookupTableFindV2", "LookupTableFind")
def _find(call: OpCall) -> Sequence[Shape]:
    return (call.shape(1),)


@rule("InTopK", "InTopKV2")
def _in_top_k(call: OpCall) -> Sequence[Shape]:
    return (merged(call.shape(1), None if call.shape(0) is None else (call.shape(0) or (-1,))[:1]),)


@rule("IsVariableInitialized")
def _initialised(_: OpCall) -> Sequence[Shape]:
    return ((),)
