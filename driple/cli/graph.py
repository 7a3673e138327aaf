"""`driple graph show`: what the reader makes of a graph file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driple.cli.show import note, print_json, print_table

__all__ = ["graph_app"]

graph_app = typer.Typer(help="Look at graph files.", rich_markup_mode=None)


@graph_app.callback()
def _group() -> None:
    """Look at graph files."""


@graph_app.command("show")
def show(
    graph: Annotated[Path, typer.Argument(help="GraphDef or SavedModel: .pb, .pbtxt, also .gz")],
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    top: Annotated[int, typer.Option(help="op types to list")] = 10,
) -> None:
    """Show the size of a graph, its op types and what the reader could not take at face value.

    Example:

      driple graph show datasets/examples/resnet50.pbtxt
    """
    from driple.graph import read_graph

    op_graph = read_graph(graph)
    report = op_graph.report
    counts = op_graph.op_type_counts().most_common()
    if json:
        print_json(
            {
                "nodes": op_graph.num_nodes,
                "edges": op_graph.num_edges,
                "nodes_in_file": report.nodes_in_file,
                "nodes_inlined": report.nodes_inlined,
                "nodes_without_shape": report.nodes_without_shape,
                "unknown_dimensions": report.unknown_dimensions,
                "dangling_inputs": report.dangling_inputs,
                "tensor_bytes": int(op_graph.tensor_bytes.sum()),
                "op_types": dict(counts),
                "remote_op_types": {item.op_type: item.num_nodes for item in op_graph.remote},
                "notes": list(report.notes),
            }
        )
        return
    for remark in report.notes:
        note(remark)
    print(
        f"{graph.name}: {report.nodes_in_file} nodes in the file, {op_graph.num_nodes} ops and "
        f"{op_graph.num_edges} edges on the worker's device, "
        f"{op_graph.tensor_bytes.sum() / 1e6:.1f} MB of tensors"
    )
    print_table(["op type", "nodes"], [[name, str(count)] for name, count in counts[:top]])
