"""`driple plan`: what a training takes and costs in many ways, what fits, and which way to take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.emitting import EmitOption, check_emit, print_choice
from driple.cli.jobnotes import show_doubts
from driple.cli.joboptions import CatalogOption, MachineOption, job_options
from driple.cli.numbers import finite_number, whole_number
from driple.cli.outputs import JsonOption, PageOption, TableOption, check_apart, output_file
from driple.cli.overrides import choice, engine_name, override, set_option, text, whole
from driple.cli.progress import late_bar
from driple.engine.engine import MOST_WORKERS
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.render.remarks import sentences
from driple.render.show import note, print_json
from driple.units import HOUR_S, parse_count, parse_duration, parse_whole_numbers

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult

__all__ = ["plan"]

_MOST_BATCH = 10**9
RANKS = ("cost", "time", "memory")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a plan."""

    on_date: str | None = text(None, "with the prices of that day, such as 2022-12-31; the newest")
    region: str | None = text(None, "prices of this region alone, such as us-east-1; any")
    rank: str = choice("cost", "order of the offers: cost, time or memory", RANKS)
    vary: str = text(
        "checkpointing",
        "what of a model may be changed: batch, checkpointing, precision, joined by +; or none",
    )
    processes: int = whole(1, "kinds of devices that are tried at the same time", 1, MOST_WORKERS)
    engine: str = engine_name()
    rows: int = whole(15, "rows of the table; --json, --output and --html have all", 1, 100_000)


@job_options
def plan(
    options: JobOptions,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help=JOB_HELP)] = None,
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="samples of an epoch, such as 50000 or 1.2M; default: those of the data set of "
            "JOB or of the profile, and ImageNet for models of images",
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(metavar="N", help="tokens of an epoch in place of samples, such as 300B"),
    ] = None,
    epochs: Annotated[
        float, typer.Option(help="epochs", callback=finite_number(above=0, most=1e9))
    ] = 1.0,
    instance: Annotated[
        list[str] | None,
        typer.Option(help="only these: p3 is all of P3; may be given several times"),
    ] = None,
    devices: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="only instances with these devices: A100,H100; any; own: those of --catalog",
        ),
    ] = "any",
    machines: Annotated[str, typer.Option(help="numbers of instances, such as 1,2 or 1-8")] = "1",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            help="setting of your own machines in place of instances: 4x8xH100/NVLink+400G; may "
            "be given several times"
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="how devices share the work: only these, such as ddp,fsdp; those that suit; any: "
            "also tensor, expert and pipeline parallelism",
        ),
    ] = "",
    global_batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="samples of all devices per update, which every offer keeps: batch of a device x "
            "passes x devices",
            callback=whole_number(1, _MOST_BATCH),
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="DOLLARS",
            help="most that the training may cost; the fastest within it is recommended",
            callback=finite_number(above=0, most=1e12),
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="longest training, such as 90min, 12h or 3d"),
    ] = None,
    catalog: CatalogOption = None,
    machine: MachineOption = None,
    prices: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="your prices, which win: TOML ([[prices]] name, per_hour), CSV (name,per_hour), "
            "or a SkyPilot catalogue (vms.csv); may be given several times",
        ),
    ] = None,
    spot: Annotated[bool, typer.Option("--spot", help="spot prices in place of on demand")] = False,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="profile that you took on an instance: FOLDER=INSTANCE"),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="where a step's time goes; prices, errors, what is refused"),
    ] = False,
    what_would_help: Annotated[
        bool,
        typer.Option(
            "--what-would-help", help="up to three changes that save time, 1 % or more each"
        ),
    ] = False,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
    output: TableOption = None,
    html: PageOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw time against cost (.png, .svg, .pdf)", callback=output_file),
    ] = None,
    emit: EmitOption = None,
) -> None:
    """Estimate time, cost and memory of a training in many ways, and recommend one.

    Every instance, number of machines and scheme is simulated, with and without activation
    checkpointing, without stalls of CPU and disk. What does not fit in memory is refused; of ways
    within 5 %, one that fits by the upper end of its interval is recommended. What has no known
    price is in no order by cost. Instances that you profiled are marked as measured
    (--profile).

    Examples:

      driple plan resnet50 --samples 1.28M --epochs 90 --devices A100,H100 --machines 1,2

      driple plan hf:gpt2 --tokens 10B --global-batch 512 --seq-len 1024 --budget 500

      driple plan bert-large --instance p3 --deadline 12h --explain --what-would-help

      driple plan train.py:build_model --data train.py:build_dataset --prices my.csv --spot

      driple plan bert-large --setting 4x8xH100/NVLink+400G --emit slurm

      driple plan --profile runs/profile=p3.8xlarge --catalog my.toml
    """
    from driple.api.plan_places import MOST_MACHINES
    from driple.api.planning import plan as ask

    values = override(_Values, set_)
    _check_outputs(plot, emit, json=json)
    read = {"--prices": prices or [], "--catalog": catalog or [],
            "--machine": [] if machine is None else [machine]}  # fmt: skip
    if job is not None:
        read["JOB"] = [Path(job)]
    check_apart({"--output": output, "--html": html, "--plot": plot}, read)
    with late_bar("simulating") as advance:  # once the job was read
        result = ask(
            job,
            options=options,
            samples=None if samples is None else parse_count("--samples", samples),
            tokens=None if tokens is None else parse_count("--tokens", tokens),
            epochs=epochs,
            instances=[name for one in instance or () for name in _names(one)],
            devices=_names(devices, but="any"),
            machines=parse_whole_numbers("--machines", machines, MOST_MACHINES),
            settings=setting or [],
            schemes=[name.lower() for name in _names(scheme)],
            vary=_names(values.vary.replace("+", ",")),
            global_batch=global_batch,
            budget=budget,
            deadline_s=None if deadline is None else _deadline(deadline),
            rank=values.rank,
            catalogs=catalog or [],
            machine=machine,
            prices=prices or [],
            spot=spot,
            region=values.region,
            day=values.on_date,
            profiles=[_profile(given) for given in profile or []],
            would_help=what_would_help,
            engine=values.engine,
            processes=values.processes,
            progress=advance,
        )
    if result.job is not None:
        show_doubts(result.job, json=json or emit is not None)
    for words in sentences(result.remarks):
        note(words)
    _show(result, values, emit, json=json, explain=explain, would_help=what_would_help)
    _write(result, output, html, plot)


