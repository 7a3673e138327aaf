"""`driple stalls`: how much of training is waiting, for what, and which instance to rent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_torch
from driple.cli.numbers import finite_number, whole_number
from driple.cli.outputs import output_file, output_folder
from driple.cli.show import note, print_json, print_table, progress_bar
from driple.cli.stalls_links import fit, predict
from driple.cli.stopping import ending_on_sigterm
from driple.errors import ConfigError
from driple.units import parse_rate, parse_whole_numbers

if TYPE_CHECKING:
    from driple.profiler.stall_profile import StallProfile

__all__ = ["stalls_app"]

stalls_app = typer.Typer(
    help="How much of training is waiting, for what, and which instance to rent (Stash).",
    rich_markup_mode=None,
)

_MOST_TOKENS = 500_000_000  # 2 GB in memory

stalls_app.command()(fit)
stalls_app.command()(predict)


@stalls_app.command("run")
def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- SCRIPT ARGS", help="training script, or -m MODULE, after --"),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            help="folder of the profile; continued if it is there", callback=output_folder
        ),
    ] = (Path("runs/stalls")),
    processes: Annotated[
        int | None,
        typer.Option(
            help="devices of a machine; default: its GPUs, or 2 of its CPUs",
            callback=whole_number(1, 1024),
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="file or folder that the script reads; may be given several times"),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="rate of the links between namespaces that stand in for machines: 100M"),
    ] = None,
    machines: Annotated[
        int,
        typer.Option(help="that namespaces stand in for in step 5", callback=whole_number(1, 1024)),
    ] = 2,
    steps: Annotated[str, typer.Option(help="of the profile, such as 1,2,5")] = "1,2,3,4,5",
    iterations: Annotated[
        int, typer.Option(help="timed in a launch", callback=whole_number(2, 1_000_000))
    ] = 10,
    warmup: Annotated[
        int, typer.Option(help="iterations before them", callback=whole_number(3, 1_000_000))
    ] = 5,
    repeats: Annotated[
        int, typer.Option(help="launches of each step, interleaved", callback=whole_number(1, 1000))
    ] = 3,
    tries: Annotated[
        int,
        typer.Option(
            help="of a launch that other programs or machines disturb",
            callback=whole_number(1, 1000),
        ),
    ] = 3,
    timeout: Annotated[
        float, typer.Option(help="seconds for a launch", callback=finite_number(above=0, most=1e6))
    ] = 600.0,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw where the time goes (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Profile a PyTorch training script, unchanged, in five steps.

    1 one device, 2 all devices, both on synthetic data; 3 real data with cleared caches, 4 the same
    cached; 5 several machines, synthetic. Interconnect stall = 2 - 1, network stall = 5 - 2, prep
    (CPU) stall = 4 - 2, fetch (disk) stall = 3 - 4. The script must train with
    DistributedDataParallel as torchrun starts it (rank and world size of the environment), from a
    DataLoader. Steps that this machine cannot do are left out and named. Stop it at any time; the
    same command goes on. On several machines, let torchrun start it on each, one per machine.

    Examples:

      driple stalls run --data images/ -- train.py --batch-size 64 --data images/

      driple stalls run --network 100M --plot stalls.png -- -m driple.profiler.train resnet18

      torchrun --nnodes 2 --node-rank 0 --master-addr node0 --nproc-per-node 1
      -m driple.cli.main stalls run --steps 1,2,5 -- train.py    (node-rank 1 on the other machine)
    """
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    from driple.profiler.steps import STEPS

    numbers = parse_whole_numbers("--steps", steps, max(STEPS))
    bits_per_s = None if network is None else parse_rate("--network", network)
    require_torch("profiling")
    from driple.profiler.caches import check_data
    from driple.profiler.machines import Group
    from driple.profiler.steps import Plan
    from driple.profiler.steps_runner import (
        check_command,
        default_processes,
        follow,
        profile_script,
    )

    check_command(command or [])
    check_data(data or [])

    plan = Plan(
        processes=default_processes() if processes is None else processes,
        machines=machines,
        network_bits_per_s=bits_per_s,
        iterations=iterations,
        warmup=warmup,
        repeats=repeats,
        tries=tries,
        timeout_s=timeout,
    )
    with ending_on_sigterm():
        group = Group.of_environment()
        if group is not None and group.rank:
            note(f"machine {group.rank} of {group.size}: waiting for machine 0")
            launches = follow(group, command or [], plan, out)
            note(
                f"machine {group.rank} took part in {launches} launches; machine 0 has the results"
            )
            return
        with progress_bar() as bar:
            task = bar.add_task("profiling", total=None)
            profile = profile_script(
                command or [],
                plan,
                out,
                data=data or [],
                steps=numbers,
                group=group,
                progress=lambda what, done, total: bar.update(
                    task, description=what, completed=done, total=total
                ),
            )
    _show(profile, json=json, plot=plot)


