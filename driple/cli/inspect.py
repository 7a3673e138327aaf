"""`driple inspect`: what Driple sees of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import CatalogOption, JobArgument, MachineOption, job_options
from driple.cli.numbers import whole_number
from driple.cli.outputs import JsonOption, PageOption, check_apart, output_file
from driple.jobs.load import JobOptions
from driple.render.show import note, print_json

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult

__all__ = ["inspect"]


@job_options
def inspect(
    job: JobArgument,
    options: JobOptions,
    setting: Annotated[
        str | None, typer.Option(help="cluster setting whose device the times are of")
    ] = None,
    catalog: CatalogOption = None,
    machine: MachineOption = None,
    depth: Annotated[
        int, typer.Option(help="levels of modules to show", callback=whole_number(0, 100))
    ] = 2,
    top: Annotated[
        int,
        typer.Option(
            help="most kinds of op, and modules of a module, to show",
            callback=whole_number(0, 100_000),
        ),
    ] = 10,
    memory: Annotated[
        bool, typer.Option("--memory", help="show memory over a step in place of time")
    ] = False,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="trace of this job by torch.profiler (export_chrome_trace: .json, .json.gz): "
            "shows measured beside predicted times, and gaps",
        ),
    ] = None,
    html: PageOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="draw the memory over a step; implies --memory", callback=output_file),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show where the work of a training step is, and what Driple could not find out.

    FLOPs, bytes of memory that are read and written, and computing time on one device of the
    setting, without communication: by phase, by module and by kind of op. Parameters, gradients and
    optimizer. A TensorFlow graph has name scopes in place of modules.

    --memory shows what a device allocates over a step, by kind and by module at the peak.

    --measured sets a trace of the PyTorch profiler beside it: by phase, kind of op and module, and
    where the GPU has no kernel. Without --setting, predicted times are of the trace's GPU.

    Examples:

      driple inspect datasets/examples/resnet50.pbtxt

      driple inspect mobilenet_v2 --batch-size 64 --setting 1xH100 --depth 3

      driple inspect graph.pb --setting 2080Ti-P2w2/ho-40G --json

      driple inspect mobilenet_v2 --batch-size 64 --memory --plot memory.png

      driple inspect train.py:build_model --measured trace.json.gz
    """
    from driple.api.arguments import machine_of, own_setting
    from driple.api.inspecting import inspect as ask

    read = {"JOB": [Path(job)], "--measured": [] if measured is None else [measured]}
    check_apart({"--html": html, "--plot": plot}, read)
    if plot is not None:
        from driple.plot.memory import check_picture, plot_memory

        check_picture(plot)
        memory = True
    result = ask(
        job,
        setting,
        options=options,
        catalogs=catalog or (),
        machine=machine,
        depth=depth,
        memory=memory,
        measured=measured,
    )
    if plot is not None and result.memory is not None:
        plot_memory(result.memory, plot, title=_title(result))
    if html is not None:
        from driple.plot.inspect_page import page_text
        from driple.plot.page import write_text

        write_text(page_text(result), html)
        note(f"wrote {html}")
    if setting is None and own_setting(machine_of(machine)) is None:
        note(f"no --setting given; times are of {result.setting.name}")
    show_job(result.job, json=json)
    if json:
        print_json(result.to_dict())
        return
    from driple.render.inspect_tables import print_inspected
    from driple.render.memory_tables import print_memory

    if result.traced is not None:
        from driple.render.traced_tables import print_traced

        print_traced(result, result.traced, top)
    elif result.memory is not None:
        print_memory(result, result.memory, top)
    else:
        print_inspected(result, top)


def _title(result: InspectResult) -> str:
    """JOB, its batch and the setting."""
    job = result.job
    batch = "" if job.batch_size is None else f", batch {job.batch_size}"
    words = [one for one in (job.precision, job.optimizer) if one]
    how = f" ({', '.join(words)})" if words else ""
    return f"{job.name}{batch}{how} on one {result.setting.device} of {result.setting.name}"
