"""The sentence on an error: what is expected of the answer, and the runs' own error beside it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from driple.answers.stated_error import JobKind, StatedError, stated_error
from driple.cluster.setting import Setting
from driple.remarks import Remark
from driple.render.errors_stated import stated_error_sentence
from driple.render.remarks import sentence
from tests.answers.checked import CONV, checked_run, mix_of
from tests.answers.test_stated_error import CNN, RUNS, stated

KNOWN = StatedError(
    num_runs=9,
    runs=Remark.of_text("runs"),
    median_pct=30.0,
    p90_pct=90.0,
    low_factor=0.5,
    high_factor=2.0,
)


def test_the_error_of_the_runs_is_their_own_whatever_the_job() -> None:
    """Two mixes of one network: what is expected differs, the errors of the runs do not.

    Six runs are 2, 2.8, 3.6, 4.4, 5.2 and 6 % off; each stands for a sixth of the families.
    """
    far = mix_of(dense_conv=0.3, depthwise_conv=0.5, norm=0.1, elementwise=0.1)
    unlike = [
        checked_run("ring", "V100", 90, family=f"far{at}", workers=4, link="PCIe3", distance=0.3)
        for at in range(6)
    ]
    near, other = (
        stated_error(Setting.parse("V100-R1/ho-PCIe"), replace(CNN, mix=mix), runs=[*RUNS, *unlike])
        for mix in (CONV, far)
    )
    assert near.median_pct and other.median_pct and near.median_pct < other.median_pct
    for error in (near, other):
        assert error.num_runs == 6
        assert error.runs_median_pct == pytest.approx(4)
        assert error.runs_p90_pct == pytest.approx(5.2 + 0.8 * (0.9 - 4.5 / 6) * 6)
        expected, own = re.findall(
            r"median (\d+) %, 90th percentile (\d+) %", stated_error_sentence(error)
        )
        assert expected == (f"{error.median_pct:.0f}", f"{error.p90_pct:.0f}")
        assert own == ("4", "6")
        assert f"its error on 6 {sentence(error.runs)}: median 4 %" in stated_error_sentence(error)


def test_many_runs_of_one_family_do_not_outweigh_the_others() -> None:
    copies = [checked_run("single", "V100", 2, family="resnet") for _ in range(40)]
    usual = stated("V100").runs_median_pct
    error = stated_error(Setting.parse("1xV100"), CNN, runs=[*RUNS, *copies])
    assert error.num_runs == 46
    assert error.runs_median_pct == pytest.approx(usual)


def test_the_shipped_runs_have_one_error_of_their_own_for_all_batches() -> None:
    """One network with more of its time in element-wise ops, as with a smaller batch."""
    cluster = Setting.parse("1x3090")
    errors = []
    for share in (0.1, 0.3, 0.5):
        mix = mix_of(dense_conv=0.9 - share, norm=0.1, elementwise=share)
        errors.append(stated_error(cluster, JobKind(framework="pytorch", mix=mix)))
    assert len({one.median_pct for one in errors}) > 1
    assert len({(one.runs, one.runs_median_pct, one.runs_p90_pct) for one in errors}) == 1


def test_a_sentence_says_which_numbers_are_of_a_tuning() -> None:
    usual = replace(KNOWN, runs_median_pct=20, runs_p90_pct=40)
    adjusted = "adjusted to how unlike published jobs the ops are and how few the families are"
    assert stated_error_sentence(usual) == (
        "expected error of the simulator on this job: median 30 %, 90th percentile 90 %, from its "
        f"error on 9 runs: median 20 %, 90th percentile 40 % (each model family counted alike), "
        f"{adjusted}"
    )
    assert adjusted in stated_error_sentence(replace(usual, tuned=("p90_pct",)))
    both = stated_error_sentence(replace(usual, tuned=("median_pct", "p90_pct")))
    assert "(both are those of the runs that the device is tuned to" in both
    assert adjusted not in both
    assert (
        stated_error_sentence(replace(usual, runs_median_pct=30, runs_p90_pct=90))
        == "the simulator's error on 9 runs: median 30 %, 90th percentile 90 %"
    )


def test_an_error_without_runs_says_nothing() -> None:
    none = StatedError(runs=Remark.of_text("none"))
    assert (none.num_runs, none.is_checked, none.p90, none.is_guess) == (0, False, None, False)
    assert none.interval_of(1.0) is None
    assert KNOWN.is_checked and KNOWN.p90 == pytest.approx(0.9)
    assert replace(KNOWN, num_runs=1).is_checked
    assert not replace(KNOWN, nearest_because=Remark.of_text("other")).is_checked


@pytest.mark.parametrize(
    ("low", "high", "median_pct", "is_guess"),
    [
        (0.5, 3.0, 30.0, False),
        (0.5, 3.01, 30.0, True),
        (0.5, 2.0, 100.0, False),
        (0.5, 2.0, 100.1, True),
        (None, 9.0, 900.0, False),
        (0.1, None, 900.0, False),
        (0.1, 9.0, None, False),
    ],
)
def test_a_ratio_above_6_or_a_median_above_100_pct_is_a_guess(
    low: float | None, high: float | None, median_pct: float | None, is_guess: bool
) -> None:
    error = replace(KNOWN, low_factor=low, high_factor=high, median_pct=median_pct)
    assert error.is_guess is is_guess


def test_an_interval_of_more_than_a_thousand_says_nothing() -> None:
    assert KNOWN.interval_of(3.0) == (1.5, 6.0)
    assert replace(KNOWN, low_factor=0.5, high_factor=500.0).interval_of(2.0) == (1.0, 1000.0)
    assert replace(KNOWN, low_factor=0.5, high_factor=500.1).interval_of(2.0) is None
    assert replace(KNOWN, low_factor=None).interval_of(2.0) is None
    assert replace(KNOWN, high_factor=None).interval_of(2.0) is None


def test_an_error_of_the_nearest_kind_is_wider_by_a_power() -> None:
    reason = Remark.of_text("no such run")
    wider = KNOWN.of_nearest(reason, 2.0)
    assert (wider.low_factor, wider.high_factor) == (0.25, 4.0)
    assert wider.nearest_because is reason
    assert (wider.num_runs, wider.median_pct, wider.p90_pct) == (9, 30.0, 90.0)
    unknown = StatedError(runs=Remark.of_text("none")).of_nearest(reason, 2.0)
    assert (unknown.low_factor, unknown.high_factor) == (None, None)


def test_the_larger_error_of_two_counts() -> None:
    """Number by number; what is not known of the other changes nothing."""
    other = replace(KNOWN, median_pct=40.0, p90_pct=80.0, low_factor=0.4, high_factor=1.5)
    both = KNOWN.no_surer_than(other)
    assert (both.median_pct, both.p90_pct) == (40.0, 90.0)
    assert (both.low_factor, both.high_factor) == (0.4, 2.0)
    assert other.no_surer_than(KNOWN).high_factor == 2.0
    none = StatedError(runs=Remark.of_text("none"))
    assert KNOWN.no_surer_than(none) == KNOWN
    assert none.no_surer_than(KNOWN) == none


def test_every_number_of_an_error_is_printed_under_its_name() -> None:
    reason = Remark.of_text("why")
    error = replace(
        KNOWN, runs_median_pct=20.0, runs_p90_pct=40.0, tuned=("p90_pct",), nearest_because=reason
    )
    assert error.to_dict() == {
        "checked": False, "runs": 9, "of": KNOWN.runs, "median_pct": 30.0, "p90_pct": 90.0,
        "runs_median_pct": 20.0, "runs_p90_pct": 40.0, "tuned": ("p90_pct",), "low_factor": 0.5,
        "high_factor": 2.0, "nearest_because": reason,
    }  # fmt: skip
