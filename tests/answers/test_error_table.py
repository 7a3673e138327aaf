"""Which runs an answer's error rests on, and why there are none, with a scale that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import pytest

from driple.answers.checked_runs import CheckedRun
from driple.answers.error_scale import ErrorScale, TaskScale
from driple.answers.error_statement import StatedError
from driple.answers.error_table import ErrorTable
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.remarks import Remark, remark
from tests.answers.checked import CONV, checked_run

# Sizes of 0.1, a tenth more for each tenth of distance; a device that no fit has seen adds much.
TASK = TaskScale(base=log(0.1), slope=1.0, effects={}, low=-1.5, high=2.0, median=0.8, p90=2.5)
SCALE = ErrorScale(tasks={"train": TASK, "forward": TASK}, unseen_device=0.3)
CNN = JobKind(mix=CONV)
V100 = ClusterKind(kind="single", devices=("V100",))


def runs_of(count: int, device: str = "V100", **changes: object) -> list[CheckedRun]:
    """So many runs of a device, each of its own family, 1, 2, 3, ... percent off."""
    kind = str(changes.pop("kind", "single"))
    return [
        checked_run(kind, device, float(1 + i), **{"family": f"f{i}", **changes})  # type: ignore[arg-type]
        for i in range(count)
    ]


def error_of(
    runs: Sequence[CheckedRun], job: JobKind = CNN, cluster: ClusterKind = V100
) -> StatedError:
    return ErrorTable(runs, SCALE).error_of(job, cluster)


def reason_of(
    runs: Sequence[CheckedRun], job: JobKind = CNN, cluster: ClusterKind = V100
) -> Remark | None:
    """Why there are no runs of the answer's own kind."""
    error = error_of(runs, job, cluster)
    return error.nearest_because if error.num_runs else error.runs


def test_six_runs_of_a_device() -> None:
    """1 to 6 % off: median 3.5 %; expected are the median and percentile of the scale."""
    error = error_of(runs_of(6))
    assert error.num_runs == 6 and error.is_checked
    assert error.runs_median_pct == pytest.approx(3.5)
    assert error.runs_p90_pct == pytest.approx(5 + 0.9 * 6 - 4.5)
    assert error.median_pct == pytest.approx(8.0)
    assert error.p90_pct == pytest.approx(25.0)
    assert error.runs == remark(
        "published_runs", network="convolutional", task="train", kind="single", devices=("V100",),
        several_machines=False, held_out="model", too_few_of=None,
    )  # fmt: skip
    assert error.short == remark("runs_in_short", network="convolutional", left_out=None)


def test_each_family_weighs_the_same() -> None:
    """Ten runs of the worst family are no more than one, whatever they weigh."""
    worst = [checked_run("single", "V100", 6.0, family="f5", weight=3.0) for _ in range(10)]
    error = error_of([*runs_of(5), *worst])
    assert error.num_runs == 15
    assert error.runs_median_pct == pytest.approx(3.5)


def test_an_unlike_job_is_less_sure() -> None:
    """By what is given, or by the distance of its mix from those of the runs."""
    table = ErrorTable(runs_of(6), SCALE)
    far = table.error_of(CNN, V100, distance=0.2)
    near = table.error_of(CNN, V100, distance=0.0)
    assert near == table.error_of(CNN, V100)
    assert far.median_pct is not None and near.median_pct is not None
    assert far.median_pct / near.median_pct == pytest.approx(2.718281828**0.2)
    assert (far.num_runs, far.runs_median_pct) == (near.num_runs, near.runs_median_pct)
    assert table.error_of(replace(CNN, mix=()), V100) == near  # of which no mix is known


@pytest.mark.parametrize(("count", "is_known"), [(5, True), (4, False)])
def test_a_device_is_known_by_five_runs(count: int, is_known: bool) -> None:
    """With fewer, the runs on devices that were left out speak for it, in a wider interval."""
    out = runs_of(7, "K80", held_out="device")
    error = error_of([*runs_of(count), *out])
    assert error.num_runs == (count if is_known else 7)
    assert error.runs.values["held_out"] == ("model" if is_known else "device")
    assert error.runs.values["too_few_of"] == (None if is_known else "V100")
    assert error.short is not None
    assert error.short.values["left_out"] == (None if is_known else "V100")
    known = error_of(runs_of(6))
    assert error.low_factor is not None and known.low_factor is not None
    assert (error.low_factor < 0.9 * known.low_factor) is not is_known


