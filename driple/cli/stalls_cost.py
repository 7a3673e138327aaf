"""`driple stalls cost | fit | predict`: what stalls mean for instances, links and other graphs."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.rates import rate_of
from driple.cli.show import note, print_json, print_table
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.simulate.device import Calibration
    from driple.simulate.job import Job
    from driple.stalls.communication import Channel
    from driple.stalls.cost import Offer
    from driple.stalls.instances import Instance
    from driple.stalls.linkfit import LinkFit, Observation

__all__ = ["cost", "fit", "predict"]

_HOUR_S = 3600.0


def cost(
    graph: Annotated[
        str | None,
        typer.Argument(help="graph file, or workload such as resnet50/imagenet/b32/sgd/sync"),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="of a device; a workload's name tells its own")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="of an epoch; default: ImageNet, or the profile's data")
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(help="only these: p3 is all of P3; may be given several times"),
    ] = None,
    machines: Annotated[str, typer.Option(help="numbers of instances, such as 1,2")] = "1",
    instances: Annotated[
        list[Path] | None,
        typer.Option(help="your own instances and prices (YAML), which win"),
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(help="profile that you took on an instance: FOLDER=INSTANCE"),
    ] = None,
    on_date: Annotated[
        str | None, typer.Option(help="with the prices of that day, such as 2022-12-31")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(help="hours that an epoch may take at most")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="draw cost against time (.png, .svg, .pdf)")
    ] = None,
) -> None:
    """Tell what an epoch takes and costs on each instance, and which to rent.

    Instances that you profiled are told as measured (--measured); all others are simulated from the
    graph, without stalls of CPU and disk. Whether the model fits into an instance's memory is not
    checked.

    Examples:

      driple stalls cost datasets/examples/resnet50.pbtxt --batch-size 32 --machines 1,2

      driple stalls cost resnet50/imagenet/b32/sgd/sync --instance p3 --on-date 2022-12-31

      driple stalls cost --measured runs/stalls=p3.8xlarge --instances my.yaml --deadline 2
    """
    from driple.stalls.cost import recommendation
    from driple.stalls.instances import read_instances

    if graph is None and not measured:
        raise ConfigError("give a graph or a workload, or --measured FOLDER=INSTANCE")
    if plot is not None:
        from driple.cli.plot import check_picture

        check_picture(plot)
    known, day = read_instances(instances or []), _day(on_date)
    offers = _measured_offers(measured or [], known, samples, day)
    if graph is not None:
        offers += _simulated_offers(
            graph,
            _chosen(known, instance or [], _counts(machines), {offer.name for offer in offers}),
            batch_size=batch_size,
            samples=samples,
            day=day,
        )
    offers.sort(key=lambda offer: (offer.epoch_cost is None, offer.epoch_cost or 0.0))
    sentence = recommendation(offers, deadline)
    if json:
        print_json({"offers": [asdict(offer) for offer in offers], "recommendation": sentence})
    else:
        _print_offers(offers)
        print(f"\n{sentence}")
    if plot is not None:
        from driple.cli.stalls_plot import plot_offers

        plot_offers(offers, plot)
        note(f"wrote {plot}")


def fit(
    profiles: Annotated[
        list[Path], typer.Argument(help="folders of driple stalls run, of three models or more")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="file of links for driple stalls predict")
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
    from driple.stalls.linkfit import fit_link, observations_of, write_channels
    from driple.stalls.profiler import read_profile

    by_link: dict[str, list[Observation]] = {}
    for folder in profiles:
        profile = read_profile(folder)
        model = " ".join(profile.about["command"])
        for seen in observations_of(profile, model, interconnect):
            by_link.setdefault(seen.link, []).append(seen)
    fits = [fit_link(seen) for seen in by_link.values()]
    if json:
        print_json({
            made.channel.name: {
                **made.channel.to_dict(),
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
    graph: Annotated[
        str, typer.Argument(help="graph file, or workload such as resnet50/imagenet/b32/sgd/sync")
    ],
    setting: Annotated[
        str, typer.Option(help="ring on one machine, such as V100-R8/ho-NVLink")
    ] = "V100-R8/ho-NVLink",
    network: Annotated[
        str | None, typer.Option(help="rate of the network between machines, such as 10G")
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="fitted links (driple stalls fit); others are calibrated")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Predict the interconnect and network stall of a graph, by T = L (tau + G / (L B)).

    Example:

      driple stalls predict datasets/examples/resnet50.pbtxt --setting V100-R8/ho-NVLink
      --network 10G
    """
    from driple.settings import Setting
    from driple.simulate.device import shipped_calibration
    from driple.simulate.scene import scene_of
    from driple.stalls.communication import (
        bucketed,
        calibrated_channel,
        communication_stall,
        gradients_of_job,
    )
    from driple.stalls.linkfit import read_channels

    wanted = Setting.parse(setting)
    if wanted.num_servers or wanted.num_workers < 2:
        raise ConfigError(
            f"--setting must be a ring of two or more, such as V100-R8/ho-NVLink, got {wanted.name}"
        )
    calibration, scene = shipped_calibration(), scene_of(wanted)
    fitted = {} if links is None else read_channels(links)
    workers = wanted.num_workers

    def channel_of(name: str, bytes_per_s: float) -> Channel:
        known = fitted.get(name.lower())
        return known or calibrated_channel(name, bytes_per_s, workers, calibration)

    job, _ = _job_of(graph)
    gradients = gradients_of_job(job, calibration.device(wanted.device))
    buckets = bucketed(gradients)
    channels = [channel_of(scene.link, scene.link_bytes_per_s)]
    if network is not None:
        channels.append(channel_of(network.upper(), rate_of("--network", network) / 8))
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
        "channels": [one.to_dict() for one in channels],
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


