"""Version of the features: which numbers an inspector gets of an OpGraph."""

from __future__ import annotations

__all__ = ["FEATURES_VERSION", "FIRST_FEATURES_VERSION"]

# Raise this by 1 when the same OpGraph and InputConfig give another input than before: other
# groups, features or context, or other costs of ops (`driple.graph.cost`), which they hold.
# 1: until issue 38. 2: costs of recurrent, 3-D, depthwise, dilated, sparse and list ops; shapes
# that an op's other shapes imply.
FEATURES_VERSION = 2

# Version of checkpoints that do not record one.
FIRST_FEATURES_VERSION = 1
