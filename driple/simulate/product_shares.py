"""What matrix products in half precision reach of a GPU without training steps of its own.

    Device -> ProductShares: of the tensor cores' peak (in whole tiles and waves), of the bytes/s

They are fitted to kernels of inference builds on nine GPUs (`datasets/runs/kernels`). A device that
is not among them gets three constants that were fitted to all nine: they miss the products of a
chip left out by 13 % in the median, where the shares of its generation miss them by 26 % (decision
0065). Products of published steps take 1.2 times as long as back to back (`IN_STEPS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.simulate.op_facts import FACTS, GROUPS, OpFacts

__all__ = ["IN_STEPS", "MEASURED", "ProductShares", "product_shares_of"]

FloatArray = npt.NDArray[np.float64]

IN_STEPS = 1.21
"""How many times as long products take in published steps, as the fit to them has it: 1.05 on the
A100, 1.26 on the H100, 1.33 on the B200, the geometric mean."""
_BALANCE = 125.0  # FLOP/s of tensor cores for each byte/s of memory
_USUAL_HALF, _USUAL_MEMORY, _FALL = 0.81, 0.815, 0.105
_MAKER = "NVIDIA"  # of all nine, which multiply bfloat16
# Peak of half precision over that of the plain cores: cards for games have 2, and reach more than
# the rate with single-precision sums that the catalogue states; all nine have 4 or more.
_LEAST_RATIO = 3.0


@dataclass(frozen=True, slots=True)
class ProductShares:
    """What products in half precision reach.

    Attributes:
        half: of the peak FLOP/s of the tensor cores, beside what tiles and waves leave.
        memory: of the peak bytes/s.
    """

    half: float
    memory: float

    def over(self, half: float, memory: float) -> ProductShares:
        """The same over what the device's kernels reach in all."""
        return ProductShares(half=self.half / half, memory=self.memory / memory)

    def put_into(self, shares: FloatArray, facts: OpFacts) -> FloatArray:
        """Shares of kernels, those of products in half precision replaced.

        Args:
            shares: shape [n, 2], of the peak FLOP/s and bytes/s.
            facts: of the ops.
        """
        half = facts.values[:, FACTS.index("half")] > 0
        rows = half & (facts.groups == GROUPS.index("matmul"))
        replaced = shares.copy()
        replaced[rows] = self.half, self.memory
        return replaced


MEASURED: Mapping[str, ProductShares] = MappingProxyType({
    "A100-80G": ProductShares(0.801, 0.693), "H100": ProductShares(0.786, 0.859),
    "H200": ProductShares(0.748, 0.794), "B200": ProductShares(0.697, 0.735),
    "B300": ProductShares(0.754, 0.74), "GB200": ProductShares(0.69, 0.762),
    "GB300": ProductShares(0.78, 0.76), "L40S": ProductShares(0.572, 0.829),
    "RTXPRO6000-Server": ProductShares(0.836, 0.955),
})  # fmt: skip
"""Of the devices whose kernels were measured."""


def product_shares_of(device: Device) -> ProductShares | None:
    """What products of training steps reach; None where no measured device is like this one."""
    shares = MEASURED.get(device.name)
    if shares is None:
        like = device.architecture.maker == _MAKER and device.bf16_flops > 0
        if not like or device.half_flops < _LEAST_RATIO * device.fp32_flops:
            return None
        fall = (device.half_flops / device.bytes_per_s / _BALANCE) ** -_FALL
        shares = ProductShares(half=_USUAL_HALF * fall, memory=_USUAL_MEMORY)
    return shares.over(IN_STEPS, IN_STEPS)
