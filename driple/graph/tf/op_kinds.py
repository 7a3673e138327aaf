"""TensorFlow's op types, and the kind of op (`driple.graph.opkind`) that each is.

op type --kind_of_op_type--> kind --op_type_of_kind--> the most usual of its op types

Versions (`V2`), fused variants and those that take a variable by its handle (`Resource`) are one
kind with the op itself. An op type that is in no table is known by a part of its name, if at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

__all__ = ["kind_of_op_type", "op_type_of_kind"]

# A kind and its op types, the most usual one first.
_OP_TYPES = """
conv: Conv2D Conv3D _FusedConv2D _FusedConv3D
depthwise_conv: DepthwiseConv2dNative _FusedDepthwiseConv2dNative
conv_input_gradient: Conv2DBackpropInput Conv2DBackpropInputV2 Conv3DBackpropInput
  Conv3DBackpropInputV2
depthwise_conv_input_gradient: DepthwiseConv2dNativeBackpropInput
conv_filter_gradient: Conv2DBackpropFilter Conv2DBackpropFilterV2 Conv3DBackpropFilter
  Conv3DBackpropFilterV2
depthwise_conv_filter_gradient: DepthwiseConv2dNativeBackpropFilter
matmul: MatMul _FusedMatMul SparseMatMul
batch_matmul: BatchMatMulV2 BatchMatMul BatchMatMulV3
block_lstm: BlockLSTM BlockLSTMV2
block_lstm_gradient: BlockLSTMGrad BlockLSTMGradV2
lstm_cell: LSTMBlockCell
gru_cell: GRUBlockCell
gru_cell_gradient: GRUBlockCellGrad
cudnn_rnn: CudnnRNN CudnnRNNV2 CudnnRNNV3
cudnn_rnn_gradient: CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3
einsum: Einsum
dilation: Dilation2D
dilation_input_gradient: Dilation2DBackpropInput
dilation_filter_gradient: Dilation2DBackpropFilter
sparse_dense_matmul: SparseTensorDenseMatMul
ctc_loss: CTCLoss CTCLossV2
lstm_cell_gradient: LSTMBlockCellGrad
cudnn_rnn_weights: CudnnRNNCanonicalToParams CudnnRNNCanonicalToParamsV2 CudnnRNNParamsToCanonical
  CudnnRNNParamsToCanonicalV2
add: AddV2 Add
add_n: AddN AccumulateNV2
bias_add: BiasAdd BiasAddV1
bias_gradient: BiasAddGrad
div: RealDiv Div DivNoNan TruncateDiv
floor_div: FloorDiv
mul: Mul MulNoNan
modulo: FloorMod TruncateMod Mod
round: Round Rint
reciprocal: Reciprocal Inv
reciprocal_gradient: ReciprocalGrad InvGrad
where: SelectV2
select: Select
nonzero: Where
clip: ClipByValue
assign_sum: AssignAdd AssignSub
assign_sum_to_handle: AssignAddVariableOp AssignSubVariableOp
assign: Assign
assign_to_handle: AssignVariableOp AssignVariableXlaConcatND
compare: Less LessEqual Greater GreaterEqual Equal NotEqual ApproximateEqual
logical: LogicalAnd LogicalOr LogicalNot
bitwise: BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift PopulationCount
is_finite: IsFinite IsInf IsNan
special_function: Erfc Erfinv Ndtri Lgamma Digamma Polygamma Igamma Igammac IgammaGradA Zeta
  Betainc BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1
  BesselK1e BesselY0 BesselY1 Dawsn Expint FresnelCos FresnelSin Spence NextAfter
trigonometric: Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Asinh Acosh Atanh
complex_part: Conj ComplexAbs Angle
complex_copy: Complex Real Imag
x_log_y: Xdivy Xlogy Xlog1py
random: RandomUniform NonDeterministicInts ParameterizedTruncatedNormal RandomGamma RandomPoisson
  RandomPoissonV2 RandomStandardNormal RandomUniformInt StatefulRandomBinomial
  StatefulStandardNormal StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform
  StatefulUniformFullInt StatefulUniformInt StatelessParameterizedTruncatedNormal
  StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomNormal
  StatelessRandomNormalV2 StatelessRandomPoisson StatelessRandomUniform
  StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomUniformInt
  StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessTruncatedNormal
  StatelessTruncatedNormalV2 TruncatedNormal
