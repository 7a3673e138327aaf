"""`driple trace link | profile | import`: what a prediction starts from."""

from __future__ import annotations

import json as json_
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.extras import require_tensorflow
from driple.cli.numbers import BANDWIDTH_HELP, finite_number, whole_number
from driple.cli.outputs import JsonOption, output_file
from driple.cli.overrides import number, override, set_option, whole
from driple.errors import ConfigError
from driple.render.show import note, print_json
from driple.units import counted, parse_rate

if TYPE_CHECKING:
    from driple.api.json_types.commands import TraceJson
    from driple.async_sgd.jobtrace import JobTrace
    from driple.async_sgd.origin import PlatformRecord

__all__ = ["trace_app"]

_LINK = "file of driple trace link: rate of the links, and what receiving a tensor costs"

trace_app = typer.Typer(
    help="Traces of one worker, from which driple sweep predicts asynchronous training.",
    rich_markup_mode=None,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _RunValues:
    """What few users change of a traced run."""

    steps: int = whole(100, "training steps to trace", 2, 1000)
    share: float = number(0.4, "cores of the worker", above=0, most=1024)
    server_share: float = number(0.4, "cores of each server", above=0, most=1024)


@dataclass(frozen=True, kw_only=True, slots=True)
class _LinkValues:
    """What few users change of a link benchmark."""

    share: float = number(0.4, "cores of server and worker", above=0, most=1024)


@trace_app.command("run")
def run(
    workload: Annotated[str, typer.Argument(help="name in the catalogue, see driple jobs list")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="file to write (.npz)", callback=output_file)
    ],
    setting: Annotated[str, typer.Option(help="CPU setting with one worker")] = "CPU-P1w1/ho-200M",
    link: Annotated[Path | None, typer.Option(help=_LINK)] = None,
    set_: Annotated[list[str] | None, set_option(_RunValues)] = None,
    json: JsonOption = False,
) -> None:
    """Train a workload with one worker on this machine, and trace its steps op by op.

    Needs what driple measure needs: root, iproute2, a C compiler and TensorFlow.

    Examples:

      driple trace run resnet20/cifar10/b32/sgd/async -o job.npz

      driple trace run vgg11-x0.25/cifar10/b32/sgd/async --setting CPU-P2w1 -o v.npz
    """
    from driple.cluster.setting import Setting
    from driple.jobs.names import workload_named
    from driple.measure.testbed.cluster import RunPlan
    from driple.measure.testbed.profile import profile_workload

    values = override(_RunValues, set_)
    known = _read_platform(link)
    job = workload_named(workload)
    require_tensorflow("tracing")
    plan = RunPlan(share=values.share, server_share=values.server_share)
    note(f"starting TensorFlow, then {values.steps} traced steps; this takes a minute or two")
    trace = profile_workload(job, Setting.parse(setting), plan, values.steps)
    _write(trace, known, output, json=json)


@trace_app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="RunMetadata or Chrome timelines of successive steps, a step per file"),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="file to write (.npz)", callback=output_file)
    ],
    batch_size: Annotated[
        int, typer.Option(help="samples of a worker in a step", callback=whole_number(1, 10**9))
    ],
    bandwidth: Annotated[str, typer.Option(help=BANDWIDTH_HELP)],
    step_s: Annotated[
        float | None,
        typer.Option(
            help="seconds of a step without tracing, if you measured it",
            callback=finite_number(above=0, most=1e6),
        ),
    ] = None,
    link: Annotated[Path | None, typer.Option(help=_LINK)] = None,
    json: JsonOption = False,
) -> None:
    """Make a trace from TensorFlow's own records of your job, with one worker.

    Run some steps with tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE,
    output_partition_graphs=True) and write each RunMetadata with SerializeToString().

    If only Chrome timelines are left, they must be made with show_memory=True. A timeline does not
    name the tensor of a transfer, and Driple infers it from the reader: RunMetadata is the better
    source.

    Examples:

      driple trace import steps/*.pb --batch-size 64 --bandwidth 10G -o job.npz

      driple trace import timeline-*.json --batch-size 64 --bandwidth 10G -o job.npz
    """
    known = _read_platform(link)
    require_tensorflow("reading records of TensorFlow")
    from driple.measure.testbed.profile import read_recorded

    trace = read_recorded(
        files,
        batch_size=batch_size,
        bytes_per_s=parse_rate("--bandwidth", bandwidth) / 8,
        step_s=step_s,
    )
    _write(trace, known, output, json=json)


