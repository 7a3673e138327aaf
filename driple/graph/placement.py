"""Placement of variables on servers, as TensorFlow's `replica_device_setter` decides it.

parameters in the order of the program -> round robin, or always to the emptiest -> server of each
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.checks import check_choice

__all__ = ["STRATEGIES", "Strategy", "gradients_to", "place_variables", "server_bytes"]

Strategy = Literal["round_robin", "greedy"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)


def place_variables(
    nbytes: npt.NDArray[np.int64], num_servers: int, strategy: Strategy = "round_robin"
) -> npt.NDArray[np.int64]:
    """Server of each variable.

    Args:
        nbytes: shape [v], in the order in which the variables were made.
        num_servers: servers to choose from.
        strategy: in turn (TensorFlow's default), or to the server with fewest bytes so far.
    """
    check_choice("placement", strategy, STRATEGIES)
    if strategy == "round_robin":
        return np.arange(len(nbytes)) % num_servers
    loads = np.zeros(num_servers)
    server_of = np.empty(len(nbytes), dtype=np.int64)
    for i, size in enumerate(nbytes.tolist()):
        server_of[i] = int(loads.argmin())
        loads[server_of[i]] += size
    return server_of


def server_bytes(
    nbytes: npt.NDArray[np.int64], num_servers: int, strategy: Strategy = "round_robin"
) -> npt.NDArray[np.float64]:
    """Bytes that each server holds, shape [num_servers].

    In turn, and whatever their size: with two servers and a bias after each weight, one gets all
    weights; where every fifth variable is a large one, one of five servers holds nearly all.
    """
    servers = place_variables(nbytes, num_servers, strategy)
    return np.bincount(servers, weights=nbytes, minlength=num_servers).astype(np.float64)


def gradients_to(
    gradient_bytes: npt.NDArray[np.int64],
    variable_bytes: npt.NDArray[np.int64],
    servers: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Server of each gradient: that of a variable of its size, each variable taken once.

    Gradients come in the reverse order of the layers, so the last variable of a size goes with the
    first gradient of it. A gradient of no variable's size, such as indices, goes to server 0.
    """
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for size, server in zip(variable_bytes.tolist(), servers.tolist(), strict=True):
        waiting[size].appendleft(server)
    return np.array(
        [waiting[size].popleft() if waiting[size] else 0 for size in gradient_bytes.tolist()],
        dtype=np.int64,
    )
