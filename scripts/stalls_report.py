"""Measure the stalls of the built-in workloads on this machine, and make docs/stalls.md of them.

    sudo OMP_NUM_THREADS=1 python scripts/stalls_report.py

The machine must be quiet: nothing else may run for the two hours or so. It needs root
(network namespaces, clearing of caches), iproute2 and the extras `stalls` and `plot`; two cores are
enough. Stop it at any time; the same command goes on. Profiles are kept in
runs/stalls-report, and packed into docs/stalls/profiles.tar.xz, of which the report is made;
`--docs-only` makes it of the pack that is there, and needs no root.

To try it in some minutes, with figures that mean nothing, add `--macro resnet18 squeezenet
shufflenet --micro resnet18 --rates 1G 5G --repeats 1 --iterations 2 --warmup 3 --batch-size 2
--images 64 --work /tmp/stalls --docs /tmp/stalls-docs`.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from shipped import DOCS, ROOT, markdown, save
from stalls_campaign import MODELS, RATES, Run, measure, pack, runs_of
from stalls_pictures import macro_picture, micro_picture, model_picture
from stalls_rented import rented_section

from driple.cli.stalls_plot import plot_profile
from driple.errors import DripleError
from driple.files import write_whole
from driple.hardware import link_named
from driple.simulate.device import shipped_calibration
from driple.stalls.communication import calibrated_channel, paper_time
from driple.stalls.linkfit import LinkFit, Observation, fit_link, observations_of, write_channels
from driple.stalls.record import Profile, read_profile
from driple.stalls.steps import DIFFERENCES
from driple.stalls.workloads import MICRO
from driple.units import parse_rate

PACK = "stalls/profiles.tar.xz"
EXAMPLE = "resnet18"  # whose five steps are shown in full
DEEP, WIDE = "resnet152", "vgg16"  # compared in the paper's section VI-A2
INTERCONNECT = "loopback"
FAST = "NVLink-V100"  # of the paper's P3 instances


def profiles_of(options: argparse.Namespace) -> dict[Run, Profile]:
    """What is in the pack."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(options.docs / PACK) as archive:
            archive.extractall(place, filter="data")
        for run in runs_of(options):
            if (Path(place) / run.name / "profile.json").exists():
                profile = read_profile(Path(place) / run.name)
                if 1 in profile.times and 2 in profile.times:
                    found[run] = profile
    if not found:
        raise SystemExit(f"no profiles in {options.docs / PACK}; run without --docs-only")
    return found


def interval(seconds: float, bounds: tuple[float, float] | None) -> str:
    """`12.3 (11.0 to 13.6) ms`."""
    if bounds is None:
        return f"{1e3 * seconds:.1f} ms"
    low, high = bounds
    return f"{1e3 * seconds:.1f} ({1e3 * low:.1f} to {1e3 * high:.1f}) ms"


