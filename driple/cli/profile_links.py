"""`driple profile links`: links fitted to measured stalls, and the stalls of other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import CatalogOption, job_options
from driple.cli.numbers import BANDWIDTH_HELP
from driple.cli.outputs import JsonOption, check_output_file
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.render.show import note, print_json, print_table
from driple.units import parse_rate

if TYPE_CHECKING:
    from driple.api.linking import StallResult
    from driple.cluster.setting import Setting
    from driple.profiler.linkfit import LinkFit

__all__ = ["links"]

_PROFILE_FILE = "profile.json"
_SETTING = "V100-R8/ho-NVLink"


@job_options
def links(
    options: JobOptions,
    job: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB | PROFILE...",
            help=f"to predict, a job: {JOB_HELP}; to fit, folders of driple profile run, of three "
            "models or more",
        ),
    ],
    setting: Annotated[
        str | None,
        typer.Option(
            help=f"setting, a ring on one machine; default: {_SETTING}; for profiles, whose link "
            "the machine has"
        ),
    ] = None,
    catalog: CatalogOption = None,
    bandwidth: Annotated[
        str | None, typer.Option(help=f"for a job, between machines: {BANDWIDTH_HELP}")
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            help="file of fitted links (.json): written from profiles, read for a job, whose "
            "other links are calibrated"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Fit links to measured stalls, or predict the stalls of a job: T = L (tau + G / (L B)).

    Given profiles, the command fits latency tau and rate B of each link and prints the error on
    models that it left out. Given a job, it predicts the interconnect and network stall, with the
    buckets of DistributedDataParallel and the overlap with the backward pass (Stash, section VI-A).

    Examples:

      driple profile links runs/resnet18 runs/vgg11 runs/bert --links links.json

      driple profile links datasets/examples/resnet50.pbtxt --setting V100-R8/ho-NVLink
      --bandwidth 10G --links links.json
    """
    from driple.api.linking import fit_links, predict_stalls
    from driple.catalog import read_catalog
    from driple.cluster.setting import Setting

    known = read_catalog(catalog) if catalog else None
    wanted = None if setting is None else Setting.parse(setting, catalog=known)
    profiles = [Path(name) for name in job if (Path(name) / _PROFILE_FILE).is_file()]
    _check(job, profiles, bandwidth, options)
    if not profiles:
        stalls = predict_stalls(
            job[0],
            wanted or Setting.parse(_SETTING),
            options=options,
            network_bits_per_s=None if bandwidth is None else parse_rate("--bandwidth", bandwidth),
            links=links,
            catalog=known,
        )
        show_job(stalls.job, json=json)
        if json:
            print_json(stalls.to_dict())
        else:
            _print_stalls(stalls, job[0])
        return
    if links is not None:
        check_output_file("--links", links)
    named = None if wanted is None else _link_of(wanted)
    fitted = fit_links(profiles, interconnect=named or "interconnect")
    if json:
        print_json(fitted.to_dict())
    else:
        _print_fits(fitted.fits)
    if links is not None:
        from driple.profiler.linkfit import write_channels

        write_channels(fitted.fits, links)
        note(f"wrote {links}")


def _link_of(setting: Setting) -> str:
    """Name of what joins the devices of a setting."""
    from driple.cluster.topology import topology_of

    return topology_of(setting).link


def _check(
    job: list[str], profiles: list[Path], bandwidth: str | None, options: JobOptions
) -> None:
    """Refuse a mixture of jobs and profiles, and options of the other half of the command."""
    if not profiles and len(job) > 1:
        raise ConfigError(
            f"{job[0]} and {job[1]} are no profiles (no {_PROFILE_FILE} in them); give one job "
            "to predict, or folders of driple profile run to fit"
        )
    if not profiles:
        return
    if len(profiles) < len(job):
        other = next(name for name in job if Path(name) not in profiles)
        raise ConfigError(
            f"{other} holds no stall profile (no {_PROFILE_FILE} in it), and the others do; leave "
            "it out, or give one job alone"
        )
    odd = [*(["--bandwidth"] if bandwidth is not None else []), *options.given]
    if odd:
        raise ConfigError(f"{' and '.join(odd)}: not for profiles; leave out what does not apply")


def _print_stalls(stalls: StallResult, name: str) -> None:
    """What the exchange adds to a step."""
    one_s, channels = stalls.iteration_time_s, stalls.channels
    print(
        f"{name} on {stalls.setting.name}: {stalls.num_gradients} gradients of "
        f"{stalls.gradient_bytes / 1e6:.1f} MB in {stalls.num_buckets} buckets, simulated step of "
        f"{1e3 * one_s:.1f} ms on one device"
    )
    rows = [["interconnect", channels[0].name, f"{1e3 * stalls.interconnect_stall_s:.1f} ms",
             f"{stalls.interconnect_stall_pct:.1f} % of a step on one device"]]  # fmt: skip
    if stalls.network_stall_s is not None:
        rows.append(["network", channels[1].name, f"{1e3 * stalls.network_stall_s:.1f} ms",
                     f"{stalls.network_stall_pct:.1f} % of a step on one machine"])  # fmt: skip
    print_table(["stall", "link", "of an iteration", "share"], rows)


def _print_fits(fits: Sequence[LinkFit]) -> None:
    """What was fitted, then each model that was left out."""
    rows = []
    for fit in fits:
        channel = fit.channel
        rows.append([
            channel.name, f"{1e3 * channel.latency_s:.3f} ms per {channel.latency_per}",
            f"{channel.bytes_per_s / 1e6:.1f} MB/s",
            "hidden by the backward pass" if channel.overlap else "after the backward pass",
            f"{fit.error_pct:.0f} %",
        ])  # fmt: skip
    print_table(["link", "tau", "B", "exchange", "error on left-out models"], rows)
    print()
    rows = [
        [made.channel.name, model, f"{1e3 * true:.1f} ms", f"{1e3 * found:.1f} ms"]
        for made in fits
        for model, (true, found) in made.left_out.items()
    ]
    print_table(["link", "left out", "measured stall", "predicted"], rows)
