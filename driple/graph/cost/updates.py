"""Updates of variables by optimizers: FLOPs for each parameter, and where an op has what.

FLOPs follow the equations in TensorFlow's documentation of each op; what is computed once for all
parameters, such as a corrected learning rate, does not count.
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


UPDATES: Mapping[str, Update] = MappingProxyType(
    {
        f"{kind}Apply{name}": update
        for kind in ("", "Resource", "Sparse", "ResourceSparse")
        for name, update in (
            ("GradientDescent", Update(2, 1, 2)),
            ("Momentum", Update(4, 2, 3)),
            ("KerasMomentum", Update(4, 2, 3)),
            ("Adagrad", Update(6, 2, 3)),
            ("AdagradV2", Update(7, 2, 4)),
            ("RMSProp", Update(11, 3, 7)),
            ("CenteredRMSProp", Update(14, 4, 8)),
            ("Adam", Update(12, 3, 9)),
            # The maximum of all second moments, then as Adam.
            ("AdamWithAmsgrad", Update(13, 4, 10)),
            # m (3), v (3), the quotient and the step (4).
            ("AdaMax", Update(10, 3, 8)),
            # Both averages of squares (4 each), their roots (7), the step (2).
            ("Adadelta", Update(17, 3, 6)),
            # Sums of gradients (1) and squares (2), soft threshold (3), the quotient (4).
            ("AdagradDA", Update(10, 3, 3)),
            # The sum of squares (2), the linear term (9 with both powers), the quotient (6).
            ("Ftrl", Update(17, 3, 3)),
            # Shrinks the gradient too (2).
            ("FtrlV2", Update(19, 3, 3)),
            # The step (2), soft threshold (4), shrinkage (2).
            ("ProximalGradientDescent", Update(8, 1, 4)),
            # The sum of squares (2), the learning rate (3), the step (2), threshold, shrinkage (9).
            ("ProximalAdagrad", Update(16, 2, 5)),
            # m (3), two signs, their product, and the factor of the gradient (8).
            ("AddSign", Update(11, 2, 6)),
            ("PowerSign", Update(11, 2, 6)),
        )
    }
)
