"""`driple data label`: a data set from a campaign of the test bed, or from records of a job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.joboptions import job_options
from driple.cli.outputs import JsonOption, output_folder
from driple.cli.overrides import number, override, set_option, switch, text
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.render.remarks import sentences
from driple.render.show import note, print_json
from driple.units import counted

if TYPE_CHECKING:
    from driple.api.json_types.commands import DataMadeJson
    from driple.dataset.example import Dataset

__all__ = ["label", "print_made"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of the labels."""

    grid_ms: float = number(
        50.0, "period of the labelled traces, in milliseconds", above=0, most=60_000
    )
    traces: bool = switch(True, "of a campaign: also store every raw sample beside the labels")
    workload: str | None = text(None, "of records: name of the workload; that of --job")
    family: str | None = text(None, "of records: family of the model; that of --job")


@job_options
def label(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="REC...", help="folders of driple record of one job; or one of driple measure"
        ),
    ],
    options: JobOptions,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="data set to write; a recorded job is added to the one that is there",
            callback=output_folder,
        ),
    ],
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help=f"of records: what was trained; {JOB_HELP}")
    ] = None,
    setting: Annotated[
        str | None, typer.Option(help="of records: the setting that it ran on")
    ] = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Label recorded runs and write them as a data set, for driple train and driple transfer.

    Records that overlap in time are hosts of one run; the others are repeats, and count by their
    median. A data set grows by one job with every call.

    Examples:

      driple data label runs/a --job train.py:build --setting 1xA100 -o datasets/mine

      driple data label runs/host0 runs/host1 --job timm:resnet50 --batch-size 64
      --setting 2x8xV100/NVLink+25G -o datasets/mine

      driple data label runs/cpu -o datasets/settings/CPU-P1w2_ho-200M
    """
    from driple.dataset.store import write_dataset
    from driple.dataset.tables import require_pyarrow
    from driple.measure.record.store import is_record

    values = override(_Values, set_)
    require_pyarrow()
    if any(is_record(folder) for folder in runs):
        if job is None or setting is None:
            raise ConfigError(
                "a record needs --job and --setting: what was trained, and on which cluster; such "
                "as --job train.py:build --setting 1xA100"
            )
        data = _of_records(runs, job, options, setting, output, values)
    else:
        data = _of_campaign(runs, values, {"--job": job, "--setting": setting}, options, output)
    write_dataset(data, output)
    if values.traces and not job:
        from driple.measure.testbed.archive import write_archive

        write_archive(runs[0], output)
    note(f"wrote {output}")
    print_made(output, data, json=json)


def _of_campaign(
    runs: Sequence[Path],
    values: _Values,
    of_records: dict[str, str | None],
    options: JobOptions,
    output: Path,
) -> Dataset:
    """All runs of a campaign."""
    from driple.measure.testbed.campaign import read_campaign
    from driple.measure.testbed.collect import collect_dataset

    given = [flag for flag, value in of_records.items() if value is not None]
    given += [row.flag for row in options.changed]
    given += [f"--set {name}" for name in ("workload", "family") if getattr(values, name)]
    missing = [folder for folder in runs if not folder.is_dir()]
    if missing:
        raise ConfigError(
            f"{missing[0]} is no folder; give folders of driple record, or one of driple measure"
        )
    if len(runs) > 1:
        raise ConfigError(
            f"{runs[0]} is no record of driple record; give records, or the folder of one campaign "
            "of driple measure"
        )
    if given:
        raise ConfigError(
            f"{', '.join(given)} apply to folders of driple record, and {runs[0]} is none; leave "
            "them out"
        )
    about = read_campaign(runs[0])
    return collect_dataset(runs[0], name=output.name, about=about, grid_s=values.grid_ms / 1000)


def _of_records(
    folders: Sequence[Path],
    job: str,
    options: JobOptions,
    setting: str,
    output: Path,
    values: _Values,
) -> Dataset:
    """The data set that is there with one more workload, or a new one."""
    from driple.cluster.setting import Setting
    from driple.dataset.store import read_dataset
    from driple.jobs.load import load_job
    from driple.measure.record.dataset import RecordedWorkload, with_recorded
    from driple.measure.record.store import read_record
    from driple.render.record_lines import steps_text

    wanted = Setting.parse(setting)
    records = [read_record(folder) for folder in folders]
    loaded = load_job(job, options, setting=wanted)
    workload = RecordedWorkload(
        name=values.workload or (Path(loaded.name).name if loaded.origin.is_model else loaded.name),
        family=values.family or _family(loaded.source),
        setting=wanted.name,
        graph=loaded.graph,
        facts={
            key: value
            for key, value in (
                ("job", loaded.source),
                ("batch_size", loaded.batch_size),
                ("precision", loaded.precision),
                ("optimizer", loaded.optimizer),
            )
            if value
        },
    )
    known = read_dataset(output) if (output / "dataset.json").exists() else None
    before = {} if known is None else {one.workload: one for one in known.examples}
    data, uses = with_recorded(
        records,
        workload,
        name=output.name,
        dataset=known,
        grid_s=values.grid_ms / 1000,
    )
    if workload.name in before:
        runs = int(before[workload.name].details.get("repeats", 1))
        note(
            f"{workload.name} was in {output} with {counted(runs, 'run')}; these records replace "
            "it: give all records of a job in one call"
        )
    for run, use in enumerate(uses, 1):
        other = use.other_device(wanted)
        if other:
            raise ConfigError(
                f"--setting {setting} has {wanted.worker.name}, the records are of {other}; give "
                "the setting that was recorded"
            )
        note(f"run {run} of {len(uses)}: {steps_text(use.steps)}")
        for words in sentences(use.remarks):
            note(words)
    return data


def _family(source: str) -> str:
    """Letters with which the name of a job's model begins: `vit` of timm:vit_base_patch16_224."""
    name = Path(source.rsplit(":", 1)[-1]).parts[0]
    match = re.match(r"[A-Za-z]+", name)
    return match[0].lower() if match else "other"


def print_made(folder: Path, data: Dataset, *, json: bool) -> None:
    """Print how many workloads a new data set has."""
    if json:
        summary: DataMadeJson = {
            "folder": str(folder),
            "setting": data.setting,
            "examples": len(data.examples),
            "runs": data.about.num_runs,
        }
        print_json(summary, "data_made")
    elif data.about.num_runs:
        print(f"{counted(len(data.examples), 'workload')}, {counted(data.about.num_runs, 'run')}")
    else:
        print(counted(len(data.examples), "workload"))
