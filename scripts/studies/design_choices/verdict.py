"""Verdict of labels on a design choice of the paper, from errors over the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scripts.studies.design_choices.run import SEEDS

Errors = dict[str, list[float]]  # NRMSE over seeds, by option of a choice


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict of labels on a choice of the paper, after the longest training.

    Attributes:
        epochs: of that training, in words.
        agrees: the paper's choice is best here, too; None where the labels do not decide.
        best: the option with the least error.
        more_pct: how much more error the paper's choice has than the best; if it is the best, how
            much more the second has.
        second: the option that comes next.
    """

    epochs: str
    agrees: bool | None
    best: str
    second: str
    more_pct: float

    @classmethod
    def of(cls, by_epochs: dict[str, Errors], paper: str) -> Verdict | None:
        """None without all seeds of the paper's choice and another."""
        epochs, errors = list(by_epochs.items())[-1]
        errors = compared(errors)
        if paper not in errors or len(errors) < 2:
            return None
        best, second, *_ = sorted(errors, key=lambda option: mean(errors[option]))
        lower, higher = (best, second) if best == paper else (best, paper)
        gap = [a - b for a, b in zip(errors[higher], errors[lower], strict=True)]
        agrees = None if mean(gap) <= spread(gap) else best == paper
        more_pct = 100 * (mean(errors[higher]) / mean(errors[lower]) - 1)
        return cls(epochs=epochs, agrees=agrees, best=best, second=second, more_pct=more_pct)

    def sentence(self, label: str, paper: str) -> str:
        """In words."""
        judged = {True: "agree with the paper", False: "disagree with the paper",
                  None: "do not decide"}[self.agrees]  # fmt: skip
        other = f"{self.second} comes next with" if self.best == paper else f"{paper} has"
        words = f"{label} labels ({self.epochs}) {judged}: {self.best} is best, {other} "
        words += f"{self.more_pct:.0f} % more error"
        words += ", which is within the spread over seeds" if self.agrees is None else ""
        return words[0].upper() + words[1:] + "."

    def cell(self, paper: str) -> str:
        """For the summary."""
        judged = {True: "agree", False: "disagree", None: "undecided"}[self.agrees]
        if self.best == paper:
            return f"{judged}: best, {self.second} {self.more_pct:.0f} % worse"
        return f"{judged}: {self.best} best, the paper's {self.more_pct:.0f} % worse"


def compared(errors: Errors) -> Errors:
    """The options that have all seeds."""
    return {option: values for option, values in errors.items() if len(values) == len(SEEDS)}


def mean(values: Sequence[float]) -> float:
    """Mean of one number or more; not a number without any."""
    return float(np.mean(values)) if len(values) else float("nan")


def spread(values: Sequence[float]) -> float:
    """Standard deviation (n - 1); 0 of a single number."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
