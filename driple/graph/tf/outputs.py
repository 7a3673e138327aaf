"""Numbers of the outputs that bodies of functions name as `node:name:index`.

A GraphDef counts the outputs of a node; a FunctionDef names them, and counts within a name. The
table holds the ops with several names; an op with one needs none.
"""

from __future__ import annotations

__all__ = ["output_of"]

# Names of the outputs, and the ops that have them (TensorFlow's op registry).
_OUTPUTS: tuple[tuple[str, str], ...] = (
    ("backprops_wrt_input backprop_wrt_min backprop_wrt_max",
     "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient"),
    ("begin size bboxes", "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"),
    ("cs_prev_grad dicfo wci_grad wcf_grad wco_grad", "LSTMBlockCellGrad"),
    ("d_x d_h_prev d_c_bar d_r_bar_u_bar", "GRUBlockCellGrad"),
    ("decoded_indices decoded_values decoded_shape log_probability", "CTCGreedyDecoder"),
    ("dx dm dv db dg", "BatchNormWithGlobalNormalizationGrad"),
    ("e v", "SelfAdjointEigV2"),
    ("grad_handle flow_out", "TensorArrayGradV3 TensorArrayGradWithShape"),
    ("handle deleter", "AnonymousIteratorV2 AnonymousSeedGenerator"),
    ("handle flow", "TensorArrayV3"),
    ("i cs f o ci co h", "LSTMBlockCell BlockLSTM BlockLSTMV2"),
    ("indices ids weights", "ComputeAccidentalHits"),
    ("indices values shape", "SparseAccumulatorTakeGradient StringSplit StringSplitV2"),
    ("input_backprop input_h_backprop input_c_backprop params_backprop",
     "CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3"),
    ("key counter", "StatelessRandomGetKeyCounter"),
    ("key counter alg", "StatelessRandomGetKeyCounterAlg"),
    ("key value", "ReaderRead ReaderReadV2"),
    ("key values", "MapUnstageNoKey"),
    ("keys values", "LookupTableExportV2 ReaderReadUpToV2"),
    ("loss backprop", "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"),
    ("loss gradient", "CTCLoss CTCLossV2"),
    ("lu p", "Lu"),
    ("nmsed_boxes nmsed_scores nmsed_classes valid_detections", "CombinedNonMaxSuppression"),
    ("out idx", "ListDiff"),
    ("output argmax", "MaxPoolWithArgmax"),
    ("output output_h output_c reserve_space host_reserved",
     "CudnnRNN CudnnRNNV2 CudnnRNNV3"),
    ("output row_pooling_sequence col_pooling_sequence", "FractionalAvgPool FractionalMaxPool"),
    ("output value_index", "Merge RefMerge"),
    ("output_false output_true", "Switch RefSwitch"),
    ("output_handle tensor", "TensorListPopBack"),
    ("output_indices output_shape", "SparseReshape"),
    ("output_indices output_values", "SparseReorder"),
    ("output_indices output_values empty_row_indicator reverse_index_map", "SparseFillEmptyRows"),
    ("output_indices output_values output_shape", "SparseCross SparseSlice SparseConcat"),
    ("q r", "Qr"),
    ("r u c h", "GRUBlockCell"),
    ("r0 r1", "BroadcastGradientArgs"),
    ("result_indices result_values result_shape", "DenseToSparseSetOperation"),
    ("s u v", "Svd"),
    ("sampled_candidates true_expected_count sampled_expected_count",
     "AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler "
     "LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler"),
    ("selected_indices selected_scores valid_outputs", "NonMaxSuppressionV5"),
    ("selected_indices valid_outputs", "NonMaxSuppressionV4"),
    ("sign log_abs_determinant", "LogMatrixDeterminant"),
    ("sparse_indices sparse_values sparse_dense_shape", "RaggedTensorToSparse"),
    ("sum_indices sum_values sum_shape", "SparseAdd"),
    ("tensor lengths", "TensorListConcat TensorListConcatV2"),
    ("value lengths", "TensorArrayConcatV3"),
    ("values indices", "TopK TopKV2"),
    ("x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4",
     "FusedBatchNormGrad FusedBatchNormGradV2"),
    ("x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5 "
     "side_input_backprop", "FusedBatchNormGradV3 _FusedBatchNormGradEx"),
    ("x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad",
     "BlockLSTMGrad BlockLSTMGradV2"),
    ("y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
     "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx"),
    ("y idx count", "Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2"),
)  # fmt: skip
_POSITION = {
    (op, name): position
    for names, ops in _OUTPUTS
    for op in ops.split()
    for position, name in enumerate(names.split())
}


def output_of(op: str, name: str, index: int) -> int:
    """The number of output `index` of those called `name`.

    Args:
        op: op type of the node.
        name: name of an output in the definition of the op.
        index: number within the outputs of that name, 0 unless it is a list.
    """
    return _POSITION.get((op, name), 0) + index
