"""Shards within machines, replicas between them: for several machines of several devices."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.schemes.hsdp import Hsdp

HSDP = Hsdp()


@pytest.mark.parametrize(
    ("name", "is_planned"),
    [
        ("4x8xH100/NVLink+400G", True),
        ("2x2xH100/NVLink+400G", True),
        ("8xH100", False),
        ("4x1xV100/10G", False),
        ("1xH100", False),
    ],
)
def test_plans_try_it_on_several_machines_of_several_devices(name: str, is_planned: bool) -> None:
    cluster = Setting.parse(name).cluster
    assert HSDP.is_planned(cluster, is_model=True) is is_planned
    assert not HSDP.is_planned(cluster, is_model=False)


def test_shards_are_those_of_a_machine() -> None:
    held = HSDP.sharding
    assert held is not None
    assert held.shards_parameters and held.shards_gradients and held.shards_states
    assert held.num_shards(32, 8) == 8


def test_it_is_sharded_training() -> None:
    assert (HSDP.runs_like(32).times, HSDP.runs_like(32).memory) == ("sharded", "fsdp")
    rule = HSDP.rule("buckets")
    assert rule is not None and (rule.grouping, rule.each_pass) == ("blocks", True)
    remark = HSDP.assumption("servers", 32)
    assert remark is not None and remark.values["exchange"] == "sharded_in_machines"
