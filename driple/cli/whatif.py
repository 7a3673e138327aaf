"""`driple whatif`: iteration time over bandwidths, workers, servers and compression, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from driple.checks import check_choice
from driple.cli.graphoptions import (
    GRAPH_HELP,
    MAX_MIB,
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
    graph_options,
)
from driple.cli.numbers import finite_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_assumptions, print_json, print_table
from driple.cli.spread import ServerSpread
from driple.codec import Json
from driple.errors import ConfigError
from driple.units import format_rate, parse_rates, parse_shares, parse_whole_numbers

if TYPE_CHECKING:
    from driple.analytic.sweep import Compression, Exchange, JobProfile, Points, StepBreakdown
    from driple.cluster.setting import Setting
    from driple.graph.placement import Strategy
    from driple.simulate.calibration import Calibration
    from driple.simulate.prepared_job import PreparedJob

__all__ = ["whatif"]

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"
_MOST_POINTS = 4_000_000
_MOST_WORKERS, _MOST_SERVERS = 1_000_000, 1000
_MOST_ROWS = 40
_MEASURED_WORKERS = 3  # with servers, on one switch: the most of the published runs


def whatif(
    graph: Annotated[Path, typer.Argument(help=GRAPH_HELP)],
    setting: Annotated[
        str, typer.Option(help="cluster setting that the rest is taken from")
    ] = _DEFAULT_SETTING,
    bandwidth: Annotated[
        str, typer.Option(help="of every link in bit/s: 10G, or 1G,10G,100G; the setting's")
    ] = "",
    workers: Annotated[str, typer.Option(help="numbers: 4, 1-64 or 1,2,4; the setting's")] = "",
    ps: Annotated[str, typer.Option(help="parameter servers: 2, 1-8 or 1,2,4; the setting's")] = "",
    compress: Annotated[
        str, typer.Option(help="share of gradients not sent: 0.5, or 0-0.9 in tenths")
    ] = "0",
    compress_cost: Annotated[
        float,
        typer.Option(
            help="seconds to compress a GB of gradients to a half",
            callback=finite_number(least=0, most=1e6),
        ),
    ] = 0.0,
    placement: Annotated[
        str, typer.Option(help="of variables on servers: round_robin, or greedy by bytes")
    ] = "round_robin",
    deviation: Annotated[
        float,
        typer.Option(
            help="of a worker's computing time, as a share of it",
            callback=finite_number(least=0, most=100),
        ),
    ] = 0.02,
    exchange: Annotated[
        str,
        typer.Option(
            help="when parameters come: step (at the next step's beginning, TensorFlow) or layer "
            "(as soon as a layer is added up, BytePS)"
        ),
    ] = "step",
    limit: Annotated[
        bool,
        typer.Option(
            "--limit/--no-limit", help="servers pass no more than the fastest published one"
        ),
    ] = True,
    measured: Annotated[
        float | None,
        typer.Option(
            help="seconds of an iteration that you measured on --setting itself",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw examples/s against workers (.png, .svg, .pdf)", callback=output_file
        ),
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
) -> None:
    """Ask what another cluster would bring for the job of GRAPH, and what holds it back.

    A closed form (Zhang et al.) of synchronous training with parameter servers, each role on a link
    of its own. Every point tells its bottleneck, and what doubling each resource would save. With
    --measured, devices are taken to be as fast as an iteration on the setting itself showed.

    Examples:

      driple whatif datasets/examples/resnet50.pbtxt --bandwidth 1G,10G,100G --workers 1-64

      driple whatif graph.pbtxt --setting 2080Ti-P2w2/ho-40G --ps 1-8 --compress 0-0.9 --json

      driple whatif graph.pbtxt --workers 1-32 --bandwidth 1G,10G --plot whatif.png

      driple whatif graph.pbtxt --setting CPU-P1w2 --measured 0.412 --workers 1-8
    """
    from driple.analytic.sweep import EXCHANGES, Compression
    from driple.cli.source import read_file
    from driple.cluster.setting import Setting
    from driple.graph.placement import STRATEGIES
    from driple.simulate.prepared_job import PreparedJob, closed_form_assumptions

    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    check_choice("--exchange", exchange, EXCHANGES)
    check_choice("--placement", placement, STRATEGIES)
    wanted = Setting.parse(setting)
    grid = _grid(wanted, bandwidth, workers, ps, compress)
    reading = read_file(graph, options)
    reading.show(json=json)
    sweep = _sweep(
        PreparedJob(reading.graph),
        wanted,
        grid,
        Compression(s_per_byte=compress_cost / 1e9),
        cast("Exchange", exchange),
        cast("Strategy", placement),
        deviation=deviation,
        limit=limit,
        measured=measured,
        given_rates=bool(bandwidth),
    )
    assumed = closed_form_assumptions(reading.graph, wanted)
    advise = not reading.has_unknown  # without the sizes of the graph, advice would be wrong
    if json:
        print_json(
            {
                "setting": wanted.name,
                "provenance": "simulated",
                "method": "zhang",
                **_as_json(sweep, advise=advise),
                "exchange": exchange,
                "placement": placement,
                "placement_messages": sweep.spread.messages(),
                "assumptions": list(assumed),
                **reading.to_json_dict(),
            }
        )
    else:
        print_assumptions(assumed)
        _print(sweep, unknown=reading.unknown_words)
        for message in sweep.spread.messages():
            print(message)
    if plot is not None:
        from driple.plot.sweep import plot_whatif

        _, counts, servers, ratios = grid
        found, names = sweep.found, sweep.names if advise else None
        plot_whatif(sweep.rates, counts, servers, ratios, found, names, plot, title=graph.name)
        note(f"wrote {plot}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sweep:
    """All points, and what the closed form says of them.

    Attributes:
        points: configurations.
        rates: shape [n], bytes/s of each point's links.
        profile: of one worker's step.
        how: what compressing costs, and when parameters come.
        found: parts of each iteration.
        names: shape [n], what holds each point back.
        spread: of the variables over servers.
    """

    points: Points
    rates: Any
    profile: JobProfile
    how: tuple[Compression, Exchange]
    found: StepBreakdown
    names: Any
    spread: ServerSpread


def _grid(wanted: Setting, bandwidth: str, workers: str, ps: str, compress: str) -> list[Any]:
    """Rates, numbers of workers and servers, and shares not sent, of all points."""
    import numpy as np

    values: list[Sequence[float]] = [
        [rate / 8 for rate in parse_rates("--bandwidth", bandwidth)] if bandwidth else [0.0],
        parse_whole_numbers("--workers", workers, _MOST_WORKERS)
        if workers
        else [wanted.num_workers],
        parse_whole_numbers("--ps", ps, _MOST_SERVERS) if ps else [max(wanted.num_servers, 1)],
        parse_shares("--compress", compress),
    ]
    num_points = prod(len(some) for some in values)
    if num_points > _MOST_POINTS:
        raise ConfigError(
            f"{num_points} points are more than {_MOST_POINTS}; give fewer values, or narrower "
            "ranges"
        )
    return [grid.ravel() for grid in np.meshgrid(*values, indexing="ij")]


def _sweep(
    job: PreparedJob,
    wanted: Setting,
    grid: list[Any],
    cost: Compression,
    how: Exchange,
    placement: Strategy,
    *,
    deviation: float,
    limit: bool,
    measured: float | None,
    given_rates: bool,
) -> _Sweep:
    """The closed form at every point."""
    import numpy as np

    from driple.analytic.advice import bottleneck, rate_from_measured
    from driple.analytic.job_profile import points_of, profile_of, slowest_device
    from driple.analytic.sweep import iteration_seconds
    from driple.cluster.topology import topology_of
    from driple.simulate.calibration import shipped_calibration

    rates, counts, servers, ratios = grid
    scene, calibration = topology_of(wanted), shipped_calibration(wanted)
    own = points_of(job, scene, calibration, deviation=deviation, limited=limit)
    profile = profile_of(job, slowest_device(job, scene, calibration))
    if measured is not None:
        own = replace(own, compute_rate=rate_from_measured(profile, own, measured, how))
    if given_rates:
        own = _on_ethernet(own, rates, calibration, limit=limit)
    else:
        rates = np.full(len(rates), float(np.asarray(own.worker_bytes_per_s)))
    known, which = np.unique(servers, return_inverse=True)
    spread = ServerSpread.of(job, known.tolist(), placement)
    uneven = np.array(spread.imbalances)[which]
    points = replace(own, workers=counts, servers=servers, imbalance=uneven, compression=ratios)
    found = iteration_seconds(profile, points, cost, how)
    return _Sweep(
        points=points,
        rates=rates,
        profile=profile,
        how=(cost, how),
        found=found,
        names=bottleneck(found),
        spread=spread,
    )


def _on_ethernet(own: Points, rates: Any, calibration: Calibration, *, limit: bool) -> Points:
    """Every role on a machine of its own, joined by Ethernet of these rates."""
    import numpy as np

    from driple.simulate.calibration import ETHERNET

    link = calibration.links[ETHERNET]
    most = calibration.server_bytes_per_s if limit else np.inf
    reached = rates * link.effective_share(_MEASURED_WORKERS)
    if (reached > most).any():
        note(
            f"no published server of TensorFlow passed more than {most / 1e6:.0f} MB/s, so faster "
            "links bring nothing; --no-limit lets servers use all of them"
        )
    return replace(
        own,
        worker_bytes_per_s=np.minimum(reached, most),
        server_bytes_per_s=reached,
        server_limit_bytes_per_s=most,
        message_s=link.tensor_s,
    )


def _as_json(sweep: _Sweep, *, advise: bool) -> dict[str, Json]:
    """Every point's cluster, times and advice, a list for each."""
    from driple.analytic.advice import BOTTLENECKS, RESOURCES, gain_of_doubling

    flat, found = sweep.points.arrays(), sweep.found
    columns: dict[str, Json] = {
        "bandwidth_bits_per_s": (8 * sweep.rates).tolist(),
        "workers": flat["workers"].tolist(),
        "servers": flat["servers"].tolist(),
        "compression": flat["compression"].tolist(),
        "iteration_time_s": found.total_s.tolist(),
        "compute_s": found.compute_s.tolist(),
        "push_s": found.push_s.tolist(),
        "aggregate_s": found.aggregate_s.tolist(),
        "pull_s": found.pull_s.tolist(),
        "straggler_s": found.straggler_s.tolist(),
    }
    if advise:
        columns["bottleneck"] = sweep.names.tolist()
        for name in RESOURCES:
            gain = gain_of_doubling(sweep.profile, sweep.points, name, *sweep.how)
            columns[f"saved_by_doubling_{name}"] = gain.tolist()
    return {"bottlenecks": dict(BOTTLENECKS), "columns": columns}


