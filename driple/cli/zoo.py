"""`driple zoo`: the training jobs that Driple can build itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from driple.cli.show import note, print_json
from driple.errors import MissingExtraError

__all__ = ["zoo_app"]

zoo_app = typer.Typer(help="Training jobs that Driple can build.", rich_markup_mode=None)


@zoo_app.command("list")
def list_workloads(
    filter_: Annotated[str, typer.Option("--filter", help="only names that contain this")] = "",
    json: Annotated[bool, typer.Option("--json", help="a JSON array")] = False,
) -> None:
    """List the workloads that are measured on CPU settings.

    Example:

      driple zoo list --filter resnet20
    """
    from driple.zoo import cpu_workloads

    names = [item.name for item in cpu_workloads() if filter_ in item.name]
    if json:
        print_json(names)
        return
    for name in names:
        print(name)
    note(f"{len(names)} workload(s)")


@zoo_app.command("build")
def build(
    workload: Annotated[str, typer.Argument(help="name, such as resnet50/imagenet/b64/sgd/sync")],
    output: Annotated[Path, typer.Option("-o", "--output", help="graph file to write")],
    setting: Annotated[str, typer.Option(help="cluster setting to place it on")] = "CPU-P1w2",
) -> None:
    """Build the training graph of a workload, placed on the setting's cluster. Needs TensorFlow.

    Example:

      driple zoo build resnet20/cifar10/b32/sgd/sync -o resnet20.pbtxt
    """
    from driple.settings import Setting
    from driple.zoo import Workload

    job, cluster = Workload.parse(workload), Setting.parse(setting)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        from driple.zoo.training import (
            ClusterShape,
            build_training_step,
            use_graph_mode,
            write_graph,
        )
    except ImportError as error:
        raise MissingExtraError(
            "building a graph needs TensorFlow, which is not installed; "
            "pip install 'driple[tensorflow]'"
        ) from error
    use_graph_mode()
    shape = ClusterShape(
        num_servers=cluster.num_servers,
        num_workers=cluster.num_workers,
        device_type="CPU" if cluster.device.startswith("CPU") else "GPU",
    )
    step = build_training_step(job, shape, task=0)
    write_graph(step, output)
    note(f"wrote {output}: {step.num_parameters} parameters")