def _check_outputs(plot: Path | None, emit: str | None, *, json: bool) -> None:
    """Refuse outputs that cannot be made before any work."""
    if emit is not None:
        check_emit(emit, json=json)
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)


def _show(
    result: PlanResult,
    values: _Values,
    emit: str | None,
    *,
    json: bool,
    explain: bool,
    would_help: bool,
) -> None:
    if emit is not None:
        print_choice(result, emit)
    elif json:
        print_json(result.to_dict())
    else:
        from driple.render.plan_tables import print_plan

        print_plan(result, values.rows, explain=explain, would_help=would_help)


def _write(result: PlanResult, output: Path | None, html: Path | None, plot: Path | None) -> None:
    """The files that were asked for."""
    if output is not None:
        from driple.api.tables import write_table

        write_table(result, output)
        note(f"wrote {output}")
    if html is not None:
        from driple.plot.page import write_text
        from driple.plot.plan_page import page_text

        write_text(page_text(result), html)
        note(f"wrote {html}")
    if plot is not None:
        from driple.plot.plans import plot_plan

        plot_plan(result, plot)
        note(f"wrote {plot}")


def _names(given: str, *, but: str = "") -> list[str]:
    """Names from `a,b`; none from the word that stands for no limit."""
    names = [part.strip() for part in given.split(",") if part.strip()]
    return [] if names == [but] else names


def _deadline(given: str) -> float:
    """Seconds from `12h`; a bare number is in hours."""
    try:
        hours = float(given)
    except ValueError:
        return parse_duration("--deadline", given)
    return parse_duration("--deadline", f"{hours:g}h") if 0 < hours < 1e5 else hours * HOUR_S


def _profile(given: str) -> tuple[Path, str]:
    """Folder and instance from `FOLDER=INSTANCE`."""
    folder, _, name = given.rpartition("=")
    if not folder:
        raise ConfigError(
            f"--profile needs FOLDER=INSTANCE, such as runs/profile=p3.8xlarge, got '{given}'"
        )
    return Path(folder), name
