"""`driple predict`: how a job will use a setting, by the method that answers best or by all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from driple.answers.options import LEAST_STEPS, MOST_STEPS
from driple.checks import MOST_SEED
from driple.cli.emitting import EmitOption, amount_of_values, check_emit, print_answers
from driple.cli.jobnotes import show_doubts, show_job
from driple.cli.joboptions import (
    LINK_BANDWIDTH_HELP,
    CatalogOption,
    EngineOption,
    MachineOption,
    SettingOption,
    job_options,
)
from driple.cli.outputs import JsonOption, PageOption, check_apart, output_file
from driple.cli.overrides import number, override, set_option, text, whole
from driple.engine.engine import MOST_WORKERS
from driple.errors import ConfigError
from driple.jobs.load import JOB_HELP, JobOptions
from driple.render.remarks import sentences
from driple.render.show import note, print_json, print_target_rows

if TYPE_CHECKING:
    from driple.api.predicting import Answer, AnswerMethod, PredictResult
    from driple.cluster.setting import Setting

__all__ = ["predict"]


_MOST_STEPS = 10**12


@dataclass(frozen=True, kw_only=True, slots=True)
class _Values:
    """What few users change of a prediction."""

    preset: str = text("default", "which inspector of the setting: default or paper")
    steps: int | None = whole(
        None,
        "simulated steps of a ring or of synchronous workers; 100",
        LEAST_STEPS,
        MOST_STEPS,
    )
    seed: int = whole(0, "random seed of the simulated step-time jitter", 0, MOST_SEED)
    placement: str = text("round_robin", "variables on servers: in turn, or greedy by bytes")
    host_us_per_op: float | None = number(
        None,
        "microseconds of the host to hand one op to a GPU, for --method simulator; that of "
        "published runs, about 14",
        above=0,
        most=1e6,
    )
    host: str | None = text(
        None, "host.json of driple measure --calibrate: answers of a measured setting for this host"
    )
    datasets: str | None = text(
        None, "folder of data sets with measured values, for --method all; ./datasets"
    )
    training_steps: int | None = whole(
        None, "with --emit: updates of the parameters in the whole training", 1, _MOST_STEPS
    )
    samples: str | None = text(None, "with --emit: samples of an epoch, such as 50000 or 1.2M")
    tokens: str | None = text(None, "with --emit: tokens of an epoch, in place of samples")
    epochs: float | None = number(None, "with --emit: epochs", above=0, most=1e9)
    processes: int = whole(2, "with --jobs: parallel processes", 1, MOST_WORKERS)


@job_options
def predict(
    context: typer.Context,
    options: JobOptions,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help=JOB_HELP)] = None,
    setting: SettingOption = None,
    catalog: CatalogOption = None,
    machine: MachineOption = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto (of GPUs alone or with all-reduce the simulator; else the inspector of the "
            "setting, or the simulator where there is none or it would guess), inspector, "
            "simulator, analytic (closed forms), or all"
        ),
    ] = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="a checkpoint file of an inspector, in place of --setting"),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="how the devices of --setting share the work: ddp (each has all parameters), "
            "zero1, zero2, fsdp (ZeRO-3), hsdp (fsdp within machines), hierarchical; tp2-pp4 for "
            "tensor and pipeline parallelism"
        ),
    ] = None,
    link_bandwidth: Annotated[
        str | None, typer.Option(metavar="RATE|FILE", help=LINK_BANDWIDTH_HELP)
    ] = None,
    measured: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="REC",
            help="folder of driple record of this job: shows what was measured beside the answer; "
            "once for each host",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="parts of the step, the twelve numbers, workers, errors and sources"
        ),
    ] = False,
    emit: EmitOption = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="JOBS.jsonl",
            help='in place of JOB: a file with lines such as {"job": "resnet50", "setting": '
            '"8xH100", "batch_size": 64}; an interrupted run goes on where it was',
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="with --jobs: file to write, .jsonl or .parquet, a row for each answer",
            callback=output_file,
        ),
    ] = None,
    engine: EngineOption = "local",
    set_: Annotated[list[str] | None, set_option(_Values)] = None,
    json: JsonOption = False,
    html: PageOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="draw the pattern, the workers, the parts, or all methods (.png, .svg, .pdf)",
            callback=output_file,
        ),
    ] = None,
) -> None:
    """Predict how the training job JOB will use its cluster, before anyone runs it.

    The twelve utilisation numbers and the time of an iteration, each with its interval. With
    --method all, every method answers side by side, with the measured time where a data set
    has this very graph; methods that cannot all be right are named, and the one to trust.

    Examples:

      driple predict datasets/examples/resnet50.pbtxt

      driple predict graph.pb.gz --setting 2080Ti --setting CPU-P1w2 --json

      driple predict mobilenet_v2 --setting V100-R8/ho-NVLink

      driple predict graph.pbtxt --catalog mine.toml --setting 1xMyGPU

      driple predict train.py:build --setting 8xH100 --scheme fsdp

      driple predict timm:resnet50 --setting 2x8xV100/NVLink+25G --link-bandwidth 1.2GB/s

      driple predict train.py:build --setting 8xH100 --measured runs/record

      driple predict graph.pbtxt --setting V100-P1w2 --method all --plot methods.png

      driple predict resnet50 --setting 8xH100 --set epochs=90 --emit slurm

      driple predict --jobs jobs.jsonl -o answers.parquet

      driple predict resnet50 --setting 8xH100 --emit perfetto
    """
    from driple.api.arguments import machine_of, own_setting
    from driple.api.predicting import predict as ask
    from driple.cluster.setting import parse_setting

    values = override(_Values, set_)
    if jobs is not None:
        from driple.cli.predict_jobs import check_alone, run_jobs

        check_alone(context, set_)
        run_jobs(
            jobs,
            output,
            engine=engine,
            workers=values.processes,
            catalogs=catalog or (),
            machine=machine,
            json=json,
        )
        return
    if job is None:
        raise ConfigError("give a JOB, such as resnet50, or a file of jobs with --jobs")
    if output is not None:
        raise ConfigError("-o is for --jobs; answers about one JOB go to stdout")
    amount = amount_of_values(
        emit, values.training_steps, values.samples, values.tokens, values.epochs
    )
    if emit is not None:
        check_emit(emit, json=json, timeline=True)
    if plot is not None:
        from driple.plot.pattern import check_picture

        check_picture(plot)
    check_apart({"--html": html, "--plot": plot}, {"JOB": [Path(job)], "--catalog": catalog or []})
    wanted = [parse_setting(name, catalog or (), machine) for name in setting or ()]
    if scheme is not None:
        wanted = _with_scheme(wanted, scheme)
    result = ask(
        job,
        wanted or None,
        method=cast("AnswerMethod", method),
        options=options,
        preset=values.preset,
        checkpoint=checkpoint,
        num_steps=values.steps,
        seed=values.seed,
        placement=values.placement,
        host_us_per_op=values.host_us_per_op,
        host=values.host,
        link_bandwidth=link_bandwidth,
        measured=measured or (),
        datasets=values.datasets,
        catalogs=catalog or (),
        machine=machine,
    )
    answers = result.answers
    untimed = any(answer.best is None for answer in answers)
    if plot is not None:
        for answer in answers:
            answer.job.require_decided("time", "a picture")
    if checkpoint is None and not setting and own_setting(machine_of(machine)) is None:
        note(f"no --setting given; predicting for {answers[0].setting.name}")
    show = show_job if (explain or method == "all") and not untimed else show_doubts
    show(answers[0].job, json=json)
    _note_inspectors(answers)
    _write_files(result, plot, html)
    if emit is not None and amount is not None:
        print_answers(result, amount, emit)
        return
    if json:
        print_json(result.to_dict())
        return
    _print_all(answers, method, untimed=untimed, explain=explain)


def _write_files(result: PredictResult, plot: Path | None, html: Path | None) -> None:
    """The picture and the page, where they were asked for."""
    if plot is not None:
        _draw(result.answers, plot)
        note(f"wrote {plot}")
    if html is not None:
        from driple.plot.page import write_text
        from driple.plot.predict_page import page_text

        write_text(page_text(result), html)
        note(f"wrote {html}")


def _print_all(answers: Sequence[Answer], method: str, *, untimed: bool, explain: bool) -> None:
    """The answers as they were asked for, then the record beside each."""
    if untimed:
        _print(answers)
    elif method == "all":
        from driple.render.predict_explain import print_compared

        print_compared(answers)
    elif explain:
        from driple.render.predict_explain import print_explained

        for answer in answers:
            print_explained(answer)
    else:
        _print(answers)
    for answer in answers:
        if answer.measured is not None:
            from driple.render.measured_table import print_measured

            print_measured(answer.measured)


def _note_inspectors(answers: Sequence[Answer]) -> None:
    """What inspectors say besides, on stderr."""
    for answer in answers:
        if answer.method == "inspector" and answer.prediction is not None:
            for words in sentences(answer.prediction.remarks):
                note(f"{words} ({answer.setting.name})")
            if answer.prediction.provenance == "measured" and answer.host is None:
                note(
                    "machines of one kind differ: driple measure --calibrate brings the answer to "
                    "yours, with a narrower interval (--set host=FILE)"
                )


def _print(answers: Sequence[Answer]) -> None:
    """Eight lines of each answer; the twelve numbers where servers or a graph ask for them."""
    from driple.render.answer_lines import answer_lines, shows_targets

    for answer in answers:
        if answer is not answers[0]:
            print()
        for line in answer_lines(answer):
            print(line)
        if shows_targets(answer) and answer.targets is not None:
            prediction = answer.prediction
            ends = (
                None if prediction is None or prediction.ends is None else prediction.ends.tolist()
            )
            print_target_rows(answer.targets, ends)


def _with_scheme(settings: list[Setting], scheme: str) -> list[Setting]:
    """The settings with the scheme of --scheme.

    Raises:
        ConfigError: no setting that the scheme could belong to.
        SettingError: no such scheme, or one that does not fit a setting.
    """
    from driple.api.arguments import with_asked_scheme

    if not settings:
        raise ConfigError("--scheme needs --setting, such as --setting 8xH100 --scheme fsdp")
    return with_asked_scheme(settings, scheme)


def _draw(answers: tuple[Answer, ...], plot: Path) -> None:
    """A picture of all answers if one kind of picture shows them all."""
    title, methods = answers[0].job.name, {one.method for one in answers}
    if methods == {"inspector"}:
        _draw_inspectors(answers, plot, title)
    elif methods == {"all"}:
        from driple.plot.compare import plot_compared
        from driple.render.method_words import METHOD_WORDS

        bars = [
            (one.setting.name, one.compared.answers) for one in answers if one.compared is not None
        ]
        plot_compared(bars, METHOD_WORDS, plot, title=title)
    elif len(answers) > 1:
        raise ConfigError("--plot draws one setting of this method; give one --setting")
    elif answers[0].simulation is not None:
        made_by = answers[0].simulation
        if made_by.step is not None:
            from driple.plot.step import plot_step

            plot_step(
                made_by.step,
                plot,
                title=f"{title} on {made_by.setting.name}: simulated",
                interval=answers[0].iteration_time_s.interval,
            )
        else:
            from driple.plot.timeline import plot_timeline

            plot_timeline(made_by, plot, title=title)
    else:
        from driple.plot.closed_forms import plot_parts
        from driple.render.method_words import METHOD_WORDS

        parts = [
            (METHOD_WORDS[one.method], one.form.parts_s) for one in answers[0].forms if one.form
        ]
        plot_parts(parts, plot, title=f"{title} on {answers[0].setting.name}")


def _draw_inspectors(answers: tuple[Answer, ...], plot: Path, title: str) -> None:
    """One step on one GPU setting; else the patterns of all settings, to compare."""
    from driple.plot.pattern import plot_predictions
    from driple.plot.step import plot_step

    step = answers[0].step() if len(answers) == 1 else None
    predictions = [one.prediction for one in answers if one.prediction is not None]
    if step is None:
        plot_predictions(predictions, plot, title=title)
    else:
        heading = f"{title} on {answers[0].setting.name}: predicted"
        interval = answers[0].iteration_time_s.interval
        plot_step(step, plot, title=heading, interval=interval, prediction=predictions[0])