arange: Range LinSpace
random_choice: Multinomial StatelessMultinomial
random_gamma_gradient: RandomGammaGrad
reduce_sum: Sum
reduce_prod: Prod
reduce_max: Max
reduce_min: Min
reduce_logical: All Any
arg_max: ArgMax ArgMin
reduce_norm: EuclideanNorm
reduce_mean: Mean
tile_gradient: TileGrad
sum_of_squares: L2Loss
cumulative: Cumsum Cumprod
cumulative_logsumexp: CumulativeLogsumexp
top_k: TopKV2 TopK ApproxTopK NthElement
in_top_k: InTopK InTopKV2
bucketize: Bucketize
maximum: Maximum
minimum: Minimum
fake_quantize: FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel
  QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4
fake_quantize_gradient: FakeQuantWithMinMaxArgsGradient QuantizeAndDequantizeV4Grad
fake_quantize_range_gradient: FakeQuantWithMinMaxVarsGradient
fake_quantize_channel_gradient: FakeQuantWithMinMaxVarsPerChannelGradient
cholesky: Cholesky BatchCholesky
cholesky_gradient: CholeskyGrad BatchCholeskyGrad
matrix_inverse: MatrixInverse BatchMatrixInverse
solve: MatrixSolve BatchMatrixSolve
solve_triangular: MatrixTriangularSolve BatchMatrixTriangularSolve
solve_least_squares: MatrixSolveLs BatchMatrixSolveLs
svd: Svd BatchSvd
lu: Lu MatrixDeterminant BatchMatrixDeterminant LogMatrixDeterminant
solve_banded: BandedTriangularSolve
solve_tridiagonal: TridiagonalSolve
tridiagonal_matmul: TridiagonalMatMul
symmetric_eigen: SelfAdjointEigV2 BatchSelfAdjointEigV2
eigen: Eig
fft: FFT IFFT
real_fft: RFFT IRFFT
fft_2d: FFT2D IFFT2D
real_fft_2d: RFFT2D IRFFT2D
fft_3d: FFT3D IFFT3D
real_fft_3d: RFFT3D IRFFT3D
segment_reduce: SegmentSum SegmentSumV2 SegmentProd SegmentProdV2 SegmentMin SegmentMinV2
  SegmentMax SegmentMaxV2 SegmentMean
scatter_reduce_rows: UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMin UnsortedSegmentMax
sparse_segment_reduce: SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanGradV2
  SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNGrad
  SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumGrad
  SparseSegmentSumGradV2 SparseSegmentSumWithNumSegments
histogram: Bincount DenseBincount
sparse_histogram: SparseBincount
histogram_fixed: HistogramFixedWidth
scatter_add: ScatterAdd ResourceScatterAdd
scatter_arithmetic: InplaceAdd InplaceSub ResourceScatterDiv ResourceScatterMax ResourceScatterMin
  ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin
  ResourceScatterNdSub ResourceScatterSub ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd
  ScatterNdMax ScatterNdMin ScatterNdSub ScatterSub
tensor_scatter: TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
  ScatterNdNonAliasingAdd
scatter_write: ScatterUpdate InplaceUpdate ResourceScatterNdUpdate ResourceScatterUpdate
  ScatterNdUpdate
sparse_reduce: SparseReduceSum SparseReduceMax SparseReduceMaxSparse SparseReduceSumSparse
sparse_dense_elementwise: SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul
  SparseTensorDenseAdd
sparse_add: SparseAdd SparseSparseMaximum SparseSparseMinimum
sparse_add_gradient: SparseAddGrad
candidate_sampling: AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler
  LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler
accidental_hits: ComputeAccidentalHits
search_sorted: LowerBound UpperBound
non_max_suppression: NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
  NonMaxSuppressionV5
