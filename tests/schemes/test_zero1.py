"""Shared states: a shard of the states alone, gradients once a step."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.schemes.zero1 import Zero1

SCHEME = Zero1()


def test_what_a_device_keeps_a_shard_of() -> None:
    held = SCHEME.sharding
    assert held is not None and not held.is_whole and not held.within_machine
    assert (held.shards_parameters, held.shards_gradients, held.shards_states) == (
        False,
        False,
        True,
    )
    assert held.num_shards(32, 8) == 32
    assert held.keeps_buckets and held.bucket_elements is None


@pytest.mark.parametrize("workers", [1, 2, 32])
def test_published_runs_that_are_like_it(workers: int) -> None:
    like = SCHEME.runs_like(workers)
    wanted = ("single", "single") if workers == 1 else ("sharded", "ddp")
    assert (like.times, like.memory) == wanted


def test_what_is_exchanged_and_how_often() -> None:
    rule = SCHEME.rule("buckets")
    assert rule is not None
    assert (rule.grouping, rule.each_pass) == ("buckets", False)


@pytest.mark.parametrize("name", ["8xH100", "4x8xH100/NVLink+400G"])
def test_plans_that_try_it(name: str) -> None:
    cluster = Setting.parse(name).cluster
    assert SCHEME.is_planned(cluster, is_model=True) is False
    assert not SCHEME.is_planned(cluster, is_model=False)
