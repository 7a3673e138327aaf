"""The profiles of scripts/stalls_report.py: which there are, and measuring what is not there yet.

What is measured (Stash, sections V and VI): the five steps for each model of Table II with one and
two processes of a core each, and two namespaces at three rates; for the models of figure 16 the
steps on synthetic data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from driple.cli.rates import rate_of
from driple.cli.show import progress_bar
from driple.errors import DripleError
from driple.stalls.profiler import profile_script
from driple.stalls.samples import make_images, make_tokens
from driple.stalls.steps import Plan
from driple.stalls.workloads import MACRO, WORKLOADS

__all__ = ["MODELS", "RATES", "Run", "measure", "runs_of"]

# BERT-large has 1.3 GB of gradients, 54 s of a link of 200 Mbit/s: BERT-base stands in for it.
MODELS = tuple("bert-base" if name == "bert-large" else name for name in MACRO)
RATES = ("200M", "1G", "5G")
TOKENS = 32  # of a sample, and a batch a quarter as large: a core does 0.2 TFLOP/s at best


@dataclass(frozen=True)
class Run:
    """One profile of the campaign."""

    model: str
    rate: str
    steps: tuple[int, ...]
    kind: str  # macro or micro

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.model}-{self.rate}"


def runs_of(options: argparse.Namespace) -> Iterator[Run]:
    """All profiles; the first rate of a model has the steps with real data."""
    for model in options.macro:
        for i, rate in enumerate(options.rates):
            yield Run(model, rate, (1, 2, 3, 4, 5) if i == 0 else (1, 2, 5), "macro")
    for model in options.micro:
        if model not in options.macro:
            for rate in options.rates[:2]:
                yield Run(model, rate, (1, 2, 5), "micro")


def command_of(run: Run, options: argparse.Namespace) -> list[str]:
    """The training script's."""
    train = ["-m", "driple.stalls.train", run.model, "--epochs", "1000000"]
    if WORKLOADS[run.model].kind == "tokens":
        train += ["--length", str(TOKENS), "--batch-size", str(max(options.batch_size // 4, 1))]
        data = options.work / "tokens.npy"
    else:
        train += ["--image-size", str(options.image_size), "--batch-size", str(options.batch_size)]
        data = options.work / "images"
    return [*train, "--data", str(data)] if 3 in run.steps else train


def measure(options: argparse.Namespace) -> None:
    """Run what is not there yet."""
    tokens, images = options.work / "tokens.npy", options.work / "images"
    if not images.is_dir():
        make_images(images, options.images, 2 * options.image_size)
    if not tokens.exists():
        make_tokens(tokens, options.images, TOKENS)
    wanted = [*runs_of(options)]
    with progress_bar() as bar:
        task = bar.add_task("measuring", total=len(wanted))
        for done, run in enumerate(wanted):
            plan = Plan(
                processes=2,
                network_bits_per_s=rate_of("--rates", run.rate),
                iterations=options.iterations,
                warmup=options.warmup,
                repeats=options.repeats,
                timeout_s=3600,
            )
            data = [tokens if WORKLOADS[run.model].kind == "tokens" else images]
            bar.update(task, description=run.name, completed=done)
            try:
                profile_script(
                    command_of(run, options),
                    plan,
                    options.work / run.name,
                    data=data if 3 in run.steps else [],
                    steps=run.steps,
                )
            except DripleError as error:
                bar.console.print(f"{run.name}: {error}", highlight=False)
        bar.update(task, completed=len(wanted))
