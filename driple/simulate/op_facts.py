"""What about an op decides how well a kernel does, apart from its size: facts as numbers.

    OpSignature, ... -> OpFacts: kind, and a row of numbers for each op

None of the facts grows with the batch, so that a larger batch never lets a kernel seem better than
the same kernel of a smaller one. Sizes enter as logarithms, in parts of a typical range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2, prod
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.graph.cost.convolutions import CHANNELS_LAST, ConvFacts, conv_facts
from driple.graph.cost.elementwise import INFERENCE
from driple.graph.cost.products import Product
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.signature import OpSignature
from driple.simulate.kernel_picks import HALF_PICKS, PICKS, TURNS, picks_of, turns_of

__all__ = ["FACTS", "GROUPS", "OpFacts", "channel_elements", "grouped_share", "op_facts"]

FloatArray = npt.NDArray[np.float64]

# Groups of kinds whose kernels are alike.
GROUPS = (
    "convolution", "grouped_convolution", "depthwise_convolution", "matmul", "attention",
    "recurrent", "norm", "norm_gradient", "pooling", "pooling_gradient", "softmax", "map", "move",
    "reduction", "indexed", "other",
)  # fmt: skip
FACTS = (
    # Of all ops.
    "half", "channels_last", "element_bytes", "parameter", "row", "broadcast", "large_inputs",
    # Of batch norms.
    "native_norm",
    # Of convolutions; what is counted is per group of channels.
    "in_channels", "out_channels", "channel_groups", "in_fits", "out_fits", "window", "oblong",
    "strided", "dilated", "pixels", "by_input", "by_filter", "three_dimensions",
    # Of matrix products: their sides in order of size.
    "least_side", "middle_side", "sides_fit", "several_products",
    # What acts together.
    "last_depthwise", "last_grouped", "last_half_convolution", "half_depthwise", "half_grouped",
)  # fmt: skip
_HALF = frozenset({NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"]})
_SIDE = 8  # tensor cores take multiples of it
# PyTorch hands a batch norm in training to cuDNN unless images or weights are in bfloat16, weights
# in half precision, or an image tensor has more elements than cuDNN counts: then a kernel of its
# own computes it (ATen, `_select_batch_norm_backend`).
_BFLOAT16 = NUMBER_OF["DT_BFLOAT16"]
_MOST_OF_CUDNN = 2**31 - 1
_BATCH_NORMS: Mapping[str, int] = MappingProxyType({"batch_norm": 2, "batch_norm_gradient": 3})
"""Norms whose statistics are those of each channel, and how often each element is moved."""
_TYPICAL_GROUPS = 8  # logarithm
_LONGEST_SIDE = 4096  # of a product, beyond which its kernels do not change
_GROUP_OF_KIND: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("attention", "attention_gradient"), "attention"),
        **dict.fromkeys(
            ("lstm", "lstm_gradient", "gru", "gru_gradient", "rnn", "rnn_gradient", "cudnn_rnn",
             "cudnn_rnn_gradient", "block_lstm", "block_lstm_gradient", "lstm_cell", "gru_cell",
             "gru_cell_gradient"), "recurrent",
        ),
        **dict.fromkeys(
            ("cast", "copy", "concat", "split", "stack", "unstack", "slice", "slice_gradient",
             "pad", "pad_gradient", "transpose", "tile", "broadcast_to", "roll", "reverse", "fill",
             "fill_like", "space_to_depth", "slice_write", "assign", "one_hot"), "move",
        ),
        **dict.fromkeys(
            ("bias_gradient", "reduce_sum", "reduce_mean", "reduce_prod", "reduce_max",
             "reduce_min", "reduce_logical", "reduce_norm", "reduce_variance", "arg_max",
             "sum_of_squares", "tile_gradient"), "reduction",
        ),
        **dict.fromkeys(
            ("gather", "embedding", "embedding_gradient", "scatter_new", "scatter_add",
             "scatter_write", "tensor_scatter", "segment_reduce", "top_k", "sort"), "indexed",
        ),
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class OpFacts:
    """Facts of n ops.

    Attributes:
        kinds: length n, the kind of each.
        groups: shape [n], position in `GROUPS`.
        values: shape [n, number of `FACTS`].
        picks: shape [n, number of `PICKS`], which kernel PyTorch's present libraries pick.
        turns: shape [n, number of `TURNS`], kernels that an op runs one after another.
    """

    kinds: tuple[str, ...]
    groups: npt.NDArray[np.int64]
    values: FloatArray
    picks: FloatArray
    turns: FloatArray

    def take(self, rows: npt.NDArray[np.int64]) -> OpFacts:
        """Some of the ops."""
        return OpFacts(
            kinds=tuple(self.kinds[i] for i in rows.tolist()),
            groups=self.groups[rows],
            values=self.values[rows],
            picks=self.picks[rows],
            turns=self.turns[rows],
        )

    def in_single_precision(self, some: npt.NDArray[np.bool_]) -> OpFacts:
        """The same ops, some of which count as in single precision."""
        values = self.values.copy()
        for place, name in enumerate(FACTS):
            if "half" in name.split("_"):
                values[some, place] = 0.0
        element_bytes = FACTS.index("element_bytes")
        values[some, element_bytes] = np.maximum(values[some, element_bytes], 1.0)
        picks = self.picks.copy()
        picks[np.ix_(some, np.array(HALF_PICKS))] = 0.0
        return replace(self, values=values, picks=picks)

    def at_batch(self, other: OpFacts, share: float, sides: FloatArray) -> OpFacts:
        """The same ops at another batch size; lengths of rows and sides may grow with it.

        Args:
            other: these ops at a second batch size.
            share: of the way from this batch size to the second.
            sides: shape [n, 3], sides of the ops' products at the batch size that is asked for.
        """
        values = self.values.copy()
        row, least, middle, fit = (
            FACTS.index(name) for name in ("row", "least_side", "middle_side", "sides_fit")
        )
        lengths, others = (2 ** (8 * facts.values[:, row]) for facts in (self, other))
        changed = lengths != others
        length = lengths + share * (others - lengths)
        values[changed, row] = np.log2(np.maximum(length[changed], 1.0)) / 8
        columns = [least, middle, fit]
        grown = (self.values[:, columns] != other.values[:, columns]).any(axis=1)
        ordered = np.sort(np.round(sides[grown]), axis=1)[:, :2]
        values[np.ix_(grown, [least, middle])] = np.log2(np.clip(ordered, 1.0, _LONGEST_SIDE)) / 8
        values[grown, fit] = (ordered % _SIDE == 0).all(axis=1)
        turns = np.maximum(self.turns + share * (other.turns - self.turns), 0.0)
        return replace(self, values=values, turns=turns)


def op_facts(signatures: Sequence[OpSignature], products: Sequence[Product | None]) -> OpFacts:
    """The facts of some ops.

    Args:
        signatures: with the shapes filled in that their other shapes determine.
        products: the matrix product that each comes to.
    """
    convolutions = [conv_facts(op) for op in signatures]
    ops = list(zip(signatures, convolutions, products, strict=True))
    facts = [_facts(*one) for one in ops]
    picks = [
        picks_of(op, convolution, product, by_channel=channel_elements(op) > 0)
        for op, convolution, product in ops
    ]
    turns = [turns_of(op, convolution) for op, convolution, _ in ops]
    return OpFacts(
        kinds=tuple(op.kind for op in signatures),
        groups=np.array([GROUPS.index(group) for group, _ in facts], dtype=np.int64),
        values=np.array([[row.get(name, 0.0) for name in FACTS] for _, row in facts]).reshape(
            -1, len(FACTS)
        ),
        picks=np.array(picks).reshape(-1, len(PICKS)),
        turns=np.array(turns).reshape(-1, len(TURNS)),
    )


def _facts(
    op: OpSignature, convolution: ConvFacts | None, product: Product | None
) -> tuple[str, dict[str, float]]:
    """Group and facts of one op."""
    output = op.outputs[0] if op.outputs else None
    half = float(output is not None and output.dtype in _HALF)
    row = {
        "half": half,
        "channels_last": float(CHANNELS_LAST in op.numbers),
        "element_bytes": output.nbytes / max(output.elements, 1) / 4 if output is not None else 1.0,
    }
    if convolution is not None:
        return _of_convolution(convolution, row)
    read = [one for one in op.inputs if one.shape is not None]
    largest = max((one.elements for one in read), default=0)
    length = read[0].shape[-1] if read and read[0].shape else 1
    if op.kind in _BATCH_NORMS:
        length = _norm_channels(op)
    row |= {
        "parameter": float(any(one.is_parameter for one in op.inputs)),
        "row": _log(length, 8),
        "native_norm": float(_is_native_norm(op)),
        "broadcast": float(any(1 < one.elements < largest for one in read)),
        "large_inputs": sum(one.elements == largest for one in read) / 2,
    }
    if product is not None and family_of(op.kind) in PRODUCT_FAMILIES:
        sides = sorted((product.m, product.n, product.k))
        row |= {
            "least_side": _log(min(sides[0], _LONGEST_SIDE), 8),
            "middle_side": _log(min(sides[1], _LONGEST_SIDE), 8),
            "sides_fit": float(sides[0] % _SIDE == 0 and sides[1] % _SIDE == 0),
            "several_products": float(product.count > 1),
        }
    return _group(op.kind), row


def _norm_channels(op: OpSignature) -> int:
    """Channels of a batch norm: the length of its weights or statistics, else of its images."""
    for tensor in (*op.inputs[1:], *op.outputs[1:]):
        if tensor.shape is not None and len(tensor.shape) == 1 and tensor.shape[0] > 1:
            return tensor.shape[0]
    shape = op.inputs[0].shape if op.inputs else None
    return max(shape[1], 1) if shape is not None and len(shape) > 1 else 1


def channel_elements(op: OpSignature) -> float:
    """Elements that the block of one channel moves in a batch norm; 0 of ops without such blocks.

    With channels apart in memory, kernels of cuDNN and of PyTorch give each channel to one block of
    threads in training, so that few channels keep few multiprocessors busy.
    """
    if op.kind not in _BATCH_NORMS or INFERENCE in op.numbers or CHANNELS_LAST in op.numbers:
        return 0.0
    images = op.inputs[0]
    if images.shape is None or len(images.shape) <= 2:
        return 0.0
    return _BATCH_NORMS[op.kind] * images.elements / _norm_channels(op)


def _is_native_norm(op: OpSignature) -> bool:
    """Whether PyTorch's own kernel computes a batch norm in training, and not cuDNN's."""
    if op.kind not in _BATCH_NORMS or INFERENCE in op.numbers:
        return False
    largest = max((one.elements for one in op.inputs), default=0)
    weights = {one.dtype for one in op.inputs if one.is_parameter}
    return (
        any(one.dtype == _BFLOAT16 for one in op.inputs)
        or bool(weights & _HALF)
        or largest > _MOST_OF_CUDNN
    )


def grouped_share(channel_groups: FloatArray) -> FloatArray:
    """How far a convolution is one of groups: 0 of one group, 1/2 of two, 1 of very many.

    Args:
        channel_groups: as in `FACTS`.
    """
    share: FloatArray = 1.0 - 2.0 ** (-_TYPICAL_GROUPS * channel_groups)
    return share


def _of_convolution(facts: ConvFacts, row: dict[str, float]) -> tuple[str, dict[str, float]]:
    grouped = facts.groups > 1 and not facts.is_depthwise
    last, half = float(facts.channels_last), row["half"]
    row |= {
        "channels_last": last,
        "in_channels": _log(facts.in_per_group, 8),
        "out_channels": _log(facts.out_per_group, 8),
        "channel_groups": _log(facts.groups, _TYPICAL_GROUPS) if grouped else 0.0,
        "in_fits": float(facts.in_per_group % _SIDE == 0),
        "out_fits": float(facts.out_per_group % _SIDE == 0),
        "window": _log(prod(facts.window), 4),
        # cuDNN computes a convolution along one dimension as of images of one row.
        "oblong": float(len({*facts.window, *([1] if len(facts.window) == 1 else [])}) > 1),
        "strided": float(max(facts.strides, default=1) > 1),
        "dilated": float(max(facts.dilations, default=1) > 1),
        "pixels": _log(facts.out_pixels, 8),
        "by_input": float(facts.direction == "input"),
        "by_filter": float(facts.direction == "filter"),
        "three_dimensions": float(len(facts.window) == 3),
        "last_half_convolution": last * half,
    }
    if facts.is_depthwise:
        return "depthwise_convolution", row | {"last_depthwise": last, "half_depthwise": half}
    if grouped:
        share = float(grouped_share(np.array(row["channel_groups"])))
        return "grouped_convolution", row | {
            "last_grouped": last * share, "half_grouped": half * share,
        }  # fmt: skip
    return "convolution", row


def _group(kind: str) -> str:
    known = _GROUP_OF_KIND.get(kind)
    if known is not None:
        return known
    family = family_of(kind)
    gradient = kind.endswith("_gradient")
    if family in PRODUCT_FAMILIES:
        return "matmul" if family == "matmul" else "convolution"
    if family == "normalisation":
        return "norm_gradient" if gradient else "norm"
    if family == "pooling":
        return "pooling_gradient" if gradient else "pooling"
    return {"softmax": "softmax", "elementwise": "map"}.get(family, "other")


def _log(size: float, typical: float) -> float:
    return log2(max(size, 1.0)) / typical
