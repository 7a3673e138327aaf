"""`driple throughput platform | profile | import`: what a prediction starts from."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.numbers import finite_number, whole_number
from driple.cli.outputs import output_file
from driple.cli.show import note, print_json
from driple.errors import ConfigError
from driple.units import parse_rate

if TYPE_CHECKING:
    from driple.async_sgd.jobtrace import JobTrace
    from driple.async_sgd.origin import PlatformRecord

__all__ = ["import_", "platform", "profile"]

_PLATFORM = "file of driple throughput platform: what links yield and what receiving costs"


def platform(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="file to write (.json)", callback=output_file),
    ] = None,
    rate: Annotated[str, typer.Option(help="of each link in bit/s")] = "200M",
    share: Annotated[
        float,
        typer.Option(
            help="cores that server and worker may use", callback=finite_number(above=0, most=1024)
        ),
    ] = 0.4,
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw costs and fitted line (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Measure what links yield and what receiving a tensor costs, once for each platform.

    A socket test tells the bandwidth; the time from a tensor's last packet until TensorFlow can use
    it, over its size, gives the line of the parsing overhead (Li et al., section 3.2.1).

    Examples:

      driple throughput platform --rate 200M -o platform.json --plot overhead.png
    """
    require_tensorflow("measuring a platform")
    from driple.checks import check_number
    from driple.codec import to_dict
    from driple.files import atomic_write
    from driple.measure.testbed.async_cluster import TurnCluster
    from driple.measure.testbed.link_benchmark import measure_platform
    from driple.plot.pattern import check_picture

    if plot is not None:
        check_picture(plot)
    check_number("--share", share, above=0)
    with TurnCluster(1, 1) as cluster:
        found = measure_platform(cluster, parse_rate("--rate", rate), share).record()
    if json:
        print_json(to_dict(found))
    else:
        line = found.overhead
        print(
            f"a connection gets {found.bytes_per_s / 1e6:.2f} of "
            f"{parse_rate('--rate', rate) / 8e6:.2f} MB/s\n"
            f"receiving costs {1e3 * line.s:.3f} ms and {1e9 * line.s_per_byte:.3f} ms for "
            f"each MB (R^2 {found.r_squared:.3f}, {len(found.sizes)} tensors)"
        )
    if output is not None:
        atomic_write(output, json_.dumps(to_dict(found)).encode(), error=ConfigError)
        note(f"wrote {output}")
    if plot is not None:
        from driple.plot.throughput import plot_overhead

        plot_overhead(found, plot)
        note(f"wrote {plot}")


def profile(
    workload: Annotated[str, typer.Argument(help="name of the zoo, see driple zoo list")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="job trace to write (.npz)", callback=output_file)
    ],
    setting: Annotated[str, typer.Option(help="CPU setting with one worker")] = "CPU-P1w1/ho-200M",
    steps: Annotated[
        int, typer.Option(help="steps to trace", callback=whole_number(2, 1000))
    ] = 100,
    share: Annotated[
        float,
        typer.Option(
            help="cores that the worker may use", callback=finite_number(above=0, most=1024)
        ),
    ] = 0.4,
    server_share: Annotated[
        float,
        typer.Option(
            help="cores that each server may use", callback=finite_number(above=0, most=1024)
        ),
    ] = 0.4,
    platform: Annotated[Path | None, typer.Option(help=_PLATFORM)] = None,
) -> None:
    """Train a workload with one worker on this machine, and trace its steps op by op.

    Needs what driple measure needs: root, iproute2, a C compiler and TensorFlow.

    Examples:

      driple throughput profile resnet20/cifar10/b32/sgd/async -o job.npz

      driple throughput profile vgg11-x0.25/cifar10/b32/sgd/async --setting CPU-P2w1 -o v.npz
    """
    from driple.cluster.setting import Setting
    from driple.jobs.names import workload_named
    from driple.measure.testbed.cluster import RunPlan
    from driple.measure.testbed.profile import profile_workload

    known = _read_platform(platform)
    job = workload_named(workload)
    require_tensorflow("profiling")
    plan = RunPlan(share=share, server_share=server_share)
    note(f"starting TensorFlow, then {steps} traced steps; this takes a minute or two")
    made = profile_workload(job, Setting.parse(setting), plan, steps)
    _write(made, known, output)


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="RunMetadata or Chrome timelines of successive steps, a step per file"),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="job trace to write (.npz)", callback=output_file)
    ],
    batch_size: Annotated[
        int, typer.Option(help="examples of a step", callback=whole_number(1, 10**9))
    ],
    bandwidth: Annotated[str, typer.Option(help="of the links in bit/s, such as 10G")],
    step_seconds: Annotated[
        float | None,
        typer.Option(
            help="of a step without tracing, if you measured it",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = None,
    platform: Annotated[Path | None, typer.Option(help=_PLATFORM)] = None,
) -> None:
    """Make a job trace from TensorFlow's own records of your job, with one worker.

    Run some steps with tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE,
    output_partition_graphs=True) and write each RunMetadata with SerializeToString().

    If only Chrome timelines are left, they must be made with show_memory=True; which tensor a
    transfer carried is then told from who read it, so RunMetadata is the better source.

    Examples:

      driple throughput import steps/*.pb --batch-size 64 --bandwidth 10G -o job.npz

      driple throughput import timeline-*.json --batch-size 64 --bandwidth 10G -o job.npz
    """
    known = _read_platform(platform)
    require_tensorflow("reading records of TensorFlow")
    from driple.measure.testbed.profile import read_recorded

    made = read_recorded(
        files,
        batch_size=batch_size,
        bytes_per_s=parse_rate("--bandwidth", bandwidth) / 8,
        step_s=step_seconds,
    )
    _write(made, known, output)


def _write(trace: JobTrace, platform: PlatformRecord | None, output: Path) -> None:
    """Write a trace, with what is known of its platform."""
    from dataclasses import replace

    from driple.async_sgd.jobtrace import write_job_trace

    if platform is not None:
        about = replace(trace.about, overhead=platform.overhead)
        trace = replace(trace, bytes_per_s=platform.bytes_per_s, about=about)
    write_job_trace(trace, output)
    left_out = trace.about.left_out_steps
    note(
        f"wrote {output}: {trace.num_steps} steps of {len(trace.names)} ops, "
        f"{float(trace.step_s.mean()):.3f} s each, {trace.num_servers} server(s)"
        + (f"; {left_out} step(s) without all transfers were left out" if left_out else "")
    )


def _read_platform(file: Path | None) -> PlatformRecord | None:
    """Bandwidth and overhead of a platform's file.

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    from driple.async_sgd.origin import PlatformRecord
    from driple.codec import from_json
    from driple.storedfiles import read_json

    if file is None:
        return None
    advice = "make one with driple throughput platform"
    try:
        found = read_json(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} is no file of a platform ({error}); {advice}") from error
    return from_json(PlatformRecord, found, where=f"{file} is no file of a platform", advice=advice)
