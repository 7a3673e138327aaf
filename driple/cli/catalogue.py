"""`driple jobs`: the catalogue of training jobs that Driple can build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow, require_torch
from driple.cli.numbers import whole_number
from driple.cli.outputs import JsonOption, check_output_file, check_output_folder
from driple.cli.overrides import engine_name, override, set_option, whole
from driple.cli.progress import progress_bar
from driple.engine.engine import MOST_WORKERS
from driple.errors import ConfigError
from driple.render.show import note, print_json
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.commands import BuildJson, JobsJson
    from driple.cluster.setting import Setting
    from driple.jobs import Workload

__all__ = ["jobs_app"]

jobs_app = typer.Typer(
    help="The catalogue: list and build training jobs and their samples.", rich_markup_mode=None
)

_LISTS = ("all", "paper", "cpu")
_MOST_TOKENS = 500_000_000  # 2 GB in memory


@dataclass(frozen=True, kw_only=True, slots=True)
class _Samples:
    """With --samples."""

    image_size: int = whole(256, "height and width of an image, pixels", 8, 4096)
    classes: int = whole(10, "class folders", 1, 100_000)
    length: int = whole(128, "tokens of a sample", 1, 1_000_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Graphs:
    """With --list."""

    processes: int = whole(2, "parallel processes", 1, MOST_WORKERS)
    engine: str = engine_name()


@jobs_app.command("list")
def list_workloads(
    text: Annotated[
        str, typer.Argument(help="only names that contain this text, in any case")
    ] = "",
    which: Annotated[
        str,
        typer.Option("--list", help="paper (the 832 of its size), cpu (narrow ones), or all"),
    ] = "all",
    json: JsonOption = False,
) -> None:
    """List the workloads of the catalogue: the paper's, and those measured on CPU settings.

    Examples:

      driple jobs list ResNet50_v2

      driple jobs list --list cpu
    """
    listed = [job.name for job in _listed(which)]
    names = [name for name in listed if text.lower() in name]
    if not names:
        raise ConfigError(_no_such(text, which, listed))
    if json:
        jobs: JobsJson = {"workloads": names}
        print_json(jobs, "jobs")
        return
    for name in names:
        print(name)
    note(f"{counted(len(names), 'workload')}")


@jobs_app.command("build")
def build(
    workload: Annotated[
        str, typer.Argument(help="name, such as resnet50/imagenet/b64/sgd/sync")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="file to write; with --list a folder, default: graphs/SETTING; with --samples a "
            "folder of images, or a file of tokens (.npy)",
        ),
    ] = None,
    setting: Annotated[str, typer.Option(help="setting to place the job on")] = "CPU-P1w2",
    which: Annotated[
        str | None, typer.Option("--list", help="every workload of this list: paper, cpu or all")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="generate this number of samples for the built-in PyTorch jobs",
            callback=whole_number(1, 10_000_000),
        ),
    ] = None,
    set_: Annotated[list[str] | None, set_option(_Samples, _Graphs)] = None,
    json: JsonOption = False,
) -> None:
    """Build the training graph of a workload on a setting, all graphs of a list, or samples.

    Graphs need TensorFlow, samples need PyTorch. With --list, the graphs of a list go into one
    folder, each stored once; the same command continues where it was stopped.

    Examples:

      driple jobs build resnet20/cifar10/b32/sgd/sync -o resnet20.pbtxt

      driple jobs build --list paper --setting V100-P1w2 -o graphs/

      driple jobs build --samples 4096 -o images/

      driple jobs build --samples 4096 --set length=384 -o tokens.npy
    """
    from driple.cluster.setting import Setting

    cluster = Setting.parse(setting)
    if sum((which is not None, bool(workload), samples is not None)) != 1:
        raise ConfigError(
            "give a workload (see driple jobs list), --list LIST or --samples N, and not both"
        )
    if workload and set_:
        raise ConfigError(
            "--set applies to --samples and --list; leave it out, or give --samples N"
        )
    if samples is not None:
        built = _build_samples(samples, override(_Samples, set_, of=" with --samples"), output)
    elif which is not None:
        graphs = override(_Graphs, set_, of=" with --list")
        folder = output or Path("graphs") / cluster.file_name
        check_output_folder("--output", folder)
        built = _build_list(_listed(which), cluster, folder, graphs.processes, graphs.engine)
    else:
        built = _build_one(workload, cluster, output)
    if json:
        print_json(built, "build")


def _build_samples(samples: int, form: _Samples, output: Path | None) -> BuildJson:
    """Write images in class folders, or rows of tokens where the output is a .npy file."""
    if output is None:
        raise ConfigError("--samples needs a place; give -o, such as -o images/ or -o tokens.npy")
    tokens = output.suffix == ".npy"
    (check_output_file if tokens else check_output_folder)("--output", output)
    if tokens and samples * form.length > _MOST_TOKENS:
        raise ConfigError(
            f"--samples {samples} with --set length={form.length} are {samples * form.length} "
            f"tokens, and at most {_MOST_TOKENS} are made; give fewer or shorter samples"
        )
    require_torch("generating samples", extra="profiler")
    from driple.jobs.pytorch.samples import make_images, make_tokens

    if tokens:
        make_tokens(output, samples, form.length)
    else:
        make_images(output, samples, form.image_size, form.classes)
    note(f"wrote {output}: {counted(samples, 'sample')}")
    return {"output": str(output), "samples": samples}


def _build_one(workload: str, cluster: Setting, output: Path | None) -> BuildJson:
    """Write the graph of one workload."""
    from driple.jobs.names import workload_named

    job = workload_named(workload)
    if output is None:
        raise ConfigError(f"no file was named to write {job.name} to; give -o, such as -o graph.pb")
    check_output_file("--output", output)
    require_tensorflow("building a graph")
    from driple.jobs.tensorflow.graphmode import begin_graph_mode

    begin_graph_mode()
    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, write_graph

    step = build_training_step(job, ClusterShape.of(cluster), task=0)
    write_graph(step, output)
    note(f"wrote {output}: {step.num_parameters} parameters")
    return {"output": str(output), "workload": job.name, "parameters": step.num_parameters}


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
    offer = f"did you mean {', '.join(near)}?" if near else "driple jobs list shows all"
    where = "the catalogue" if which == "all" else f"--list {which}"
    return f"no workload of {where} has '{wanted}' in its name; {offer}"


def _build_list(
    workloads: tuple[Workload, ...], setting: Setting, folder: Path, processes: int, engine: str
) -> BuildJson:
    require_tensorflow("building a graph")
    from driple.dataset.graph_store import build_graphs

    with progress_bar() as bar:
        task = bar.add_task("building", total=len(workloads))

        def progress(name: str, done: int, total: int) -> None:
            bar.update(task, description=name or "building", completed=done, total=total)

        store = build_graphs(
            workloads, setting, folder, processes=processes, engine=engine, progress=progress
        )
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    note(f"{folder} holds {len(store.places)} graphs on {store.setting}, {size / 1e6:.1f} MB")
    return {"output": str(folder), "setting": store.setting, "graphs": len(store.places)}
