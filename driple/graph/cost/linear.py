"""FLOPs of convolutions, matrix products and linear algebra; a multiply-add counts two.

A filter is [window..., in channels / groups, out channels], of one, two or three dimensions of
space. Dilation moves a window's points apart and changes nothing else. Decompositions count their
leading orders (Golub and Van Loan, Matrix Computations, 4th edition).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2, prod
from types import MappingProxyType

from driple.graph.cost.einsum import index_sizes
from driple.graph.cost.shapes import (
    ALL,
    Formula,
    UnknownShapeError,
    elements_in,
    elements_out,
    shape_in,
    shape_out,
)
from driple.graph.signature import OpSignature

__all__ = ["LINEAR_FLOPS"]

_MIN_FILTER_RANK = 3


def _positions_of(op: OpSignature) -> int:
    """Elements of the output of a convolution, or of the gradient that both its gradients read."""
    return elements_in(op, 2) if op.kind.endswith("gradient") else elements_out(op)


def _filter_of(op: OpSignature) -> tuple[int, ...]:
    """Shape of a convolution's filter; its gradient has it as output."""
    if op.kind.endswith("filter_gradient"):
        return shape_out(op, 0, _MIN_FILTER_RANK, ALL)
    return shape_in(op, 1, _MIN_FILTER_RANK, ALL)


def _conv(op: OpSignature) -> float:
    """2 x output x window x channels in, whichever of output and both gradients is computed."""
    return 2.0 * _positions_of(op) * prod(_filter_of(op)[:-1])


def _depthwise(op: OpSignature) -> float:
    """2 x output x window: each channel is read by itself."""
    return 2.0 * _positions_of(op) * prod(_filter_of(op)[:-2])


def _dilation(op: OpSignature) -> float:
    """An addition and a comparison for each point of the window, [height, width, channels]."""
    return 2.0 * _positions_of(op) * prod(shape_in(op, 1, 3)[:2])


def _matmul(op: OpSignature) -> float:
    """2 m n k; k is the side of the first matrix that is not a side of the product."""
    output, left = shape_out(op, 0, 2), shape_in(op, 0, 2)
    if not output[-2]:
        return 0.0
    return 2 * prod(output) * (left[-1] * left[-2] / output[-2])


def _einsum(op: OpSignature) -> float:
    """A multiply-add for every combination of indices; of one input, an addition."""
    sizes = index_sizes(op)
    if sizes is None:
        raise UnknownShapeError(f"{op.kind}: indices are unknown")
    return float(prod(sizes.values())) * (2 if len(op.inputs) > 1 else 1)


def _sparse_dense(op: OpSignature) -> float:
    """A multiply-add for each value of the sparse matrix and column of the other."""
    return 2.0 * elements_in(op, 1) * shape_out(op, 0, 2)[-1]


def _of_squares(factor: float) -> Formula:
    """Factor x n^3 for each matrix [n, n] of the input."""

    def flops(op: OpSignature) -> float:
        *batch, _, side = shape_in(op, 0, 2)
        return factor * prod(batch) * side**3

    return flops


def _eigen(values: float, vectors: float) -> Formula:
    """Factor x n^3, which depends on whether vectors are computed: they are the second output."""

    def flops(op: OpSignature) -> float:
        return _of_squares(vectors if elements_out(op, 1) else values)(op)

    return flops


def _solve(op: OpSignature) -> float:
    """LU, then two triangular solves for each right side."""
    *batch, _, side = shape_in(op, 0, 2)
    return prod(batch) * (2 / 3 * side**3 + 2.0 * side**2 * shape_in(op, 1, 2)[-1])


def _solve_triangular(op: OpSignature) -> float:
    """A multiply-add for half the matrix and each element of the solution."""
    return float(shape_in(op, 0, 2)[-1] * elements_out(op))


def _solve_banded(op: OpSignature) -> float:
    """The matrix holds its bands, [bands, n]."""
    return 2.0 * shape_in(op, 0, 2)[-2] * elements_out(op)


def _solve_tridiagonal(op: OpSignature) -> float:
    """The forward sweep (5) and the one back (3) of Thomas' algorithm."""
    return 8.0 * elements_out(op)


def _solve_least_squares(op: OpSignature) -> float:
    """Normal equations: m n^2 to form, n^3 / 3 to factor, for each right side 2 m n + 2 n^2."""
    *batch, rows, columns = shape_in(op, 0, 2)
    rights = shape_in(op, 1, 2)[-1]
    matrix = rows * columns**2 + columns**3 / 3
    return prod(batch) * (matrix + rights * (2.0 * rows * columns + 2.0 * columns**2))


def _qr(op: OpSignature) -> float:
    """Householder reflections give R, and again as much gives Q: 4 n^2 (m - n / 3)."""
    *batch, rows, columns = shape_in(op, 0, 2)
    long, short = max(rows, columns), min(rows, columns)
    return prod(batch) * 4.0 * short**2 * (long - short / 3)


def _svd(op: OpSignature) -> float:
    """4 m^2 n + 22 n^3 with vectors (second output), 2 m n^2 + 2 n^3 without."""
    *batch, rows, columns = shape_in(op, 0, 2)
    long, short = max(rows, columns), min(rows, columns)
    if elements_out(op, 1):
        return prod(batch) * (4.0 * long**2 * short + 22.0 * short**3)
    return prod(batch) * (2.0 * long * short**2 + 2.0 * short**3)


def _fourier(dimensions: int, each: float = 5.0) -> Formula:
    """5 n log2 n over the last dimensions; of real signals half of it."""

    def flops(op: OpSignature) -> float:
        shape = max(shape_in(op, 0, dimensions), shape_out(op, 0, dimensions), key=prod)
        points = prod(shape[-dimensions:])
        return each * prod(shape) * log2(points) if points > 1 else 0.0

    return flops


LINEAR_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **dict.fromkeys(("conv", "conv_input_gradient", "conv_filter_gradient"), _conv),
        **dict.fromkeys(
            ("depthwise_conv", "depthwise_conv_input_gradient", "depthwise_conv_filter_gradient"),
            _depthwise,
        ),
        **dict.fromkeys(
            ("dilation", "dilation_input_gradient", "dilation_filter_gradient"), _dilation
        ),
        **dict.fromkeys(("matmul", "batch_matmul"), _matmul),
        "einsum": _einsum,
        "sparse_dense_matmul": _sparse_dense,
        "cholesky": _of_squares(1 / 3),
        "cholesky_gradient": _of_squares(2 / 3),
        "lu": _of_squares(2 / 3),
        "matrix_inverse": _of_squares(2.0),
        "solve": _solve,
        "solve_triangular": _solve_triangular,
        "solve_banded": _solve_banded,
        "solve_tridiagonal": _solve_tridiagonal,
        "tridiagonal_matmul": lambda op: 5.0 * elements_out(op),
        "solve_least_squares": _solve_least_squares,
        "qr": _qr,
        "svd": _svd,
        "symmetric_eigen": _eigen(4 / 3, 9.0),
        "eigen": _eigen(10.0, 25.0),
        "cross": lambda op: 3.0 * elements_out(op),
        "fft": _fourier(1),
        "fft_2d": _fourier(2),
        "fft_3d": _fourier(3),
        "real_fft": _fourier(1, 2.5),
        "real_fft_2d": _fourier(2, 2.5),
        "real_fft_3d": _fourier(3, 2.5),
    }
)
