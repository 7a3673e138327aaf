"""A job profiled with one parameter server, as it would be with several.

JobTrace of one server -> variables placed as TensorFlow does -> JobTrace of several servers

What transfers and updates cost is kept; only where they go changes (section 5).
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
    """The trace with its variables on so many servers; itself if it was profiled with as many.

    Args:
        trace: of a job with one server, or with as many as are asked for.
        num_servers: that shall hold the variables.
        strategy: in turn (TensorFlow's default), or greedy by bytes.

    Raises:
        ConfigError: the trace is of another number of servers.
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
    # Ops of the server go with the transfer that they wait for, in the end.
    place = np.empty(len(trace.names), dtype=np.int64)
    place[order_of(len(trace.names), trace.edges)] = np.arange(len(trace.names))
    for source, target in trace.edges[np.argsort(place[trace.edges[:, 0]])].tolist():
        if trace.resources[target] == Resource.SERVER and trace.resources[source] in _AT_SERVER:
            servers[target] = servers[source]
    return replace(trace, servers=servers)
