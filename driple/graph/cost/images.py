"""FLOPs of windows, crops and sizes of images: pools, resizing, non-maximum suppression.

Interpolation by two linear steps takes 9 for a pixel (three times a - b, times t, plus b), its
gradient 8 (four products and additions); what a box's position costs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2, prod
from types import MappingProxyType

from driple.graph.cost.shapes import (
    Formula,
    UnknownShapeError,
    elements_in,
    elements_out,
    numbers_of,
    shape_in,
    shape_out,
)
from driple.graph.signature import OpSignature

__all__ = ["IMAGE_FLOPS"]

_LINEAR, _LINEAR_GRADIENT = 9, 8
_CUBIC = 35  # five sums of four products
_OVERLAP = 16  # of two boxes: corners, areas, and their quotient
_DEFAULT_RADIUS = 5  # of a local response normalisation, in TensorFlow's definition of the op


def _window(op: OpSignature) -> int:
    sides = numbers_of(op, "ksize")
    if not sides:
        raise UnknownShapeError(f"{op.kind}: its window is unknown")
    return prod(sides)


def _pool(op: OpSignature) -> float:
    return float(elements_out(op) * _window(op))


def _max_pool_gradient(op: OpSignature) -> float:
    """Each window's search again, then one addition."""
    return float(elements_in(op, 1) * (_window(op) + 1))


def _average_pool_gradient(op: OpSignature) -> float:
    return 2.0 * elements_in(op, 1) * _window(op)


def _response_normalisation(op: OpSignature) -> float:
    """Squares, a sliding sum over 2 r + 1 channels, a power and a product per element."""
    radius = (*numbers_of(op, "depth_radius"), _DEFAULT_RADIUS)[0]
    return float(elements_out(op) * (2 * radius + 1 + 4))


def _per_output(flops: float) -> Formula:
    return lambda op: flops * elements_out(op)


def _per_input(flops: float, position: int = 0) -> Formula:
    return lambda op: flops * elements_in(op, position)


def _resize_area(op: OpSignature) -> float:
    """A product and an addition for each pixel of the larger image."""
    return 2.0 * max(elements_in(op, 0), elements_out(op))


def _suppression(op: OpSignature) -> float:
    """Scores are sorted, and each box is compared with those that were selected before it."""
    boxes = shape_in(op, 0, 2)[0]
    selected = shape_out(op, 0, 1)[0]
    return boxes * log2(max(boxes, 2)) + float(_OVERLAP * boxes * selected)


def _suppression_by_class(op: OpSignature) -> float:
    """Scores are [batch, boxes, classes]; each class of each image is done by itself."""
    batch, boxes, classes = shape_in(op, 1, 3)[:3]
    selected = shape_out(op, 0, 2)[1]
    return batch * classes * (boxes * log2(max(boxes, 2)) + float(_OVERLAP * boxes * selected))


IMAGE_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **dict.fromkeys(("max_pool", "avg_pool"), _pool),
        **dict.fromkeys(("max_pool_gradient", "max_pool_second_gradient"), _max_pool_gradient),
        "max_pool_scatter_gradient": _per_input(1, 1),
        "avg_pool_gradient": _average_pool_gradient,
        "fractional_pool": _per_input(1),
        "fractional_max_pool_gradient": _per_input(1, 2),
        "fractional_avg_pool_gradient": _per_output(1),
        "local_response_norm": _response_normalisation,
        "local_response_norm_gradient": _response_normalisation,
        "resize_linear": _per_output(_LINEAR),
        "resize_linear_gradient": _per_input(_LINEAR_GRADIENT),
        "resize_cubic": _per_output(_CUBIC),
        "resize_cubic_gradient": _per_input(_CUBIC),
        "resize_nearest_gradient": _per_input(1),
        "resize_area": _resize_area,
        "image_transform": _per_output(_LINEAR),
        "crop_and_resize": _per_output(_LINEAR),
        "crop_and_resize_image_gradient": _per_input(_LINEAR_GRADIENT),
        "crop_and_resize_box_gradient": _per_input(2 * _LINEAR_GRADIENT),
        "non_max_suppression": _suppression,
        "non_max_suppression_by_class": _suppression_by_class,
        "adjust_contrast": _per_output(4),
        "adjust_colours": _per_output(10),
    }
)
