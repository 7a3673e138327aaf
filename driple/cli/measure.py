"""`driple measure`: train workloads on this machine and record how they use it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.measure_machine import measure_this_machine
from driple.cli.outputs import JsonOption, check_output_folder, output_folder, output_place
from driple.cli.overrides import number, override, set_option, text, whole
from driple.cli.progress import progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.errors import ConfigError
from driple.render.errors_stated import host_sentence
from driple.render.show import note, print_json

if TYPE_CHECKING:
    from driple.api.json_types.commands import MeasureJson
    from driple.jobs import Workload
    from driple.measure.testbed.campaign import Campaign, CampaignRecord

__all__ = ["measure"]

_SETTING = "CPU-P1w2"
_QUIET_S = 600.0
_SHARE = 0.4  # of a core, for each worker of the measured settings


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a campaign."""

    share: float = number(_SHARE, "cores of each worker", above=0, most=1024)
    repeats: int = whole(1, "repeated measurements, interleaved", 1, 1000)
    iterations: int = whole(30, "iterations to measure, at least", 1, 100_000)
    seconds: float = number(9.0, "more iterations up to this time", least=0, most=86_400)
    tries: int = whole(4, "runs until a disturbed one is kept and marked", 1, 1000)
    quiet_wait: float | None = number(
        None,
        "seconds to wait for a quiet machine before each run; 600, of --machine 10",
        least=0,
        most=86_400,
    )
    repeat_every: int = whole(1, "repeat every Nth workload, measure the others once", 1, 1_000_000)
    parts: str = text("", "of --machine: only these of host, gpu, copies, links, with commas; all")


_OF_MACHINE = ("parts", "quiet_wait")


def _changed(values: _Values) -> list[str]:
    """Names of what differs from its usual value."""
    usual = _Values()
    return [
        row.name for row in fields(values) if getattr(values, row.name) != getattr(usual, row.name)
    ]