non_max_suppression_by_class: CombinedNonMaxSuppression
adjust_contrast: AdjustContrast AdjustContrastv2
adjust_colours: AdjustHue AdjustSaturation HSVToRGB RGBToHSV
resize_linear: ResizeBilinear
resize_linear_gradient: ResizeBilinearGrad
resize_cubic: ResizeBicubic
resize_cubic_gradient: ResizeBicubicGrad
resize_nearest: ResizeNearestNeighbor
resize_nearest_gradient: ResizeNearestNeighborGrad
resize_area: ResizeArea
image_transform: ImageProjectiveTransformV2 ImageProjectiveTransformV3
crop_and_resize: CropAndResize
crop_and_resize_image_gradient: CropAndResizeGradImage
crop_and_resize_box_gradient: CropAndResizeGradBoxes
concat: ConcatV2 Concat ParallelConcat
split: Split SplitV
stack: Pack
unstack: Unpack
slice: StridedSlice Slice
slice_gradient: StridedSliceGrad
slice_write: StridedSliceAssign ResourceStridedSliceAssign TensorStridedSliceUpdate
pad: Pad PadV2 MirrorPad
pad_gradient: MirrorPadGrad
transpose: Transpose ConjugateTranspose
tile: Tile
broadcast_to: BroadcastTo
gather: GatherV2 Gather GatherNd ResourceGather ResourceGatherNd
scatter_new: ScatterNd
tensor_scatter_write: TensorScatterUpdate
cast: Cast
host_cast: _HostCast
copy: Copy DeepCopy CopyHost
fill: Fill
empty: Empty
fill_like: ZerosLike OnesLike
one_hot: OneHot
reverse: ReverseV2 Reverse ReverseSequence
stitch: DynamicStitch ParallelDynamicStitch
partition: DynamicPartition
unique: Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 ListDiff
extract_patches: ExtractImagePatches ExtractVolumePatches
glimpse: ExtractGlimpse ExtractGlimpseV2
draw_boxes: DrawBoundingBoxes DrawBoundingBoxesV2
random_crop: RandomCrop
space_to_depth: SpaceToDepth DepthToSpace SpaceToBatch SpaceToBatchND BatchToSpace BatchToSpaceND
roll: Roll
shuffle: RandomShuffle StatelessShuffle
permutation: InvertPermutation DataFormatVecPermute DataFormatDimMap UnravelIndex
diagonal: MatrixDiag MatrixDiagV2 MatrixDiagV3 Diag BatchMatrixDiag MatrixSetDiag MatrixSetDiagV2
  MatrixSetDiagV3 BatchMatrixSetDiag BatchMatrixDiagPart
diagonal_part: MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 DiagPart
band_part: MatrixBandPart BatchMatrixBandPart
sparse_copy: SparseToDense SparseConcat SparseSplit SparseSliceGrad SparseReorder
  SparseFillEmptyRows SparseCross SparseCrossV2 SparseCrossHashed
sparse_slice: SparseSlice
set_operation: DenseToDenseSetOperation DenseToSparseSetOperation SparseToSparseSetOperation
string_to_number: StringToNumber StringToHashBucket StringToHashBucketFast StringToHashBucketStrong
table_lookup: LookupTableFind LookupTableFindV2
constant_elsewhere: _EagerConst ImmutableConst FakeParam PlaceholderV2 GuaranteeConst
debug: DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugGradientIdentity DebugGradientRefIdentity
shape_arithmetic: BroadcastArgs ConcatOffset SparseReshape CudnnRNNParamsSize
device_argument: _DeviceArg _DeviceRetval _ListToArray _ArrayToList
switch_n: _SwitchN
check_inf: CheckNumericsV2
host_value: ToBool DeviceIndex CountUpTo ResourceCountUpTo Timestamp AsString
variable: VariableV2 Variable TemporaryVariable
variable_state: VarIsInitializedOp IsVariableInitialized DestroyResourceOp DestroyTemporaryVariable
  DisableCopyOnRead
random_state: StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg
  RngReadAndSkip RngSkip
stage: Stage Unstage StagePeek StageSize StageClear
summary: ScalarSummary AudioSummary AudioSummaryV2 CloseSummaryWriter CreateSummaryFileWriter
  FlushSummaryWriter HistogramSummary ImageSummary MergeSummary SummaryWriter TensorSummary
  TensorSummaryV2 WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary
  WriteRawProtoSummary WriteScalarSummary WriteSummary MergeV2Checkpoints
print: PrintV2 Print
host_send: _HostSend
transfer: Send Recv _HostRecv
python_call: PyFunc PyFuncStateless EagerPyFunc
all_reduce: NcclAllReduce CollectiveReduce CollectiveReduceV2 HorovodAllreduce
broadcast_parameters: HorovodBroadcast
gradient_accumulator: ConditionalAccumulator ResourceConditionalAccumulator
  SparseConditionalAccumulator
accumulate_gradient: AccumulatorApplyGradient ResourceAccumulatorApplyGradient
  SparseAccumulatorApplyGradient
take_gradient: AccumulatorTakeGradient ResourceAccumulatorTakeGradient
  SparseAccumulatorTakeGradient
