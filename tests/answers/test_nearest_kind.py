"""The nearest kind of published run: alike both ways, never another task, and never surer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.checked_runs import RunColumns
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.answers.nearest_kind import RunKind, RunKinds, kind_distance
from driple.estimate import NEAREST_KIND_WIDER
from tests.answers.checked import CONV, checked_run, mix_of

ATTENTION = mix_of(matmul=0.6, attention=0.2, norm=0.2)
CNN = RunKind(
    task="train", network="convolutional", cluster="ring", several_machines=False, compiled=False,
    half=False,
)  # fmt: skip
KINDS = st.builds(
    RunKind, task=st.just("train"), network=st.sampled_from(["convolutional", "transformer"]),
    cluster=st.sampled_from(["single", "ring"]), several_machines=st.booleans(),
    compiled=st.booleans(), half=st.booleans(),
)  # fmt: skip
JOB = JobKind(network="convolutional", mix=CONV)
CLUSTER = ClusterKind(
    kind="ring", devices=("T4",), num_workers=64, several_machines=True, link="100G",
    link_bytes_per_s=12.5e9, one_machine=ClusterKind(kind="single", devices=("T4",)),
)  # fmt: skip


@given(KINDS, KINDS, KINDS)
def test_distances_of_kinds_are_distances(first: RunKind, two: RunKind, three: RunKind) -> None:
    assert (kind_distance(first, two) == 0) is (first == two)
    assert kind_distance(first, two) == kind_distance(two, first)
    assert kind_distance(first, three) <= kind_distance(first, two) + kind_distance(two, three)


def test_the_network_weighs_more_than_the_cluster_and_that_more_than_the_rest() -> None:
    network = kind_distance(CNN, replace(CNN, network="transformer"))
    cluster = kind_distance(CNN, replace(CNN, cluster="single"))
    machines = kind_distance(CNN, replace(CNN, several_machines=True))
    compiled = kind_distance(CNN, replace(CNN, compiled=True))
    half = kind_distance(CNN, replace(CNN, half=True))
    assert (network, cluster, machines, compiled, half) == (8, 4, 2, 2, 1)


def kinds_of(*rows: dict[str, object], families: int = 3) -> RunKinds:
    """Kinds of some runs, each of so many families."""
    usual = {"kind": "ring", "device": "V100", "error_pct": 5.0, "workers": 4, "link": "25G",
             "several": True}  # fmt: skip
    runs = [
        checked_run(**{**usual, **row, "family": f"f{number}"})  # type: ignore[arg-type]
        for row, number in product(rows, range(families))
    ]
    return RunKinds(RunColumns.of(runs))


def test_the_nearest_comes_first_and_other_tasks_never() -> None:
    kinds = kinds_of(
        {"half": True}, {"mix": ATTENTION}, {"kind": "single", "several": False, "workers": 1},
        {"task": "forward"}, {},
    )  # fmt: skip
    asked = RunKind.of(JOB, CLUSTER)
    nearest = kinds.by_distance(asked)
    distances = [kind_distance(asked, kind) for kind in nearest]
    assert distances == sorted(distances) == [0, 1, 6, 8]
    assert {kind.task for kind in nearest} == {"train"}
    assert kinds.by_distance(replace(asked, task="none")) == []


def test_of_kinds_as_near_the_one_of_more_families_comes_first() -> None:
    runs = [
        *(checked_run("ring", "V100", 5, workers=2, half=True, family=f"a{i}") for i in range(3)),
        *(checked_run("ring", "V100", 5, workers=2, compiled=True, family=f"b{i}")
          for i in range(4)),
    ]  # fmt: skip
    kinds = RunKinds(RunColumns.of(runs))
    asked = replace(CNN, compiled=True, half=True)
    assert [kind.compiled for kind in kinds.by_distance(asked)] == [True, False]
    both = replace(CNN, several_machines=True, half=True)  # 2 + 1 + 2 of the compiled, 2 of half
    assert [kind.half for kind in kinds.by_distance(both)] == [True, False]


def test_a_kind_of_few_families_stands_in_for_nothing() -> None:
    asked = RunKind.of(JOB, CLUSTER)
    assert kinds_of({}, families=2).by_distance(asked) == []
    assert len(kinds_of({}, families=3).by_distance(asked)) == 1


def test_what_stands_in_is_as_large_as_the_runs_allow() -> None:
    kinds = kinds_of({"workers": 8, "link": "25G"}, {"workers": 16, "link": "10G"})
    (kind,) = kinds.by_distance(RunKind.of(JOB, CLUSTER))
    job, cluster = kinds.stand_in(kind, replace(JOB, half=True), CLUSTER)
    assert (job.network, job.half, job.compiled) == ("convolutional", False, False)
    assert (cluster.num_workers, cluster.devices) == (16, ("T4",))
    assert (cluster.link, cluster.link_bytes_per_s) == ("25G", pytest.approx(3.125e9))
    assert cluster.one_machine == CLUSTER.one_machine
    few = replace(CLUSTER, num_workers=2, link="10G", link_bytes_per_s=1.25e9)
    _, small = kinds.stand_in(kind, JOB, few)
    assert (small.num_workers, small.link) == (2, "10G")


def test_a_device_alone_stands_in_without_links() -> None:
    kinds = kinds_of({"kind": "single", "several": False, "workers": 1, "link": ""})
    (kind,) = kinds.by_distance(RunKind.of(JOB, CLUSTER))
    _, cluster = kinds.stand_in(kind, JOB, CLUSTER)
    assert cluster == ClusterKind(kind="single", devices=("T4",))
    assert kinds.exponent(kind, CLUSTER) == NEAREST_KIND_WIDER


def test_servers_are_no_more_than_those_of_the_runs() -> None:
    kinds = kinds_of({"kind": "servers", "servers": 2}, {"kind": "servers", "servers": 1})
    asked = replace(CLUSTER, kind="servers", num_servers=5)
    (kind,) = kinds.by_distance(RunKind.of(JOB, asked))
    assert kinds.stand_in(kind, JOB, asked)[1].num_servers == 2
    assert kinds.stand_in(kind, JOB, replace(asked, num_servers=1))[1].num_servers == 1


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_devices_never_narrow_an_interval(few: int, many: int) -> None:
    kinds = kinds_of({"workers": 16})
    (kind,) = kinds.by_distance(RunKind.of(JOB, CLUSTER))
    small, large = (
        kinds.exponent(kind, replace(CLUSTER, num_workers=count)) for count in sorted([few, many])
    )
    assert NEAREST_KIND_WIDER <= small <= large
    assert kinds.exponent(kind, replace(CLUSTER, num_workers=16)) == NEAREST_KIND_WIDER
    assert kinds.exponent(kind, replace(CLUSTER, num_workers=160)) == pytest.approx(
        2 * NEAREST_KIND_WIDER
    )
