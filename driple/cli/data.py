"""`driple data`: look at data sets, and make them from recorded, published or simulated runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.data_label import label, print_made
from driple.cli.data_simulate import simulate
from driple.cli.joboptions import file_options
from driple.cli.outputs import JsonOption, output_folder
from driple.cli.progress import progress_bar
from driple.cli.train import datasets_folder
from driple.data_folders import HERE
from driple.jobs.load import JobOptions
from driple.render.show import note, print_json, print_table, print_targets
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.commands import DataListJson, DataSetJson, LabelJson
    from driple.cluster.setting import Setting
    from driple.dataset.example import Dataset
    from driple.estimate import Method
    from driple.trace.provenance import Provenance

__all__ = ["data_app"]

data_app = typer.Typer(
    help="Data sets: list, show, label, import, simulate.", rich_markup_mode=None
)
data_app.command()(label)
data_app.command()(simulate)


@data_app.command("list")
def list_(
    folder: Annotated[Path, typer.Argument(help="a data set, or a folder of data sets")] = HERE,
    json: JsonOption = False,
) -> None:
    """List the data sets of a folder, or describe one: workloads, families, labels, origin.

    Examples:

      driple data list

      driple data list datasets/settings/CPU-P1w2_ho-200M
    """
    from driple.dataset.summary import DATASET_FILE

    folder = datasets_folder(folder)
    if (folder / DATASET_FILE).exists():
        _describe(folder, json=json)
        return
    _list_folder(folder, json=json)


def _list_folder(folder: Path, *, json: bool) -> None:
    """A row for each data set in or below the folder."""
    from driple.dataset.summary import list_datasets

    data_sets = list_datasets(folder)
    if json:
        listed: DataListJson = {"data_sets": data_sets}
        print_json(listed, "data_list")
        return
    rows = [
        [
            str(Path(row.folder).relative_to(folder)),
            row.setting,
            str(row.num_examples),
            row.label_source or "unknown",
        ]
        for row in data_sets
    ]
    print_table([f"in {folder}", "setting", "workloads", "labels"], rows)


def _describe(dataset: Path, *, json: bool) -> None:
    """One data set: families, targets and their repeatability."""
    from collections import Counter

    import numpy as np

    from driple.dataset.store import read_dataset
    from driple.trace.targets import TARGET_NAMES

    data = read_dataset(dataset)
    families = Counter(item.family for item in data.examples)
    labels = np.array([item.targets.flat for item in data.examples])
    if json:
        described: DataSetJson = {
            "name": data.name,
            "setting": data.setting,
            "examples": len(data.examples),
            "families": families,
            "about": data.about,
        }
        print_json(described, "data_set")
        return
    print(f"{data.name}: {counted(len(data.examples), 'workload')} on {data.setting}")
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
        f"{counted(about.num_runs or 0, 'run')} of {counted(len(about.origins) or 1, 'campaign')}, "
        f"measured from {first} to {last}"
    )


@data_app.command("show")
def show(
    dataset: Annotated[Path, typer.Argument(help="data set folder")],
    workload: Annotated[str, typer.Argument(help="name of a workload in it")],
    json: JsonOption = False,
) -> None:
    """Show the label of one workload: what its run really used.

    Example:

      driple data show datasets/settings/CPU-P1w2_ho-200M resnet20/cifar10/b24/adam/sync
    """
    from driple.dataset.store import read_dataset
    from driple.errors import DatasetError
    from driple.estimate import estimate
    from driple.jobs.names import nearest_names
    from driple.trace.targets import UNITS

    by_name = {item.workload: item for item in read_dataset(dataset).examples}
    if workload not in by_name:
        near = nearest_names(workload, by_name)
        raise DatasetError(
            f"{dataset} has no workload '{workload}'; did you mean {' or '.join(near) or 'another'}"
        )
    example = by_name[workload]
    if json:
        method: Method = "simulator" if example.label_source == "simulated" else "measured"
        shown: LabelJson = {
            "workload": example.workload,
            "family": example.family,
            "setting": example.setting,
            "label_source": example.label_source,
            "targets": {
                resource: {
                    figure: estimate(value, method, example.label_source)
                    for figure, value in figures.items()
                }
                for resource, figures in example.targets.to_dict().items()
            },
            "units": UNITS,
            "iteration_time_s": estimate(example.iteration_time_s, method, example.label_source),
            "details": example.details,
        }
        print_json(shown, "label")
        return
    print(f"{example.workload} on {example.setting}: {example.label_source}")
    print_targets(example.targets, example.iteration_time_s)


@data_app.command("import")
@file_options
def import_(
    options: JobOptions,
    file: Annotated[
        Path,
        typer.Argument(help="public Driple data (.pkl), or a result table of DriplePerf (.csv)"),
    ],
    setting: Annotated[str, typer.Option(help="setting of the labels")],
    graphs: Annotated[
        Path | None,
        typer.Option(help="for a table: folder with the graph of each job, JOB.pbtxt or JOB.pb"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="folder to write; default: datasets/SETTING-...",
            callback=output_folder,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a data set from what Driple's authors published, or from what their DriplePerf wrote.

    Driple reads only the tensors of a .pkl file and refuses anything else in it. The workloads keep
    their parts (train, val, test), and driple train uses them.

    Examples:

      driple data import V100-P1w2-ho-PCIe.pkl --setting V100

      driple data import result.csv --graphs graphs --setting 2080Ti
    """
    from driple.cluster.setting import Setting
    from driple.dataset.released import read_released
    from driple.dataset.store import write_dataset
    from driple.dataset.tables import require_pyarrow
    from driple.errors import ConfigError

    is_table = file.suffix.lower() == ".csv"
    if is_table and graphs is None:
        raise ConfigError(f"{file} is a table without graphs; give their folder with --graphs")
    if options.input_shape is not None:
        raise ConfigError("--input needs NAME=SHAPE, such as images=32x300x300x3")
    flags = [*(["--graphs"] if graphs is not None else []), *(row.flag for row in options.changed)]
    if not is_table and flags:
        raise ConfigError(
            f"{' and '.join(flags)} apply to a table of DriplePerf (.csv), and {file} is none; "
            "leave them out"
        )
    require_pyarrow()
    wanted = Setting.parse(setting)
    if is_table and graphs is not None:
        data = _read_table(file, wanted, graphs, options)
    else:
        data = read_released(file, wanted)
    folder = output or Path("datasets") / data.name
    write_dataset(data, folder)
    note(f"wrote {folder}")
    note(
        "step times: a burst and a gap of the network, as the file has none; a step with several "
        "bursts takes longer"
    )
    note(f"train on it: driple train --setting {wanted.name} --dataset {folder}")
    print_made(folder, data, json=json)


def _read_table(table: Path, setting: Setting, graphs: Path, options: JobOptions) -> Dataset:
    """A data set from a table of DriplePerf, with a progress bar."""
    from driple.dataset.perftable import read_perf_table

    with progress_bar() as bar:
        task = bar.add_task("reading graphs", total=None)
        return read_perf_table(
            table,
            setting,
            graphs,
            max_bytes=options.max_bytes,
            options=options.read,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
