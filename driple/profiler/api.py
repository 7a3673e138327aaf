"""`driple.profiler.profile`: the five steps for a model and a data set that functions build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from driple.jobs.import_path import reference_of
from driple.profiler.stall_profile import StallProfile
from driple.profiler.steps import STEPS, Plan
from driple.profiler.steps_runner import Progress, default_processes, profile_script

__all__ = ["profile"]


def profile(
    build_model: Callable[[], Any],
    build_dataset: Callable[[], Any],
    *,
    batch_size: int,
    out: Path | str,
    loss: Callable[..., Any] | None = None,
    workers: int = 0,
    processes: int | None = None,
    network_bits_per_s: float | None = None,
    data: Sequence[Path | str] = (),
    steps: Sequence[int] = tuple(STEPS),
    iterations: int = 10,
    warmup: int = 5,
    repeats: int = 3,
    tries: int = 3,
    timeout_s: float = 600.0,
    progress: Progress = lambda *_: None,
) -> StallProfile:
    """Profile synchronous data-parallel training of a model on a data set.

    Args:
        build_model: returns a `torch.nn.Module`; a function at the top level of a module or script,
            since other processes call it.
        build_dataset: returns a `torch.utils.data.Dataset` of (input, label); likewise top-level.
        batch_size: samples per process and iteration.
        out: folder of the profile; an existing profile is continued.
        loss: loss function of outputs and labels, likewise top-level; cross entropy by default.
        workers: data-loading processes per training process.
        processes: number of devices; by default this machine's GPUs, or two of its CPUs.
        network_bits_per_s: rate of the links between namespaces that emulate machines.
        data: files or folders that the data set reads.
        steps: numbers of the steps to run.
        iterations: timed iterations per launch.
        warmup: warm-up iterations per launch.
        repeats: launches of each step.
        tries: maximum tries of a launch that other programs or machines disturb.
        timeout_s: launch timeout, seconds.
        progress: called before each launch with a description, launches done, total launches.

    Raises:
        ConfigError: a function that other processes cannot import, or an invalid option.
        MeasureError: training crashed, hung or cannot be profiled; finished launches are kept.
    """
    command = [
        "-m", "driple.profiler.train",
        "--model", reference_of("build_model", build_model),
        "--dataset", reference_of("build_dataset", build_dataset),
        "--batch-size", str(batch_size),
        "--workers", str(workers),
    ]  # fmt: skip
    if loss is not None:
        command += ["--loss", reference_of("loss", loss)]
    plan = Plan(
        processes=default_processes() if processes is None else processes,
        network_bits_per_s=network_bits_per_s,
        iterations=iterations,
        warmup=warmup,
        repeats=repeats,
        tries=tries,
        timeout_s=timeout_s,
    )
    places = [Path(place) for place in data]
    return profile_script(command, plan, Path(out), data=places, steps=steps, progress=progress)
