"""`driple stalls cost`: what an epoch takes and costs on each instance, and which to rent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

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
from driple.cli.jobs import JOB_HELP, DatasetOption, GivenJob, LossOption, job_of
from driple.cli.numbers import finite_number, whole_number
from driple.cli.show import note, print_json, print_simulator_error, print_table
from driple.errors import ConfigError

if TYPE_CHECKING:
    from driple.cli.source import Reading
    from driple.simulate.device import Calibration
    from driple.stalls.cost import Offer
    from driple.stalls.instances import Instance

__all__ = ["cost"]

_HOUR_S = 3600.0
_NO_ADVICE = "no price and no recommendation: dimensions of the graph are unknown"


def cost(
    graph: Annotated[str | None, typer.Argument(help=JOB_HELP)] = None,
    batch_size: BatchSizeOption = None,
    input_: InputOption = None,
    target: TargetOption = None,
    loop_turns: LoopTurnsOption = None,
    max_mib: MaxMibOption = MAX_MIB,
    dataset: DatasetOption = None,
    loss: LossOption = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="of an epoch; default: ImageNet, SQuAD for BERT, or the profile's data",
            callback=whole_number(1, 10**12),
        ),
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
        float | None,
        typer.Option(
            help="hours that an epoch may take at most", callback=finite_number(above=0, most=1e6)
        ),
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

      driple stalls cost bert-large --instance p3 --on-date 2022-12-31

      driple stalls cost train.py:build_model --dataset train.py:build_dataset --batch-size 64

      driple stalls cost --measured runs/stalls=p3.8xlarge --instances my.yaml --deadline 2
    """
    from driple.stalls.cost import recommendation
    from driple.stalls.instances import read_instances

    if graph is None and not measured:
        raise ConfigError("give a graph or a workload, or --measured FOLDER=INSTANCE")
    if graph is not None and batch_size is None and Path(graph).exists():
        raise ConfigError("a graph file does not tell its batch size; give --batch-size")
    if plot is not None:
        from driple.cli.plot import check_picture

        check_picture(plot)
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    known, day = read_instances(instances or []), _day(on_date)
    offers = _measured_offers(measured or [], known, samples, day)
    chosen: list[tuple[Instance, int]] = []
    reading: Reading | None = None
    if graph is not None:
        done = {offer.name for offer in offers}
        chosen = _chosen(known, instance or [], _counts(machines), done)
        given = job_of(graph, options, dataset=dataset, loss=loss)
        reading = given.reading
        reading.show(json=json)
        offers += _simulated_offers(given, chosen, samples=samples, day=day)
    unknown = reading is not None and reading.has_unknown
    if unknown:
        offers = [_without_price(offer) for offer in offers]
    offers.sort(key=lambda offer: (offer.epoch_cost is None, offer.epoch_cost or 0.0))
    sentence = _NO_ADVICE if unknown else recommendation(offers, deadline)
    error = None if unknown else _simulator_error(chosen)
    if json:
        found = {
            "offers": [asdict(offer) for offer in offers],
            "recommendation": None if unknown else sentence,
            "simulator_error": error,
        }
        print_json({**found, **({} if reading is None else reading.to_json_dict())})
    else:
        _print_offers(offers)
        print(f"\n{sentence}")
        print_simulator_error(error)
    if plot is not None:
        from driple.cli.stalls_plot import plot_offers

        plot_offers(offers, plot)
        note(f"wrote {plot}")


def _without_price(offer: Offer) -> Offer:
    """A simulated offer without price; a measured one as it is."""
    if offer.provenance != "simulated":
        return offer
    return replace(offer, per_hour=None, epoch_cost=None)


def _measured_offers(
    texts: Sequence[str],
    known: Mapping[str, Instance],
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    """From `FOLDER=INSTANCE`."""
    from driple.stalls.cost import measured_offer
    from driple.stalls.record import read_profile

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
    given: GivenJob,
    chosen: Sequence[tuple[Instance, int]],
    *,
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    """Simulate the job on all of them, and say how far that may be trusted."""
    from driple.simulate.device import shipped_calibration
    from driple.stalls.cost import simulated_offer
    from driple.stalls.workloads import IMAGENET_SAMPLES

    calibration = shipped_calibration()
    offers = [
        simulated_offer(
            given.job,
            item,
            calibration,
            batch_size=cast("int", given.batch_size),  # asked for where it is not known
            samples=samples or given.samples or IMAGENET_SAMPLES,
            machines=count,
            date=day,
        )
        for item, count in chosen
    ]
    _note_doubts(calibration, [item for item, _ in chosen])
    return offers


def _simulator_error(chosen: Sequence[tuple[Instance, int]]) -> dict[str, float] | None:
    """How far simulated iterations are from real ones, on as many devices as the most of these."""
    from driple.simulate.device import shipped_calibration
    from driple.simulate.scene import scene_of

    settings = [item.setting(count) for item, count in chosen]
    if not settings:
        return None
    largest = max(settings, key=lambda setting: setting.num_workers)
    return shipped_calibration().error_of(largest, scene_of(largest).link)


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