def _measured_offers(
    texts: Sequence[str],
    known: Mapping[str, Instance],
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    """From `FOLDER=INSTANCE`."""
    from driple.stalls.cost import measured_offer
    from driple.stalls.profiler import read_profile

    offers = []
    for text in texts:
        folder, _, name = text.rpartition("=")
        if not folder or name not in known:
            raise ConfigError(
                f"--measured needs FOLDER=INSTANCE with an instance such as p3.8xlarge (there are "
                f"{', '.join(known)}), got '{text}'"
            )
        profile = read_profile(Path(folder))
        offers.append(measured_offer(profile, known[name], samples=samples, date=day))
    return offers


def _chosen(
    known: Mapping[str, Instance], names: Sequence[str], counts: Sequence[int], done: set[str]
) -> list[tuple[Instance, int]]:
    """Instances and how many of each, but for those that were measured."""
    from driple.stalls.instances import choose_instances

    return [
        (item, count)
        for item in choose_instances(known, names)
        for count in counts
        if count > 1 or item.name not in done
    ]


def _simulated_offers(
    graph: str,
    chosen: Sequence[tuple[Instance, int]],
    *,
    batch_size: int | None,
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    """Simulate the graph on all of them, and say how far that may be trusted."""
    from driple.simulate.device import shipped_calibration
    from driple.stalls.cost import IMAGENET_SAMPLES, simulated_offer

    job, own_size = _job_of(graph)
    size = batch_size or own_size
    if size is None:
        raise ConfigError("a graph file does not tell its batch size; give --batch-size")
    calibration = shipped_calibration()
    offers = [
        simulated_offer(
            job,
            item,
            calibration,
            batch_size=size,
            samples=samples or IMAGENET_SAMPLES,
            machines=count,
            date=day,
        )
        for item, count in chosen
    ]
    _note_doubts(calibration, [item for item, _ in chosen])
    return offers


def _note_doubts(calibration: Calibration, chosen: Sequence[Instance]) -> None:
    """Devices and links of which nothing was published that the simulator could be fitted to."""
    from driple.simulate.device import nearest_link
    from driple.simulate.scene import scene_of

    links = {scene_of(item.setting()).link for item in chosen if item.devices > 1}
    stand_ins = {name: nearest_link(name, calibration.links) for name in sorted(links)}
    for name, taken in stand_ins.items():
        if taken != name:
            note(f"no published run on {name} here: it takes the efficiency of {taken}")
    for name in sorted({item.device for item in chosen}):
        source = calibration.device(name).measured_on
        if source != name:
            of = f"{source} devices" if source else "the usual device"
            note(f"no published run on {name} here: it takes the efficiency of {of}")


def _job_of(text: str) -> tuple[Job, int | None]:
    """A job from a graph file, or from a workload of the zoo with its batch size."""
    from driple.graph import read_graph
    from driple.simulate.job import Job

    if Path(text).exists() or text.count("/") < 2:
        return Job(read_graph(Path(text))), None
    import tempfile

    from driple.settings import Setting
    from driple.zoo import Workload

    workload = Workload.parse(text)
    require_tensorflow("building a graph")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from driple.zoo.training import ClusterShape, build_training_step, use_graph_mode, write_graph

    use_graph_mode()
    step = build_training_step(workload, ClusterShape.of(Setting.parse("V100-P1w2")), task=0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.pb"
        write_graph(step, file)
        return Job(read_graph(file)), workload.batch_size


def _day(text: str | None) -> datetime.date | None:
    try:
        return None if text is None else datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--on-date needs a day such as 2022-12-31, got '{text}'") from error


def _counts(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and 1 <= int(part) <= 64 for part in parts):
        raise ConfigError(f"--machines needs numbers from 1 to 64 such as 1,2, got '{text}'")
    return sorted({int(part) for part in parts})


def _print_offers(offers: Sequence[Offer]) -> None:
    rows = [
        [
            offer.name,
            str(offer.devices),
            f"{1e3 * offer.iteration_s:.1f} ms",
            "-" if offer.communication_pct is None else f"{offer.communication_pct:.0f} %",
            f"{offer.epoch_s / _HOUR_S:.2f} h",
            "-" if offer.per_hour is None else f"{offer.per_hour:.2f}",
            "-" if offer.epoch_cost is None else f"{offer.epoch_cost:.2f}",
            offer.provenance,
        ]
        for offer in offers
    ]
    print_table(
        ["instance", "devices", "iteration", "exchange adds", "epoch", "$/h", "$/epoch", ""], rows
    )


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
