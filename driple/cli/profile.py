"""`driple profile`: where the time of a PyTorch script goes, and what its links cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_torch
from driple.cli.numbers import BANDWIDTH_HELP, whole_number
from driple.cli.outputs import JsonOption, output_file, output_folder
from driple.cli.overrides import number, override, set_option, text, texts, whole
from driple.cli.profile_links import links
from driple.cli.progress import progress_bar
from driple.cli.stopping import ending_on_sigterm
from driple.render.remarks import sentences
from driple.render.show import note, print_json, print_table
from driple.units import counted, parse_rate, parse_whole_numbers

if TYPE_CHECKING:
    from driple.profiler.stall_profile import StallProfile
    from driple.profiler.steps import Plan

__all__ = ["profile_app"]

profile_app = typer.Typer(
    help="Where the time of a PyTorch training script goes (Stash).", rich_markup_mode=None
)
profile_app.command()(links)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a profile."""

    reads: tuple[str, ...] = texts("file or folder that the script reads; once for each")
    steps: str = text("1,2,3,4,5", "only these of the five steps, such as 1,2,5")
    bandwidth: str = text("", f"{BANDWIDTH_HELP}; namespaces then stand in for machines")
    repeats: int = whole(3, "repeated measurements, interleaved", 1, 1000)
    machines: int = whole(2, "machines that namespaces stand in for in step 5", 1, 1024)
    iterations: int = whole(10, "timed iterations of a launch", 2, 1_000_000)
    warmup: int = whole(5, "untimed iterations before them", 3, 1_000_000)
    tries: int = whole(3, "tries of a launch that is disturbed", 1, 1000)
    timeout: float = number(600.0, "seconds until a launch is stopped", above=0, most=1e6)


@profile_app.command("run")
def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- SCRIPT ARGS", help="training script, or -m MODULE, after --"),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="folder to write; continued if it is there",
            callback=output_folder,
        ),
    ] = (Path("runs/profile")),
    devices: Annotated[
        int | None,
        typer.Option(
            help="devices of this machine; default: its GPUs, or 2 of its CPUs",
            callback=whole_number(1, 1024),
        ),
    ] = None,
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
) -> None:
    """Profile a PyTorch training script, unchanged, in five steps.

    1 one device, 2 all devices, both on synthetic data; 3 real data with cleared caches, 4 the same
    cached; 5 several machines, synthetic. Interconnect stall = 2 - 1, network stall = 5 - 2, prep
    (CPU) stall = 4 - 2, fetch (disk) stall = 3 - 4. The script must train with
    DistributedDataParallel as torchrun starts it (rank and world size of the environment), from a
    DataLoader. Steps that this machine cannot run are left out and named. Stop it at any time; the
    same command continues. On several machines, start it with torchrun on each, one per machine.

    Examples:

      driple profile run --set reads=images/ -- train.py --batch-size 64 --data images/

      driple profile run --set bandwidth=100M -- -m driple.profiler.train resnet18

      torchrun --nnodes 2 --node-rank 0 --master-addr node0 --nproc-per-node 1
      -m driple profile run --set steps=1,2,5 -- train.py    (node-rank 1 on the other machine)
    """
    from driple.profiler.steps import STEPS

    values = override(_Values, set_)
    numbers = parse_whole_numbers("--set steps", values.steps, max(STEPS))
    bits_per_s = parse_rate("--set bandwidth", values.bandwidth) if values.bandwidth else None
    require_torch("profiling", extra="profiler")
    from driple.profiler.caches import check_data
    from driple.profiler.steps import Plan
    from driple.profiler.steps_runner import check_command, default_processes

    check_command(command or [])
    reads = [Path(place) for place in values.reads]
    check_data(reads)
    plan = Plan(
        processes=default_processes() if devices is None else devices,
        machines=values.machines,
        network_bits_per_s=bits_per_s,
        iterations=values.iterations,
        warmup=values.warmup,
        repeats=values.repeats,
        tries=values.tries,
        timeout_s=values.timeout,
    )
    profile = _profile(command or [], plan, output, reads, numbers)
    if profile is not None:
        _show(profile, json=json)


def _profile(
    command: list[str], plan: Plan, output: Path, reads: list[Path], steps: Sequence[int]
) -> StallProfile | None:
    """Profile with a progress bar; None on a machine that only takes part."""
    from driple.profiler.machines import JoinedMachines
    from driple.profiler.steps_runner import follow, profile_script

    with ending_on_sigterm():
        group = JoinedMachines.of_environment()
        if group is not None and group.rank:
            note(f"machine {group.rank} of {group.size}: waiting for machine 0")
            launches = follow(group, command, plan, output)
            note(
                f"machine {group.rank} took part in {launches} launches; machine 0 has the results"
            )
            return None
        with progress_bar() as bar:
            task = bar.add_task("profiling", total=None)
            return profile_script(
                command,
                plan,
                output,
                data=reads,
                steps=steps,
                group=group,
                progress=lambda what, done, total: bar.update(
                    task, description=what, completed=done, total=total
                ),
            )


@profile_app.command("show")
def show(
    profile: Annotated[Path, typer.Argument(help="folder of driple profile run")],
    json: JsonOption = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw where the time goes (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Show a profile again, whole or not.

    Example:

      driple profile show runs/profile --plot stalls.png
    """
    from driple.profiler.stall_profile import read_profile

    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    result = read_profile(profile)
    _show(result, json=json)
    if plot is not None:
        from driple.plot.stalls import plot_profile

        plot_profile(result, plot)
        note(f"wrote {plot}")


def _show(profile: StallProfile, *, json: bool) -> None:
    if json:
        print_json(profile.to_dict(), "profile")
    else:
        _print(profile)
    for warning in sentences(profile.warnings()):
        note(warning)


def _print(profile: StallProfile) -> None:
    """Tables of steps and stalls, and what was left out."""
    from driple.profiler.steps import DIFFERENCES, STEPS

    print(f"{' '.join(profile.about.command)}: {counted(profile.about.plan.processes, 'device')}")
    per_epoch, stalls = profile.batches_per_epoch, profile.stalls()
    rows = []
    for step, values in profile.times.items():
        seconds = sum(values.values()) / len(values)
        epoch = "" if per_epoch is None else f"{per_epoch * seconds:.1f} s"
        row = [f"{step}  {STEPS[step].title}", f"{1e3 * seconds:.1f} ms", epoch]
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
    for step, why in profile.left_out.items():
        print(f"step {step} was left out: {why}")
