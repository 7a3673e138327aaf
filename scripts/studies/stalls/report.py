"""Page and pictures from profiles.tar.xz and rented.csv."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from driple.catalog import link_named
from driple.codec import to_dict
from driple.errors import DripleError
from driple.files import atomic_write
from driple.plot.stalls import plot_profile
from driple.profiler.communication import calibrated_channel
from driple.profiler.linkfit import (
    LinkFit,
    Observation,
    fit_channel,
    observations_of,
    write_channels,
)
from driple.profiler.stall_profile import StallProfile, read_profile
from driple.profiler.steps import DIFFERENCES
from driple.simulate.calibration import shipped_calibration
from driple.units import parse_rate
from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import save
from scripts.studies.kit.tables import markdown
from scripts.studies.stalls.models import MICRO
from scripts.studies.stalls.pictures import macro_picture, micro_picture, model_picture
from scripts.studies.stalls.rented import Offers, cheapest_first, picture, read_offers
from scripts.studies.stalls.run import MODELS, PACK, RATES, Run, runs_of

HOME = Path(__file__).parent
EXAMPLE = "resnet18"  # whose five steps are shown in full
# The profiles recorded the module under its former name.
RENAMED = ("driple.stalls.train", "driple.profiler.train")
SHOWN_INSTANCES = 8  # the cheapest; the page links the data of the others
DEEP, WIDE = "resnet152", "vgg16"  # compared in the paper's section VI-A2
INTERCONNECT = "loopback"
FAST = "NVLink-V100"  # of the paper's P3 instances
BERT, LARGE = "bert-large", ("resnet50", "vgg11", "bert-large")

Profiles = Mapping[Run, StallProfile]


@cache
def profiles() -> Profiles:
    """All profiles of the pack with one and with two devices."""
    profiles_by_run = {}
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(PACK) as archive:
            archive.extractall(place, filter="data")
        for run in runs_of(MODELS, MICRO, RATES):
            if (Path(place) / run.name / "profile.json").exists():
                profile = read_profile(Path(place) / run.name)
                if 1 in profile.times and 2 in profile.times:
                    profiles_by_run[run] = profile
    return profiles_by_run


def of_model(by_run: Profiles, model: str) -> dict[str, StallProfile]:
    """Profiles of a model by rate."""
    return {run.rate: profile for run, profile in by_run.items() if run.model == model}


def interval(seconds: float, bounds: tuple[float, float] | None) -> str:
    """`12.3 (11.0 to 13.6) ms`."""
    if bounds is None:
        return f"{1e3 * seconds:.1f} ms"
    low, high = bounds
    return f"{1e3 * seconds:.1f} ({1e3 * low:.1f} to {1e3 * high:.1f}) ms"


def example(by_run: Profiles) -> StallProfile:
    """The profile that is shown in full."""
    return next(
        profile for run, profile in by_run.items() if run.model == EXAMPLE and 3 in run.steps
    )


def example_table(profile: StallProfile) -> list[str]:
    """Stalls of a profile in full."""
    per_epoch = profile.batches_per_epoch or 0
    rows = [
        [
            name,
            interval(stall.seconds, stall.interval_s),
            f"{per_epoch * stall.seconds:.1f} s",
            f"{stall.pct:.1f} % of step {stall.base_step}",
        ]
        for name, stall in profile.stalls().items()
    ]
    return markdown(["stall", "of an iteration (95 % interval)", "of an epoch", "share"], rows)


def macro_table(by_run: Profiles) -> list[str]:
    """Section V: stalls and epochs of every model."""
    names = [difference.name for difference in DIFFERENCES if difference.name != "network"]
    head = ["model", *names, *(f"network {rate}" for rate in RATES), "epoch, 1 device",
            "2 devices"]  # fmt: skip
    rows = []
    for model in MODELS:
        mine = of_model(by_run, model)
        first = mine[RATES[0]]
        cells = [model, *(stall_cell(first, name, in_ms=False) for name in names)]
        cells += [stall_cell(mine.get(rate), "network", in_ms=False) for rate in RATES]
        count = first.batches_per_epoch or 0
        single_s, two = (float(np.mean([*first.times[step].values()])) for step in (1, 2))
        rows.append([*cells, f"{2 * count * single_s:.0f} s", f"{count * two:.0f} s"])
    return markdown(head, rows)


def stall_cell(profile: StallProfile | None, name: str, *, in_ms: bool) -> str:
    """A stall in milliseconds of an iteration or in percent; `-` where it is not measured."""
    stall = profile.stalls().get(name) if profile is not None else None
    if stall is None:
        return "-"
    text = f"{1e3 * stall.seconds:.0f}" if in_ms else f"{stall.pct:.0f} %"
    return f"{'~' if stall.in_noise else ''}{text}"


def micro_table(by_run: Profiles) -> list[str]:
    """Section VI: stalls against layers and gradients."""
    head = ["model", "gradients", "MB", "one device", "interconnect",
            *(f"network {rate}" for rate in RATES)]  # fmt: skip
    rows = []
    for model in MICRO:
        mine = of_model(by_run, model)
        first = mine.get(RATES[0])
        if first is None or first.gradients is None:
            continue
        sizes = first.gradients.nbytes
        cells = [model, f"{len(sizes)}", f"{sum(sizes) / 1e6:.0f}",
                 f"{1e3 * float(np.mean([*first.times[1].values()])):.0f}",
                 stall_cell(first, "interconnect", in_ms=True)]  # fmt: skip
        cells += [stall_cell(mine.get(rate), "network", in_ms=True) for rate in RATES]
        rows.append(cells)
    return markdown(head, rows)


def fits_of(by_run: Profiles) -> tuple[list[LinkFit], list[Observation]]:
    """A channel for each link that three models or more were measured on."""
    # One machine's steps are the same launches at each rate: the last stands for all.
    known = {
        (item.model, item.link): item
        for run, profile in by_run.items()
        for item in observations_of(profile, run.model, INTERCONNECT)
    }
    seen = [*known.values()]
    links = list(dict.fromkeys(item.link for item in seen))
    fits = []
    for link in links:
        mine = [item for item in seen if item.link == link]
        if len({item.model for item in mine}) >= 3:
            fits.append(fit_channel(mine))
    return fits, seen


def fit_table(fits: Sequence[LinkFit]) -> list[str]:
    """Section VI-A: the fitted numbers and their error."""
    rows = []
    for fit in fits:
        channel = fit.channel
        rows.append(
            [
                channel.name,
                f"{1e3 * channel.latency_s:.3f} ms per {channel.latency_per}",
                f"{channel.bytes_per_s / 1e6:.0f} MB/s",
                own_rate(channel.name),
                "hidden by the backward pass" if channel.overlap else "after the backward pass",
                f"{fit.error_pct:.0f} %",
                ", ".join(f"{form} {error:.0f} %" for form, error in fit.errors_pct.items()),
            ]
        )
    head = ["link", "tau", "B", "the link's own rate", "exchange",
            "median error on left-out models", "all forms"]  # fmt: skip
    return markdown(head, rows)


def own_rate(link: str) -> str:
    """Bytes per second of a link of that rate."""
    return "-" if link == INTERCONNECT else f"{parse_rate('--rates', link) / 8e6:.0f} MB/s"


def paper_time(num_gradients: int, nbytes: float, latency_s: float, bytes_per_s: float) -> float:
    """Transfer time of gradients one by one, seconds (section VI-A): T = L (tau + G / (L B))."""
    return num_gradients * (latency_s + nbytes / (num_gradients * bytes_per_s))


def conclusions(
    fits: Sequence[LinkFit], seen: Sequence[Observation]
) -> tuple[list[str], dict[str, str]]:
    """The paper's two conclusions, with the fitted numbers of a deep and a wide model."""
    sizes = {item.model: item for item in seen if item.model in {DEEP, WIDE}}
    channels = [fit.channel for fit in fits]
    channels.append(calibrated_channel(link_named(FAST), 2, shipped_calibration()))
    rows = []
    total: dict[tuple[str, str], float] = {}
    for channel in channels:
        for model, observation in sizes.items():
            per = len(observation.gradients.nbytes if channel.latency_per == "gradient"
                      else observation.buckets.nbytes)  # fmt: skip
            nbytes = float(observation.gradients.nbytes.sum())
            time = paper_time(per, nbytes, channel.latency_s, channel.bytes_per_s)
            total[channel.name, model] = time
            true = [
                other.stall_s
                for other in seen
                if (other.model, other.link) == (model, channel.name)
            ]
            rows.append(
                [
                    channel.name, model, f"{per}", f"{nbytes / 1e6:.0f} MB",
                    f"{1e3 * per * channel.latency_s:.1f} ms",
                    f"{1e3 * nbytes / channel.bytes_per_s:.0f} ms", f"{1e3 * time:.0f} ms",
                    f"{1e3 * float(np.mean(true)):.0f} ms" if true else "-",
                ]
            )  # fmt: skip
    head = ["link", "model", "L", "G", "L tau", "G / B", "T", "measured stall"]
    slow = min(channels, key=lambda one: one.bytes_per_s).name
    return markdown(head, rows), {
        "slow": slow,
        "wide_ratio": f"{total[slow, WIDE] / total[slow, DEEP]:.1f}",
        "deep_ratio": f"{total[FAST, DEEP] / total[FAST, WIDE]:.1f}",
    }