def measure(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(help="names, such as resnet20/cifar10/b32/sgd/sync; see driple jobs list"),
    ] = None,
    setting: Annotated[str, typer.Option(help="CPU setting to measure on")] = _SETTING,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="folder to write, continued if it is there; runs/campaign. With --machine the "
            "file; machine.toml",
            callback=output_place,
        ),
    ] = None,
    machine: Annotated[
        bool,
        typer.Option(
            "--machine",
            help="measure the host, GPUs and links of your machine with PyTorch, in a minute, and "
            "write a file for predict --machine FILE",
        ),
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            help="with --machine: the data set or loader of your own model's training, whose "
            "samples/s are measured by number of workers",
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            help="data set folder, here one that the labels are added to", callback=output_folder
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="measure six known workloads (or those named), and write what they tell of this "
            "machine to host.json of --output, for predict --set host=FILE",
        ),
    ] = False,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Measure workloads: real parameter-server training in network namespaces of this machine.

    With --machine, measure this machine instead: the host's pace, kernels of each GPU, copies, and
    by torchrun on several machines or with several GPUs the links. Nothing is changed.

    Training of workloads needs root, iproute2, a C compiler and TensorFlow. Nothing else may run
    meanwhile: a run that other load disturbs is done again. Stop it at any time; the same command
    continues.

    Examples:

      driple measure resnet20/cifar10/b32/sgd/sync --dataset datasets/mine

      driple measure $(driple jobs list --list cpu) --set repeats=3 --set repeat_every=10
      -o runs/cpu

      driple measure --calibrate -o runs/host

      driple measure --machine -o machine.toml

      torchrun --nnodes 2 --nproc-per-node 8 ... -m driple measure --machine -o machine.toml

      driple measure $(driple jobs list --list cpu | head -n 120) --setting CPU-P2w2
      -o runs/p2w2 --dataset datasets/p2w2
    """
    from driple.api.own_host import HOST_FILE, host_of_campaign, known_inspector
    from driple.cluster.setting import Setting
    from driple.inspector.host import check_count, write_host
    from driple.measure.testbed.campaign import Campaign, DisturbanceLimits
    from driple.measure.testbed.cluster import RunPlan

    values = override(_Values, set_)
    if machine:
        given = {
            "WORKLOADS": workloads,
            "--setting": setting != _SETTING,
            "--calibrate": calibrate,
            "--dataset": dataset,
            **{f"--set {name}": True for name in _changed(values) if name not in _OF_MACHINE},
        }
        measure_this_machine(
            output,
            parts=values.parts,
            data=data,
            quiet_wait_s=values.quiet_wait,
            unused=[name for name, value in given.items() if value],
            json=json,
        )
        return
    if data or values.parts:
        raise ConfigError("--data and --set parts are for --machine; give it, or leave them out")
    output = output or Path("runs/campaign")
    check_output_folder("--output", output)
    jobs = _workloads(workloads or [], calibrate=calibrate)
    parsed = Setting.parse(setting)
    if calibrate:  # what would fail after minutes of measuring
        known_inspector(parsed)
        check_count(len(jobs))
        if values.share != _SHARE:
            raise ConfigError(
                f"--calibrate compares with workers on {_SHARE} of a core, got --set "
                f"share={values.share:g}; leave it out"
            )
    require_tensorflow("measuring")
    plan = RunPlan(
        share=values.share,
        server_share=values.share,
        min_iterations=values.iterations,
        max_iterations=max(100, values.iterations),
        seconds=values.seconds,
    )
    limits = DisturbanceLimits(
        tries=values.tries,
        quiet_wait_s=_QUIET_S if values.quiet_wait is None else values.quiet_wait,
    )
    campaign = Campaign(output, parsed, plan, limits)
    failed = _measured(campaign, jobs, values)
    summary: MeasureJson = {
        "setting": setting,
        "workloads": len(jobs),
        "failed": failed,
        "campaign": str(output),
    }
    if dataset is not None:
        summary["dataset"] = str(dataset)
        summary["examples"] = _append(campaign.about, output, dataset)
    host_report = ""
    if calibrate:
        host = host_of_campaign(output, campaign.about, parsed)
        write_host(host, output / HOST_FILE)
        summary["host"] = host
        host_report = f"{host_sentence(host)}\nwritten: {output / HOST_FILE}"
    if json:
        print_json(summary, "measure")
    else:
        print(f"{len(jobs) - len(failed)} of {len(jobs)} workloads measured, runs in {output}")
        if host_report:
            print(host_report)
    if failed:
        raise typer.Exit(1)


def _measured(campaign: Campaign, jobs: list[Workload], values: _Values) -> list[str]:
    """Measure with a bar; what failed, which is also noted."""
    with ending_on_sigterm(), progress_bar() as bar:
        task = bar.add_task("measuring", total=None)

        def progress(name: str, done: int, total: int, remark: str) -> None:
            bar.update(task, description=name, completed=done, total=total)
            if remark:
                bar.console.print(f"{name}: {remark}", highlight=False)

        failed = campaign.measure(
            jobs, repeats=values.repeats, repeat_every=values.repeat_every, progress=progress
        )
    for line in failed:
        note(f"failed: {line}")
    return failed


def _append(about: CampaignRecord, out: Path, folder: Path) -> int:
    """Label the campaign's runs and merge them into the data set; its size."""
    from driple.dataset.store import read_dataset, write_dataset
    from driple.measure.testbed.collect import collect_dataset
    from driple.measure.testbed.merge import merge_campaign

    fresh = collect_dataset(out, name=folder.name, about=about)
    if (folder / "dataset.json").exists():
        fresh = merge_campaign(read_dataset(folder), fresh)
    write_dataset(fresh, folder)
    return len(fresh.examples)


def _workloads(names: list[str], *, calibrate: bool) -> list[Workload]:
    from driple.api.own_host import known_workloads
    from driple.jobs.names import workload_named

    jobs = [workload_named(name) for name in names]
    if calibrate and not jobs:
        jobs = list(known_workloads())
    if not jobs:
        raise ConfigError(
            "nothing to measure; name workloads (driple jobs list), or give --calibrate"
        )
    return list(dict.fromkeys(jobs))
