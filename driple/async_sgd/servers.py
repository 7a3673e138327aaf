"""Convert a job profiled with one parameter server to several servers.

JobTrace of one server -> variables placed as TensorFlow does -> JobTrace of several servers

The costs of transfers and updates stay; only their server changes (section 5).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.async_sgd.jobtrace import JobTrace, Resource, order_of
from driple.checks import check_whole
from driple.errors import ConfigError
from driple.graph.placement import Strategy, gradients_to, place_variables

__all__ = ["with_servers"]

_MOST_SERVERS = 64
_AT_SERVER = (Resource.SERVER, Resource.UPLINK)


def with_servers(trace: JobTrace, num_servers: int, strategy: Strategy = "round_robin") -> JobTrace:
    """The trace with its variables on `num_servers` servers; unchanged if it has as many.

    Args:
        trace: trace with one server, or with `num_servers`.
        num_servers: number of servers that hold the variables.
        strategy: round robin (TensorFlow's default), or greedy by bytes.

    Raises:
        ConfigError: the trace has another number of servers.
    """
    check_whole("--ps", num_servers, 1, _MOST_SERVERS)
    if trace.num_servers == num_servers:
        return trace
    if trace.num_servers != 1:
        raise ConfigError(
            f"the trace was profiled with {trace.num_servers} servers, which tells nothing of "
            f"{num_servers}; profile with one server, or with {num_servers}"
        )
    down = np.flatnonzero(trace.resources == Resource.DOWNLINK)
    up = np.flatnonzero(trace.resources == Resource.UPLINK)
    up = up[np.argsort(np.median(trace.start_s[:, up], axis=0), kind="stable")]
    holders = place_variables(trace.sizes[down], num_servers, strategy)
    servers = np.zeros(len(trace.names), dtype=np.int16)
    servers[down] = holders
    servers[up] = gradients_to(trace.sizes[up], trace.sizes[down], holders)
    # Ops of the server move with the transfer that they finally depend on.
    place = np.empty(len(trace.names), dtype=np.int64)
    place[order_of(len(trace.names), trace.edges)] = np.arange(len(trace.names))
    for source, target in trace.edges[np.argsort(place[trace.edges[:, 0]])].tolist():
        if trace.resources[target] == Resource.SERVER and trace.resources[source] in _AT_SERVER:
            servers[target] = servers[source]
    return replace(trace, servers=servers)
