"""`driple stalls cost`: what an epoch takes and costs on each instance, and which to rent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from driple.cli.outputs import output_file
from driple.cli.show import note, print_json, print_table
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.units import parse_whole_numbers

if TYPE_CHECKING:
    from driple.catalog import Instance
    from driple.cli.source import Reading
    from driple.planning.assumptions import Assumptions
    from driple.planning.cost import Offer, Refused
    from driple.simulate.calibration import Calibration

__all__ = ["cost"]

_MOST_MACHINES = 64


@dataclass(kw_only=True, slots=True)
class _Answer:
    """All that is printed.

    Attributes:
        offers: with and without a price.
        refused: instances that are too small.
        notes: what a user should know of the devices.
        no_price: why there are no prices; empty if there are.
        reading: the graph, and what the reader says of it; None if all were measured.
        assumptions: of the simulated offers; None if all were measured.
    """

    offers: list[Offer]
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    no_price: str = ""
    reading: Reading | None = None
    assumptions: Assumptions | None = None


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
        Path | None,
        typer.Option(help="draw cost against time (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Estimate the time and the price of an epoch on each instance, and recommend one.

    Instances that you profiled are marked as measured (--measured); all others are simulated from
    the graph, without stalls of CPU and disk. Instances whose devices are smaller than parameters,
    gradients, optimizer states and the largest tensor are refused; others may still be too small.

    Examples:

      driple stalls cost datasets/examples/resnet50.pbtxt --batch-size 32 --machines 1,2

      driple stalls cost bert-large --instance p3 --on-date 2022-12-31

      driple stalls cost train.py:build_model --dataset train.py:build_dataset --batch-size 64

      driple stalls cost --measured runs/stalls=p3.8xlarge --instances my.yaml --deadline 2
    """
    from driple.planning.cost import recommendation
    from driple.planning.instances import read_instances

    if graph is None and not measured:
        raise ConfigError("give a graph or a workload, or --measured FOLDER=INSTANCE")
    if graph is not None and batch_size is None and Path(graph).exists():
        raise ConfigError("a graph file does not state its batch size; give --batch-size")
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    options = graph_options(batch_size, input_, target, loop_turns, max_mib)
    own = {"--dataset": dataset, "--loss": loss}
    lone = [*options.flags, *(flag for flag, value in own.items() if value is not None)]
    if graph is None and lone:
        raise ConfigError(f"{' and '.join(lone)}: for GRAPH, and none is given; leave them out")
    known, day = read_instances(instances or []), _day(on_date)
    answer = _Answer(offers=_measured_offers(measured or [], known, samples, day))
    if graph is not None:
        done = {offer.name for offer in answer.offers}
        counts = parse_whole_numbers("--machines", machines, _MOST_MACHINES)
        chosen = _chosen(known, instance or [], counts, done)
        given = job_of(graph, options, dataset=dataset, loss=loss)
        answer.reading = given.reading
        answer.reading.show(json=json)
        _add_simulated(answer, given, chosen, samples=samples, day=day)
    if answer.no_price:
        answer.offers = [_without_price(offer, answer.reading) for offer in answer.offers]
    answer.offers.sort(key=lambda offer: (offer.epoch_cost is None, offer.epoch_cost or 0.0))
    sentence = None if answer.no_price else recommendation(answer.offers, deadline)
    if json:
        print_json(_as_json(answer, sentence))
    else:
        _print(answer, sentence)
    if plot is not None:
        from driple.plot.stalls import plot_offers

        plot_offers(answer.offers, plot)
        note(f"wrote {plot}")


def _without_price(offer: Offer, reading: Reading | None) -> Offer:
    """A simulated offer without price and known error; a measured one as it is."""
    from driple.estimation.stated_error import StatedError

    if reading is None or offer.provenance != "simulated":
        return offer
    unknown = StatedError(runs=reading.unknown_words)
    return replace(offer, per_hour=None, epoch_cost=None, error=unknown)


def _measured_offers(
    texts: Sequence[str],
    known: Mapping[str, Instance],
    samples: int | None,
    day: datetime.date | None,
) -> list[Offer]:
    """From `FOLDER=INSTANCE`."""
    from driple.planning.cost import measured_offer
    from driple.profiler.stall_profile import read_profile

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
    from driple.planning.instances import choose_instances

    return [
        (item, count)
        for item in choose_instances(known, names)
        for count in counts
        if count > 1 or item.name not in done
    ]


