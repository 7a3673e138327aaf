"""`--emit NAME`: an answer as the file of a scheduler, and how much `predict` is to train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from driple.errors import ConfigError
from driple.render.emit.forms import EMIT_HELP, ESTIMATOR, PERFETTO, check_form, emitted
from driple.render.emit.scheduled_job import TrainingAmount
from driple.units import parse_count

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.api.predicting import PredictResult

__all__ = ["EmitOption", "amount_of_values", "check_emit", "print_answers", "print_choice"]

EmitOption = Annotated[str | None, typer.Option(metavar="NAME", help=EMIT_HELP)]


def amount_of_values(
    emit: str | None,
    steps: float | None,
    samples: str | None,
    tokens: str | None,
    epochs: float | None,
) -> TrainingAmount | None:
    """How much is trained, from the values of --set; None without --emit.

    Raises:
        ConfigError: an amount that nothing asks for, or --emit without one.
    """
    if emit is None:
        if any(value is not None for value in (steps, samples, tokens, epochs)):
            raise ConfigError(
                "--set training_steps, samples, tokens and epochs are for --emit; driple plan "
                "answers how long a training takes"
            )
        return None
    if emit == PERFETTO and all(value is None for value in (steps, samples, tokens, epochs)):
        return TrainingAmount(steps=1)
    return TrainingAmount(
        steps=steps,
        samples=None if samples is None else parse_count("--set samples", samples),
        tokens=None if tokens is None else parse_count("--set tokens", tokens),
        epochs=epochs,
    )


def check_emit(emit: str, *, json: bool, timeline: bool = False) -> None:
    """Refuse a name that is none, or two outputs on stdout, before any work.

    Args:
        emit: the name.
        json: whether --json is given.
        timeline: whether the command has a step to show.

    Raises:
        ConfigError: which names there are, or that --json is there too.
    """
    check_form(emit, timeline=timeline)
    if json:
        raise ConfigError("--emit prints a file and --json an object; give one of them")


def print_answers(result: PredictResult, amount: TrainingAmount, emit: str) -> None:
    """The file of the one answer, or the estimator or timelines of all of them.

    Raises:
        ConfigError: several settings for one file, or what makes no scheduled job or timeline.
    """
    from driple.render.emit.scheduled_job import scheduled_answer

    if emit == PERFETTO:
        from driple.render.emit.perfetto import perfetto_trace

        print(perfetto_trace(result.answers), end="")
        return

    answers = result.answers
    if len(answers) > 1 and emit != ESTIMATOR:
        raise ConfigError(f"--emit {emit} writes one file; give one --setting")
    jobs = [scheduled_answer(answer, amount) for answer in answers]
    print(emitted(jobs, emit), end="")


def print_choice(result: PlanResult, emit: str) -> None:
    """The file of the recommended offer, or the estimator of all offers.

    Raises:
        ConfigError: nothing that was simulated is recommended.
    """
    from driple.render.emit.scheduled_job import scheduled_offers, scheduled_plan

    best = scheduled_plan(result)
    print(emitted([best, *scheduled_offers(result)], emit), end="")