def test_an_unseen_device_has_no_error_of_its_own() -> None:
    """Whatever the scale says of it; one that is known has."""
    own = replace(SCALE, tasks={"train": replace(TASK, effects={"device V100": 1.0})})
    out = runs_of(7, "K80", held_out="device")
    for count in (4, 5):
        with_effect, without = (
            ErrorTable([*runs_of(count), *out], scale).error_of(CNN, V100) for scale in (own, SCALE)
        )
        assert with_effect.runs == without.runs
        if count == 4:
            assert with_effect == without
        else:
            assert with_effect.median_pct == pytest.approx(
                2.718281828 * (without.median_pct or 0.0)
            )


def test_a_device_by_itself_is_known_by_two_families() -> None:
    out = runs_of(7, "K80", held_out="device")
    one_family = [replace_family(run, "f0") for run in runs_of(6)]
    assert error_of([*one_family, *out]).runs.values["held_out"] == "device"
    two = [*one_family, *runs_of(2)[1:]]
    assert error_of([*two, *out]).runs.values["held_out"] == "model"


def replace_family(run: CheckedRun, family: str) -> CheckedRun:
    return replace(run, run=replace(run.run, family=family))


@pytest.mark.parametrize(("count", "num_runs"), [(5, 5), (4, 4 + 3)])
def test_runs_of_the_device_count_where_there_are_enough(count: int, num_runs: int) -> None:
    """Else those of all devices of that size do; the fit has seen the device in other jobs."""
    other = runs_of(3, "V100", compiled=True)
    error = error_of([*runs_of(count), *runs_of(3, "K80"), *other])
    assert error.num_runs == num_runs


@pytest.mark.parametrize(("count", "num_runs"), [(5, 5), (4, 10)])
def test_runs_of_the_framework_count_where_there_are_enough(count: int, num_runs: int) -> None:
    others = runs_of(6, framework="pytorch")
    assert error_of([*runs_of(count), *others]).num_runs == num_runs


def test_runs_of_another_framework_stand_in_with_the_reason() -> None:
    """Where the job's own has none in this precision."""
    others = runs_of(6, framework="pytorch", half=True)
    error = error_of([*runs_of(6), *others], replace(CNN, half=True))
    assert error.num_runs == 6
    assert error.runs.code == "of_all_frameworks"
    assert error.runs.values["framework"] == "tensorflow"


def test_why_no_run_is_like_an_answer() -> None:
    """Of no scheme, task, network, compiler or precision; and none at all."""
    some = runs_of(6)
    odd = replace(V100, kind="odd")
    assert reason_of(some, cluster=odd) == remark("no_run_of_scheme", kind="odd")
    odd = replace(odd, num_workers=4, link="10G", link_bytes_per_s=1.25e9)
    assert reason_of(some, cluster=odd) == remark("no_run_of_scheme", kind="odd")
    own = runs_of(6, kind="odd", workers=4, link="10G", several=True)
    assert reason_of([*some, *own], cluster=odd) != remark("no_run_of_scheme", kind="odd")
    assert reason_of([]) == remark("no_run_of_task", task="train")
    assert reason_of(some, replace(CNN, task="forward")) == remark("no_run_of_task", task="forward")
    assert reason_of(some, replace(CNN, network="transformer")) == remark(
        "other_networks", task="train", networks=("convolutional",), network="transformer"
    )
    assert reason_of(some, replace(CNN, compiled=True)) == remark(
        "no_run_so_compiled", task="train", network="convolutional", compiled=True
    )
    assert reason_of(some, replace(CNN, half=True)) == remark("no_run_in_precision", kind="single")
    unseen = ClusterKind(kind="single", devices=("K80",))
    assert reason_of(some, cluster=unseen) == remark(
        "none_left_out", kind="single", held_out="device"
    )
    assert reason_of(some) is None


def test_servers_are_no_surer_than_the_device_by_itself() -> None:
    """Both are of one scale here, so that the errors are the same; without the device, too."""
    cluster = ClusterKind(
        kind="servers", devices=("V100",), num_workers=2, num_servers=1, several_machines=True,
        link="10G", link_bytes_per_s=1.25e9,
    )  # fmt: skip
    servers = runs_of(6, kind="servers", workers=2, servers=1, several=True, link="10G")
    assert error_of([*servers, *runs_of(6)], cluster=cluster).num_runs == 6
    effects = replace(TASK, effects={"servers": -1.0})
    surer = ErrorScale(tasks={"train": effects}, unseen_device=0.3)
    alone = ErrorTable(runs_of(6), surer).error_of(CNN, V100)
    both = ErrorTable([*servers, *runs_of(6)], surer).error_of(CNN, cluster)
    only = ErrorTable(servers, surer).error_of(CNN, cluster)
    assert both.median_pct == alone.median_pct
    assert only.median_pct is not None and alone.median_pct is not None
    assert only.median_pct == pytest.approx(alone.median_pct / 2.718281828)
