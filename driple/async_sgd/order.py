"""Transfer order of the parameters of a step (section 3.3).

ops and their dependencies -> uses of each downlink -> rank of each downlink in an order

TIC is the timing-independent order of TicTac (Hashemi et al., SysML 2019): parameters that unblock
an op together with few others come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.checks import check_choice

if TYPE_CHECKING:
    from driple.async_sgd.compiled import CompiledJob

__all__ = ["ORDERS", "Order", "downlink_ranks", "uses_of_downlinks"]

# recorded: by end time in the profile; layer: by first reader; tic; its reverse; random.
Order = Literal["recorded", "layer", "tic", "reverse", "random"]
ORDERS = get_args(Order)

IntArray = npt.NDArray[np.int64]


def uses_of_downlinks(
    waits_for: Sequence[Sequence[int]], is_downlink: Sequence[bool]
) -> tuple[IntArray, IntArray]:
    """Quantities that determine the urgency of a downlink.

    Args:
        waits_for: dependencies of each op.
        is_downlink: whether an op is a downlink.

    Returns:
        For each downlink its first reader, and the impending load M+ of TicTac: the smallest number
        of downlinks, including itself and at least one other, that an op waits for. Both are the
        number of ops if there is no such op.
    """
    count = len(waits_for)
    first_use = np.full(count, count, dtype=np.int64)
    load = np.full(count, count, dtype=np.int64)
    gates = [0] * count  # bit mask of the downlinks that an op waits for
    for i, waits in enumerate(waits_for):
        for j in waits:
            if is_downlink[j]:
                first_use[j] = min(first_use[j], i)
            gates[i] |= gates[j]
        if is_downlink[i]:
            gates[i] |= 1 << i
    # Ops with the same dependencies give the same load; each distinct set is processed once.
    for gate in set(gates):
        number = gate.bit_count()
        if number > 1:
            members = [i for i in range(gate.bit_length()) if gate >> i & 1]
            load[members] = np.minimum(load[members], number)
    return first_use, load


def downlink_ranks(job: CompiledJob, order: Order, seed: int = 0) -> IntArray:
    """Rank of each downlink among the waiting streams, shape [n]; -1: first come, first served.

    Args:
        job: job with the downlinks.
        order: see `ORDERS`; ties are broken by the recorded order.
        seed: random seed of the order `random`.

    Raises:
        ConfigError: an unknown order.
    """
    check_choice("--set order", order, ORDERS)
    ranks = np.full(job.num_ops, -1, dtype=np.int64)
    if order == "recorded":
        return ranks
    links = np.flatnonzero((job.resource > job.num_servers) & (job.resource <= 2 * job.num_servers))
    keys = {
        "layer": job.first_use[links],
        "tic": job.load[links],
        "reverse": -job.load[links],
        "random": np.random.default_rng(seed).permutation(len(links)),
    }[order]
    ranks[links[np.argsort(keys, kind="stable")]] = np.arange(len(links))
    return ranks
