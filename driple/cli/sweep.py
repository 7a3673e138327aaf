"""`driple sweep`: what more bandwidth, workers, servers or compression would bring, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from driple.api.sweeping_traces import LEAST_STEPS, MOST_STEPS
from driple.checks import MOST_SEED
from driple.cli.jobnotes import show_job
from driple.cli.joboptions import (
    LINK_BANDWIDTH_HELP,
    CatalogOption,
    MachineOption,
    job_options,
)
from driple.cli.outputs import JsonOption, PageOption, TableOption, check_apart, output_file
from driple.cli.overrides import number, override, set_option, switch, text, whole
from driple.cli.progress import late_bar
from driple.errors import ConfigError
from driple.graph.options import LARGEST_DIMENSION
from driple.jobs.load import JOB_HELP, JobOptions
from driple.render.remarks import sentences
from driple.render.show import note, print_assumptions, print_json
from driple.units import (
    parse_doubled,
    parse_rate,
    parse_rates,
    parse_shares,
    parse_whole_numbers,
)

if TYPE_CHECKING:
    from driple.analytic.whatif import GridOptions
    from driple.api.sweeping import SweepResult
    from driple.api.sweeping_traces import TraceOptions, TraceSweep

__all__ = ["sweep"]

_MOST_WORKERS, _MOST_SERVERS = 1_000_000, 1000
_TRACE_WORKERS = "1-8"
_PLACEMENT = "variables on servers: in turn, or greedy by bytes"


@dataclass(frozen=True, kw_only=True, slots=True)
class _JobValues:
    """For a sweep of a JOB."""

    placement: str = text("round_robin", _PLACEMENT)
    compress_cost: float = number(
        0.0, "seconds to compress a GB of gradients to a half", least=0, most=1e6
    )
    deviation: float = number(
        0.02, "standard deviation of a worker's computing time, as a share", least=0, most=100
    )
    exchange: str = text(
        "step",
        "when parameters come: step (at the next step's beginning, TensorFlow) or layer (as soon "
        "as a layer is added up, BytePS)",
    )
    copies: bool = switch(True, "workers and servers copy what crosses the network")
    measured: float | None = number(
        None, "seconds of an iteration that you measured on --setting itself", above=0, most=1e6
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _TraceValues:
    """For a sweep of a TRACE."""

    placement: str = text("round_robin", _PLACEMENT)
    order: str = text("recorded", "of parameters: recorded, layer, tic, reverse or random")
    window: float = number(
        28.0,
        "MB that a stream sends in its first turn, as in HTTP/2; with 0 each stream goes whole",
        least=0,
        most=1e6,
    )
    sync: bool = switch(False, "workers wait for each other")
    slowness: str = text(
        "", "factor on each worker's computing time, for one number of workers: 1,1.5"
    )
    overhead: str = text("", "of parsing: seconds per MB, seconds per tensor; the trace's")
    steps: int = whole(1000, "simulated steps of each worker", LEAST_STEPS, MOST_STEPS)
    seed: int = whole(0, "random seed of the sampling of steps", 0, MOST_SEED)
    price: str = text("", "per hour of a worker, or of worker,server: 0.9,0.2")


@job_options
def sweep(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB|TRACE", help=f"job trace (.npz) of one worker; or {JOB_HELP}"),
    ],
    options: JobOptions,
    batch_sizes: Annotated[
        str,
        typer.Option(
            "--batch-size",
            help="of a JOB: samples of a device in a step; a range such as 8-512 is doubled from "
            "its first number, and 8,12,16 are compared: step time and memory of each",
        ),
    ] = "",
    bandwidth: Annotated[
        str,
        typer.Option(
            help="of links in bit/s: 10G, or 1G,10G,100G: of servers, else of the network between "
            "machines (the link of one machine, if there is but one); a trace takes one; the "
            "setting's"
        ),
    ] = "",
    link_bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE|FILE", help=LINK_BANDWIDTH_HELP)
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            help="devices in all: 4, 1-64 or 1,2,4; default: the setting's, of a trace 1-8"
        ),
    ] = "",
    ps: Annotated[
        str,
        typer.Option(help="parameter servers: 2, 1-8 or 1,2,4; a trace takes one; the setting's"),
    ] = "",
    setting: Annotated[
        str | None, typer.Option(help="of a JOB: cluster setting that the rest is taken from")
    ] = None,
    catalog: CatalogOption = None,
    machine: MachineOption = None,
    compress: Annotated[
        str | None,
        typer.Option(help="of a JOB: share of gradients not sent: 0.5, or 0-0.9 in tenths"),
    ] = None,
    set_: Annotated[list[str] | None, set_option(_JobValues, _TraceValues)] = None,
    json: JsonOption = False,
    output: TableOption = None,
    html: PageOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw examples/s against workers, or what else is varied (.png, .svg, .pdf)",
            callback=output_file,
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            help="of a TRACE: what the most workers do: a picture, or a file for Perfetto (.json)",
            callback=output_file,
        ),
    ] = None,
) -> None:
    """Ask what another cluster would bring, and what holds the job back.

    For a JOB on a setting without servers, the simulator: step time, scaling efficiency (samples/s
    of a device over those of one by itself), how long it waits for the network, the network speed
    from which that is under 10 % of the step, and memory. For a JOB on parameter servers, a closed
    form (Zhang et al.) of synchronous training, each role on a link of its own; every point names
    its bottleneck, and what doubling each resource would save. For a TRACE of one worker, its
    profiled steps are sampled and simulated op by op; workers share the links of the servers (Li et
    al., ICPE 2020).

    Examples:

      driple sweep datasets/examples/resnet50.pbtxt --bandwidth 1G,10G,100G --workers 1-64

      driple sweep graph.pbtxt --setting 2080Ti-P2w2/ho-40G --ps 1-8 --compress 0-0.9 --json

      driple sweep graph.pbtxt --setting CPU-P1w2 --workers 1-8 --set measured=0.412

      driple sweep timm:resnet50 --setting 8xA100 --batch-size 8-512

      driple sweep hf:gpt2 --setting 8xH100@fsdp --workers 1-64 --bandwidth 100G,400G

      driple sweep bert-large --setting 2x8xV100/NVLink+25G --workers 8-64 --link-bandwidth nccl.txt

      driple sweep job.npz --workers 1,2,4,8 --ps 2 --bandwidth 10G --plot curve.png
    """
    from driple.api.sweeping import is_trace
    from driple.api.sweeping import sweep as ask

    is_job = not is_trace(job)
    sizes = parse_doubled("--batch-size", batch_sizes, LARGEST_DIMENSION) if batch_sizes else []
    if len(sizes) == 1:
        options = replace(options, batch_size=sizes[0])
    other = {"--timeline": timeline} if is_job else {
        "--setting": setting, "--compress": compress, "--catalog": catalog,
        "--link-bandwidth": link_bandwidth, "--machine": machine,
    }  # fmt: skip
    _refuse(job, other, is_job=is_job)
    outputs = {"--output": output, "--html": html, "--plot": plot, "--timeline": timeline}
    check_apart(outputs, {"JOB": [Path(job)], "--catalog": catalog or []})
    for picture in (plot, None if timeline is None or timeline.suffix == ".json" else timeline):
        if picture is not None:
            from driple.plot.pattern import check_picture

            check_picture(picture)
    if is_job:
        with late_bar("simulating") as advance:
            result = ask(
                job,
                setting,
                catalogs=catalog or (),
                machine=machine,
                grid=_grid_options(
                    override(_JobValues, set_, of=" for a JOB"), bandwidth, workers, ps, compress
                ),
                batch_sizes=sizes if len(sizes) > 1 else (),
                link_bandwidth=link_bandwidth,
                options=options,
                progress=advance,
            )
        show = _show_devices if result.grid is None else _show_job
        show(result, plot, json=json)
        _write(result, output, html)
        return
    values = override(_TraceValues, set_, of=" for a TRACE")
    wanted = _trace_options(values, bandwidth, workers, ps)
    with late_bar("simulating") as advance:  # once the trace was read
        result = ask(job, trace=wanted, options=options, progress=advance)
    _show_trace(result, Path(job).name, plot, timeline, json=json)
    _write(result, output, html)


def _write(result: SweepResult, output: Path | None, html: Path | None) -> None:
    """Table and page, where they were asked for."""
    if output is not None:
        from driple.api.tables import write_table

        write_table(result, output)
        note(f"wrote {output}")
    if html is not None:
        from driple.plot.page import write_text
        from driple.plot.sweep_page import page_text

        write_text(page_text(result), html)
        note(f"wrote {html}")


def _refuse(job: str, given: dict[str, Any], *, is_job: bool) -> None:
    """Raise ConfigError if options of the other kind of sweep were given."""
    flags = [flag for flag, value in given.items() if value]
    if flags:
        other = "a job trace (.npz)" if is_job else "a graph or workload"
        raise ConfigError(
            f"{' and '.join(flags)}: only for {other}, and {job} is none; leave it out"
        )


def _grid_options(
    values: _JobValues, bandwidth: str, workers: str, ps: str, compress: str | None
) -> GridOptions:
    from driple.analytic.whatif import GridOptions

    return GridOptions(
        bandwidths_bits_per_s=tuple(parse_rates("--bandwidth", bandwidth)) if bandwidth else (),
        workers=tuple(parse_whole_numbers("--workers", workers, _MOST_WORKERS)) if workers else (),
        servers=tuple(parse_whole_numbers("--ps", ps, _MOST_SERVERS)) if ps else (),
        compressions=tuple(parse_shares("--compress", compress or "0")),
        compression_s_per_byte=values.compress_cost / 1e9,
        placement=cast("Any", values.placement),
        deviation=values.deviation,
        exchange=cast("Any", values.exchange),
        copies=values.copies,
        measured_s=values.measured,
    )


def _trace_options(values: _TraceValues, bandwidth: str, workers: str, ps: str) -> TraceOptions:
    from driple.api.sweeping_traces import TraceOptions
    from driple.async_sgd.scaling import MOST_WORKERS

    servers = parse_whole_numbers("--ps", ps, _MOST_SERVERS) if ps else None
    if servers is not None and len(servers) > 1:
        raise ConfigError(f"--ps takes one number for a trace, got '{ps}'; run it once for each")
    prices = _floats("--set price", values.price)
    overhead = _floats("--set overhead", values.overhead)
    if values.overhead and len(overhead) != 2:
        raise ConfigError(
            f"--set overhead needs two numbers, such as 0.0005,0.0001, got '{values.overhead}'"
        )
    if len(prices) > 2 or any(not 0 <= price <= 1e9 for price in prices):
        raise ConfigError(
            f"--set price needs one or two prices from 0 to 1e9, got '{values.price}'"
        )
    return TraceOptions(
        workers=tuple(parse_whole_numbers("--workers", workers or _TRACE_WORKERS, MOST_WORKERS)),
        servers=None if servers is None else servers[0],
        placement=values.placement,
        bandwidth_bits_per_s=parse_rate("--bandwidth", bandwidth) if bandwidth else None,
        order=values.order,
        window_bytes=values.window * 1e6 or None,
        synchronous=values.sync,
        slowness=_floats("--set slowness", values.slowness),
        overhead=cast("Any", overhead or None),
        num_steps=values.steps,
        seed=values.seed,
        prices=(prices[0], prices[1] if len(prices) > 1 else 0.0) if prices else None,
    )


def _floats(flag: str, words: str) -> tuple[float, ...]:
    """Numbers from `1,1.5`; none from an empty text."""
    try:
        return tuple(float(part) for part in words.split(",") if part)
    except ValueError as error:
        raise ConfigError(f"{flag} needs numbers such as 1,1.5, got '{words[:40]}'") from error


def _show_job(result: SweepResult, plot: Path | None, *, json: bool) -> None:
    from driple.render.sweep_tables import print_grid

    job, grid = result.job, result.grid
    if job is None or grid is None:
        raise ConfigError("this sweep is of a trace, and has no job")
    show_job(job, json=json)
    for words in sentences(grid.remarks):
        note(words)
    if json:
        print_json(result.to_dict())
    else:
        print_assumptions(result.assumptions)
        print_grid(grid, unknown=job.unknown)
        for words in sentences(grid.spread.remarks()):
            print(words)
    if plot is not None:
        from driple.plot.sweep import plot_whatif

        names = None if result.bottlenecks is None else grid.bottlenecks
        plot_whatif(
            grid.rates, grid.counts, grid.servers, grid.compressions, grid.parts, names, plot,
            title=job.name,
        )  # fmt: skip
        note(f"wrote {plot}")


def _show_devices(result: SweepResult, plot: Path | None, *, json: bool) -> None:
    from driple.render.sweep_tables import print_devices

    if result.job is None:
        raise ConfigError("this sweep is of a trace, and has no job")
    show_job(result.job, json=json, samples=_samples(result.clusters["batch_size"]))
    if json:
        print_json(result.to_dict())
    else:
        print_devices(result)
    if plot is not None:
        from driple.plot.sweep_devices import plot_devices

        plot_devices(result, plot)
        note(f"wrote {plot}")


def _samples(sizes: Sequence[float | None]) -> str:
    """Batch sizes of all points in words; empty of a single one."""
    known = sorted({int(size) for size in sizes if size is not None})
    return f"{known[0]} to {known[-1]} samples per device" if len(known) > 1 else ""


def _show_trace(
    result: SweepResult, name: str, plot: Path | None, timeline: Path | None, *, json: bool
) -> None:
    from driple.render.sweep_tables import print_curve

    trace_sweep = result.trace
    if trace_sweep is None:
        raise ConfigError(f"{name}: this sweep is of a job, and has no trace")
    if json:
        print_json(result.to_dict())
    else:
        print_curve(trace_sweep)
    if plot is not None:
        from driple.plot.throughput import plot_curve

        plot_curve(
            list(trace_sweep.curve), list(trace_sweep.baselines), trace_sweep.knee, plot, title=name
        )
        note(f"wrote {plot}")
    if timeline is not None:
        _write_timeline(trace_sweep, timeline)


def _write_timeline(trace_sweep: TraceSweep, file: Path) -> None:
    """What the largest number of workers does: for Perfetto, or as a picture."""
    shown = trace_sweep.timeline()
    if file.suffix == ".json":
        from driple.async_sgd.chrome import write_chrome_trace

        write_chrome_trace(trace_sweep.job, shown.chunks, file)
        note(f"wrote {file}: {len(shown.chunks)} events; open it in ui.perfetto.dev")
        return
    from driple.plot.throughput import plot_timeline

    plot_timeline(trace_sweep.job, shown.chunks, shown.step_s, file)
    note(f"wrote {file}")
