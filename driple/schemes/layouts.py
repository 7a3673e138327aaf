"""Sentences about graphs that were built for another kind of cluster.

layout of a graph, scheme -> what is assumed, or nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.opgraph import Layout

__all__ = ["Layouts"]


class Layouts:
    """Sentences about graphs that were built for another kind of cluster."""

    _UNDISTRIBUTED: Mapping[str, str] = MappingProxyType(
        {
            "unplaced": "the graph names no device",
            "one_machine": "the graph is of one machine",
        }
    )
    _ONE_DEVICE = "the model is of one device"
    _ON_SERVERS = "its variables and their updates are placed on the parameter servers"
    _ALONE = "the device updates all variables itself; nothing crosses the network"
    _NO_SERVERS = "the graph has parameter servers, this setting has none"

    @classmethod
    def on_servers(cls, layout: Layout) -> str:
        """On a setting with parameter servers."""
        if layout == "all_reduce":
            return (
                "the graph adds up gradients by all-reduce, this setting has parameter servers: "
                f"{cls._ON_SERVERS}, and workers wait for each other"
            )
        undistributed = {**cls._UNDISTRIBUTED, "one_device": cls._ONE_DEVICE}
        found = undistributed.get(layout)
        return f"{found}: {cls._ON_SERVERS}" if found else ""

    @classmethod
    def without_servers(cls, layout: Layout, exchange: str) -> str:
        """On several workers without servers; `exchange` describes the exchange that is assumed."""
        found = cls._NO_SERVERS if layout == "servers" else cls._UNDISTRIBUTED.get(layout)
        return f"{found}: {exchange}" if found else ""

    @classmethod
    def alone(cls, layout: Layout) -> str:
        """On one device."""
        if layout == "servers":
            return f"{cls._NO_SERVERS}: {cls._ALONE}"
        if layout == "all_reduce":
            return f"the graph adds up gradients of several workers: {cls._ALONE}"
        return ""
