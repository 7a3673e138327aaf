"""Remarks on graphs that were built for another kind of cluster.

layout of a graph, scheme -> what is assumed, or None
"""

from __future__ import annotations

from driple.graph.opgraph import Layout
from driple.remarks import Remark, remark

__all__ = ["Layouts"]

_ON_SERVERS = ("all_reduce", "unplaced", "one_machine", "one_device")
_WITHOUT_SERVERS = ("servers", "unplaced", "one_machine")
_ALONE = ("servers", "all_reduce")


class Layouts:
    """Remarks on graphs that were built for another kind of cluster; None if a graph fits."""

    @classmethod
    def on_servers(cls, layout: Layout) -> Remark | None:
        """On a setting with parameter servers."""
        return _other(layout, "servers", _ON_SERVERS)

    @classmethod
    def without_servers(cls, layout: Layout, exchange: str) -> Remark | None:
        """On several workers without servers; `exchange` names the exchange that is assumed."""
        return _other(layout, exchange, _WITHOUT_SERVERS)

    @classmethod
    def alone(cls, layout: Layout) -> Remark | None:
        """On one device."""
        return _other(layout, "alone", _ALONE)


def _other(layout: Layout, exchange: str, layouts: tuple[str, ...]) -> Remark | None:
    if layout not in layouts:
        return None
    return remark("built_for_other_cluster", layout=layout, exchange=exchange)
