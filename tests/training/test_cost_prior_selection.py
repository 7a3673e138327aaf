"""Which cost law a transfer starts from: as labels that it was not fitted to tell."""

from __future__ import annotations

import numpy as np

from driple.inspector.cost_prior import LAW_NAMES, CostPrior, columns_of
from driple.inspector.scaling import TargetScaler
from driple.training.cost_prior_selection import best_law
from tests.inspector.test_cost_prior import NAMES, contexts

FLOOR = np.full(12, 1e-9)
SCALER = TargetScaler(kind="log", offset=np.full(12, 0.2), scale=np.full(12, 1.5), floor=FLOOR)
NUM_LABELS = 60


def random_law(seed: int) -> CostPrior:
    """Rates that have nothing to do with those of another seed."""
    rates = 10 ** np.random.default_rng(seed).uniform(-6, 0, size=(12, len(LAW_NAMES) + 1))
    return CostPrior(columns=columns_of(NAMES), rates=rates, floor=FLOOR)


def chosen(old: CostPrior, labels: np.ndarray, outputs: np.ndarray) -> CostPrior:
    return best_law(
        old,
        outputs,
        contexts(1, NUM_LABELS),
        labels,
        scaler=SCALER,
        context_names=NAMES,
        seed=0,
    )


def outputs_of(ratios: np.ndarray) -> np.ndarray:
    """What an inspector gives that tells these ratios."""
    return (np.log(ratios) - SCALER.offset) / SCALER.scale


def test_a_setting_that_is_slower_by_a_factor_keeps_the_law() -> None:
    """The inspector was made for it, and the alignment brings it to the new level."""
    old = random_law(2)
    ratios = np.exp(np.random.default_rng(3).normal(0, 0.5, size=(NUM_LABELS, 12)))
    noise = np.exp(np.random.default_rng(4).normal(0, 0.05, size=(NUM_LABELS, 12)))
    labels = 3.0 * noise * ratios * np.exp(old.log_targets(contexts(1, NUM_LABELS)))
    assert chosen(old, labels, outputs_of(ratios)) is old


def test_a_setting_of_other_costs_gets_a_law_of_its_own() -> None:
    """Durations come out, and the inspector goes on reading what it was trained to read."""
    old, new = random_law(2), random_law(5)
    exact = np.exp(new.log_targets(contexts(1, NUM_LABELS)))
    law = chosen(old, exact, outputs_of(np.ones((NUM_LABELS, 12))))
    assert law.read is old
    durations = [i for i in range(12) if i % 3]
    predicted = np.exp(law.log_targets(contexts(1, NUM_LABELS)))
    before = np.exp(old.log_targets(contexts(1, NUM_LABELS)))
    wrong = np.median(np.abs(np.log(predicted / exact)[:, durations]))
    assert wrong < 0.2 * np.median(np.abs(np.log(before / exact)[:, durations]))


def test_what_the_inspector_tells_of_other_costs_is_kept() -> None:
    """Labels are its ratios to another law: that law is found, not one of the labels."""
    old, new = random_law(2), random_law(5)
    ratios = np.exp(np.random.default_rng(3).normal(0, 1.0, size=(NUM_LABELS, 12)))
    exact_targets = np.exp(new.log_targets(contexts(1, NUM_LABELS)))
    law = chosen(old, ratios * exact_targets, outputs_of(ratios))
    assert law.read is old
    durations = [i for i in range(12) if i % 3]
    chosen_targets = np.exp(law.log_targets(contexts(1, NUM_LABELS)))
    assert np.median(np.abs(np.log(chosen_targets / exact_targets)[:, durations])) < 0.3
