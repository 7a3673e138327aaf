"""`driple profile links`: links fitted to measured stalls, and the stalls of other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import job_options
from driple.cli.numbers import BANDWIDTH_HELP
from driple.cli.outputs import output_file
from driple.cli.show import note, print_json, print_table
from driple.codec import to_dict
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions, load_job
from driple.units import parse_rate

if TYPE_CHECKING:
    from driple.profiler.communication import Channel
    from driple.profiler.linkfit import LinkFit, Observation

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
        str | None, typer.Option(help=f"for a job: a ring on one machine; default: {_SETTING}")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(help=f"for a job, between machines: {BANDWIDTH_HELP}")
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(help="for a job: links that this command fitted; others are calibrated"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="for profiles: file to write (.json)", callback=output_file
        ),
    ] = None,
    interconnect: Annotated[
        str | None,
        typer.Option(help="for profiles: what joins the devices of the machine, such as PCIe3"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Fit links to measured stalls, or predict the stalls of a job: T = L (tau + G / (L B)).

    Given profiles, the command fits latency tau and rate B of each link and prints the error on
    models that it left out. Given a job, it predicts the interconnect and network stall, with the
    buckets of DistributedDataParallel and the overlap with the backward pass (Stash, section VI-A).

    Examples:

      driple profile links runs/resnet18 runs/vgg11 runs/bert -o links.json

      driple profile links datasets/examples/resnet50.pbtxt --setting V100-R8/ho-NVLink
      --bandwidth 10G --links links.json
    """
    profiles = [Path(name) for name in job if (Path(name) / _PROFILE_FILE).is_file()]
    for_a_job = {"--setting": setting, "--bandwidth": bandwidth, "--links": links}
    for_profiles = {"--output": output, "--interconnect": interconnect}
    if not profiles:
        if len(job) > 1:
            raise ConfigError(
                f"{job[0]} and {job[1]} are no profiles (no {_PROFILE_FILE} in them); give one job "
                "to predict, or folders of driple profile run to fit"
            )
        _refuse(for_profiles, "a job")
        _predict(job[0], setting or _SETTING, bandwidth, links, options, json=json)
        return
    if len(profiles) < len(job):
        other = next(name for name in job if Path(name) not in profiles)
        raise ConfigError(
            f"{other} holds no stall profile (no {_PROFILE_FILE} in it), and the others do; leave "
            "it out, or give one job alone"
        )
    _refuse(for_a_job, "profiles")
    if options.flags:
        raise ConfigError(f"{' and '.join(options.flags)}: not for profiles; leave them out")
    _fit(profiles, output, interconnect or "interconnect", json=json)


def _refuse(flags: dict[str, Path | str | None], given: str) -> None:
    """Refuse options of the other half of the command."""
    odd = [flag for flag, value in flags.items() if value is not None]
    if odd:
        raise ConfigError(f"{' and '.join(odd)}: not for {given}; leave out what does not apply")


def _fit(profiles: list[Path], output: Path | None, interconnect: str, *, json: bool) -> None:
    """Fit the links of some profiles, and show and store them."""
    from driple.profiler.linkfit import fit_channel, observations_of, write_channels
    from driple.profiler.stall_profile import read_profile

    by_link: dict[str, list[Observation]] = {}
    for folder in profiles:
        profile = read_profile(folder)
        model = " ".join(profile.about.command)
        for seen in observations_of(profile, model, interconnect):
            by_link.setdefault(seen.link, []).append(seen)
    fits = [fit_channel(seen) for seen in by_link.values()]
    if json:
        print_json({
            made.channel.name: {
                **to_dict(made.channel),
                "left_out_error_pct": made.error_pct,
                "errors_pct": dict(made.errors_pct),
                "left_out_s": {model: list(pair) for model, pair in made.left_out.items()},
            }
            for made in fits
        })  # fmt: skip
    else:
        _print_fits(fits)
    if output is not None:
        write_channels(fits, output)
        note(f"wrote {output}")