@stalls_app.command("show")
def show(
    profile: Annotated[Path, typer.Argument(help="folder of driple stalls run")],
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw where the time goes (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Show a profile again, whole or not.

    Example:

      driple stalls show runs/stalls --plot stalls.png
    """
    from driple.profiler.stall_profile import read_profile

    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    _show(read_profile(profile), json=json, plot=plot)


@stalls_app.command("data")
def data_(
    place: Annotated[Path, typer.Argument(help="folder of images, or file of tokens (.npy)")],
    samples: Annotated[
        int, typer.Option(help="how many", callback=whole_number(1, 10_000_000))
    ] = 2048,
    image_size: Annotated[
        int, typer.Option(help="height and width, pixels", callback=whole_number(8, 4096))
    ] = 256,
    classes: Annotated[
        int,
        typer.Option(help="folders that images are spread over", callback=whole_number(1, 100_000)),
    ] = 10,
    length: Annotated[
        int, typer.Option(help="tokens of a sample", callback=whole_number(1, 1_000_000))
    ] = 128,
) -> None:
    """Generate data for the built-in workloads: JPEG images in class folders, or rows of tokens.

    Examples:

      driple stalls data images/ --samples 4096

      driple stalls data tokens.npy --length 384
    """
    if place.suffix == ".npy" and samples * length > _MOST_TOKENS:
        raise ConfigError(
            f"--samples {samples} of --length {length} are {samples * length} tokens, at most "
            f"{_MOST_TOKENS} are made; give fewer or shorter samples"
        )
    require_torch("making data")
    from driple.jobs.pytorch.samples import make_images, make_tokens

    if place.suffix == ".npy":
        make_tokens(place, samples, length)
    else:
        make_images(place, samples, image_size, classes)
    note(f"wrote {place}: {samples} samples")


def _show(profile: StallProfile, *, json: bool, plot: Path | None) -> None:
    if json:
        print_json(profile.to_dict())
    else:
        _print(profile)
    for warning in profile.warnings():
        note(warning)
    if plot is not None:
        from driple.plot.stalls import plot_profile

        plot_profile(profile, plot)
        note(f"wrote {plot}")


def _print(profile: StallProfile) -> None:
    """Tables of steps and stalls, and what was left out."""
    from driple.profiler.steps import DIFFERENCES, STEPS

    print(f"{' '.join(profile.about.command)}: {profile.about.plan.processes} devices")
    per_epoch, stalls = profile.batches_per_epoch, profile.stalls()
    rows = []
    for number, values in profile.times.items():
        seconds = sum(values.values()) / len(values)
        epoch = "" if per_epoch is None else f"{per_epoch * seconds:.1f} s"
        row = [f"{number}  {STEPS[number].title}", f"{1e3 * seconds:.1f} ms", epoch]
        rows.append([*row, str(len(values))])
    print_table(["step", "iteration", "epoch", "repetitions"], rows)
    rows = []
    for difference in DIFFERENCES:
        stall = stalls.get(difference.name)
        if stall is None:
            rows.append([difference.name, "not measured", "", "", ""])
            continue
        interval = "-"
        if stall.interval_s is not None:
            interval = " to ".join(f"{1e3 * bound:.1f}" for bound in stall.interval_s) + " ms"
        epoch = "" if per_epoch is None else f"{per_epoch * stall.seconds:.1f} s"
        share = f"{stall.pct:.1f} % of step {stall.base_step}"
        rows.append([difference.name, f"{1e3 * stall.seconds:.1f} ms", interval, epoch, share])
    print()
    print_table(["stall", "of an iteration", "95 % interval", "of an epoch", "share"], rows)
    cleared = {one.cleared for one in profile.launches.values() if one.cleared is not None}
    if cleared:
        print(f"caches were cleared with {' and '.join(sorted(cleared))}")
    print(f"the profiler itself took at most {profile.overhead_pct():.2f} % of a launch")
    for number, why in profile.left_out.items():
        print(f"step {number} was left out: {why}")