queue_enqueue: QueueEnqueueV2 QueueEnqueue
abs: Abs
ceil: Ceil
cross: Cross
elu: Elu
elu_gradient: EluGrad
erf: Erf
exp: Exp
expm1: Expm1
floor: Floor
leaky_relu: LeakyRelu
leaky_relu_gradient: LeakyReluGrad
log: Log
log1p: Log1p
neg: Neg
pow: Pow
qr: Qr
relu: Relu
relu6: Relu6
relu6_gradient: Relu6Grad
relu_gradient: ReluGrad
rsqrt: Rsqrt
rsqrt_gradient: RsqrtGrad
selu: Selu
selu_gradient: SeluGrad
sigmoid: Sigmoid
sigmoid_gradient: SigmoidGrad
sign: Sign
softplus: Softplus
softplus_gradient: SoftplusGrad
softsign: Softsign
softsign_gradient: SoftsignGrad
sparse_fill_empty_rows_gradient: SparseFillEmptyRowsGrad
sqrt: Sqrt
sqrt_gradient: SqrtGrad
square: Square
squared_difference: SquaredDifference
sub: Sub
tanh: Tanh
tanh_gradient: TanhGrad
batch_norm: FusedBatchNormV3 FusedBatchNormV2 FusedBatchNorm _FusedBatchNormEx
batch_norm_gradient: FusedBatchNormGradV3 FusedBatchNormGradV2 FusedBatchNormGrad
  _FusedBatchNormGradEx
given_batch_norm: BatchNormWithGlobalNormalization
given_batch_norm_gradient: BatchNormWithGlobalNormalizationGrad
max_pool: MaxPool MaxPool3D MaxPoolV2 MaxPoolWithArgmax
max_pool_gradient: MaxPoolGrad MaxPool3DGrad MaxPoolGradV2
max_pool_scatter_gradient: MaxPoolGradWithArgmax
max_pool_second_gradient: MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3DGradGrad
avg_pool: AvgPool AvgPool3D
avg_pool_gradient: AvgPoolGrad AvgPool3DGrad
fractional_pool: FractionalMaxPool FractionalAvgPool
fractional_max_pool_gradient: FractionalMaxPoolGrad
fractional_avg_pool_gradient: FractionalAvgPoolGrad
local_response_norm: LRN
local_response_norm_gradient: LRNGrad
cross_entropy: SparseSoftmaxCrossEntropyWithLogits
soft_cross_entropy: SoftmaxCrossEntropyWithLogits
log_softmax: LogSoftmax
softmax: Softmax
sparse_softmax: SparseSoftmax
list_handle: Stack StackClose StackCloseV2 StackV2 TensorArray TensorArrayClose TensorArrayCloseV2
  TensorArrayCloseV3 TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArrayV2
  TensorArrayV3 TensorListElementShape TensorListLength TensorListResize
list_gradient: TensorArrayGradV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradWithShape
list_write: StackPop StackPopV2 StackPush StackPushV2 TensorArrayConcat TensorArrayScatter
  TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySplit TensorArraySplitV2 TensorArraySplitV3
  TensorArrayUnpack TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3 TensorListConcatLists
  TensorListFromTensor TensorListPushBack TensorListPushBackBatch TensorListScatter
  TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit
list_read: TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2
  TensorArrayGatherV3 TensorArrayPack TensorArrayRead TensorArrayReadV2 TensorArrayReadV3
  TensorListConcat TensorListConcatV2 TensorListGather TensorListGetItem TensorListPopBack
  TensorListStack