def _predict(
    graph: str,
    setting: str,
    bandwidth: str | None,
    links: Path | None,
    options: JobOptions,
    *,
    json: bool,
) -> None:
    """Predict the stalls of one job."""
    from driple.api.results import job_facts
    from driple.cluster.setting import Setting
    from driple.cluster.topology import topology_of
    from driple.profiler.communication import (
        bucketed,
        calibrated_channel,
        communication_stall,
        gradients_of_job,
    )
    from driple.profiler.linkfit import read_channels
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob

    wanted = Setting.parse(setting)
    if wanted.num_servers or wanted.num_workers < 2:
        raise ConfigError(
            f"--setting must be a ring of two or more, such as V100-R8/ho-NVLink, got {wanted.name}"
        )
    calibration, topology = shipped_calibration(), topology_of(wanted)
    fitted = {} if links is None else read_channels(links)
    workers = wanted.num_workers

    def channel_of(name: str, bytes_per_s: float) -> Channel:
        known = fitted.get(name.lower())
        return known or calibrated_channel(name, bytes_per_s, workers, calibration)

    loaded = load_job(graph, options)
    show_job(loaded, json=json)
    job = PreparedJob(loaded.graph, cost=loaded.cost)
    gradients = gradients_of_job(job, calibration.device(wanted.device))
    buckets = bucketed(gradients)
    channels = [channel_of(topology.link, topology.link_bytes_per_s)]
    if bandwidth is not None:
        channels.append(channel_of(bandwidth.upper(), parse_rate("--bandwidth", bandwidth) / 8))
    waits = [communication_stall(gradients, buckets, one, workers) for one in channels]
    # The ring crosses both links; the slower one holds it up (section IV-B2).
    network_s = None if bandwidth is None else max(waits[1] - waits[0], 0.0)
    one_s = gradients.end_s
    found = {
        "setting": wanted.name,
        "gradients": len(gradients.nbytes),
        "gradient_bytes": float(gradients.nbytes.sum()),
        "buckets": len(buckets.nbytes),
        "device_s": one_s,
        "interconnect_stall_s": waits[0],
        "interconnect_stall_pct": 100 * waits[0] / one_s,
        "network_stall_s": network_s,
        "network_stall_pct": None if network_s is None else 100 * network_s / (one_s + waits[0]),
        "channels": [to_dict(one) for one in channels],
        "job": job_facts(loaded),
    }
    if json:
        print_json(found)
        return
    print(
        f"{graph} on {wanted.name}: {found['gradients']} gradients of "
        f"{gradients.nbytes.sum() / 1e6:.1f} MB in {found['buckets']} buckets, simulated step of "
        f"{1e3 * one_s:.1f} ms on one device"
    )
    rows = [["interconnect", channels[0].name, f"{1e3 * waits[0]:.1f} ms",
             f"{found['interconnect_stall_pct']:.1f} % of a step on one device"]]  # fmt: skip
    if network_s is not None:
        rows.append(["network", channels[1].name, f"{1e3 * network_s:.1f} ms",
                     f"{found['network_stall_pct']:.1f} % of a step on one machine"])  # fmt: skip
    print_table(["stall", "link", "of an iteration", "share"], rows)


def _print_fits(fits: Sequence[LinkFit]) -> None:
    """What was fitted, then each model that was left out."""
    rows = []
    for made in fits:
        one = made.channel
        rows.append([
            one.name, f"{1e3 * one.latency_s:.3f} ms per {one.latency_per}",
            f"{one.bytes_per_s / 1e6:.1f} MB/s",
            "hidden by the backward pass" if one.overlap else "after the backward pass",
            f"{made.error_pct:.0f} %",
        ])  # fmt: skip
    print_table(["link", "tau", "B", "exchange", "error on left-out models"], rows)
    print()
    rows = [
        [made.channel.name, model, f"{1e3 * true:.1f} ms", f"{1e3 * found:.1f} ms"]
        for made in fits
        for model, (true, found) in made.left_out.items()
    ]
    print_table(["link", "left out", "measured stall", "predicted"], rows)
