"""Which kernel PyTorch's present libraries pick for an op, where its sizes alone do not decide it.

OpSignature, ConvFacts, Product -> a row of `PICKS`, and the kernels that it runs one after another

PyTorch hands a depthwise convolution to cuDNN with channels last, and of those with channels apart
only small square windows in float16; a kernel of its own computes the others (ATen,
`use_cudnn_depthwise`). cuDNN convolves the groups of a window of one pixel one after another. None
of this grows with the batch, but for the number of groups where each example has its own.
"""

from __future__ import annotations

from math import prod

import numpy as np

from driple.graph.cost.convolutions import ConvFacts
from driple.graph.cost.products import Product
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.signature import OpSignature
from driple.simulate.inner_kernels import cell_kernels

__all__ = ["HALF_PICKS", "PICKS", "TURNS", "picks_of", "turns_of"]


PICKS = (
    # Depthwise convolutions by PyTorch's own kernel.
    "native_depthwise", "native_depthwise_gradient", "native_depthwise_bfloat16",
    # By cuDNN with channels apart, and with channels last by the window.
    "half_depthwise_apart", "half_depthwise_apart_gradient", "small_window_last_half",
    "small_window_last_single", "widest_window_last_gradient", "other_window_last",
    # Dense convolutions: windows over few channels, channels that fill no vector.
    "few_channels_half", "few_channels_single", "misfit_last_half",
    # Products with an odd side in half precision, such as over a vocabulary of 50,257.
    "odd_side_half",
    # Batch norms in training with channels apart in float16.
    "batch_norm_float16",
)  # fmt: skip
HALF_PICKS = tuple("half" in name or "float16" in name for name in PICKS)
TURNS = ("groups", "cells")
_FLOAT16, _BFLOAT16 = NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"]
_SIDE = 8  # elements of a vector of tensor cores
_CUDNN_WINDOWS, _LEAST_CHANNELS, _LEAST_WIDTH = (1, 3, 5), 32, 7
_WIDEST = 7  # window that cuDNN's fast kernel of channels last takes
_MANY, _LEAST = 64, 8  # channels that fill a tile, and those below which none is emptier
_FLAT = 2  # dimensions of space
_ODD_FROM = 2**15  # sides of vocabularies; tokens of a batch are rarely odd and as many


def picks_of(
    op: OpSignature, convolution: ConvFacts | None, product: Product | None, *, by_channel: bool
) -> list[float]:
    """The row of one op.

    Args:
        op: signature with all shapes that are known.
        convolution: its facts if it is one.
        product: the matrix product that it comes to.
        by_channel: whether it is a batch norm that gives each channel to one block of threads.
    """
    kind = op.outputs[0].dtype if op.outputs else 0
    half = kind in {_FLOAT16, _BFLOAT16}
    if convolution is not None:
        values = (
            _of_depthwise(convolution, kind, half=half)
            if convolution.is_depthwise
            else _of_dense(convolution, half=half)
        )
    else:
        sides = (product.m, product.n, product.k) if product is not None else (0, 0, 0)
        is_product = family_of(op.kind) in PRODUCT_FAMILIES
        odd = is_product and half and max(sides) >= _ODD_FROM and max(sides) % 2 == 1
        values = {
            "odd_side_half": float(odd),
            "batch_norm_float16": float(by_channel and kind == _FLOAT16),
        }
    return [values.get(name, 0.0) for name in PICKS]


def _of_depthwise(facts: ConvFacts, kind: int, *, half: bool) -> dict[str, float]:
    gradient = float(facts.direction != "forward")
    if not facts.channels_last:
        if not _is_cudnn_apart(facts, kind):
            return {
                "native_depthwise": 1.0,
                "native_depthwise_gradient": gradient,
                "native_depthwise_bfloat16": float(kind == _BFLOAT16),
            }
        return {"half_depthwise_apart": 1.0, "half_depthwise_apart_gradient": gradient}
    small = len(set(facts.window)) == 1 and facts.window[0] <= _WIDEST
    widest = small and facts.window[0] == _WIDEST
    return {
        "small_window_last_half": float(small and half),
        "small_window_last_single": float(small and not half) * (1.0 - gradient),
        "widest_window_last_gradient": float(widest and not half) * gradient,
        "other_window_last": float(not small),
    }


def _is_cudnn_apart(facts: ConvFacts, kind: int) -> bool:
    """Whether cuDNN takes a depthwise convolution with channels apart."""
    return (
        kind == _FLOAT16
        and len(facts.window) == _FLAT
        and len(set(facts.window)) == 1
        and facts.window[0] in _CUDNN_WINDOWS
        and facts.groups >= _LEAST_CHANNELS
        and facts.image[-1] >= _LEAST_WIDTH
        and max(facts.dilations, default=1) == 1
        and max(facts.strides, default=1) <= _FLAT
    )


def _of_dense(facts: ConvFacts, *, half: bool) -> dict[str, float]:
    inner, outer = facts.in_per_group, facts.out_per_group
    if facts.groups > 1:
        return {}
    least = min(outer, inner if inner >= _SIDE else _MANY)  # images of a first layer are padded
    few = 0.0
    if prod(facts.window) > 1:
        few = float(np.log2(_MANY / min(max(least, _LEAST), _MANY))) / 2
    misfit = half and facts.channels_last and inner >= _SIDE
    misfit = misfit and (inner % _SIDE > 0 or outer % _SIDE > 0)
    return {
        "few_channels_half": few * half,
        "few_channels_single": few * (not half),
        "misfit_last_half": float(misfit),
    }


def turns_of(op: OpSignature, convolution: ConvFacts | None) -> list[float]:
    """Kernels that follow one another within an op: of groups of channels, of recurrent cells.

    With channels last a group needs no change of its layout, and counts half.
    """
    if convolution is None:
        return [0.0, cell_kernels(op)]
    alone = convolution.groups > 1 and not convolution.is_depthwise
    if not alone or prod(convolution.window) > 1:
        return [0.0, 0.0]
    return [convolution.groups * (0.5 if convolution.channels_last else 1.0), 0.0]