def _add_simulated(
    answer: _Answer,
    given: GivenJob,
    chosen: Sequence[tuple[Instance, int]],
    *,
    samples: int | None,
    day: datetime.date | None,
) -> None:
    """Simulate the job on all instances that may be large enough.

    Raises:
        ConfigError: none of them is.
        GraphError: the graph has no training step.
    """
    from driple.estimation.stated_error import job_kind
    from driple.memory.least import device_memory_bytes, least_memory
    from driple.planning.assumptions import assumptions_of
    from driple.planning.cost import (
        refused_for_facts,
        refused_for_memory,
        refused_for_precision,
        simulated_offer,
    )
    from driple.simulate.calibration import shipped_calibration

    calibration, graph = shipped_calibration(), given.job.graph
    batch_size = cast("int", given.batch_size)  # asked for where it is not known
    epoch, samples_from = _samples(given, samples)
    answer.assumptions = assumptions_of(
        graph, batch_size=batch_size, samples=epoch, samples_from=samples_from
    )
    answer.no_price = _why_no_price(given)
    least, kind, large = least_memory(graph), job_kind(graph), []
    for item, count in chosen:
        refused = (
            refused_for_facts(item, count)
            or refused_for_memory(least, item, count)
            or refused_for_precision(answer.assumptions.precision, item, count)
        )
        if refused is None:
            large.append((item, count))
        else:
            answer.refused.append(refused)
    if not large and not answer.offers and answer.refused:
        largest = max(chosen, key=lambda pair: device_memory_bytes(pair[0]))
        reason = answer.refused[chosen.index(largest)].reason
        raise ConfigError(
            f"none of these instances can run the job: {reason}; choose others (--instance)"
        )
    answer.offers += [
        simulated_offer(
            given.job,
            item,
            calibration,
            batch_size=batch_size,
            samples=epoch,
            machines=count,
            date=day,
            kind=kind,
        )
        for item, count in large
    ]
    doubts = _doubts(calibration, [item for item, _ in large])
    for doubt in doubts:
        note(doubt)
    answer.notes += doubts


def _samples(given: GivenJob, samples: int | None) -> tuple[int, str]:
    """Samples of an epoch, and where the number comes from."""
    from driple.jobs.pytorch.workloads import IMAGENET_SAMPLES

    if samples is not None:
        return samples, "--samples"
    if given.samples is not None:
        return given.samples, "its data set"
    return IMAGENET_SAMPLES, "ImageNet, since --samples is not given"


def _why_no_price(given: GivenJob) -> str:
    """Why the job has no price; empty if it has one."""
    if not given.reading.has_unknown:
        return ""
    options = given.reading.options_that_set
    advice = f"; set them with {options}" if options else ""
    return (
        f"no price and no recommendation: {given.reading.unknown_words}, so times are too "
        f"short{advice}"
    )


def _doubts(calibration: Calibration, chosen: Sequence[Instance]) -> list[str]:
    """Devices and links without published runs that the simulator could be fitted to."""
    from driple.cluster.topology import topology_of
    from driple.planning.instances import instance_setting
    from driple.simulate.calibration import nearest_link

    found = []
    links = {topology_of(instance_setting(item)).link for item in chosen if item.num_devices > 1}
    stand_ins = {name: nearest_link(name, calibration.links) for name in sorted(links)}
    for name, taken in stand_ins.items():
        if taken != name:
            found.append(f"no published run on {name} here: it takes the efficiency of {taken}")
    for name in sorted({item.device for item in chosen}):
        source = calibration.device(name).measured_on
        if source != name:
            of = f"{source} devices" if source else "the usual device"
            found.append(f"no published run on {name} here: it takes the efficiency of {of}")
    return found


def _day(text: str | None) -> datetime.date | None:
    try:
        return None if text is None else datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--on-date needs a day such as 2022-12-31, got '{text}'") from error


def _as_json(answer: _Answer, sentence: str | None) -> dict[str, Json]:
    offers = [
        {
            **{name: value for name, value in to_dict(offer).items() if name != "error"},
            "stated_error": None if offer.error is None else offer.error.to_dict(),
        }
        for offer in answer.offers
    ]
    assumed = answer.assumptions
    read = {} if answer.reading is None else answer.reading.to_json_dict()
    notes = () if answer.reading is None else answer.reading.graph.report.notes
    return {
        "no_price": answer.no_price or None,
        "assumptions": None if assumed is None else assumed.to_json_dict(),
        "offers": offers,
        "refused": [to_dict(refused) for refused in answer.refused],
        "recommendation": sentence,
        **read,
        "notes": [*notes, *answer.notes],
    }


def _print(answer: _Answer, sentence: str | None) -> None:
    if answer.no_price:
        print(f"{answer.no_price}\n")
    _print_offers(answer.offers)
    print()
    for refused in answer.refused:
        print(f"{refused.name} is refused: {refused.reason}")
    if answer.assumptions is not None:
        print(answer.assumptions.sentence())
    if sentence is not None:
        print(sentence)
    stated: dict[str, list[str]] = {}
    for offer in answer.offers:
        if offer.error is not None:
            stated.setdefault(offer.error.sentence(), []).append(offer.name)
    for words, names in stated.items():
        print(f"{', '.join(names)}: {words}")


def _print_offers(offers: Sequence[Offer]) -> None:
    from driple.planning.cost import price_text
    from driple.units import format_duration

    rows = [
        [
            offer.name,
            str(offer.devices),
            format_duration(offer.iteration_s),
            "-" if offer.communication_pct is None else f"{offer.communication_pct:.0f} %",
            format_duration(offer.epoch_s),
            "-" if offer.per_hour is None else f"{offer.per_hour:.2f}",
            "-" if offer.epoch_cost is None else price_text(offer.epoch_cost),
            _error_text(offer),
            offer.provenance,
        ]
        for offer in offers
    ]
    header = ["instance", "devices", "iteration", "exchange adds", "epoch", "$/h", "$/epoch",
              "error: median, p90", ""]  # fmt: skip
    print_table(header, rows)


def _error_text(offer: Offer) -> str:
    if offer.error is None:
        return "-"
    if offer.error.median_pct is None or offer.error.p90_pct is None:
        return "not checked"
    return f"{offer.error.median_pct:.0f} %, {offer.error.p90_pct:.0f} %"
