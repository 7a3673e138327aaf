"""Replicas with all-reduces: rings in any number, buckets of PyTorch, tensors of others."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.schemes.ddp import Ddp
from driple.step.exchange import BUCKETS

DDP = Ddp()


@pytest.mark.parametrize(
    ("workers", "times", "memory"),
    [(1, "single", "single"), (2, "ring", "ddp"), (64, "ring", "ddp")],
)
def test_published_runs_that_are_like_it(workers: int, times: str, memory: str) -> None:
    like = DDP.runs_like(workers)
    assert (like.times, like.memory) == (times, memory)


def test_pytorch_fills_buckets_and_others_send_tensors() -> None:
    assert DDP.rule("buckets") is BUCKETS
    for program in ("horovod", "tensors"):
        rule = DDP.rule(program)  # type: ignore[arg-type]
        assert rule is not None and rule.grouping == "tensors" and not rule.each_pass


def test_each_device_holds_the_whole_model() -> None:
    assert DDP.sharding is not None and DDP.sharding.is_whole
    assert DDP.sharding.keeps_buckets and DDP.sharding.updates
    assert not DDP.uses_servers


@pytest.mark.parametrize("is_model", [True, False])
def test_every_plan_tries_it(is_model: bool) -> None:
    for name in ("2xV100", "4x8xH100/NVLink+400G"):
        assert DDP.is_planned(Setting.parse(name).cluster, is_model=is_model)


def test_graphs_of_other_clusters_are_remarked_on() -> None:
    assert DDP.assumption("one_device", 1) is None
    assert DDP.assumption("all_reduce", 2) is None
    for layout, workers, exchange in (("servers", 2, "all_reduce"), ("all_reduce", 1, "alone")):
        assumption = DDP.assumption(layout, workers)  # type: ignore[arg-type]
        assert assumption is not None and assumption.values["exchange"] == exchange
