"""`driple predict --jobs`: a file of jobs and clusters, answered line by line.

JOBS.jsonl, -o OUT -> driple.api.predict_jobs -> a row for each answer, in the order of lines
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from driple.checks import check_choice
from driple.cli.outputs import check_apart
from driple.cli.progress import progress_bar
from driple.errors import ConfigError
from driple.render.show import note, print_json
from driple.units import counted

__all__ = ["check_alone", "run_jobs"]

_BESIDE = {"jobs", "output", "engine", "catalog", "machine", "json", "set_"}
_PROCESSES = "processes"


def check_alone(context: typer.Context, set_: Sequence[str] | None) -> None:
    """Refuse what lines state themselves.

    Args:
        context: of the command, which knows what was typed.
        set_: values of `--set`.

    Raises:
        ConfigError: which option.
    """
    typed = [
        parameter
        for parameter in context.command.params
        if parameter.name not in _BESIDE
        and str(context.get_parameter_source(parameter.name or "")).endswith("COMMANDLINE")
    ]
    names = [max(parameter.opts, key=len) for parameter in typed]
    names += [
        f"--set {name}"
        for name in (words.partition("=")[0] for words in set_ or ())
        if name.strip() != _PROCESSES
    ]
    if names:
        shown = "JOB" if names[0] == "job" else names[0]
        raise ConfigError(
            f"{shown} is stated by each line of --jobs, such as "
            '{"job": "resnet50", "setting": "8xH100", "batch_size": 64}; leave it out'
        )


def run_jobs(
    jobs: Path,
    output: Path | None,
    *,
    engine: str,
    workers: int,
    catalogs: Sequence[Path],
    machine: Path | None,
    json: bool,
) -> None:
    """Answer the lines, and say what was written.

    Raises:
        ConfigError: no output, or that of another file that is read.
    """
    from driple.api.predicting_jobs import predict_jobs
    from driple.engine.engine import ENGINES

    check_choice("--engine", engine, ENGINES)
    if output is None:
        raise ConfigError("--jobs needs -o OUT.jsonl or -o OUT.parquet")
    inputs = {"--jobs": [jobs], "--catalog": catalogs}
    check_apart({"-o": output}, inputs | {"--machine": [] if machine is None else [machine]})
    with progress_bar() as bar:
        task = bar.add_task("predicting", total=None)
        result = predict_jobs(
            jobs,
            output,
            engine=engine,
            workers=workers,
            catalogs=catalogs,
            machine=machine,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if result.resumed_at:
        note(f"went on after {counted(result.resumed_at, 'line')} of an interrupted run")
    errors = f", {counted(result.errors, 'error')}" if result.errors else ""
    note(f"wrote {result.output}: {counted(result.answers, 'row')}{errors}")
    if json:
        print_json(result.to_dict())