def example_section(found: dict[Run, Profile], docs: Path) -> list[str]:
    """A profile in full."""
    run = next((run for run in found if run.model == EXAMPLE and 3 in run.steps), None)
    if run is None:
        return []
    profile = found[run]
    plot_profile(profile, docs / "stalls" / "example.png")
    told = json.dumps(profile.to_dict(), indent=1).encode()
    write_whole(docs / "stalls" / "example.json", told, error=DripleError)
    words = " ".join(profile.about.command)
    host, per_epoch = profile.about.host, profile.batches_per_epoch or 0
    lines = [
        f"## A profile in full: {EXAMPLE}", "",
        f"    driple stalls run --network {run.rate} --data ... -- {words}", "",
        f"Two processes of one core each ({host.cpu}, {host.cores} cores, kernel "
        f"{host.kernel}), {profile.about.plan.iterations} iterations timed in a launch. "
        f"All figures: [example.json](stalls/example.json).", "",
        "![where the time goes](stalls/example.png)", "",
        "| stall | of an iteration (95 % interval) | of an epoch | share |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, stall in profile.stalls().items():
        lines.append(
            f"| {name} | {interval(stall.seconds, stall.interval_s)} | "
            f"{per_epoch * stall.seconds:.1f} s | {stall.pct:.1f} % of step {stall.base_step} |"
        )
    for why in profile.left_out.values():
        lines += ["", f"Left out: {why}."]
    lines += ["", *(f"- {line}" for line in profile.warnings()), ""]
    wall_s = sum(launch.wall_s or 0.0 for launch in profile.launches.values())
    return [*lines, f"The profile took {wall_s:.0f} s; the profiler itself at most "
            f"{profile.overhead_pct():.2f} % of a launch.", ""]  # fmt: skip


def macro_section(found: dict[Run, Profile], options: argparse.Namespace) -> list[str]:
    """Section V: stalls and epochs of every model."""
    names = [difference.name for difference in DIFFERENCES if difference.name != "network"]
    head = ["model", *names, *(f"network {rate}" for rate in options.rates), "epoch, 1 device",
            "2 devices"]  # fmt: skip
    lines = [
        "## All models (section V)", "",
        "In percent, as the paper relates them: interconnect of one device's time, network of one "
        "machine's, prep and fetch of all time on cold data. `~`: within the noise. The picture's "
        "right half is logarithmic and leaves out what is not above zero.", "",
        "![stalls of all models](stalls/macro.png)", "",
    ]  # fmt: skip
    rows = []
    for model in options.macro:
        mine = {run.rate: profile for run, profile in found.items() if run.model == model}
        if not mine:
            continue
        first = mine.get(options.rates[0]) or next(iter(mine.values()))
        cells = [model, *(stall_cell(first, name, in_ms=False) for name in names)]
        cells += [stall_cell(mine.get(rate), "network", in_ms=False) for rate in options.rates]
        times, count = first.times, first.batches_per_epoch or 0
        one, two = (float(np.mean([*times[step].values()])) for step in (1, 2))
        rows.append([*cells, f"{2 * count * one:.0f} s", f"{count * two:.0f} s"])
    return [*lines, *markdown(head, rows), ""]


def stall_cell(profile: Profile | None, name: str, *, in_ms: bool) -> str:
    """A stall in milliseconds of an iteration or in percent; `-` where it is not measured."""
    stall = profile.stalls().get(name) if profile is not None else None
    if stall is None:
        return "-"
    told = f"{1e3 * stall.seconds:.0f}" if in_ms else f"{stall.pct:.0f} %"
    return f"{'~' if stall.in_noise else ''}{told}"


def micro_section(found: dict[Run, Profile], options: argparse.Namespace) -> list[str]:
    """Section VI: stalls against layers and gradients."""
    head = ["model", "gradients", "MB", "one device", "interconnect",
            *(f"network {rate}" for rate in options.rates)]  # fmt: skip
    lines = [
        "## Layers and gradients (section VI, figure 16)", "",
        "![stalls of ResNets and VGGs](stalls/micro.png)", "",
        "Pale: without residuals (nores) or batch norms (nonorm). Lines: 95 % intervals. All in ms "
        "of an iteration; `~`: within the noise.", "",
    ]  # fmt: skip
    rows = []
    for model in options.micro:
        mine = {run.rate: profile for run, profile in found.items() if run.model == model}
        first = mine.get(options.rates[0])
        if first is None or first.gradients is None:
            continue
        sizes = first.gradients["nbytes"]
        cells = [model, f"{len(sizes)}", f"{sum(sizes) / 1e6:.0f}",
                 f"{1e3 * float(np.mean([*first.times[1].values()])):.0f}",
                 stall_cell(first, "interconnect", in_ms=True)]  # fmt: skip
        cells += [stall_cell(mine.get(rate), "network", in_ms=True) for rate in options.rates]
        rows.append(cells)
    return [*lines, *markdown(head, rows), ""]


def fits_of(found: dict[Run, Profile]) -> tuple[list[LinkFit], list[Observation]]:
    """A channel for each link that three models or more were measured on."""
    # One machine's steps are the same launches at each rate: the last stands for all.
    known = {
        (item.model, item.link): item
        for run, profile in found.items()
        for item in observations_of(profile, run.model, INTERCONNECT)
    }
    seen = [*known.values()]
    links = list(dict.fromkeys(item.link for item in seen))
    fits = []
    for link in links:
        mine = [item for item in seen if item.link == link]
        if len({item.model for item in mine}) >= 3:
            fits.append(fit_link(mine))
    return fits, seen


def model_section(fits: Sequence[LinkFit], seen: Sequence[Observation]) -> list[str]:
    """Section VI-A: the fitted numbers, their error, and the two conclusions."""
    if not fits:
        return []
    lines = [
        "## The model T = L (tau + G / (L B)) (section VI-A)", "",
        "Fitted to the stalls of all models, with DDP's buckets. The form is the one, of four, "
        "that is best on models that were left out.", "",
        "![measured and predicted](stalls/model.png)", "",
        "| link | tau | B | the link's own rate | exchange | median error on left-out models | "
        "other forms |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for fit in fits:
        one = fit.channel
        others = ", ".join(f"{form} {error:.0f} %" for form, error in fit.errors_pct.items())
        when = "hidden by the backward pass" if one.overlap else "after the backward pass"
        lines.append(
            f"| {one.name} | {1e3 * one.latency_s:.3f} ms per {one.latency_per} | "
            f"{one.bytes_per_s / 1e6:.0f} MB/s | {own_rate(one.name)} | {when} | "
            f"{fit.error_pct:.0f} % | {others} |"
        )
    lines += ["", "A form hides all of the exchange that it can, or nothing: where part is hidden, "
              "B comes out above the link's own rate."]  # fmt: skip
    return [*lines, "", *conclusion_lines(fits, seen), ""]


def own_rate(link: str) -> str:
    """What a link of that rate carries."""
    return "-" if link == INTERCONNECT else f"{parse_rate('--rates', link) / 8e6:.0f} MB/s"


def conclusion_lines(fits: Sequence[LinkFit], seen: Sequence[Observation]) -> list[str]:
    """The paper's two conclusions, with the fitted numbers of a deep and a wide model."""
    sizes = {item.model: item for item in seen if item.model in {DEEP, WIDE}}
    if set(sizes) != {DEEP, WIDE}:
        return [f"(The two conclusions need {DEEP} and {WIDE}.)"]
    nominal = link_named(FAST).bytes_per_s
    channels = [fit.channel for fit in fits]
    channels.append(calibrated_channel(FAST, nominal, 2, shipped_calibration()))
    lines = [
        f"{FAST} is not of this machine: its numbers were fitted to published runs "
        "([simulation.md](simulation.md)).", "",
        "| link | model | L | G | L tau | G / B | T | measured stall |", "|---" * 8 + "|",
    ]  # fmt: skip
    total: dict[tuple[str, str], float] = {}
    for one in channels:
        for model, item in sizes.items():
            per = len(item.gradients.nbytes if one.latency_per == "gradient"
                      else item.buckets.nbytes)  # fmt: skip
            nbytes = float(item.gradients.nbytes.sum())
            time = paper_time(per, nbytes, one.latency_s, one.bytes_per_s)
            total[one.name, model] = time
            true = [other.stall_s for other in seen
                    if other.model == model and other.link == one.name]  # fmt: skip
            told = f"{1e3 * float(np.mean(true)):.0f} ms" if true else "-"
            lines.append(
                f"| {one.name} | {model} | {per} | {nbytes / 1e6:.0f} MB | "
                f"{1e3 * per * one.latency_s:.1f} ms | {1e3 * nbytes / one.bytes_per_s:.0f} ms | "
                f"{1e3 * time:.0f} ms | {told} |"
            )
    slow = min(channels, key=lambda one: one.bytes_per_s).name
    told = {True: "as the paper says", False: "which is not what the paper says"}
    wide = total[slow, WIDE] / total[slow, DEEP]
    deep = total[FAST, DEEP] / total[FAST, WIDE]
    return [
        *lines, "",
        f"- Large gradients wait for bandwidth on slow links: on {slow}, {WIDE} waits {wide:.1f} "
        f"times as long as {DEEP}, {told[wide > 1]}.",
        f"- Deep models wait for latency on fast links: on {FAST}, {DEEP} waits {deep:.1f} times "
        f"as long as {WIDE}, {told[deep > 1]}.",
    ]  # fmt: skip


def spread_of(found: dict[Run, Profile]) -> float:
    """How much slower the slowest repetition of a step is than the fastest; the median."""
    times = [[*values.values()] for one in found.values() for values in one.times.values()]
    return float(np.median([max(some) / min(some) - 1 for some in times if len(some) > 1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "stalls-report")
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--docs-only", action="store_true", help="measure nothing")
    parser.add_argument("--macro", nargs="*", default=list(MODELS))
    parser.add_argument("--micro", nargs="*", default=list(MICRO))
    parser.add_argument("--rates", nargs="+", default=list(RATES), help="slowest first")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tries", type=int, default=4, help="of a launch that is disturbed")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--images", type=int, default=2048)
    options = parser.parse_args()
    (options.docs / "stalls").mkdir(parents=True, exist_ok=True)
    if not options.docs_only:
        options.work.mkdir(parents=True, exist_ok=True)
        try:
            measure(options)
        finally:  # stopped with Ctrl-C, what is there is packed
            pack(options, options.docs / PACK)
    found = profiles_of(options)
    fits, seen = fits_of(found)
    save(macro_picture(found, options), options.docs / "stalls" / "macro.png")
    save(micro_picture(found, options), options.docs / "stalls" / "micro.png")
    if fits:
        save(model_picture(fits), options.docs / "stalls" / "model.png")
        write_channels(fits, options.docs / "stalls" / "links.json")
    launches = [launch for one in found.values() for launch in one.launches.values()]
    busy, stolen = (max(getattr(launch, who) for launch in launches)
                    for who in ("other_cores", "stolen_cores"))  # fmt: skip
    lines = [
        "# Where the time of distributed training goes", "",
        "Made by `python scripts/stalls_report.py`. Measured on CPUs of one machine with Gloo: two "
        "processes of one core each, two network namespaces for two machines. Other programs used "
        f"up to {busy:.2f} cores meanwhile, other machines up to {stolen:.2f} (a launch that more "
        "was taken from was made again). The same step differs between repetitions by "
        f"{100 * spread_of(found):.0f} % (median over models and steps, largest over smallest): "
        "stalls of a few percent lie within that, and `~` marks them.", "",
        *example_section(found, options.docs),
        *macro_section(found, options),
        *micro_section(found, options),
        *model_section(fits, seen),
        *rented_section(options.docs),
    ]  # fmt: skip
    missing = {run.model for run in runs_of(options)} - {run.model for run in found}
    if missing:
        lines += [f"Not measured yet: {', '.join(sorted(missing))}."]
    text = "\n".join(lines).rstrip() + "\n"
    write_whole(options.docs / "stalls.md", text.encode(), error=DripleError)
    print(f"wrote {options.docs / 'stalls.md'}")


if __name__ == "__main__":
    main()
