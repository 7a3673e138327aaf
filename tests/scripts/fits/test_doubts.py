"""Whether stated errors separate the answers that are far off."""

from __future__ import annotations

from math import log

import pytest

from driple.answers.checked_runs import CheckedRun
from driple.answers.op_mix import MIX_KINDS
from driple.answers.stated_error import StatedError
from driple.remarks import Remark
from driple.runs.measured_run import MeasuredRun
from scripts.fits.coverage import CoveredRun
from scripts.fits.doubts import Answers, doubts_of
from scripts.pages.accuracy_tables import doubt_table

pytest.importorskip("sklearn")

NOT_STATED = StatedError(runs=Remark.of_text("no published run is like it"))


def covered(error: float, stated: StatedError, *, family: str = "resnet") -> CoveredRun:
    """A run on one device, simulated `1 + error` times as long as published."""
    return CoveredRun(
        run=CheckedRun(
            run=MeasuredRun(framework="tensorflow", family=family),
            kind="single", held_out="model", devices=("V100",), num_devices=1,
            num_servers=0, several_machines=False, link="", half=False, log_ratio=log(1 + error),
            mix=(1.0,) + (0.0,) * (len(MIX_KINDS) - 1),
        ),
        stated=stated,
    )  # fmt: skip


def stated(p90_pct: float, *, high_factor: float = 1.5) -> StatedError:
    return StatedError(
        num_runs=9,
        runs=Remark.of_text("runs"),
        median_pct=p90_pct / 3,
        p90_pct=p90_pct,
        low_factor=0.7,
        high_factor=high_factor,
    )


SMALL = [covered(error, stated(20)) for error in (0.1, -0.2, 0.24)]
LARGE = [covered(error, stated(60, high_factor=2.0)) for error in (0.3, -0.4)]


def test_doubt_that_separates_has_all_of_the_area() -> None:
    (doubts,) = doubts_of([*SMALL, *LARGE])
    assert (doubts.held_out, doubts.task) == ("model", "train")
    assert doubts.area == pytest.approx(1.0)
    assert doubts.family_area == pytest.approx(1.0)


def test_the_wrong_way_round_has_none_and_one_doubt_for_all_half() -> None:
    (wrong,) = doubts_of([covered(0.1, stated(60)), covered(0.9, stated(20))])
    (same,) = doubts_of([covered(0.1, stated(20)), covered(0.9, stated(20))])
    assert wrong.area == pytest.approx(0.0)
    assert same.area == pytest.approx(0.5)


def test_an_answer_that_states_no_error_is_the_most_doubtful() -> None:
    (doubts,) = doubts_of([*SMALL, covered(0.1, stated(300)), covered(0.9, NOT_STATED)])
    assert doubts.area == pytest.approx(1.0)
    assert doubts.unchecked == Answers(runs=1, large_pct=100.0, inside_pct=None)


def test_there_is_no_area_where_all_answers_are_good() -> None:
    (doubts,) = doubts_of(SMALL)
    assert doubts.area is None
    assert (doubts.unchecked, doubts.guesses) == (None, None)


def test_guesses_stand_apart_and_each_family_weighs_alike() -> None:
    guesses = [covered(0.9, stated(200, high_factor=40.0)) for _ in range(2)]
    others = [*SMALL, covered(0.4, stated(20), family="vit")]
    (doubts,) = doubts_of([*others, *guesses])
    assert doubts.guesses == Answers(runs=2, large_pct=100.0, inside_pct=0.0)
    assert doubts.others is not None
    # Three good resnets and one bad vit: half by family, and a quarter by run.
    assert doubts.others.large_pct == pytest.approx(50.0)
    assert doubts.others.inside_pct == pytest.approx(100.0)


def test_the_table_says_what_there_is() -> None:
    (line,) = doubt_table(doubts_of([*SMALL, *LARGE])).rows
    assert line == ["train", "model family", "1.00", "1.00", "0", "", "0", "", "", "5", "40",
                    "100"]  # fmt: skip
