"""`driple measure`: train workloads on this machine and record how they use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.numbers import finite_number, whole_number
from driple.cli.outputs import output_folder
from driple.cli.show import note, print_json, progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.jobs import Workload
    from driple.measure.testbed.campaign import CampaignRecord

__all__ = ["measure"]

_LONGEST_LIST_BYTES = 1 << 20


def measure(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(help="names, such as resnet20/cifar10/b32/sgd/sync; see driple zoo list"),
    ] = None,
    setting: Annotated[str, typer.Option(help="CPU setting to measure on")] = "CPU-P1w2",
    out: Annotated[
        Path,
        typer.Option(
            help="folder of the campaign; continued if it is there", callback=output_folder
        ),
    ] = (Path("runs/campaign")),
    dataset: Annotated[
        Path | None,
        typer.Option(help="data set folder to append the labels to", callback=output_folder),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="every workload of the zoo's CPU list")
    ] = False,
    list_file: Annotated[
        Path | None,
        typer.Option("--list", help="file with one workload name per line"),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(
            help="with --all: only so many, from the beginning of the list",
            callback=whole_number(1, 1_000_000),
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            help="times each workload is measured, interleaved", callback=whole_number(1, 1000)
        ),
    ] = 1,
    repeat_every: Annotated[
        int,
        typer.Option(
            help="repeat one workload in so many; the others are measured once",
            callback=whole_number(1, 1_000_000),
        ),
    ] = 1,
    iterations: Annotated[
        int, typer.Option(help="iterations to measure, at least", callback=whole_number(1, 100_000))
    ] = 30,
    seconds: Annotated[
        float,
        typer.Option(
            help="add iterations up to this long", callback=finite_number(least=0, most=86_400)
        ),
    ] = 9.0,
    share: Annotated[
        float,
        typer.Option(
            help="cores that each worker may use", callback=finite_number(above=0, most=1024)
        ),
    ] = 0.4,
    tries: Annotated[
        int,
        typer.Option(
            help="runs before a disturbed one is kept, marked so", callback=whole_number(1, 1000)
        ),
    ] = 4,
    quiet_wait: Annotated[
        float,
        typer.Option(
            help="seconds to wait for a quiet machine before each run",
            callback=finite_number(least=0, most=86_400),
        ),
    ] = 600.0,
    json: Annotated[bool, typer.Option("--json", help="a JSON summary on stdout")] = False,
) -> None:
    """Measure workloads: real parameter-server training in network namespaces of this machine.

    Needs root, iproute2, a C compiler and TensorFlow. Nothing else may run meanwhile: a run that
    other load disturbs is done again. Stop it at any time; the same command goes on.

    Examples:

      driple measure resnet20/cifar10/b32/sgd/sync --dataset datasets/mine

      driple measure --all --repeats 3 --repeat-every 10 --out runs/cpu

      driple measure --all --first 120 --setting CPU-P2w2 --out runs/p2w2 --dataset datasets/p2w2
    """
    from driple.cluster.setting import Setting
    from driple.measure.testbed.campaign import Campaign, Limits
    from driple.measure.testbed.cluster import RunPlan

    if min(repeats, repeat_every, iterations, tries, first or 1) < 1:
        raise ConfigError(
            "--first, --repeats, --repeat-every, --iterations and --tries must be at least 1"
        )
    jobs = _workloads(workloads or [], list_file, all_=all_, first=first)
    require_tensorflow("measuring")
    plan = RunPlan(
        share=share,
        server_share=share,
        min_iterations=iterations,
        max_iterations=max(100, iterations),
        seconds=seconds,
    )
    limits = Limits(tries=tries, quiet_wait_s=quiet_wait)
    campaign = Campaign(out, Setting.parse(setting), plan, limits)
    with ending_on_sigterm(), progress_bar() as bar:
        task = bar.add_task("measuring", total=None)

        def progress(name: str, done: int, total: int, remark: str) -> None:
            bar.update(task, description=name, completed=done, total=total)
            if remark:
                bar.console.print(f"{name}: {remark}", highlight=False)

        failed = campaign.measure(
            jobs, repeats=repeats, repeat_every=repeat_every, progress=progress
        )
    for line in failed:
        note(f"failed: {line}")
    summary = {"setting": setting, "workloads": len(jobs), "failed": failed, "campaign": str(out)}
    if dataset is not None:
        summary["dataset"] = str(dataset)
        summary["examples"] = _append(campaign.about, out, dataset)
    if json:
        print_json(summary)
    else:
        print(f"{len(jobs) - len(failed)} of {len(jobs)} workloads measured, runs in {out}")
    if failed:
        raise typer.Exit(1)


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


def _workloads(
    names: list[str], list_file: Path | None, *, all_: bool, first: int | None
) -> list[Workload]:
    from driple.jobs import cpu_workloads
    from driple.jobs.names import workload_named

    if list_file is not None:
        from driple.storedfiles import read_bytes

        try:
            listed = read_bytes(list_file, _LONGEST_LIST_BYTES)
            if len(listed) > _LONGEST_LIST_BYTES:
                raise ConfigError(f"--list {list_file} has over {_LONGEST_LIST_BYTES} bytes")
            names = [*names, *listed.decode().split()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--list {list_file} cannot be read ({error})") from error
    jobs = [workload_named(name) for name in names]
    if all_:
        jobs += cpu_workloads()[:first]
    if not jobs:
        raise ConfigError("nothing to measure; name workloads (driple zoo list) or give --all")
    return list(dict.fromkeys(jobs))
