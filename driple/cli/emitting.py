"""`--emit NAME`: an answer as the file of a scheduler, and how much `predict` is to train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from driple.errors import ConfigError
from driple.render.emit.forms import EMIT_HELP, ESTIMATOR, check_form, emitted
from driple.units import parse_count

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.api.predicting import PredictResult

__all__ = ["EmitOption", "TrainingAmount", "check_emit", "print_answers", "print_choice"]

EmitOption = Annotated[str | None, typer.Option(metavar="NAME", help=EMIT_HELP)]


class TrainingAmount:
    """How much is trained, as the options of `predict` state it.

    Args:
        steps: updates of the parameters.
        samples: of an epoch, as typed.
        tokens: of an epoch, as typed.
        epochs: of the samples; None if the user gave none.

    Raises:
        ConfigError: steps beside another amount, or a number that cannot be read.
    """

    def __init__(
        self, steps: int | None, samples: str | None, tokens: str | None, epochs: float | None
    ) -> None:
        from driple.planning.amount import AmountAsked

        others = {"--samples": samples, "--tokens": tokens, "--epochs": epochs}
        beside = [flag for flag, value in others.items() if value is not None]
        if steps is not None and beside:
            raise ConfigError(
                f"--training-steps and {beside[0]} both state the amount; give one of them"
            )
        self.steps = steps
        self.asked = None
        if beside:
            self.asked = AmountAsked(
                samples=None if samples is None else parse_count("--samples", samples),
                tokens=None if tokens is None else parse_count("--tokens", tokens),
                epochs=1.0 if epochs is None else epochs,
            )

    def check_used(self, emit: str | None) -> None:
        """Refuse an amount that nothing asks for, and --emit without one.

        Raises:
            ConfigError: which option is one too many, or is needed.
        """
        from driple.render.emit.scheduled_job import NEEDS_AMOUNT

        is_stated = self.steps is not None or self.asked is not None
        if emit is not None and not is_stated:
            raise ConfigError(NEEDS_AMOUNT)
        if emit is None and is_stated:
            raise ConfigError(
                "--training-steps, --samples, --tokens and --epochs are for --emit; driple plan "
                "answers how long a training takes"
            )


def check_emit(emit: str, *, json: bool) -> None:
    """Refuse a name that is none, or two outputs on stdout, before any work.

    Raises:
        ConfigError: which names there are, or that --json is there too.
    """
    check_form(emit)
    if json:
        raise ConfigError("--emit prints a file and --json an object; give one of them")


def print_answers(result: PredictResult, amount: TrainingAmount, emit: str) -> None:
    """The file of the one answer, or the estimator of all of them.

    Raises:
        ConfigError: several settings for one file, or what makes no scheduled job.
    """
    from driple.render.emit.scheduled_job import scheduled_answer

    answers = result.answers
    if len(answers) > 1 and emit != ESTIMATOR:
        raise ConfigError(f"--emit {emit} writes one file; give one --setting")
    jobs = [scheduled_answer(answer, amount.asked, amount.steps) for answer in answers]
    print(emitted(jobs, emit), end="")


def print_choice(result: PlanResult, emit: str) -> None:
    """The file of the recommended offer, or the estimator of all offers.

    Raises:
        ConfigError: nothing that was simulated is recommended.
    """
    from driple.render.emit.scheduled_job import scheduled_offers, scheduled_plan

    best = scheduled_plan(result)
    print(emitted([best, *scheduled_offers(result)], emit), end="")