list_reserve: TensorListReserve EmptyTensorList
constant: Const HostConst
placeholder: Placeholder PlaceholderWithDefault
identity: Identity
identity_n: IdentityN RefIdentity Snapshot StopGradient PreventGradient
view: Reshape ExpandDims Squeeze Bitcast EnsureShape
shape_of: Shape ShapeN Size Rank VariableShape BroadcastGradientArgs
function_argument: _Arg _Retval
no_op: NoOp ControlTrigger
enter: Enter RefEnter
exit: Exit RefExit While StatelessWhile
merge: Merge RefMerge If StatelessIf Case StatelessCase
switch: Switch RefSwitch
next_iteration: NextIteration RefNextIteration
loop_condition: LoopCond
check: Assert CheckNumerics
variable_handle: VarHandleOp _VarHandlesOp
read_variable: ReadVariableOp _ReadVariablesOp
send: _Send
receive: _Recv
"""
# Optimizers of the training ops: `ApplyAdam`, `ResourceSparseApplyAdam` and so on.
_OPTIMIZERS: Mapping[str, str] = MappingProxyType(
    {
        "sgd": "GradientDescent",
        "momentum": "Momentum KerasMomentum",
        "adagrad": "Adagrad",
        "adagrad_epsilon": "AdagradV2",
        "rmsprop": "RMSProp",
        "centered_rmsprop": "CenteredRMSProp",
        "adam": "Adam",
        "amsgrad": "AdamWithAmsgrad",
        "adamax": "AdaMax",
        "adadelta": "Adadelta",
        "adagrad_da": "AdagradDA",
        "ftrl": "Ftrl",
        "ftrl_shrinkage": "FtrlV2",
        "proximal_sgd": "ProximalGradientDescent",
        "proximal_adagrad": "ProximalAdagrad",
        "add_sign": "AddSign",
        "power_sign": "PowerSign",
    }
)


def _table() -> dict[str, tuple[str, ...]]:
    """Op types of each kind, the most usual first."""
    op_types_of: dict[str, tuple[str, ...]] = {}
    for line in _OP_TYPES.replace("\n  ", " ").strip().splitlines():
        kind, _, op_types = line.partition(":")
        op_types_of[kind] = tuple(op_types.split())
    for optimizer, names in _OPTIMIZERS.items():
        for kind, prefix in (("update", ""), ("sparse_update", "Sparse")):
            op_types_of[f"{kind}_{optimizer}"] = tuple(
                f"{resource}{prefix}Apply{name}"
                for name in names.split()
                for resource in ("", "Resource")
            )
    return op_types_of


_TABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(_table())
_KIND_OF: Mapping[str, str] = MappingProxyType(
    {op_type: kind for kind, op_types in _TABLE.items() for op_type in op_types}
)
# The first part of a name that is found in the op type decides.
_PARTS = (
    ("Conv2DBackpropInput", "other_input_gradient"),
    ("Conv2dNativeBackpropInput", "other_input_gradient"),
    ("Conv2DBackpropFilter", "other_filter_gradient"),
    ("Conv2dNativeBackpropFilter", "other_filter_gradient"),
    ("Conv3DBackpropInput", "other_input_gradient"),
    ("Conv3DBackpropFilter", "other_filter_gradient"),
    ("Conv2D", "other_convolution"),
    ("Conv2d", "other_convolution"),
    ("Conv3D", "other_convolution"),
    ("SparseTensorDenseMatMul", "other"),  # bound by the rows that it picks
    ("MatMul", "other_matmul"),
    ("Einsum", "other_matmul"),
    ("BatchNorm", "other_normalisation"),
    ("LayerNorm", "other_normalisation"),
    ("Pool", "other_pooling"),
    ("LRN", "other_pooling"),
    ("Softmax", "other_softmax"),
    ("TensorList", "other_lists"),
    ("TensorArray", "other_lists"),
    ("Stack", "other_lists"),
)
_UPDATE = re.compile(r"(Resource)?(Sparse)?Apply\w+|(Resource)?Scatter\w+")
_GRADIENT = re.compile(r"\w+Grad(?:V\d)?|\w+Backprop\w*")
_COLLECTIVE = re.compile(
    r"Horovod\w+|_?Nccl\w+|Collective\w+|Ring(?:Allreduce|Broadcast)|BytepsPushPull"
)
# Tables, iterators and queues, whose elements another thread makes; text and files, which the host
# alone handles. Decoding and parsing are left to be reported.
_HOST = re.compile(
    r"Optional\w+|\w*Iterator\w*|\w*Queue\w*|\w*HashTable\w*|InitializeTable\w*|LookupTable\w+"
    r"|\w*Dataset\w*|\w*Reader\w*|String\w+|Substr|\w*Regex\w*|Unicode\w+|ReduceJoin|Sharded\w+"
    r"|Save\w*|Restore\w*"
)


@cache
def kind_of_op_type(op_type: str) -> str:
    """The kind of an op type; `other` is all of which nothing is known."""
    listed = _KIND_OF.get(op_type)
    if listed is not None:
        return listed
    for pattern, kind in ((_COLLECTIVE, "collective"), (_HOST, "host"), (_UPDATE, "update_other")):
        if pattern.fullmatch(op_type):
            return kind
    rest = "other_gradient" if _GRADIENT.fullmatch(op_type) else "other"
    return next((kind for part, kind in _PARTS if part in op_type), rest)


def op_type_of_kind(kind: str) -> str | None:
    """The most usual op type of a kind; None if TensorFlow has no op of it."""
    return _TABLE[kind][0] if kind in _TABLE else None
