"""`driple whatif`: iteration time over bandwidths, workers, servers and compression, and why."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from driple.checks import check_number
from driple.cli.numbers import finite_number
from driple.cli.rates import rate_of
from driple.cli.show import note, print_json, print_table
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.perfmodel.sweep import Breakdown, Compression, Exchange, Points, Profile
    from driple.settings import Setting
    from driple.simulate.device import Calibration

__all__ = ["whatif"]

_DEFAULT_SETTING = "V100-P1w2/ho-PCIe"
_MOST_POINTS = 4_000_000
_MOST_ROLES = 1_000_000  # workers, or servers
_MOST_ROWS = 40
_MEASURED_WORKERS = 3  # with servers, on one switch: the most of the published runs
_RANGE = re.compile(r"(?P<low>[\d.]+)\s*-\s*(?P<high>[\d.]+)")


def whatif(
    graph: Annotated[Path, typer.Argument(help="GraphDef or SavedModel: .pb, .pbtxt, also .gz")],
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
        Path | None, typer.Option(help="draw examples/s against workers (.png, .svg, .pdf)")
    ] = None,
    max_mib: Annotated[
        float, typer.Option("--max-mib", help="refuse graph files larger than this, in MiB")
    ] = 512,
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
    import numpy as np

    from driple.checks import check_choice
    from driple.graph import read_graph
    from driple.perfmodel.advice import (
        RESOURCES,
        bottleneck,
        gain_of_doubling,
        rate_from_measured,
    )
    from driple.perfmodel.sweep import EXCHANGES, Compression, iteration_seconds
    from driple.settings import Setting
    from driple.simulate.device import shipped_calibration
    from driple.simulate.job import Job
    from driple.simulate.profile import imbalance, points_of, profile_of, slowest_device
    from driple.simulate.scene import scene_of

    if plot is not None:
        from driple.cli.plot import check_picture

        check_picture(plot)
    check_choice("--exchange", exchange, EXCHANGES)
    wanted = Setting.parse(setting)
    calibration = shipped_calibration(wanted)
    grids = np.meshgrid(
        _rates(bandwidth) or [0.0],
        _wholes("--workers", workers) or [wanted.num_workers],
        _wholes("--ps", ps) or [max(wanted.num_servers, 1)],
        _shares(compress),
        indexing="ij",
    )
    rates, counts, servers, ratios = (grid.ravel() for grid in grids)
    if len(rates) > _MOST_POINTS:
        raise ConfigError(
            f"{len(rates)} points are more than {_MOST_POINTS}; give fewer values, or narrower "
            "ranges"
        )
    job = Job(read_graph(graph, max_bytes=int(max_mib * 2**20)))
    scene = scene_of(wanted)
    own = points_of(job, scene, calibration, deviation=deviation, limited=limit)
    how = cast("Exchange", exchange)
    profile = profile_of(job, slowest_device(job, scene, calibration))
    if measured is not None:
        own = replace(own, compute_rate=rate_from_measured(profile, own, measured, how))
    if bandwidth:
        own = _on_ethernet(own, rates, calibration, limit=limit)
    else:
        rates = np.full(len(rates), float(np.asarray(own.worker_bytes_per_s)))
    known, which = np.unique(servers, return_inverse=True)
    uneven = np.array([imbalance(job, int(count)) for count in known])[which]
    points = replace(own, workers=counts, servers=servers, imbalance=uneven, compression=ratios)
    cost = Compression(s_per_byte=compress_cost / 1e9)
    found = iteration_seconds(profile, points, cost, how)
    names = bottleneck(found)
    if json:
        gains = {name: gain_of_doubling(profile, points, name, cost, how) for name in RESOURCES}
        print_json({**_as_json(wanted, points, rates, found, names, gains), "exchange": how})
    else:
        _print(points, rates, found, names, profile, (cost, how))
    if plot is not None:
        from driple.cli.whatif_plot import plot_whatif

        plot_whatif(rates, counts, servers, ratios, found, names, plot, title=graph.name)
        note(f"wrote {plot}")


def _on_ethernet(own: Points, rates: Any, calibration: Calibration, *, limit: bool) -> Points:
    """Every role on a machine of its own, joined by Ethernet of these rates."""
    import numpy as np

    from driple.simulate.device import ETHERNET

    link = calibration.links[ETHERNET]
    most = calibration.server_bytes_per_s if limit else np.inf
    reached = rates * link.share_of(_MEASURED_WORKERS)
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


def _as_json(
    setting: Setting,
    points: Points,
    rates: Any,
    found: Breakdown,
    names: Any,
    gains: dict[str, Any],
) -> dict[str, Any]:
    from driple.perfmodel.advice import BOTTLENECKS

    return {
        "setting": setting.name,
        "provenance": "simulated",
        "method": "zhang",
        "bottlenecks": dict(BOTTLENECKS),
        "columns": {
            "bandwidth_bits_per_s": (8 * rates).tolist(),
            "workers": points.arrays()["workers"].tolist(),
            "servers": points.arrays()["servers"].tolist(),
            "compression": points.arrays()["compression"].tolist(),
            "iteration_time_s": found.total_s.tolist(),
            "compute_s": found.compute_s.tolist(),
            "push_s": found.push_s.tolist(),
            "aggregate_s": found.aggregate_s.tolist(),
            "pull_s": found.pull_s.tolist(),
            "straggler_s": found.straggler_s.tolist(),
            "bottleneck": names.tolist(),
            **{f"saved_by_doubling_{name}": gain.tolist() for name, gain in gains.items()},
        },
    }


def _print(
    points: Points,
    rates: Any,
    found: Breakdown,
    names: Any,
    profile: Profile,
    how: tuple[Compression, Exchange],
) -> None:
    import numpy as np

    from driple.perfmodel.advice import BOTTLENECKS, RESOURCES, gain_of_doubling

    flat = points.arrays()
    shown = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), _MOST_ROWS)).astype(int))
    shown_points = points.at(shown)
    gains = {name: gain_of_doubling(profile, shown_points, name, *how) for name in RESOURCES}
    rows = [
        [
            f"{8 * rates[i] / 1e9:g}G",
            f"{flat['workers'][i]:.0f}",
            f"{flat['servers'][i]:.0f}",
            f"{flat['compression'][i]:g}",
            f"{found.total_s[i]:.4f} s",
            f"{100 * found.compute_s[i] / found.total_s[i]:.0f} %",
            f"{100 * (found.push_s[i] + found.pull_s[i]) / found.total_s[i]:.0f} %",
            *(f"{100 * gains[name][row]:.0f} %" for name in RESOURCES),
            BOTTLENECKS[str(names[i])],
        ]
        for row, i in enumerate(shown.tolist())
    ]
    print_table(
        ["bandwidth", "workers", "ps", "compress", "iteration", "compute", "network",
         "2x device", "2x worker link", "2x server link", "2x servers", "held back by"],
        rows,
    )  # fmt: skip
    if len(np.unique(flat["compression"])) > 1:
        steps_per_s = flat["workers"] / found.total_s
        best = int(steps_per_s.argmax())
        print(
            f"most steps per second of all workers, {steps_per_s[best]:.1f}: "
            f"{100 * flat['compression'][best]:.0f} % of the gradients not sent, "
            f"{8 * rates[best] / 1e9:g}G, {flat['workers'][best]:.0f} workers, "
            f"{flat['servers'][best]:.0f} ps"
        )
    if len(shown) < len(rates):
        note(f"{len(shown)} of {len(rates)} points shown; --json prints all")


def _rates(text: str) -> list[float]:
    """Bytes per second from `1G,10G`."""
    return [rate_of("--bandwidth", part) / 8 for part in filter(None, text.split(","))]


def _wholes(flag: str, text: str) -> list[int]:
    """Whole numbers from `1-4,8`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        match = _RANGE.fullmatch(part.strip())
        low, high = (match["low"], match["high"]) if match else (part.strip(), part.strip())
        good = all(end.isdecimal() and len(end) <= len(str(_MOST_ROLES)) for end in (low, high))
        if not (good and 1 <= int(low) <= int(high) <= _MOST_ROLES):
            raise ConfigError(
                f"{flag} needs numbers from 1 to {_MOST_ROLES} such as 4, 1-64 or 1,2,4, got "
                f"'{text[:40]}'"
            )
        found |= set(range(int(low), int(high) + 1))
    return sorted(found)


def _shares(text: str) -> list[float]:
    """Shares from `0-0.9` (in tenths) or `0,0.5`."""
    import numpy as np

    match = _RANGE.fullmatch(text.strip())
    ends = [match["low"], match["high"]] if match else text.split(",")
    try:
        shares = [float(end) for end in ends]
    except ValueError as error:
        raise ConfigError(
            f"--compress needs shares such as 0.5, 0-0.9 or 0,0.5, got '{text[:40]}'"
        ) from error
    for share in shares:
        check_number("--compress", share, least=0, below=1)
    if match is None:
        return shares
    tenths: list[float] = np.round(np.arange(shares[0], shares[1] + 1e-9, 0.1), 10).tolist()
    if not tenths:
        raise ConfigError(f"--compress needs a range that goes up, such as 0-0.9, got '{text}'")
    return tenths
