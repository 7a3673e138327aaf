"""What a job's time consists of: shares that sum to 1, and distances that are distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.op_mix import (
    MIX_KINDS,
    distance_of,
    kinds_of,
    network_of,
    op_mix,
    shares_of_time,
)
from driple.graph.cost import cost_of_graph
from driple.graph.signature import OpSignature, Tensor
from tests.simulate.jobs import net

FLOPS, BYTES_PER_S, START_S = 4e13, 6e11, 8e-6
"""Of the reference device."""
NUMBERS = st.floats(0, 1e12)


def mix(**shares: float) -> tuple[float, ...]:
    return tuple(shares.get(name, 0.0) for name in MIX_KINDS)


def shares(*rows: tuple[str, float, float, float]) -> dict[str, float]:
    """Shares that are above 0, of ops by kind, FLOPs, bytes and runs."""
    kinds, flops, moved, runs = zip(*rows, strict=True)
    time_shares = shares_of_time(
        np.array([MIX_KINDS.index(kind) for kind in kinds]),
        np.array(flops), np.array(moved), np.array(runs),
    )  # fmt: skip
    return {name: share for name, share in zip(MIX_KINDS, time_shares, strict=True) if share}


@given(st.lists(st.tuples(st.sampled_from(MIX_KINDS), NUMBERS, NUMBERS, st.integers(0, 9)),
                min_size=1, max_size=8))  # fmt: skip
def test_shares_sum_to_one_and_no_order_matters(
    rows: list[tuple[str, float, float, float]],
) -> None:
    by_kind = shares(*rows)
    assert sum(by_kind.values()) == pytest.approx(1.0)
    assert shares(*reversed(rows)) == pytest.approx(by_kind)
    twice = [(kind, flops, moved, 2 * runs) for kind, flops, moved, runs in rows]
    assert shares(*twice) == pytest.approx(by_kind)


def test_an_op_takes_as_long_as_its_flops_or_its_bytes() -> None:
    """1 s of FLOPs and 3 s of bytes; the less of each op is hidden."""
    rows = [("matmul", FLOPS, 0.5 * BYTES_PER_S, 1.0), ("norm", FLOPS, 3 * BYTES_PER_S, 1.0)]
    assert shares(*rows) == pytest.approx({"matmul": 0.25, "norm": 0.75})
    assert shares(("matmul", FLOPS, 1.0, 3.0), ("norm", 0.0, BYTES_PER_S, 1.0)) == pytest.approx(
        {"matmul": 0.75, "norm": 0.25}
    )


def test_what_is_shorter_than_a_start_waits_for_the_host() -> None:
    """Ops of a quarter of a start each: three quarters belong to starts."""
    short = 0.25 * START_S * BYTES_PER_S
    assert shares(("pool", 0.0, short, 100.0)) == pytest.approx({"pool": 0.25, "starts": 0.75})
    assert shares(("pool", 0.0, 4 * short, 100.0)) == pytest.approx({"pool": 1.0})


def test_ops_that_move_nothing_or_never_run_take_no_time() -> None:
    nothing = [("matmul", FLOPS, 0.0, 1.0), ("norm", 0.0, BYTES_PER_S, 0.0)]
    assert shares(*nothing) == {"starts": 1.0}
    assert shares(*nothing, ("pool", 0.0, BYTES_PER_S, 1.0)) == pytest.approx({"pool": 1.0})


MIXES = st.lists(st.floats(0, 1), min_size=13, max_size=13).map(
    lambda row: tuple(np.array(row) / max(sum(row), 1e-9))
)


@given(MIXES, MIXES, MIXES)
def test_distances_are_from_0_to_1_alike_both_ways_and_never_shorter_by_a_detour(
    first: tuple[float, ...], two: tuple[float, ...], three: tuple[float, ...]
) -> None:
    def apart(here: tuple[float, ...], there: tuple[float, ...]) -> float:
        return float(distance_of(here, np.array([there]))[0])

    assert apart(first, first) == 0.0
    assert 0 <= apart(first, two) <= 1 + 1e-9
    assert apart(first, two) == apart(two, first)
    assert apart(first, three) <= apart(first, two) + apart(two, three) + 1e-9


def test_jobs_without_a_kind_in_common_are_1_apart() -> None:
    others = np.array([mix(norm=1.0), mix(matmul=0.5, norm=0.5), mix(matmul=1.0)])
    assert distance_of(mix(matmul=1.0), others).tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("shares_of", "network"),
    [
        ({"dense_conv": 0.6, "matmul": 0.3}, "convolutional"),
        ({"pointwise_conv": 0.2, "grouped_conv": 0.2, "depthwise_conv": 0.2, "matmul": 0.5},
         "convolutional"),
        ({"dense_conv": 0.5, "matmul": 0.5, "attention": 0.1}, "transformer"),
        ({"matmul": 0.8, "attention": 0.001}, "transformer"),
        ({"matmul": 0.8, "softmax": 0.01}, "transformer"),
        ({"matmul": 0.8, "softmax": 0.009}, "other"),
        ({"matmul": 0.84, "recurrent": 0.16}, "recurrent"),
        ({"matmul": 0.85, "recurrent": 0.15, "softmax": 0.01}, "transformer"),
        ({"attention": 0.84, "recurrent": 0.16}, "recurrent"),
        ({"norm": 1.0}, "other"),
        ({"dense_conv": 0.1, "norm": 0.9}, "convolutional"),
    ],
)  # fmt: skip
def test_a_network_is_what_its_products_are(shares_of: dict[str, float], network: str) -> None:
    assert network_of(mix(**shares_of)) == network


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, 1)


IMAGE = tensor(2, 8, 8, 16)


@pytest.mark.parametrize(
    ("kind", "window", "name"),
    [
        ("conv", (3, 3, 16, 32), "dense_conv"),
        ("conv", (1, 1, 16, 32), "pointwise_conv"),
        ("conv", (3, 3, 4, 32), "grouped_conv"),
        ("conv", (1, 3, 16, 32), "dense_conv"),
        ("matmul", (16, 16), "matmul"),
        ("attention", (2, 2, 2, 2), "attention"),
        ("attention_gradient", (2, 2, 2, 2), "attention"),
        ("lstm", (16, 16), "recurrent"),
        ("softmax", (16,), "softmax"),
        ("embedding", (16, 16), "rows"),
        ("gather", (16, 16), "rows"),
        ("add", (16,), "elementwise"),
    ],
)
def test_kinds_of_ops_by_hand(kind: str, window: tuple[int, ...], name: str) -> None:
    op = OpSignature(kind, (IMAGE, tensor(*window)), (tensor(2, 8, 8, 32),))
    (at,) = kinds_of([op]).tolist()
    assert MIX_KINDS[at] == name


def test_a_mix_does_not_depend_on_the_batch_of_large_ops() -> None:
    """Twice the samples take twice the time of every kind."""
    mixes = []
    for batch_size in (512, 1024):
        graph = net(batch_size)
        mixes.append(op_mix(graph, cost_of_graph(graph)))
    assert mixes[1] == pytest.approx(mixes[0], abs=0.01)
    assert network_of(mixes[0]) == "convolutional"