@trace_app.command("link")
def link(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="file to write (.json)", callback=output_file),
    ] = None,
    bandwidth: Annotated[str, typer.Option(help=BANDWIDTH_HELP)] = "200M",
    set_: Annotated[list[str] | None, set_option(_LinkValues)] = None,
    json: JsonOption = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw costs and fitted line (.png, .svg, .pdf)", callback=output_file),
    ] = None,
) -> None:
    """Measure the rate of a link and the cost of receiving a tensor, once for each platform.

    A socket test measures the rate. The time from a tensor's last packet until TensorFlow can use
    it, over its size, gives the line of the parsing overhead (Li et al., section 3.2.1).

    Example:

      driple trace link --bandwidth 200M -o link.json --plot overhead.png
    """
    values = override(_LinkValues, set_)
    bits_per_s = parse_rate("--bandwidth", bandwidth)
    require_tensorflow("measuring a link")
    from driple.codec import to_dict
    from driple.files import atomic_write
    from driple.measure.testbed.async_cluster import TurnCluster
    from driple.measure.testbed.link_benchmark import measure_platform
    from driple.plot.pattern import check_picture

    if plot is not None:
        check_picture(plot)
    with TurnCluster(1, 1) as cluster:
        platform = measure_platform(cluster, bits_per_s, values.share).record()
    if json:
        print_json(to_dict(platform), "platform")
    else:
        line = platform.overhead
        print(
            f"a connection gets {platform.bytes_per_s / 1e6:.2f} of {bits_per_s / 8e6:.2f} MB/s\n"
            f"receiving costs {1e3 * line.s:.3f} ms and {1e9 * line.s_per_byte:.3f} ms for "
            f"each MB (R^2 {platform.r_squared:.3f}, {len(platform.sizes)} tensors)"
        )
    if output is not None:
        atomic_write(output, json_.dumps(to_dict(platform)).encode(), error=ConfigError)
        note(f"wrote {output}")
    if plot is not None:
        from driple.plot.throughput import plot_overhead

        plot_overhead(platform, plot)
        note(f"wrote {plot}")


def _write(trace: JobTrace, platform: PlatformRecord | None, output: Path, *, json: bool) -> None:
    """Write a trace, with what is known of its platform."""
    from dataclasses import replace

    from driple.async_sgd.jobtrace import write_job_trace
    from driple.estimate import estimate

    if platform is not None:
        about = replace(trace.about, overhead=platform.overhead)
        trace = replace(trace, bytes_per_s=platform.bytes_per_s, about=about)
    write_job_trace(trace, output)
    left_out = trace.about.left_out_steps
    note(
        f"wrote {output}: {trace.num_steps} steps of {len(trace.names)} ops, "
        f"{float(trace.step_s.mean()):.3f} s each, {counted(trace.num_servers, 'server')}"
        + (f"; {counted(left_out, 'step')} without all transfers left out" if left_out else "")
    )
    if json:
        written: TraceJson = {
            "trace": str(output),
            "steps": trace.num_steps,
            "ops": len(trace.names),
            "iteration_time_s": estimate(float(trace.step_s.mean()), "measured", "measured"),
            "servers": trace.num_servers,
            "left_out_steps": left_out,
        }
        print_json(written, "trace")


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
    advice = "make one with driple trace link -o link.json"
    try:
        stored = read_json(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} is no file of driple trace link ({error}); {advice}") from error
    return from_json(
        PlatformRecord, stored, where=f"{file} is no file of driple trace link", advice=advice
    )
