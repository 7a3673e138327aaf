"""`driple plan`: what an epoch takes and costs on each instance, and which to rent."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import CatalogOption, job_options
from driple.cli.numbers import finite_number, whole_number
from driple.cli.outputs import output_file
from driple.cli.overrides import override, set_option, text
from driple.cli.show import note, print_json, print_table
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.units import parse_whole_numbers

if TYPE_CHECKING:
    from driple.api.planning import PlanResult
    from driple.planning.cost import Offer

__all__ = ["plan"]

_MOST_MACHINES = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a plan."""

    on_date: str | None = text(None, "with the prices of that day, such as 2022-12-31; the newest")


@job_options
def plan(
    options: JobOptions,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help=JOB_HELP)] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="samples of an epoch; default: those of the data set of JOB or of the profile, "
            "and ImageNet for models of images",
            callback=whole_number(1, 10**12),
        ),
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(help="only these: p3 is all of P3; may be given several times"),
    ] = None,
    machines: Annotated[str, typer.Option(help="numbers of instances, such as 1,2")] = "1",
    catalog: CatalogOption = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="profile that you took on an instance: FOLDER=INSTANCE"),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            help="hours that an epoch may take at most", callback=finite_number(above=0, most=1e6)
        ),
    ] = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw cost against time (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Estimate the time and the price of an epoch on each instance, and recommend one.

    Instances that you profiled are marked as measured (--profile); all others are simulated from
    the job, without stalls of CPU and disk. Instances whose devices are smaller than parameters,
    gradients, optimizer states and the largest tensor are refused; others may still be too small.

    Examples:

      driple plan datasets/examples/resnet50.pbtxt --batch-size 32 --machines 1,2

      driple plan bert-large --instance p3 --set on_date=2022-12-31

      driple plan train.py:build_model --data train.py:build_dataset --batch-size 64

      driple plan --profile runs/profile=p3.8xlarge --catalog my.toml --deadline 2
    """
    from driple.api.planning import plan as ask

    values = override(_Values, set_)
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    result = ask(
        job,
        options=options,
        samples=samples,
        instances=instance or [],
        machines=parse_whole_numbers("--machines", machines, _MOST_MACHINES),
        catalogs=catalog or [],
        profiles=[_profile(given) for given in profile or []],
        day=_day(values.on_date),
        deadline_h=deadline,
    )
    if result.job is not None:
        show_job(result.job, json=json)
    for remark in result.remarks:
        note(remark)
    if json:
        print_json(result.to_dict())
    else:
        _print(result)
    if plot is not None:
        from driple.plot.stalls import plot_offers

        plot_offers(result.offers, plot)
        note(f"wrote {plot}")


def _profile(given: str) -> tuple[Path, str]:
    """Folder and instance from `FOLDER=INSTANCE`."""
    folder, _, name = given.rpartition("=")
    if not folder:
        raise ConfigError(
            f"--profile needs FOLDER=INSTANCE, such as runs/profile=p3.8xlarge, got '{given}'"
        )
    return Path(folder), name


def _day(given: str | None) -> datetime.date | None:
    try:
        return None if given is None else datetime.date.fromisoformat(given)
    except ValueError as error:
        raise ConfigError(f"--set on_date needs a day such as 2022-12-31, got '{given}'") from error


def _print(result: PlanResult) -> None:
    if result.no_price:
        print(f"{result.no_price}\n")
    _print_offers(result.offers)
    print()
    for refused in result.refused:
        print(f"{refused.name} is refused: {refused.reason}")
    if result.assumptions is not None:
        print(result.assumptions.sentence())
    if result.recommendation is not None:
        print(result.recommendation)
    stated: dict[str, list[str]] = {}
    for offer in result.offers:
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
