"""BUILD: from an `OpGraph` to what the inspector takes (paper, section 3.1)."""

from __future__ import annotations

from driple.features.builder import InspectorInput, build_input
from driple.features.communities import fluid_communities, group_nodes, proportional_num_groups
from driple.features.config import InputConfig
from driple.features.features import fit_op_type_table
from driple.features.graph_stats import graph_facts
from driple.features.grouping_cache import Groupings
from driple.features.pregrouped import AnyGraph, GroupedGraph
from driple.features.version import FEATURES_VERSION

__all__ = [
    "FEATURES_VERSION",
    "AnyGraph",
    "GroupedGraph",
    "Groupings",
    "InputConfig",
    "InspectorInput",
    "build_input",
    "fit_op_type_table",
    "fluid_communities",
    "graph_facts",
    "group_nodes",
    "proportional_num_groups",
]
