"""Kinds of ops: the vocabulary that every reader translates its framework's op names into.

    TensorFlow's Conv2D, aten::convolution, ONNX's Conv -> conv -> convolution (its family)

Costs, completion of shapes, memory and features go by these names alone. Versions and variants of
an op that compute the same are one kind. A family holds the kinds that a device runs at one speed:
few enough to learn each from a hundred runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from driple.errors import GraphError

__all__ = [
    "CONVOLUTION_FAMILIES",
    "FAMILIES",
    "KINDS",
    "PRODUCT_FAMILIES",
    "family_of",
]

FAMILIES: Final = (
    "convolution",
    "input_gradient",
    "filter_gradient",
    "matmul",
    "normalisation",
    "pooling",
    "softmax",
    "control",
    "lists",
    "elementwise",
)
# Families whose time follows from their multiply-adds; all others move memory.
PRODUCT_FAMILIES: Final = FAMILIES[:4]
# A convolution and its two gradients.
CONVOLUTION_FAMILIES: Final = FAMILIES[:3]

# A gradient is named after the op of the forward pass. Kinds named `other` have no formula: ops
# that a reader knows to be of a family, and no more.
_KINDS_OF: Mapping[str, str] = MappingProxyType(
    {
        "convolution": ("conv depthwise_conv other_convolution "),
        "input_gradient": (
            "conv_input_gradient depthwise_conv_input_gradient other_input_gradient "
        ),
        "filter_gradient": (
            "conv_filter_gradient depthwise_conv_filter_gradient other_filter_gradient "
        ),
        "matmul": (
            "matmul batch_matmul block_lstm block_lstm_gradient lstm_cell gru_cell "
            "gru_cell_gradient cudnn_rnn cudnn_rnn_gradient einsum attention attention_gradient "
            "lstm lstm_gradient gru gru_gradient rnn rnn_gradient other_matmul "
        ),
        "normalisation": (
            "batch_norm batch_norm_gradient given_batch_norm given_batch_norm_gradient layer_norm "
            "layer_norm_gradient group_norm group_norm_gradient instance_norm "
            "instance_norm_gradient rms_norm rms_norm_gradient other_normalisation "
        ),
        "pooling": (
            "max_pool max_pool_gradient max_pool_scatter_gradient max_pool_second_gradient "
            "avg_pool avg_pool_gradient fractional_pool fractional_max_pool_gradient "
            "fractional_avg_pool_gradient local_response_norm local_response_norm_gradient "
            "other_pooling "
        ),
        "softmax": (
            "cross_entropy soft_cross_entropy log_softmax softmax sparse_softmax softmax_gradient "
            "log_softmax_gradient cross_entropy_gradient other_softmax "
        ),
        "control": (
            "list_reserve constant placeholder identity identity_n view shape_of "
            "function_argument no_op enter exit merge switch next_iteration loop_condition check "
            "variable_handle read_variable send receive "
        ),
        "lists": ("list_handle list_gradient list_write list_read other_lists "),
        "elementwise": (
            # Element by element.
            "elementwise abs add add_n bias_add sub mul div floor_div modulo maximum minimum pow "
            "neg sign reciprocal reciprocal_gradient square squared_difference sqrt sqrt_gradient "
            "rsqrt rsqrt_gradient exp expm1 log log1p x_log_y tanh tanh_gradient sigmoid "
            "sigmoid_gradient relu relu_gradient relu6 relu6_gradient leaky_relu "
            "leaky_relu_gradient elu elu_gradient selu selu_gradient gelu gelu_gradient silu "
            "silu_gradient mish mish_gradient prelu prelu_gradient hard_swish hard_swish_gradient "
            "hard_sigmoid hard_sigmoid_gradient hard_tanh hard_tanh_gradient softplus "
            "softplus_gradient softsign softsign_gradient erf special_function trigonometric ceil "
            "floor round clip where select compare logical bitwise is_finite complex_part dropout "
            "dropout_gradient fake_quantize fake_quantize_gradient fake_quantize_range_gradient "
            "fake_quantize_channel_gradient cumulative cumulative_logsumexp assign_sum "
            "assign_sum_to_handle random random_choice random_gamma_gradient arange "
            # Sums, extremes and losses.
            "bias_gradient reduce_sum reduce_mean reduce_prod reduce_max reduce_min "
            "reduce_logical reduce_norm reduce_variance arg_max sum_of_squares tile_gradient "
            "top_k in_top_k sort bucketize search_sorted nonzero mean_squared_error "
            "mean_squared_error_gradient binary_cross_entropy binary_cross_entropy_gradient "
            "nll_loss nll_loss_gradient ctc_loss "
            # Copies and moves.
            "cast host_cast copy fill fill_like empty one_hot concat split stack unstack slice "
            "slice_gradient slice_write pad pad_gradient transpose tile broadcast_to complex_copy "
            "reverse roll shuffle permutation diagonal diagonal_part band_part space_to_depth "
            "extract_patches stitch partition unique set_operation string_to_number table_lookup "
            "assign assign_to_handle cudnn_rnn_weights "
            # Rows that indices pick.
            "gather embedding embedding_gradient scatter_new scatter_add "
            "scatter_arithmetic scatter_write tensor_scatter tensor_scatter_write "
            "scatter_reduce_rows segment_reduce sparse_segment_reduce histogram sparse_histogram "
            "histogram_fixed sparse_dense_matmul sparse_dense_elementwise sparse_add "
            "sparse_add_gradient sparse_reduce sparse_copy sparse_slice "
            "sparse_fill_empty_rows_gradient candidate_sampling accidental_hits "
            # Images.
            "dilation dilation_input_gradient dilation_filter_gradient resize_linear "
            "resize_linear_gradient resize_cubic resize_cubic_gradient resize_nearest "
            "resize_nearest_gradient resize_area image_transform crop_and_resize "
            "crop_and_resize_image_gradient crop_and_resize_box_gradient random_crop glimpse "
            "draw_boxes non_max_suppression non_max_suppression_by_class adjust_contrast "
            "adjust_colours "
            # Linear algebra.
            "cholesky cholesky_gradient lu qr svd eigen symmetric_eigen matrix_inverse solve "
            "solve_triangular solve_banded solve_tridiagonal solve_least_squares "
            "tridiagonal_matmul cross fft fft_2d fft_3d real_fft real_fft_2d real_fft_3d "
            "lstm_cell_gradient cell_gates cell_gates_gradient "
            # Updates of parameters.
            "update_sgd update_momentum update_adagrad update_adagrad_epsilon update_rmsprop "
            "update_centered_rmsprop update_adam update_amsgrad update_adamax update_adadelta "
            "update_adagrad_da update_ftrl update_ftrl_shrinkage update_proximal_sgd "
            "update_proximal_adagrad update_add_sign update_power_sign update_adamw "
            "update_adafactor update_lion update_adam8bit update_lamb update_lars update_other "
            "sparse_update_sgd sparse_update_momentum sparse_update_adagrad "
            "sparse_update_adagrad_epsilon sparse_update_rmsprop sparse_update_centered_rmsprop "
            "sparse_update_adam sparse_update_amsgrad sparse_update_adamax sparse_update_adadelta "
            "sparse_update_adagrad_da sparse_update_ftrl sparse_update_ftrl_shrinkage "
            "sparse_update_proximal_sgd sparse_update_proximal_adagrad sparse_update_add_sign "
            "sparse_update_power_sign "
            # Communication.
            "all_reduce all_gather reduce_scatter all_to_all broadcast_parameters collective "
            "host_send transfer "
            # Synchronous training on servers.
            "gradient_accumulator accumulate_gradient take_gradient queue_enqueue "
            # Names, values of the program and what the host does.
            "constant_elsewhere debug shape_arithmetic device_argument switch_n check_inf "
            "host_value variable variable_state random_state stage summary print python_call host "
            # Without a kind of their own.
            "other other_gradient "
        ),
    }
)
_FAMILY_OF: Mapping[str, str] = MappingProxyType(
    {kind: family for family, kinds in _KINDS_OF.items() for kind in kinds.split()}
)
KINDS: Final = frozenset(_FAMILY_OF)


def family_of(kind: str) -> str:
    """The family of a kind, one of `FAMILIES`.

    Local response normalisation slides over channels as pooling does over pixels, and takes as
    long: it counts as `pooling`.

    Raises:
        GraphError: no such kind.
    """
    family = _FAMILY_OF.get(kind)
    if family is None:
        raise GraphError(f"{kind[:60]!r} is no kind of op; driple/graph/opkind.py lists them")
    return family
