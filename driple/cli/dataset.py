"""`driple dataset`: look at data sets, and make them of measured runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.graphoptions import (
    MAX_MIB,
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
    graph_options,
)
from driple.cli.numbers import finite_number
from driple.cli.outputs import output_folder
from driple.cli.show import note, print_json, print_table, print_targets, progress_bar

if TYPE_CHECKING:
    from driple.trace.provenance import Provenance

__all__ = ["dataset_app"]

dataset_app = typer.Typer(help="Data sets of measured workloads.", rich_markup_mode=None)


@dataset_app.command("info")
def info(
    dataset: Annotated[Path, typer.Argument(help="data set folder")],
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Show what a data set holds and where its labels come from.

    Example:

      driple dataset info datasets/CPU-P1w2_ho-200M
    """
    from collections import Counter

    import numpy as np

    from driple.codec import to_dict
    from driple.dataset.store import read_dataset
    from driple.trace.targets import TARGET_NAMES

    data = read_dataset(dataset)
    families = Counter(item.family for item in data.examples)
    labels = np.array([item.targets.flat for item in data.examples])
    if json:
        print_json(
            {
                "name": data.name,
                "setting": data.setting,
                "examples": len(data.examples),
                "families": dict(families),
                "about": to_dict(data.about),
            }
        )
        return
    print(f"{data.name}: {len(data.examples)} workloads on {data.setting}")
    print("families: " + ", ".join(f"{name} {count}" for name, count in families.items()))
    _print_origin(data.about)
    repeats = {} if data.about.repeatability is None else data.about.repeatability.median_cv
    rows = [
        [
            name,
            *(f"{value:.3f}" for value in np.percentile(labels[:, i], (0, 50, 100))),
            f"{100 * repeats[name]:.1f} %" if name in repeats else "-",
        ]
        for i, name in enumerate(TARGET_NAMES)
    ]
    print_table(["target", "least", "median", "most", "repeatability"], rows)


def _print_origin(about: Provenance) -> None:
    """Number and dates of the runs, where the data set holds them."""
    if about.measured is None:
        return
    first, last = about.measured.first[:10], about.measured.last[:10]
    print(
        f"{about.num_runs} runs of {len(about.origins) or 1} campaign(s), measured from {first} to "
        f"{last}"
    )


@dataset_app.command("show")
def show(
    dataset: Annotated[Path, typer.Argument(help="data set folder")],
    workload: Annotated[str, typer.Argument(help="name of a workload in it")],
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Show the label of one workload: what its run really used.

    Example:

      driple dataset show datasets/CPU-P1w2_ho-200M resnet20/cifar10/b24/adam/sync
    """
    from driple.dataset.store import read_dataset
    from driple.errors import DatasetError
    from driple.jobs.names import nearest_names

    by_name = {item.workload: item for item in read_dataset(dataset).examples}
    if workload not in by_name:
        near = nearest_names(workload, by_name)
        raise DatasetError(
            f"{dataset} has no workload '{workload}'; did you mean {' or '.join(near) or 'another'}"
        )
    item = by_name[workload]
    if json:
        print_json(
            {
                "workload": item.workload,
                "family": item.family,
                "setting": item.setting,
                "label_source": item.label_source,
                "targets": item.targets.to_dict(),
                "iteration_time_s": item.iteration_time_s,
                "details": item.details,
            }
        )
        return
    print(f"{item.workload} on {item.setting}: {item.label_source}")
    print_targets(item.targets, item.iteration_time_s)


@dataset_app.command("import")
def import_(
    setting: Annotated[str, typer.Option(help="cluster setting of the labels")],
    file: Annotated[
        Path | None, typer.Argument(help="a data set of the public Driple data (.pkl)")
    ] = None,
    perf: Annotated[Path | None, typer.Option(help="a result table of DriplePerf (.csv)")] = None,
    graphs: Annotated[
        Path | None,
        typer.Option(help="with --perf: folder with the graph of each job, JOB.pbtxt or JOB.pb"),
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="data set folder; by default datasets/SETTING-...",
            callback=output_folder,
        ),
    ] = None,
) -> None:
    """Make a data set of what Driple's authors published, or of what their DriplePerf wrote.

    Of a .pkl file only tensors are read; anything else in it is refused. Its workloads keep their
    parts (train, val, test), and driple train uses them.

    Examples:

      driple dataset import V100-P1w2-ho-PCIe.pkl --setting V100

      driple dataset import --perf result.csv --graphs graphs --setting 2080Ti
    """
    from driple.cluster.setting import Setting
    from driple.dataset.perftable import read_perf_table
    from driple.dataset.released import read_released
    from driple.dataset.store import write_dataset
    from driple.dataset.tables import require_pyarrow
    from driple.errors import ConfigError

    if (file is None) == (perf is None):
        raise ConfigError("give either a .pkl file or --perf TABLE.csv")
    if (perf is None) != (graphs is None):
        raise ConfigError("--perf and --graphs belong together: a table holds no graphs")
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    if options.flags and graphs is None:
        raise ConfigError(
            f"{' and '.join(options.flags)}: these are for the graphs of --graphs, and a .pkl file "
            "has none; leave them out"
        )
    require_pyarrow()
    wanted = Setting.parse(setting)
    if file is not None:
        data = read_released(file, wanted)
    elif perf is not None and graphs is not None:
        with progress_bar() as bar:
            task = bar.add_task("reading graphs", total=None)
            data = read_perf_table(
                perf,
                wanted,
                graphs,
                max_bytes=options.max_bytes,
                options=options.read,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
    folder = output or Path("datasets") / data.name
    write_dataset(data, folder)
    note(f"wrote {folder}")
    note(f"train on it: driple train --setting {wanted.name} --dataset {folder}")
    print(f"{len(data.examples)} workloads")


@dataset_app.command("build")
def build(
    campaign: Annotated[Path, typer.Argument(help="folder that driple measure filled")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="data set folder to write", callback=output_folder),
    ],
    grid_ms: Annotated[
        float,
        typer.Option(
            help="period of the labelled traces, in milliseconds",
            callback=finite_number(above=0, most=60_000),
        ),
    ] = 50.0,
    traces: Annotated[
        bool, typer.Option(help="also store every raw sample beside the labels")
    ] = True,
) -> None:
    """Label the runs of a campaign and write them as a data set.

    Example:

      driple dataset build runs/cpu -o datasets/CPU-P1w2_ho-200M
    """
    from driple.dataset.store import write_dataset
    from driple.dataset.tables import require_pyarrow
    from driple.measure.testbed.campaign import read_campaign
    from driple.measure.testbed.collect import collect_dataset

    require_pyarrow()
    about = read_campaign(campaign)
    data = collect_dataset(campaign, name=output.name, about=about, grid_s=grid_ms / 1000)
    write_dataset(data, output)
    if traces:
        from driple.measure.testbed.archive import write_archive

        write_archive(campaign, output)
    note(f"wrote {output}")
    print(f"{len(data.examples)} workloads, {data.about.num_runs} runs")
