"""`driple throughput`: how fast training would be on more workers than were profiled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driple.checks import check_choice, check_number
from driple.cli.extras import require_numba
from driple.cli.numbers import MOST_SEED, finite_number, whole_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_json, print_table, progress_bar
from driple.codec import Json
from driple.errors import ConfigError
from driple.units import parse_rate, parse_whole_numbers

if TYPE_CHECKING:
    from driple.async_sgd.curve import Prices
    from driple.async_sgd.jobtrace import JobTrace
    from driple.async_sgd.scaling import Throughput

__all__ = ["predict"]

_BASELINES = ("linear", "Lin", "Cynthia", "Cynthia/2")
_MOST_CHUNKS = 2_000_000


def predict(
    trace: Annotated[Path, typer.Argument(help="job trace of driple trace run")],
    workers: Annotated[str, typer.Option(help="numbers of workers: 4, 1-16, or 1,2,4,8")] = "1-8",
    ps: Annotated[
        int | None,
        typer.Option(
            help="parameter servers; default: as profiled", callback=whole_number(1, 1000)
        ),
    ] = None,
    placement: Annotated[
        str, typer.Option(help="of variables on servers: round_robin, or greedy by bytes")
    ] = "round_robin",
    bandwidth: Annotated[
        str | None, typer.Option(help="of each server's link in bit/s, such as 10G; as profiled")
    ] = None,
    order: Annotated[
        str, typer.Option(help="of parameters: recorded, layer, tic, reverse or random")
    ] = "recorded",
    flow_control: Annotated[
        bool, typer.Option(help="streams take turns, as in HTTP/2; else each goes whole")
    ] = True,
    window_mb: Annotated[
        float,
        typer.Option(
            "--window",
            help="MB that a stream may send in its first turn",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = 28.0,
    sync: Annotated[bool, typer.Option("--sync", help="workers wait for each other")] = False,
    slowness: Annotated[
        str, typer.Option(help="with one number of workers: factor on each one's computing time")
    ] = "",
    overhead: Annotated[
        str | None,
        typer.Option(help="of parsing: seconds per MB, seconds per tensor; default: the trace's"),
    ] = None,
    steps: Annotated[
        int,
        typer.Option(help="steps of each worker to simulate", callback=whole_number(20, 1_000_000)),
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="of the sampling of steps", callback=whole_number(0, MOST_SEED))
    ] = 0,
    worker_price: Annotated[
        float | None,
        typer.Option(
            help="of a worker per hour, in any currency", callback=finite_number(least=0, most=1e9)
        ),
    ] = None,
    server_price: Annotated[
        float, typer.Option(help="of a server per hour", callback=finite_number(least=0, most=1e9))
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw throughput against workers (.png, .svg, .pdf)", callback=output_file
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(help="draw what the workers of the largest number do", callback=output_file),
    ] = None,
    chrome_trace: Annotated[
        Path | None,
        typer.Option(help="write that as a file for Perfetto (.json)", callback=output_file),
    ] = None,
) -> None:
    """Predict the throughput of a job on many workers, from its trace with one.

    Profiled steps are sampled and simulated op by op; workers share the links of the servers (Li et
    al., ICPE 2020).

    Examples:

      driple throughput predict job.npz --workers 1-16

      driple throughput predict job.npz --workers 1,2,4,8 --ps 2 --bandwidth 10G --plot curve.png

      driple throughput predict job.npz --workers 4 --no-flow-control --order tic --json
    """
    from typing import cast

    require_numba("simulating throughput")
    from driple.async_sgd.curve import Prices, knee, throughput_curve
    from driple.async_sgd.jobtrace import read_job_trace
    from driple.async_sgd.order import ORDERS
    from driple.async_sgd.scaling import MOST_WORKERS, Cluster, job_of_trace, simulate_workers
    from driple.async_sgd.servers import with_servers
    from driple.graph.placement import STRATEGIES
    from driple.plot.pattern import check_picture

    for picture in (plot, timeline):
        if picture is not None:
            check_picture(picture)
    check_choice("--order", order, ORDERS)
    check_choice("--placement", placement, STRATEGIES)
    numbers = parse_whole_numbers("--workers", workers, MOST_WORKERS)
    profiled = read_job_trace(trace)
    if ps is not None:
        profiled = with_servers(profiled, ps, cast("Any", placement))
    job = job_of_trace(profiled, _overhead_of(profiled, overhead))
    cluster = Cluster(
        num_workers=numbers[-1],
        bytes_per_s=profiled.bytes_per_s
        if bandwidth is None
        else parse_rate("--bandwidth", bandwidth) / 8,
        window_bytes=window_mb * 1e6 if flow_control else None,
        order=cast("Any", order),
        synchronous=sync,
        slowness=_factors(slowness),
    )
    with progress_bar() as bar:
        task = bar.add_task("simulating", total=len(numbers))
        curve = throughput_curve(
            job,
            cluster,
            numbers,
            num_steps=steps,
            seed=seed,
            threads=os.cpu_count() or 1,
            progress=lambda: bar.advance(task),
        )
    baselines = [_baselines(profiled, made.num_workers, cluster.bytes_per_s) for made in curve]
    prices = None
    if worker_price is not None:
        prices = Prices(worker_per_hour=worker_price, server_per_hour=server_price)
    at = knee(curve)
    if json:
        print_json(_as_json(profiled, curve, baselines, at, prices))
    else:
        _print(profiled, curve, baselines, at, prices)
    if plot is not None:
        from driple.plot.throughput import plot_curve

        plot_curve(curve, baselines, at, plot, title=trace.name)
        note(f"wrote {plot}")
    if timeline is not None or chrome_trace is not None:
        room = min(_MOST_CHUNKS, 60 * job.num_ops * numbers[-1])
        made = simulate_workers(job, cluster, num_steps=60, seed=seed, keep_chunks=room)
        _show_chunks(job, made, timeline, chrome_trace)


def _show_chunks(
    job: Any, made: Throughput, timeline: Path | None, chrome_trace: Path | None
) -> None:
    if timeline is not None:
        from driple.plot.throughput import plot_timeline

        plot_timeline(job, made.chunks, made.step_s, timeline)
        note(f"wrote {timeline}")
    if chrome_trace is not None:
        from driple.async_sgd.chrome import write_chrome_trace

        write_chrome_trace(job, made.chunks, chrome_trace)
        note(f"wrote {chrome_trace}: {len(made.chunks)} events; open it in ui.perfetto.dev")


def _factors(text: str) -> tuple[float, ...]:
    """Factors on the computing time of each worker from `1,1.5`; none from an empty text."""
    try:
        return tuple(float(part) for part in text.split(",") if part)
    except ValueError as error:
        raise ConfigError(f"--slowness needs numbers such as 1,1.5, got '{text[:40]}'") from error


def _overhead_of(trace: JobTrace, given: str | None) -> Any:
    """Parsing overhead: what the user gives, else what came with the trace, else none."""
    from driple.async_sgd.overhead import Overhead

    if given is None:
        return trace.about.overhead or Overhead()
    try:
        per_mb, fixed = (float(part) for part in given.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--overhead needs two numbers, such as 0.0005,0.0001, got '{given}'"
        ) from error
    for value in (per_mb, fixed):
        check_number("--overhead", value, least=0, most=1e6)
    return Overhead(per_mb / 1e6, fixed)


def _baselines(trace: JobTrace, num_workers: int, bytes_per_s: float) -> dict[str, float]:
    """Examples/s by the coarser models."""
    from driple.async_sgd.baselines import cynthia, lin_queues, linear, phases_of

    phases = phases_of(trace, bytes_per_s)
    values = (
        linear(phases, num_workers),
        lin_queues(phases, num_workers),
        cynthia(phases, num_workers),
        cynthia(phases, num_workers, halved=True),
    )
    return dict(zip(_BASELINES, values, strict=True))


def _as_json(
    trace: JobTrace,
    curve: list[Throughput],
    baselines: list[dict[str, float]],
    at: int | None,
    prices: Prices | None,
) -> dict[str, Json]:
    rows: list[Json] = []
    for made, others in zip(curve, baselines, strict=True):
        row: dict[str, Json] = {
            "workers": made.num_workers,
            "examples_per_s": made.examples_per_s,
            "interval": list(made.interval),
            "step_s": made.step_s,
            "baselines": others,
        }
        if prices is not None:
            row["cost_per_example"] = prices.per_example(made, trace.num_servers)
        rows.append(row)
    return {
        "provenance": "simulated",
        "batch_size": trace.batch_size,
        "servers": trace.num_servers,
        "profiled_step_s": float(trace.step_s.mean()),
        "curve": rows,
        "knee": at,
    }


def _print(
    trace: JobTrace,
    curve: list[Throughput],
    baselines: list[dict[str, float]],
    at: int | None,
    prices: Prices | None,
) -> None:
    header = ["workers", "examples/s", "95 % interval", "step", *_BASELINES]
    rows = []
    for made, others in zip(curve, baselines, strict=True):
        low, high = made.interval
        row = [
            str(made.num_workers),
            f"{made.examples_per_s:.1f}",
            f"{low:.1f} to {high:.1f}",
            f"{made.step_s:.3f} s",
            *(f"{others[name]:.1f}" for name in _BASELINES),
        ]
        if prices is not None:
            row.append(f"{1e6 * prices.per_example(made, trace.num_servers):.3g}")
        rows.append(row)
    print_table([*header, *(["cost of 1e6 examples"] if prices is not None else [])], rows)
    if at is not None:
        print(f"from {at} worker(s) on, one more adds less than 10 %")
    elif len(curve) > 1:
        print("every worker adds 10 % or more")
