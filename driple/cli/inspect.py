"""`driple inspect`: what Driple sees of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import JobArgument, job_options
from driple.cli.numbers import whole_number
from driple.cli.show import print_json, print_table
from driple.jobs.load import JobOptions

if TYPE_CHECKING:
    from driple.graph.opgraph import OpGraph

__all__ = ["inspect"]


@job_options
def inspect(
    job: JobArgument,
    options: JobOptions,
    top: Annotated[
        int, typer.Option(help="op types to list", callback=whole_number(0, 100_000))
    ] = 10,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Show the size of a job, what its ops cost and what the reader could not take at face value.

    Examples:

      driple inspect datasets/examples/resnet50.pbtxt

      driple inspect mobilenet_v2 --batch-size 64 --top 5
    """
    from driple.api.inspecting import inspect as ask

    result = ask(job, options=options)
    show_job(result.job, json=json)
    if json:
        print_json(result.to_dict())
        return
    graph, cost = result.job.graph, result.job.cost
    report = graph.report
    print(
        f"{result.job.name}: {report.nodes_in_file} nodes in the file, {graph.num_nodes} ops and "
        f"{graph.num_edges} edges on the worker's device, "
        f"{graph.tensor_bytes.sum() / 1e6:.1f} MB of tensors"
    )
    print(
        f"one step: {cost.total_flops / 1e9:.2f} GFLOP, {cost.total_bytes / 1e9:.2f} GB read and "
        "written"
    )
    print(_traffic_words(graph))
    if report.left_out:
        listed = ", ".join(f"{number} {reason}" for reason, number in report.left_out.items())
        print(f"not in a step: {listed}")
    print_table(
        ["op type", "nodes", "GFLOP", "MB"],
        [
            [
                name,
                str(count),
                f"{result.flops[name] / 1e9:.3f}",
                f"{result.moved_bytes[name] / 1e6:.1f}",
            ]
            for name, count in list(result.counts.items())[:top]
        ],
    )


def _traffic_words(graph: OpGraph) -> str:
    """One line about what crosses the network, as the graph places its ops and with servers."""
    amount = f"{graph.sent_bytes / 1e6:.3f} MB sent, {graph.received_bytes / 1e6:.3f} MB received"
    if graph.layout == "servers":
        return f"parameter servers: {amount} in a step"
    layout = {
        "one_machine": "one machine, nothing is sent",
        "one_device": "one device, nothing is sent",
        "all_reduce": "all-reduce of gradients",
        "unplaced": "no device is named",
    }[graph.layout]
    return f"{layout}; with its variables on parameter servers: {amount} in a step"
