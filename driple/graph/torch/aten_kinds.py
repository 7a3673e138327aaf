"""Kinds of aten's ops: which formula of `driple.graph.cost` holds for each.

    aten op's name, without overload and without the trailing _ -> kind

Ops with several kernels or with inputs in another order than the formula's are in `aten`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["FREE", "KIND_OF"]

# Results that take no kernel: memory that is set aside, numbers for the program.
FREE = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
     "_unsafe_view", "_reshape_alias", "lift_fresh", "lift_fresh_copy", "_local_scalar_dense",
     "as_strided", "set", "resize", "record_stream", "_assert_async", "_assert_tensor_metadata",
     "_fused_sdp_choice", "is_same_size", "sym_size", "sym_stride", "sym_numel", "unsafe_split",
     "unsafe_split_with_sizes", "unsafe_chunk", "transpose", "t", "squeeze", "unsqueeze", "detach",
     "device"}
)  # fmt: skip

# kind: aten names.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "matmul": "mm _weight_int8pack_mm",
        "batch_matmul": "bmm",
        # Element by element.
        "abs": "abs", "add": "add", "sub": "sub rsub", "mul": "mul", "div": "div true_divide",
        "floor_div": "floor_divide", "modulo": "remainder fmod", "maximum": "maximum clamp_min",
        "minimum": "minimum clamp_max", "pow": "pow square", "neg": "neg", "sign": "sign sgn",
        "reciprocal": "reciprocal", "sqrt": "sqrt", "rsqrt": "rsqrt", "exp": "exp exp2",
        "expm1": "expm1", "log": "log log2 log10", "log1p": "log1p", "x_log_y": "xlogy",
        "tanh": "tanh", "tanh_gradient": "tanh_backward", "sigmoid": "sigmoid",
        "sigmoid_gradient": "sigmoid_backward", "relu": "relu", "relu_gradient":
        "threshold_backward", "relu6": "hardtanh", "relu6_gradient": "hardtanh_backward",
        "leaky_relu": "leaky_relu rrelu_with_noise", "leaky_relu_gradient":
        "leaky_relu_backward rrelu_with_noise_backward", "elu": "elu", "elu_gradient":
        "elu_backward", "gelu": "gelu", "gelu_gradient": "gelu_backward", "silu": "silu glu",
        "silu_gradient": "silu_backward glu_backward", "mish": "mish",
        "mish_gradient": "mish_backward",
        "prelu": "_prelu_kernel", "prelu_gradient": "_prelu_kernel_backward",
        "hard_swish": "hardswish", "hard_swish_gradient": "hardswish_backward",
        "hard_sigmoid": "hardsigmoid", "hard_sigmoid_gradient": "hardsigmoid_backward",
        "softplus": "softplus log_sigmoid_forward", "softplus_gradient":
        "softplus_backward log_sigmoid_backward", "erf": "erf erfc erfinv",
        "special_function": "lgamma digamma special_i0 special_i1 igamma igammac polygamma",
        "trigonometric": "sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh",
        "ceil": "ceil", "floor": "floor", "round": "round trunc", "clip": "clamp",
        "select": "where masked_fill", "compare": "eq ne lt le gt ge isclose",
        "logical": "logical_and logical_or logical_not logical_xor",
        "bitwise": "bitwise_and bitwise_or bitwise_not bitwise_xor __lshift__ __rshift__",
        "is_finite": "isnan isinf isfinite", "complex_part": "angle",
        "cell_gates": "_thnn_fused_lstm_cell _thnn_fused_gru_cell",
        "dropout": "native_dropout", "dropout_gradient": "native_dropout_backward",
        "cumulative": "cumsum cumprod cummax cummin", "cumulative_logsumexp": "_logcumsumexp",
        "random": "bernoulli normal uniform rand randn randint random rand_like randn_like "
        "randint_like exponential cauchy geometric log_normal",
        "random_choice": "multinomial", "permutation": "randperm", "arange": "arange linspace",
        # Sums, extremes and losses.
        "reduce_sum": "sum nansum", "reduce_mean": "mean", "reduce_prod": "prod",
        "reduce_max": "max amax logsumexp", "reduce_min": "min amin aminmax",
        "reduce_logical": "any all", "reduce_norm": "linalg_vector_norm norm",
        "reduce_variance": "var std var_mean std_mean", "arg_max": "argmax argmin",
        "top_k": "topk kthvalue", "sort": "sort argsort median nanmedian",
        "bucketize": "bucketize", "search_sorted": "searchsorted",
        "mean_squared_error": "mse_loss smooth_l1_loss huber_loss soft_margin_loss",
        "mean_squared_error_gradient":
        "mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward",
        "binary_cross_entropy": "binary_cross_entropy binary_cross_entropy_with_logits",
        "binary_cross_entropy_gradient": "binary_cross_entropy_backward",
        "nll_loss": "nll_loss_forward nll_loss2d_forward",
        "nll_loss_gradient": "nll_loss_backward nll_loss2d_backward",
        "ctc_loss": "_ctc_loss _cudnn_ctc_loss",
        "softmax": "_softmax _safe_softmax", "softmax_gradient": "_softmax_backward_data",
        "log_softmax": "_log_softmax", "log_softmax_gradient":
        "_log_softmax_backward_data _ctc_loss_backward",
        # Norms.
        "batch_norm": "native_batch_norm _native_batch_norm_legit cudnn_batch_norm "
        "_batch_norm_with_update _native_batch_norm_legit_no_training",
        "batch_norm_gradient":
        "native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward",
        "layer_norm": "native_layer_norm", "layer_norm_gradient": "native_layer_norm_backward",
        "group_norm": "native_group_norm", "group_norm_gradient": "native_group_norm_backward",
        "rms_norm": "_fused_rms_norm _weight_norm_interface",
        "rms_norm_gradient": "_fused_rms_norm_backward _weight_norm_interface_backward",
        # Copies and moves.
        "copy": "copy clone contiguous _to_copy view_copy", "concat": "cat", "stack": "stack",
        "fill": "zero zeros ones full fill new_zeros new_ones new_full scalar_tensor eye",
        "fill_like": "zeros_like ones_like full_like",
        "slice_gradient": "slice_backward select_backward diagonal_backward as_strided_scatter "
        "slice_scatter select_scatter unfold_backward value_selecting_reduction_backward",
        "pad": "constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d "
        "replication_pad2d replication_pad3d reflection_pad3d",
        "pad_gradient": "reflection_pad1d_backward reflection_pad2d_backward "
        "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
        "tile": "repeat repeat_interleave", "reverse": "flip", "roll": "roll",
        "band_part": "tril triu", "one_hot": "one_hot", "space_to_depth":
        "pixel_shuffle pixel_unshuffle channel_shuffle", "extract_patches": "im2col col2im",
        # Rows that indices pick.
        "gather": "index_select index gather take _unsafe_index", "embedding": "embedding",
        "embedding_gradient": "embedding_dense_backward _embedding_bag_dense_backward "
        "_embedding_bag_backward",
        "sparse_segment_reduce": "_embedding_bag _embedding_bag_forward_only",
        "scatter_add": "scatter_add index_add index_put_accumulate _index_put_impl scatter_reduce",
        "scatter_write": "scatter index_put index_copy index_fill masked_scatter _unsafe_index_put",
        "histogram": "histc bincount",
        # Images.
        "resize_linear": "upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
        "upsample_trilinear3d",
        "resize_linear_gradient": "upsample_linear1d_backward upsample_bilinear2d_backward "
        "_upsample_bilinear2d_aa_backward upsample_trilinear3d_backward",
        "resize_cubic": "upsample_bicubic2d _upsample_bicubic2d_aa",
        "resize_cubic_gradient": "upsample_bicubic2d_backward _upsample_bicubic2d_aa_backward",
        "resize_nearest": "upsample_nearest1d upsample_nearest2d upsample_nearest3d "
        "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d",
        "resize_nearest_gradient": "upsample_nearest1d_backward upsample_nearest2d_backward "
        "upsample_nearest3d_backward _upsample_nearest_exact1d_backward "
        "_upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward",
        "image_transform": "grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward "
        "grid_sampler_3d_backward affine_grid_generator",
        # Linear algebra.
        "cholesky": "linalg_cholesky_ex cholesky", "lu": "linalg_lu_factor_ex linalg_lu",
        "qr": "linalg_qr", "svd": "_linalg_svd", "eigen": "linalg_eig",
        "symmetric_eigen": "_linalg_eigh", "matrix_inverse": "linalg_inv_ex",
        "solve": "_linalg_solve_ex", "solve_triangular": "linalg_solve_triangular",
        "cross": "linalg_cross", "fft": "_fft_c2c", "real_fft": "_fft_r2c _fft_c2r",
    }
)  # fmt: skip
KIND_OF: Mapping[str, str] = MappingProxyType(
    {name: kind for kind, names in _NAMES.items() for name in names.split()}
)
