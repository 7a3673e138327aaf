"""`driple zoo`: the training jobs that Driple can build itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.numbers import whole_number
from driple.cli.outputs import check_output_file, check_output_folder
from driple.cli.show import note, print_json, progress_bar
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.cluster.setting import Setting
    from driple.jobs import Workload

__all__ = ["zoo_app"]

zoo_app = typer.Typer(help="Training jobs that Driple can build.", rich_markup_mode=None)

_LISTS = ("all", "paper", "cpu")


@zoo_app.command("list")
def list_workloads(
    filter_: Annotated[
        str, typer.Option("--filter", help="only names that contain this, in any case")
    ] = "",
    which: Annotated[
        str,
        typer.Option("--list", help="paper (the 832 of its size), cpu (narrow ones), or all"),
    ] = "all",
    json: Annotated[bool, typer.Option("--json", help="a JSON array")] = False,
) -> None:
    """List the workloads of the zoo: the paper's catalogue, and what is measured on CPU settings.

    Examples:

      driple zoo list --filter ResNet50_v2

      driple zoo list --list cpu
    """
    listed = [job.name for job in _listed(which)]
    names = [name for name in listed if filter_.lower() in name]
    if not names:
        raise ConfigError(_no_such(filter_, which, listed))
    if json:
        print_json(names)
        return
    for name in names:
        print(name)
    note(f"{len(names)} workload(s)")


@zoo_app.command("build")
def build(
    workload: Annotated[
        str, typer.Argument(help="name, such as resnet50/imagenet/b64/sgd/sync")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="graph file to write; with --all a folder, by default graphs/SETTING",
        ),
    ] = None,
    setting: Annotated[str, typer.Option(help="cluster setting to place it on")] = "CPU-P1w2",
    all_: Annotated[bool, typer.Option("--all", help="every workload of --list")] = False,
    which: Annotated[str, typer.Option("--list", help="with --all: paper, cpu or all")] = "paper",
    processes: Annotated[
        int, typer.Option(help="with --all: build so many at once", callback=whole_number(1, 256))
    ] = 2,
) -> None:
    """Build the training graph of a workload, placed on the setting's cluster. Needs TensorFlow.

    With --all, the graphs of a whole list go into a folder, each stored once; the same command goes
    on where it was stopped.

    Examples:

      driple zoo build resnet20/cifar10/b32/sgd/sync -o resnet20.pbtxt

      driple zoo build --all --setting V100-P1w2 -o graphs/
    """
    from driple.cluster.setting import Setting
    from driple.jobs.names import workload_named

    cluster = Setting.parse(setting)
    if all_ == bool(workload):
        raise ConfigError("give one workload (driple zoo list), or --all, and not both")
    if all_:
        folder = output or Path("graphs") / cluster.file_name
        check_output_folder("--output", folder)
        _build_list(_listed(which), cluster, folder, processes)
        return
    job = workload_named(workload)
    if output is not None:
        check_output_file("--output", output)
    else:
        raise ConfigError(f"no file was named to write {job.name} to; give -o, such as -o graph.pb")
    require_tensorflow("building a graph")
    from driple.jobs.tensorflow.graphmode import begin_graph_mode

    begin_graph_mode()
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, write_graph

    step = build_training_step(job, ClusterShape.of(cluster), task=0)
    write_graph(step, output)
    note(f"wrote {output}: {step.num_parameters} parameters")


def _listed(which: str) -> tuple[Workload, ...]:
    from driple.jobs import cpu_workloads, paper_workloads

    if which not in _LISTS:
        raise ConfigError(f"--list must be one of {', '.join(_LISTS)}, got '{which}'")
    paper = paper_workloads() if which != "cpu" else ()
    cpu = cpu_workloads() if which != "paper" else ()
    return tuple(dict.fromkeys([*paper, *cpu]))


def _no_such(wanted: str, which: str, listed: list[str]) -> str:
    """One line: what no name contains, and what comes near: whole names, or parts of them."""
    from driple.jobs.fuzzy_match import alike
    from driple.jobs.names import nearest_names

    if "/" in wanted:
        near = nearest_names(wanted, listed)
    else:
        near = alike(wanted, {part for name in listed for part in name.split("/")}, most=3)
    offer = f"did you mean {', '.join(near)}?" if near else "driple zoo list shows all"
    where = "the zoo" if which == "all" else f"--list {which}"
    return f"no workload of {where} has '{wanted}' in its name; {offer}"


def _build_list(
    workloads: tuple[Workload, ...], setting: Setting, folder: Path, processes: int
) -> None:
    require_tensorflow("building a graph")
    from driple.dataset.graph_store import build_graphs

    with progress_bar() as bar:
        task = bar.add_task("building", total=len(workloads))

        def progress(name: str, done: int, total: int) -> None:
            bar.update(task, description=name or "building", completed=done, total=total)

        store = build_graphs(workloads, setting, folder, processes=processes, progress=progress)
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    note(f"{folder} holds {len(store.places)} graphs on {store.setting}, {size / 1e6:.1f} MB")
