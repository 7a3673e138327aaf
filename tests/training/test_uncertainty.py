"""Coverage: shares are counted, near and far are told apart, warned workloads are scored apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.codec import from_json, to_dict
from driple.remarks import Remark
from driple.render.errors_stated import coverage_sentence
from driple.trace.targets import TARGET_NAMES
from driple.training.uncertainty import FamilyCoverage, Uncertainty, coverage_of

PREDICTED = np.full(12, 2.0)
SURE = Uncertainty(
    level=0.9,
    near=(0.1,) * 13,
    far=(1.0,) * 13,
    threshold=0.5,
    reach=1.0,
    distances={"near": 0.1, "far": 0.9},
    warnings={"near": (), "far": (Remark.of_text("it is unlike"),)},
)
# Off by 20 %: within the far interval, not within the near one.
LABELS = {"near": 1.2 * PREDICTED, "far": 1.2 * PREDICTED}
TIMES = {"near": 4.0, "far": 4.0}  # as predicted: burst + idle
FAMILIES = {"near": "chain", "far": "branch"}
ROWS = {name: PREDICTED.tolist() for name in LABELS}


def test_shares_are_counted() -> None:
    """Half of the workloads hold their labels; both hold their iteration times."""
    coverage = coverage_of([(SURE, ROWS)], LABELS, TIMES, FAMILIES)
    assert coverage.targets == pytest.approx(0.5)
    assert coverage.iteration_time == 1.0
    assert coverage.median_width_pct == pytest.approx(100 * np.expm1([0.1, 1.0]).mean())


def test_a_family_that_is_missed_shows() -> None:
    """Half of all labels are held: all of one family and none of the other; so are the targets."""
    odd = {**LABELS, "far": np.where(np.arange(12) == 3, 20.0, LABELS["far"])}
    coverage = coverage_of([(SURE, ROWS), (SURE, ROWS)], odd, {**TIMES, "near": 9.0}, FAMILIES)
    assert coverage.by_family == {
        "branch": FamilyCoverage(
            num_predictions=2, targets=pytest.approx(11 / 12), iteration_time=1.0
        ),
        "chain": FamilyCoverage(num_predictions=2, targets=0.0, iteration_time=0.0),
    }
    assert list(coverage.by_target) == list(TARGET_NAMES)
    assert list(coverage.by_target.values()) == [0.5] * 3 + [0.0] + [0.5] * 8


def test_warned_workloads_are_scored_apart() -> None:
    """One is warned of, and its error is its own."""
    labels = {**LABELS, "near": PREDICTED}
    coverage = coverage_of([(SURE, ROWS)], labels, TIMES, FAMILIES)
    assert coverage.num_warned == 1
    assert coverage.smape_warned_pct == pytest.approx(200 * 0.2 / 2.2)
    assert coverage.smape_others_pct == 0.0
    assert "1 prediction warned of" in coverage_sentence(coverage)


def test_without_warnings_there_is_nothing_to_tell_apart() -> None:
    calm = replace(SURE, warnings={"near": (), "far": ()}, far=None)
    coverage = coverage_of([(calm, ROWS)], LABELS, TIMES, FAMILIES)
    assert (coverage.num_warned, coverage.smape_warned_pct) == (0, None)
    assert coverage.targets == 0.0
    assert "no workload was warned of" in coverage_sentence(coverage)


@pytest.mark.parametrize(
    ("distance", "warnings", "half"),
    [(0.1, (), 0.1), (0.1, (Remark.of_text("more FLOPs"),), 1.0), (0.9, (), 1.0), (3.0, (), 3.0)],
)
def test_warned_and_far_workloads_have_wide_intervals(
    distance: float, warnings: tuple[Remark, ...], half: float
) -> None:
    """Beyond the reach, at 1, they grow with the distance."""
    unsure = replace(SURE, distances={"it": distance}, warnings={"it": warnings})
    assert unsure.half_widths("it") == pytest.approx(np.full(13, half))


def test_it_is_stored_and_read() -> None:
    """As JSON has it."""
    again = from_json(Uncertainty, to_dict(SURE.rounded()), where="fold")
    assert again == SURE.rounded()
    for name in SURE.distances:
        assert again.half_widths(name) == pytest.approx(SURE.half_widths(name), rel=1e-3)
