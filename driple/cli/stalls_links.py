"""`driple stalls fit | predict`: links fitted to measured stalls, stalls of other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.graphoptions import (
    MAX_MIB,
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
    graph_options,
)
from driple.cli.jobs import JOB_HELP, DatasetOption, LossOption, job_of
from driple.cli.outputs import output_file
from driple.cli.show import note, print_json, print_table
from driple.codec import to_dict
from driple.errors import ConfigError
from driple.units import parse_rate

if TYPE_CHECKING:
    from driple.profiler.communication import Channel
    from driple.profiler.linkfit import LinkFit, Observation

__all__ = ["fit", "predict"]


def fit(
    profiles: Annotated[
        list[Path], typer.Argument(help="folders of driple stalls run, of three models or more")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="file of links for driple stalls predict", callback=output_file
        ),
    ] = None,
    interconnect: Annotated[
        str, typer.Option(help="what joins the devices of the machine, such as PCIe3")
    ] = "interconnect",
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Fit latency and rate of links to measured stalls, and tell the error on left-out models.

    T = L (tau + G / (L B)) of the paper's section VI-A, with the buckets of DistributedDataParallel
    and the overlap with the backward pass.

    Example:

      driple stalls fit runs/stalls/* -o links.json
    """
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


def predict(
    graph: Annotated[str, typer.Argument(help=JOB_HELP)],
    setting: Annotated[
        str, typer.Option(help="ring on one machine, such as V100-R8/ho-NVLink")
    ] = "V100-R8/ho-NVLink",
    network: Annotated[
        str | None, typer.Option(help="rate of the network between machines, such as 10G")
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="fitted links (driple stalls fit); others are calibrated")
    ] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    dataset: DatasetOption = None,
    loss: LossOption = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Predict the interconnect and network stall of a graph, by T = L (tau + G / (L B)).

    Example:

      driple stalls predict datasets/examples/resnet50.pbtxt --setting V100-R8/ho-NVLink
      --network 10G
    """
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

    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    wanted = Setting.parse(setting)
    if wanted.num_servers or wanted.num_workers < 2:
        raise ConfigError(
            f"--setting must be a ring of two or more, such as V100-R8/ho-NVLink, got {wanted.name}"
        )
    calibration, scene = shipped_calibration(), topology_of(wanted)
    fitted = {} if links is None else read_channels(links)
    workers = wanted.num_workers

    def channel_of(name: str, bytes_per_s: float) -> Channel:
        known = fitted.get(name.lower())
        return known or calibrated_channel(name, bytes_per_s, workers, calibration)

    given = job_of(graph, options, dataset=dataset, loss=loss)
    given.reading.show(json=json)
    job = given.job
    gradients = gradients_of_job(job, calibration.device(wanted.device))
    buckets = bucketed(gradients)
    channels = [channel_of(scene.link, scene.link_bytes_per_s)]
    if network is not None:
        channels.append(channel_of(network.upper(), parse_rate("--network", network) / 8))
    waits = [communication_stall(gradients, buckets, one, workers) for one in channels]
    # The ring crosses both links; the slower one holds it up (section IV-B2).
    network_s = None if network is None else max(waits[1] - waits[0], 0.0)
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
        **given.reading.to_json_dict(),
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
