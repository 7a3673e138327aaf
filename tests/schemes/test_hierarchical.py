"""All-reduce in levels: bytes of theory, and the plain one where there is one level."""

from __future__ import annotations

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.hierarchical import Hierarchical, two_levels

SIZES = np.array([0.0, 1e3, 1e6, 1e9])
WITHIN = Hop(bytes_per_s=1e11, latency_s=4e-6)
BETWEEN = Hop(bytes_per_s=1e10, latency_s=14e-6)


def group(per_machine: int, machines: int) -> DeviceGroup:
    return DeviceGroup(
        count=per_machine * machines,
        machines=machines,
        within=WITHIN if per_machine > 1 else None,
        between=BETWEEN if machines > 1 else None,
    )


@pytest.mark.parametrize(("per_machine", "machines"), [(8, 1), (1, 4), (8, 4), (2, 3)])
def test_bytes_are_as_many_as_of_one_all_reduce(per_machine: int, machines: int) -> None:
    whole = group(per_machine, machines)
    levels = two_levels(whole)
    assert levels.all_reduce_bytes(SIZES) == pytest.approx(whole.sent_bytes("all_reduce", SIZES))
    assert (levels.within.count, levels.between.count) == (per_machine, machines)


def test_one_level_is_an_all_reduce_over_it() -> None:
    for per_machine, machines in ((8, 1), (1, 4)):
        whole = group(per_machine, machines)
        plain = whole.seconds("all_reduce", SIZES)
        if machines == 1:
            assert two_levels(whole).all_reduce_s(SIZES).tolist() == plain.tolist()
        else:
            assert two_levels(whole).all_reduce_s(SIZES) == pytest.approx(plain)


def test_levels_follow_one_another() -> None:
    """A reduce-scatter, an all-reduce of an eighth over an eighth of the network, a gather."""
    levels = two_levels(group(8, 4))
    assert levels.between.between is not None
    assert levels.between.between.bytes_per_s == pytest.approx(1e10 / 8)
    parts = (
        levels.within.seconds("reduce_scatter", SIZES)
        + levels.between.seconds("all_reduce", SIZES / 8)
        + levels.within.seconds("all_gather", SIZES)
    )
    assert levels.all_reduce_s(SIZES) == pytest.approx(parts)
    # 2 x 3/4 of an eighth of the bytes, over an eighth of the network's rate.
    large = levels.between.seconds("all_reduce", np.array([1e9 / 8]))[0]
    assert large == pytest.approx(2 * 3 / 4 * 1e9 / 1e10, rel=0.3)


def test_a_faster_network_never_takes_longer() -> None:
    slow, fast = (
        two_levels(
            DeviceGroup(count=32, machines=4, within=WITHIN,
                        between=Hop(bytes_per_s=rate, latency_s=14e-6))
        ).all_reduce_s(SIZES)
        for rate in (1e9, 1e10)
    )  # fmt: skip
    assert (fast <= slow).all() and fast[-1] < slow[-1]


def test_the_scheme_is_a_kind_of_its_own_and_no_plan_tries_it() -> None:
    scheme = Hierarchical()
    assert scheme.runs_like(1).times == "single"
    for count in (2, 8):
        like = scheme.runs_like(count)
        assert (like.times, like.memory) == ("hierarchical", "ddp")
    assert not scheme.is_planned(Setting.parse("4x8xH100/NVLink+400G").cluster, is_model=True)
    assert scheme.assumption("one_device", 8) is None
    alone, several = scheme.assumption("servers", 1), scheme.assumption("servers", 2)
    assert alone is not None and alone.values["exchange"] == "alone"
    assert several is not None and several.values["exchange"] == "all_reduce_in_levels"
