"""`driple graph show`: what the reader makes of a graph file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.graphoptions import (
    GRAPH_HELP,
    MAX_MIB,
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
    graph_options,
)
from driple.cli.numbers import whole_number
from driple.cli.show import print_json, print_table

if TYPE_CHECKING:
    from driple.graph.cost import GraphCost
    from driple.graph.opgraph import OpGraph

__all__ = ["graph_app"]

graph_app = typer.Typer(help="Look at graph files.", rich_markup_mode=None)


@graph_app.callback()
def _group() -> None:
    """Look at graph files."""


@graph_app.command("show")
def show(
    graph: Annotated[Path, typer.Argument(help=GRAPH_HELP)],
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    top: Annotated[
        int, typer.Option(help="op types to list", callback=whole_number(0, 100_000))
    ] = 10,
) -> None:
    """Show the size of a graph, what its ops cost and what the reader could not take at face value.

    Example:

      driple graph show datasets/examples/resnet50.pbtxt
    """
    from driple.cli.source import read_file
    from driple.graph.cost import cost_of_graph

    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    reading = read_file(graph, options, training=False)
    reading.show(json=json)
    op_graph = reading.graph
    report, cost = op_graph.report, cost_of_graph(op_graph)
    counts = op_graph.op_type_counts().most_common()
    if json:
        print_json(
            {
                "nodes": op_graph.num_nodes,
                "edges": op_graph.num_edges,
                "nodes_in_file": report.nodes_in_file,
                "nodes_inlined": report.nodes_inlined,
                "nodes_without_shape": report.nodes_without_shape,
                "dangling_inputs": report.dangling_inputs,
                "tensor_bytes": int(op_graph.tensor_bytes.sum()),
                "flops": cost.total_flops,
                "memory_bytes": cost.total_bytes,
                "loops_of_unknown_length": report.loops_of_unknown_length,
                "layout": op_graph.layout,
                "is_training": op_graph.is_training,
                "train_ops": list(report.train_ops),
                "target": report.target,
                "left_out": dict(report.left_out),
                "sent_bytes": op_graph.placed_bytes[0],
                "received_bytes": op_graph.placed_bytes[1],
                "sent_bytes_with_servers": op_graph.sent_bytes,
                "received_bytes_with_servers": op_graph.received_bytes,
                "op_types": dict(counts),
                "remote_op_types": {item.op_type: item.num_nodes for item in op_graph.remote},
                **reading.to_json_dict(),
            }
        )
        return
    print(
        f"{graph.name}: {report.nodes_in_file} nodes in the file, {op_graph.num_nodes} ops and "
        f"{op_graph.num_edges} edges on the worker's device, "
        f"{op_graph.tensor_bytes.sum() / 1e6:.1f} MB of tensors"
    )
    print(
        f"one step: {cost.total_flops / 1e9:.2f} GFLOP, {cost.total_bytes / 1e9:.2f} GB read and "
        "written"
    )
    print(_traffic_words(op_graph))
    if report.left_out:
        listed = ", ".join(f"{number} {reason}" for reason, number in report.left_out.items())
        print(f"not in a step: {listed}")
    flops, moved = _by_op_type(op_graph.op_types, cost)
    print_table(
        ["op type", "nodes", "GFLOP", "MB"],
        [
            [name, str(count), f"{flops[name] / 1e9:.3f}", f"{moved[name] / 1e6:.1f}"]
            for name, count in counts[:top]
        ],
    )


def _traffic_words(graph: OpGraph) -> str:
    """One line about what crosses the network, as the graph places its ops and with servers."""
    amount = f"{graph.sent_bytes / 1e6:.3f} MB sent, {graph.received_bytes / 1e6:.3f} MB received"
    if graph.layout == "servers":
        return f"parameter servers: {amount} in a step"
    said = {
        "one_machine": "one machine, nothing is sent",
        "all_reduce": "all-reduce of gradients",
        "unplaced": "no device is named",
    }[graph.layout]
    return f"{said}; with its variables on parameter servers: {amount} in a step"


def _by_op_type(op_types: tuple[str, ...], cost: GraphCost) -> tuple[Counter[str], Counter[str]]:
    """FLOPs and bytes of a step by op type."""
    flops: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    times = cost.executions
    for name, one, other in zip(
        op_types,
        (cost.flops * times).tolist(),
        ((cost.bytes_read + cost.bytes_written) * times).tolist(),
        strict=True,
    ):
        flops[name] += one
        moved[name] += other
    return flops, moved
