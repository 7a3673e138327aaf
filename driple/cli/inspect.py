"""`driple inspect`: what Driple sees of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from driple.cli.jobnotes import show_job
from driple.cli.joboptions import CatalogOption, JobArgument, job_options
from driple.cli.numbers import whole_number
from driple.cli.show import note, print_json
from driple.jobs.load import JobOptions

__all__ = ["inspect"]


@job_options
def inspect(
    job: JobArgument,
    options: JobOptions,
    setting: Annotated[
        str | None, typer.Option(help="cluster setting whose device the times are of")
    ] = None,
    catalog: CatalogOption = None,
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
    json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Show where the work of a training step is, and what Driple could not find out.

    FLOPs, bytes of memory that are read and written, and computing time on one device of the
    setting, without communication: by phase, by module and by kind of op. Parameters, gradients and
    optimizer. A TensorFlow graph has name scopes in place of modules.

    Examples:

      driple inspect datasets/examples/resnet50.pbtxt

      driple inspect mobilenet_v2 --batch-size 64 --setting 1xH100 --depth 3

      driple inspect graph.pb --setting 2080Ti-P2w2/ho-40G --json
    """
    from driple.api.inspecting import inspect as ask

    result = ask(job, setting, options=options, catalogs=catalog or (), depth=depth)
    if setting is None:
        note(f"no --setting given; times are of {result.setting.name}")
    show_job(result.job, json=json)
    if json:
        print_json(result.to_dict())
        return
    from driple.cli.inspect_tables import print_inspected

    print_inspected(result, top)
