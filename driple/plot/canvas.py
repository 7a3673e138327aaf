"""Matplotlib for pictures that are files: no window, the same bytes for the same picture.

pyplot() -> matplotlib.pyplot, in which names are texts: a `$` in one begins no formula
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["pyplot"]


def pyplot() -> ModuleType:
    """`matplotlib.pyplot`, set up; the package is an extra and loaded when needed."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "driple"
    mpl.rcParams["text.parse_math"] = False
    from matplotlib import pyplot as plt

    return plt
