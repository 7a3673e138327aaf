"""`driple sweep`: what more bandwidth, workers, servers or compression would bring, and why."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import CatalogOption, job_options
from driple.cli.numbers import MOST_SEED, finite_number, whole_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_assumptions, print_json, progress_bar
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.units import parse_rate, parse_rates, parse_shares, parse_whole_numbers

if TYPE_CHECKING:
    from driple.analytic.whatif import GridOptions
    from driple.api.sweeping import SweepResult
    from driple.api.sweeping_traces import TraceOptions, TraceSweep

__all__ = ["sweep"]

_MOST_WORKERS, _MOST_SERVERS = 1_000_000, 1000
_TRACE_WORKERS = "1-8"
# Options that one kind of sweep has, by the parameter, with their names.
_ONLY_JOBS = {
    "setting": "--setting", "compress": "--compress", "compress_cost": "--compress-cost",
    "deviation": "--deviation", "exchange": "--exchange", "limit": "--no-limit",
    "measured": "--measured",
}  # fmt: skip
_ONLY_TRACES = {
    "order": "--order", "window": "--window", "sync": "--sync", "slowness": "--slowness",
    "overhead": "--overhead", "steps": "--steps", "seed": "--seed", "price": "--price",
    "timeline": "--timeline",
}  # fmt: skip


@job_options
def sweep(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB|TRACE", help=f"job trace (.npz) of one worker; or {JOB_HELP}"),
    ],
    options: JobOptions,
    bandwidth: Annotated[
        str,
        typer.Option(
            help="of links in bit/s: 10G, or 1G,10G,100G; a trace takes one; the setting's"
        ),
    ] = "",
    workers: Annotated[
        str,
        typer.Option(help="numbers: 4, 1-64 or 1,2,4; default: the setting's, of a trace 1-8"),
    ] = "",
    ps: Annotated[
        str,
        typer.Option(help="parameter servers: 2, 1-8 or 1,2,4; a trace takes one; the setting's"),
    ] = "",
    placement: Annotated[
        str, typer.Option(help="variables on servers: round_robin, or greedy by bytes")
    ] = "round_robin",
    setting: Annotated[
        str | None, typer.Option(help="job: cluster setting that the rest is taken from")
    ] = None,
    catalog: CatalogOption = None,
    compress: Annotated[
        str | None, typer.Option(help="job: share of gradients not sent: 0.5, or 0-0.9 in tenths")
    ] = None,
    compress_cost: Annotated[
        float | None,
        typer.Option(
            help="job: seconds to compress a GB of gradients to a half",
            callback=finite_number(least=0, most=1e6),
        ),
    ] = None,
    deviation: Annotated[
        float | None,
        typer.Option(
            help="job: standard deviation of a worker's computing time, as a share; default: 0.02",
            callback=finite_number(least=0, most=100),
        ),
    ] = None,
    exchange: Annotated[
        str | None,
        typer.Option(
            help="job: when parameters come: step (at the next step's beginning, TensorFlow) or "
            "layer (as soon as a layer is added up, BytePS)"
        ),
    ] = None,
    limit: Annotated[
        bool,
        typer.Option(
            "--limit/--no-limit", help="job: servers pass no more than the fastest published one"
        ),
    ] = True,
    measured: Annotated[
        float | None,
        typer.Option(
            help="job: seconds of an iteration that you measured on --setting itself",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(help="trace: of parameters: recorded, layer, tic, reverse or random"),
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(
            help="trace: MB that a stream sends in its first turn, as in HTTP/2; 0: each stream "
            "goes whole; default: 28",
            callback=finite_number(least=0, most=1e6),
        ),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="trace: workers wait for each other")
    ] = False,
    slowness: Annotated[
        str | None,
        typer.Option(
            help="trace, one number of workers: factor on each one's computing time: 1,1.5"
        ),
    ] = None,
    overhead: Annotated[
        str | None,
        typer.Option(help="trace: of parsing: seconds per MB, seconds per tensor; the trace's"),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="trace: simulated steps of each worker; default: 1000",
            callback=whole_number(20, 1_000_000),
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="trace: random seed of the sampling of steps", callback=whole_number(0, MOST_SEED)
        ),
    ] = None,
    price: Annotated[
        str | None, typer.Option(help="trace: per hour of a worker, or of worker,server: 0.9,0.2")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw examples/s against workers (.png, .svg, .pdf)", callback=output_file
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            help="trace: what the most workers do: a picture, or a file for Perfetto (.json)",
            callback=output_file,
        ),
    ] = None,
) -> None:
    """Ask what another cluster would bring, and what holds the job back.

    For a JOB, a closed form (Zhang et al.) of synchronous training with parameter servers, each
    role on a link of its own; every point names its bottleneck, and what doubling each resource
    would save. For a TRACE of one worker, its profiled steps are sampled and simulated op by op;
    workers share the links of the servers (Li et al., ICPE 2020).

    Examples:

      driple sweep datasets/examples/resnet50.pbtxt --bandwidth 1G,10G,100G --workers 1-64

      driple sweep graph.pbtxt --setting 2080Ti-P2w2/ho-40G --ps 1-8 --compress 0-0.9 --json

      driple sweep graph.pbtxt --setting CPU-P1w2 --measured 0.412 --workers 1-8

      driple sweep job.npz --workers 1,2,4,8 --ps 2 --bandwidth 10G --plot curve.png
    """
    from driple.api.sweeping import is_trace
    from driple.api.sweeping import sweep as ask
    from driple.cluster.setting import parse_setting

    given = {
        "setting": setting, "compress": compress, "compress_cost": compress_cost,
        "deviation": deviation, "exchange": exchange, "limit": None if limit else limit,
        "measured": measured, "order": order, "window": window, "sync": sync or None,
        "slowness": slowness, "overhead": overhead, "steps": steps, "seed": seed, "price": price,
        "timeline": timeline,
    }  # fmt: skip
    is_job = not is_trace(job)
    _refuse(job, given, _ONLY_TRACES if is_job else _ONLY_JOBS, is_job=is_job)
    for picture in (plot, None if timeline is None or timeline.suffix == ".json" else timeline):
        if picture is not None:
            from driple.plot.pattern import check_picture

            check_picture(picture)
    if is_job:
        result = ask(
            job,
            None if setting is None else parse_setting(setting, catalog or ()),
            grid=_grid_options(given, bandwidth, workers, ps, placement),
            options=options,
        )
        _show_job(result, plot, json=json)
        return
    wanted = _trace_options(given, bandwidth, workers, ps, placement)
    with ExitStack() as stack:  # the bar appears once the trace was read
        bars: list[tuple[Any, Any]] = []

        def advance(total: int) -> None:
            if not bars:
                bar = stack.enter_context(progress_bar())
                bars.append((bar, bar.add_task("simulating", total=total)))
            bar, task = bars[0]
            bar.advance(task)

        result = ask(job, trace=wanted, options=options, progress=advance)
    _show_trace(result, Path(job).name, plot, timeline, json=json)


def _refuse(job: str, given: dict[str, Any], names: dict[str, str], *, is_job: bool) -> None:
    """Raise ConfigError if options of the other kind of sweep were given."""
    flags = [flag for name, flag in names.items() if given[name] is not None]
    if flags:
        other = "a job trace (.npz)" if is_job else "a graph or workload"
        raise ConfigError(
            f"{' and '.join(flags)}: only for {other}, and {job} is none; leave it out"
        )


def _grid_options(
    given: dict[str, Any], bandwidth: str, workers: str, ps: str, placement: str
) -> GridOptions:
    from driple.analytic.whatif import GridOptions

    return GridOptions(
        bandwidths_bits_per_s=tuple(parse_rates("--bandwidth", bandwidth)) if bandwidth else (),
        workers=tuple(parse_whole_numbers("--workers", workers, _MOST_WORKERS)) if workers else (),
        servers=tuple(parse_whole_numbers("--ps", ps, _MOST_SERVERS)) if ps else (),
        compressions=tuple(parse_shares("--compress", given["compress"] or "0")),
        compression_s_per_byte=(given["compress_cost"] or 0.0) / 1e9,
        placement=cast("Any", placement),
        deviation=0.02 if given["deviation"] is None else given["deviation"],
        exchange=cast("Any", given["exchange"] or "step"),
        limit=given["limit"] is None,
        measured_s=given["measured"],
    )


def _trace_options(
    given: dict[str, Any], bandwidth: str, workers: str, ps: str, placement: str
) -> TraceOptions:
    from driple.api.sweeping_traces import TraceOptions
    from driple.async_sgd.scaling import MOST_WORKERS

    servers = parse_whole_numbers("--ps", ps, _MOST_SERVERS) if ps else None
    if servers is not None and len(servers) > 1:
        raise ConfigError(f"--ps takes one number for a trace, got '{ps}'; run it once for each")
    window, prices = given["window"], _floats("--price", given["price"])
    overhead = _floats("--overhead", given["overhead"])
    if given["overhead"] is not None and len(overhead) != 2:
        raise ConfigError(
            f"--overhead needs two numbers, such as 0.0005,0.0001, got '{given['overhead']}'"
        )
    if len(prices) > 2 or any(not 0 <= one <= 1e9 for one in prices):
        raise ConfigError(f"--price needs one or two prices from 0 to 1e9, got '{given['price']}'")
    return TraceOptions(
        workers=tuple(parse_whole_numbers("--workers", workers or _TRACE_WORKERS, MOST_WORKERS)),
        servers=None if servers is None else servers[0],
        placement=placement,
        bandwidth_bits_per_s=parse_rate("--bandwidth", bandwidth) if bandwidth else None,
        order=given["order"] or "recorded",
        window_bytes=28e6 if window is None else window * 1e6 or None,
        synchronous=bool(given["sync"]),
        slowness=_floats("--slowness", given["slowness"]),
        overhead=cast("Any", overhead or None),
        num_steps=given["steps"] or 1000,
        seed=given["seed"] or 0,
        prices=(prices[0], prices[1] if len(prices) > 1 else 0.0) if prices else None,
    )


def _floats(flag: str, text: str | None) -> tuple[float, ...]:
    """Numbers from `1,1.5`; none from an option that was left out."""
    try:
        return tuple(float(part) for part in (text or "").split(",") if part)
    except ValueError as error:
        raise ConfigError(
            f"{flag} needs numbers such as 1,1.5, got '{(text or '')[:40]}'"
        ) from error


def _show_job(result: SweepResult, plot: Path | None, *, json: bool) -> None:
    from driple.cli.sweep_tables import print_grid

    job, grid = result.job, result.grid
    if job is None or grid is None:
        raise ConfigError("this sweep is of a trace, and has no job")
    show_job(job, json=json)
    for remark in grid.remarks:
        note(remark)
    if json:
        print_json(result.to_dict())
    else:
        print_assumptions(result.assumptions)
        print_grid(grid, unknown=job.unknown_words)
        for message in grid.spread.messages():
            print(message)
    if plot is not None:
        from driple.plot.sweep import plot_whatif

        names = None if result.bottlenecks is None else grid.bottlenecks
        plot_whatif(
            grid.rates, grid.counts, grid.servers, grid.compressions, grid.parts, names, plot,
            title=job.name,
        )  # fmt: skip
        note(f"wrote {plot}")


def _show_trace(
    result: SweepResult, name: str, plot: Path | None, timeline: Path | None, *, json: bool
) -> None:
    from driple.cli.sweep_tables import print_curve

    made = result.trace
    if made is None:
        raise ConfigError(f"{name}: this sweep is of a job, and has no trace")
    if json:
        print_json(result.to_dict())
    else:
        print_curve(made)
    if plot is not None:
        from driple.plot.throughput import plot_curve

        plot_curve(list(made.curve), list(made.baselines), made.knee, plot, title=name)
        note(f"wrote {plot}")
    if timeline is not None:
        _write_timeline(made, timeline)


def _write_timeline(made: TraceSweep, file: Path) -> None:
    """What the largest number of workers does: for Perfetto, or as a picture."""
    shown = made.timeline()
    if file.suffix == ".json":
        from driple.async_sgd.chrome import write_chrome_trace

        write_chrome_trace(made.job, shown.chunks, file)
        note(f"wrote {file}: {len(shown.chunks)} events; open it in ui.perfetto.dev")
        return
    from driple.plot.throughput import plot_timeline

    plot_timeline(made.job, shown.chunks, shown.step_s, file)
    note(f"wrote {file}")
