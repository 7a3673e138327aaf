"""BUILD: from an `OpGraph` to what the inspector takes (paper, section 3.1)."""

from __future__ import annotations

from driple.inputs.builder import InspectorInput, build_input
from driple.inputs.config import InputConfig
from driple.inputs.facts import FACT_WORDS, graph_facts
from driple.inputs.features import fit_op_type_table
from driple.inputs.grouped import AnyGraph, GroupedGraph
from driple.inputs.grouping import fluid_communities, group_nodes, proportional_num_groups
from driple.inputs.groupings import Groupings
from driple.inputs.version import FEATURES_VERSION

__all__ = [
    "FACT_WORDS",
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