def cost_table(offers: Offers) -> list[str]:
    """Cost of an epoch by model on the cheapest instances; rented.csv has all."""
    return markdown(
        ["instance", *offers],
        [
            [instance, *(f"{found[instance][0]:.2f}" for found in offers.values())]
            for instance in cheapest_first(offers)[:SHOWN_INSTANCES]
        ],
    )


def findings(offers: Offers) -> list[str]:
    """Findings of the paper's measurements, beside the simulation."""
    small = [model for model in offers if model not in LARGE]

    def cheapest(model: str, family: str) -> str:
        names = [name for name in offers[model] if name.startswith(family)]
        return min(names, key=lambda name: offers[model][name][0])

    def count(models: Sequence[str], family: str, name: str) -> str:
        return f"{sum(cheapest(model, family) == name for model in models)} of {len(models)} models"

    def cost(model: str, name: str) -> float:
        return offers[model][name][0]

    slower = [
        model
        for model in small
        if offers[model]["p2.16xlarge"][1] > offers[model]["p2.8xlarge*2"][1]
    ]
    less = [
        model
        for model in offers
        if offers[model]["p3.16xlarge"][2] < offers[model]["p3.8xlarge"][2]
    ]
    on_p2 = [
        model
        for model in offers
        if cost(model, cheapest(model, "p2")) < cost(model, cheapest(model, "p3"))
    ]
    resnet50 = offers["resnet50"]["p2.16xlarge"]
    rows = [
        ["V-A", "p2.xlarge is the cheapest P2 of the small models", "all",
         count(small, "p2", "p2.xlarge")],
        ["V-A", "p2.16xlarge is slower than two p2.8xlarge", "all small models",
         f"{len(slower)} of {len(small)} models"],
        ["V-A", "ResNet50 on P2: time added by the interconnect", "750 %", f"{resnet50[2]:.0f} %"],
        ["V-A", "ResNet50 on P2: an epoch", "$41", f"${resnet50[0]:.1f}"],
        ["V-B", "p3.2xlarge is the cheapest P3", "all", count([*offers], "p3", "p3.2xlarge")],
        ["V-B", "p3.16xlarge has lower interconnect stalls than p3.8xlarge",
         "most, above all the small ones", f"{len(less)} of {len(offers)} models"],
        ["V-B", "BERT-large on p3.16xlarge, an epoch in batches of 4", "$2.1",
         f"${cost(BERT, 'p3.16xlarge'):.2f}"],
        ["V-C", "cheaper on P2 than on P3", "small models such as shufflenet",
         ", ".join(on_p2) or "none"],
    ]  # fmt: skip
    return markdown(["section", "finding", "paper", "simulated"], rows)


