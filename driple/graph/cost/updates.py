"""Updates of variables by optimizers: FLOPs for each parameter, and where an op has what.

FLOPs follow the equations in TensorFlow's documentation of each op, or in the optimizer's paper;
what is computed once for all parameters, such as a corrected learning rate, does not count. A
kernel that updates many parameters at once is one op whose inputs hold all of them, end to end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["UPDATES", "Update"]


@dataclass(frozen=True, slots=True)
class Update:
    """Cost of an optimizer's update of one parameter, from its equations, and the inputs of its op.

    Attributes:
        flops: FLOPs of one parameter.
        num_variables: the variable and its slots, the first inputs; all are read and written.
        gradient: position of the gradient among the inputs, sparse or not.
    """

    flops: int
    num_variables: int
    gradient: int


# Kinds `update_...` and, for some rows of a variable only, `sparse_update_...`.
_UPDATES = {
    "sgd": Update(2, 1, 2),
    "momentum": Update(4, 2, 3),
    "adagrad": Update(6, 2, 3),
    "adagrad_epsilon": Update(7, 2, 4),
    "rmsprop": Update(11, 3, 7),
    "centered_rmsprop": Update(14, 4, 8),
    "adam": Update(12, 3, 9),
    # The maximum of all second moments, then as Adam.
    "amsgrad": Update(13, 4, 10),
    # m (3), v (3), the quotient and the step (4).
    "adamax": Update(10, 3, 8),
    # Both averages of squares (4 each), their roots (7), the step (2).
    "adadelta": Update(17, 3, 6),
    # Sums of gradients (1) and squares (2), soft threshold (3), the quotient (4).
    "adagrad_da": Update(10, 3, 3),
    # The sum of squares (2), the linear term (9 with both powers), the quotient (6).
    "ftrl": Update(17, 3, 3),
    # Shrinks the gradient too (2).
    "ftrl_shrinkage": Update(19, 3, 3),
    # The step (2), soft threshold (4), shrinkage (2).
    "proximal_sgd": Update(8, 1, 4),
    # The sum of squares (2), the learning rate (3), the step (2), threshold, shrinkage (9).
    "proximal_adagrad": Update(16, 2, 5),
    # m (3), two signs, their product, and the factor of the gradient (8).
    "add_sign": Update(11, 2, 6),
    "power_sign": Update(11, 2, 6),
}
# Without an op in TensorFlow: the gradient follows the variable and its states.
_UPDATES_ELSEWHERE = {
    # As Adam, after the variable shrank (1).
    "adamw": Update(13, 3, 3),
    # As Adam; both moments (1 byte each) are read from and written to their tables (4 each).
    "adam8bit": Update(20, 3, 3),
    # Squares into rows and columns (4), scaled by both (2), clipped (3), the step (2).
    "adafactor": Update(11, 1, 1),
    # Mean of moment and gradient, its sign (4), shrinkage (1), the step (2), the moment (3).
    "lion": Update(10, 2, 2),
    # As AdamW, and the norms of variable and step (4) and their ratio (1).
    "lamb": Update(18, 3, 3),
    # As momentum, shrinkage (2), and both norms (4).
    "lars": Update(10, 2, 2),
}
UPDATES: Mapping[str, Update] = MappingProxyType(
    {f"update_{name}": update for name, update in (*_UPDATES.items(), *_UPDATES_ELSEWHERE.items())}
    | {f"sparse_update_{name}": update for name, update in _UPDATES.items()}
)