def _print(sweep: _Sweep, *, unknown: str) -> None:
    """A row for each point, or for some of very many; advice only if nothing is unknown."""
    import numpy as np

    from driple.analytic.advice import BOTTLENECKS, RESOURCES, gain_of_doubling

    flat, found, rates = sweep.points.arrays(), sweep.found, sweep.rates
    shown = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), _MOST_ROWS)).astype(int))
    header = ["bandwidth", "workers", "ps", "compress", "iteration", "compute", "network"]
    rows = [
        [
            format_rate(8 * rates[i]),
            f"{flat['workers'][i]:.0f}",
            f"{flat['servers'][i]:.0f}",
            f"{flat['compression'][i]:g}",
            f"{found.total_s[i]:.4f} s",
            f"{100 * found.compute_s[i] / found.total_s[i]:.0f} %",
            f"{100 * (found.push_s[i] + found.pull_s[i]) / found.total_s[i]:.0f} %",
        ]
        for i in shown.tolist()
    ]
    if not unknown:
        header += ["2x device", "2x worker link", "2x server link", "2x servers", "held back by"]
        some = sweep.points.at(shown)
        gains = {
            name: gain_of_doubling(sweep.profile, some, name, *sweep.how) for name in RESOURCES
        }
        for row, i in enumerate(shown.tolist()):
            rows[row] += [f"{100 * gains[name][row]:.0f} %" for name in RESOURCES]
            rows[row].append(BOTTLENECKS[str(sweep.names[i])])
    print_table(header, rows)
    if unknown:
        print(f"no advice: {unknown}")
    elif len(np.unique(flat["compression"])) > 1:
        steps_per_s = flat["workers"] / found.total_s
        best = int(steps_per_s.argmax())
        print(
            f"most steps per second of all workers, {steps_per_s[best]:.1f}: "
            f"{100 * flat['compression'][best]:.0f} % of the gradients not sent, "
            f"{format_rate(8 * rates[best])}, {flat['workers'][best]:.0f} workers, "
            f"{flat['servers'][best]:.0f} ps"
        )
    if len(shown) < len(rates):
        note(f"{len(shown)} of {len(rates)} points shown; --json prints all")