def spread_of(by_run: Profiles) -> float:
    """Slowest over fastest repetition of a step, less 1; the median over models and steps."""
    times = [[*values.values()] for one in by_run.values() for values in one.times.values()]
    return float(np.median([max(some) / min(some) - 1 for some in times if len(some) > 1]))


def parts() -> Parts:
    """Tables and numbers of the page."""
    all_profiles = profiles()
    fits, seen = fits_of(all_profiles)
    launches = [launch for one in all_profiles.values() for launch in one.launches.values()]
    shown = example(all_profiles)
    host = shown.about.host
    links, ratios = conclusions(fits, seen)
    return {
        "other_cores": f"{max(launch.other_cores for launch in launches):.2f}",
        "stolen_cores": f"{max(launch.stolen_cores for launch in launches):.2f}",
        "spread_pct": f"{100 * spread_of(all_profiles):.0f}",
        "host": f"{host.cpu}, {host.cores} cores, kernel {host.kernel}",
        "iterations": f"{shown.about.plan.iterations}",
        "command": " ".join(shown.about.command).replace(*RENAMED),
        "wall_s": f"{sum(launch.wall_s or 0.0 for launch in shown.launches.values()):.0f}",
        "overhead_pct": f"{shown.overhead_pct():.2f}",
        "example": example_table(shown),
        "macro": macro_table(all_profiles),
        "micro": micro_table(all_profiles),
        "fits": fit_table(fits),
        "links": links,
        **ratios,
        "costs": cost_table(read_offers()),
        "findings": findings(read_offers()),
    }


def pictures() -> None:
    """Draw the pictures."""
    all_profiles = profiles()
    fits, _ = fits_of(all_profiles)
    shown = example(all_profiles)
    plot_profile(shown, HOME / "example.png")
    text = json.dumps(to_dict(shown.to_dict()), indent=1)
    atomic_write(HOME / "example.json", text.encode(), error=DripleError)
    save(macro_picture(all_profiles), HOME / "macro.png")
    save(micro_picture(all_profiles), HOME / "micro.png")
    save(model_picture(fits), HOME / "model.png")
    save(picture(read_offers()), HOME / "rented.png")
    write_channels(fits, HOME / "links.json")
