"""Shape functions of element-wise ops, sources, variables, optimizers, losses and random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.raw import Shape
from driple.graph.shape_call import OpCall, broadcast, merged, rule

__all__ = ["INPUT_OPS"]

_RESOURCE = 20  # DT_RESOURCE
_SAME = (
    "Abs", "Acos", "Acosh", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Angle", "Asin",
    "Asinh", "Atan", "Atanh", "Bitcast", "Cast", "Ceil", "CheckNumerics", "CheckNumericsV2", "Conj",
    "ComplexAbs", "Copy", "CopyHost", "Cos", "Cosh", "Cumprod", "Cumsum", "CumulativeLogsumexp",
    "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "Digamma",
    "DrawBoundingBoxes", "DrawBoundingBoxesV2", "Elu", "EncodeBase64", "DecodeBase64",
    "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "FFT", "FFT2D", "FFT3D", "IFFT",
    "IFFT2D", "IFFT3D", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxArgsGradient", "Floor", "Gelu", "HSVToRGB",
    "Identity", "Imag", "Inv", "Invert", "InvertPermutation", "IsFinite", "IsInf", "IsNan", 
    "LRN", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogSoftmax", "LogicalNot",
    "LoopCond", "MatrixBandPart", "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "MatrixInverse",
    "Cholesky", "Ndtri", "Neg", "OnesLike", "PreventGradient",
    "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "RGBToHSV",
    "RandomShuffle", "Real", "Reciprocal", "RefIdentity", "Relu", "Relu6", "Reverse", "ReverseSequence",
    "ReverseV2", "Rint", "Roll", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Snapshot",
    "Softmax", "Softplus", "Softsign", "Sqrt", "Square", "StopGradient", "StringLower", "StringUpper",
    "StringStrip", "RegexReplace", "StaticRegexReplace", "StaticRegexFullMatch", "RegexFullMatch", "StringLength", "AsString",
    "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringToNumber", "Tan", "Tanh", "Bucketize",
    "TensorScatterAdd", "TensorScatterUpdate", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin",
    "InplaceUpdate", "InplaceAdd", "InplaceSub", "DeepCopy", "ZerosLike", "BiasAdd", "BiasAddV1",
    "NextIteration", "RefNextIteration", "Enter", "RefEnter", "Exit", "RefExit", "Print", 
    "NcclAllReduce", "CollectiveReduce", "CollectiveReduceV2", "CollectiveBcastSend", "HorovodAllreduce",
    "HorovodBroadcast", "_HostCast", "GuaranteeConst", 
    
    "StridedSliceAssign", "TensorStridedSliceUpdate", "ClipByValue", "Dequantize",
    "ScatterAdd", "ScatterSub", "ScatterUpdate", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax",
    "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "ScatterNdNonAliasingAdd", 
    "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdam",
    "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyFtrlV2", "ApplyGradientDescent",
    "ApplyMomentum", "ApplyPowerSign", "ApplyProximalAdagrad", "ApplyProximalGradientDescent",
    "ApplyRMSProp", "SparseApplyAdadelta", "SparseApplyAdagrad", "SparseApplyAdagradV2",
    "SparseApplyAdagradDA", "SparseApplyCenteredRMSProp", "SparseApplyFtrl", "SparseApplyFtrlV2",
    "SparseApplyMomentum", "SparseApplyProximalAdagrad", "SparseApplyProximalGradientDescent",
    "SparseApplyRMSProp", "AssignAdd", "AssignSub", "CountUpTo", "DestroyTemporaryVariable",
    "RiscAbs", "XlaSharding",
)  # fmt: skip
_SAME_AS_ALL = (
    "AddN", "AccumulateNV2", "EluGrad", "FakeQuantWithMinMaxVarsGradient", "InvGrad", "LeakyReluGrad", "LRNGrad",
    "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad",
    "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad", "GeluGrad",
)  # fmt: skip
_BROADCAST = (
    "Add", "AddV2", "ApproximateEqual", "Atan2", "Betainc", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "Complex", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "Igamma", "IgammaGradA", "Igammac", "LeftShift", "Less", "LessEqual", "LogicalAnd",
    "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NextAfter", "NotEqual",
    "Polygamma", "Pow", "RealDiv", "RightShift", "SelectV2", "SquaredDifference", "Sub",
    "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy", "Zeta",
)  # fmt: skip
_SCALAR = (
    "AudioSummary", "AudioSummaryV2", "HistogramSummary", "ImageSummary", "L2Loss", "MergeSummary",
    "QueueSize", "QueueSizeV2", "Rank", "ScalarSummary", "ShardedFilename", "Size", 
    "TensorArraySizeV3", "TensorListLength", "TensorSummary", "TensorSummaryV2", 
    
    "IteratorToStringHandle",
    "HashTableV2", "MutableHashTableV2", "LookupTableSizeV2", "VarIsInitializedOp", 
    "ReadFile", "WholeFileReaderV2", "TFRecordReaderV2", "TextLineReaderV2", "FixedLengthRecordReaderV2", "IdentityReaderV2",
    "OptionalFromValue", "OptionalNone", "OptionalHasValue", "AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", "MutexV2",
    "TensorDataset", "TensorSliceDataset", "BatchDataset", "BatchDatasetV2", "MapDataset", "ParallelMapDataset",
    "ParallelMapDatasetV2", "PrefetchDataset", "RepeatDataset", "ShuffleDataset", "ShuffleDatasetV3", "ZipDataset", "RangeDataset",
    "OptionsDataset", "ModelDataset", "OptimizeDataset", "TakeDataset", "SkipDataset", "FilterDataset", "FlatMapDataset",
    "InterleaveDataset", "TFRecordDataset", "TextLineDataset", "CacheDataset", "ConcatenateDataset", "PaddedBatchDataset", "PaddedBatchDatasetV2",
    "MapAndBatchDataset", "ShuffleAndRepeatDataset", "GeneratorDataset", "FixedLengthRecordDataset", "ParallelInterleaveDataset",
    "DummyIterationCounter", "StatelessRandomGetAlg", "SummaryWriter", 
    
    "TensorListSplit", 
    "AnonymousSeedGenerator", "DatasetCardinality", "HorovodRank", "HorovodSize", "HorovodLocalRank",
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


@rule("Placeholder", "PlaceholderV2", "Variable", "VariableV2", "AutoReloadVariable",
      "TemporaryVariable", "ImmutableConst", "_Arg", )  # fmt: skip
def _shape_attribute(call: OpCall) -> Sequence[Shape] | None:
    handles = call.listed("_handle_shapes")
    if handles:
        call.create().learn(handles[0])
    elif call.node.types.get("dtype", call.node.types.get("T")) == (_RESOURCE,):
        call.create()
    given = call.listed("shape")
    if given == ((),) and call.node.shapes not in (None, ((),)):
        return None  # graphs before TensorFlow 1.4 write no dimensions for an unknown rank
    return given or None


@rule("VarHandleOp", "_VarHandlesOp")
def _variable(call: OpCall) -> Sequence[Shape]:
    holder = call.create()
    # A placeholder that stands for a handle has the handle's shape, not the variable's.
    is_handle = call.node.types.get("dtype") == (_RESOURCE,)
    for shape in call.listed("_handle_shapes" if is_handle else "shape"):
        holder.learn(shape)
    return ((),)


@rule("ReadVariableOp")
def _read(call: OpCall) -> Sequence[Shape] | None:
    holder = call.holder(0)
    if holder is None:
        return None
    for shape in (call.node.shapes or ())[:1]:
        holder.learn(shape)
    return (holder.read(),)


@rule("AssignVariableOp")
def _assign_variable(call: OpCall) -> Sequence[Shape]:
    holder = call.holder(0)
    if holder is not None:
        holder.learn(call.shape(1))
    return ()


@rule("Assign")
def _assign(call: OpCall) -> Sequence[Shape]:
    if call.number("validate_shape", 1):
        return (merged(call.shape(0), call.shape(1)),)
    return (call.shape(1),)


@rule("NoOp", "ControlTrigger", "Assert", "SaveV2", "Save", "MergeV2Checkpoints", 
      "AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyAdam", "ResourceApplyGradientDescent",
      "ResourceApplyMomentum", "ResourceApplyKerasMomentum", "ResourceApplyRMSProp",
      "ResourceApplyCenteredRMSProp", "ResourceApplyAdagrad", "ResourceApplyAdagradV2",
      "ResourceApplyAdadelta", "ResourceApplyFtrl", "ResourceApplyFtrlV2", "ResourceApplyAdaMax",
      "ResourceApplyAdamWithAmsgrad", "ResourceApplyProximalGradientDescent",
      "ResourceApplyProximalAdagrad", "ResourceApplyAddSign", "ResourceApplyPowerSign", "ResourceApplyAdagradDA",
      "ResourceSparseApplyAdagrad", "ResourceSparseApplyAdagradV2", "ResourceSparseApplyMomentum",
      "ResourceSparseApplyKerasMomentum", "ResourceSparseApplyRMSProp", "ResourceSparseApplyCenteredRMSProp", "ResourceSparseApplyFtrl",
      "ResourceSparseApplyFtrlV2", "ResourceSparseApplyAdadelta", "ResourceSparseApplyProximalGradientDescent", "ResourceSparseApplyProximalAdagrad",
      "ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate", "ResourceScatterMul", "ResourceScatterDiv",
      "ResourceScatterMin", "ResourceScatterMax", "ResourceScatterNdAdd", "ResourceScatterNdUpdate", "ResourceScatterNdSub",
      "ResourceStridedSliceAssign", "MakeIterator", "DestroyResourceOp", "DisableCopyOnRead",
      "QueueClose", "QueueCloseV2", "StackClose", "StackCloseV2", "TensorArrayCloseV3", "WriteSummary", "WriteScalarSummary",
      "WriteHistogramSummary", "WriteImageSummary", "FlushSummaryWriter", "CloseSummaryWriter", "CreateSummaryFileWriter",
      "LookupTableImportV2", "InitializeTableV2", "InitializeTableFromTextFileV2", "InitializeTable", "LookupTableImport",
      "LookupTableInsertV2", "AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient",
      "SparseAccumulatorApplyGradient", "AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep",
      "PrintV2", "Abort", "DeleteIterator", "DeleteMemoryCache", "_Send", "_HostSend", "InfeedEnqueueTuple",
      "TPUReplicateMetadata", "DeleteSeedGenerator")  # fmt: skip
def _nothing(_: OpCall) -> Sequence[Shape]:
    return ()


@rule("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient",
      "ConditionalAccumulator", "SparseConditionalAccumulator")  # fmt: skip
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
    if logits is not None and labels is not None:
        logits = (labels[0] if logits[0] < 0 else logits[0], *logits[1:])
    return labels, logits


@rule("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
      "ParameterizedTruncatedNormal", "StatelessRandomUniform", "StatelessRandomNormal",
      "StatelessTruncatedNormal", "StatelessRandomUniformV2", "StatelessRandomNormalV2",
      "StatelessTruncatedNormalV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2",
      "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessRandomBinomial",
      "StatelessParameterizedTruncatedNormal", "Empty")  # fmt: skip
def _random(call: OpCall) -> Sequence[Shape]:
    return (call.sizes(0),)


@rule(
    "StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal", "StatefulUniformInt"
)
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
    return ((-1 if logits is None else logits[0], -1 if drawn is None else drawn),)


@rule("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
      "FixedUnigramCandidateSampler", "AllCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")  # fmt: skip
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
