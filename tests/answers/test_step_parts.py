"""What a step is made of: the parts add up to it, however it is stretched or shared out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.ready_job import ReadyJob
from driple.answers.step_parts import StepParts, alone_of, parts_of
from driple.cluster.setting import Setting
from driple.jobs.load import load_job
from driple.simulate.place import Place, place_of
from driple.simulate.run import simulated_step_s
from driple.step.profile import DeviceSpan, StepProfile
from tests.memory.two_layers import two_layers
from tests.simulate.jobs import net

SECONDS = st.floats(1e-6, 1e3)
PARTS = st.builds(
    StepParts,
    computing_s=st.dictionaries(st.sampled_from(["matmul", "norm", "update"]), SECONDS,
                                min_size=1),
    host_s=SECONDS,
)  # fmt: skip
SOME = StepParts(computing_s={"norm": 1.0, "matmul": 4.0, "a": 1.0}, host_s=2.0)


@given(PARTS, SECONDS)
def test_scaled_parts_keep_their_shares(parts: StepParts, step_s: float) -> None:
    scaled = parts.scaled(step_s)
    assert scaled.step_s == pytest.approx(step_s)
    for (name, _, before), (other, _, after) in zip(parts.rows(), scaled.rows(), strict=True):
        assert name == other and before == pytest.approx(after)
    assert sum(pct for _, _, pct in scaled.rows()) == pytest.approx(100)


@given(PARTS, st.floats(0.5, 3))
def test_an_exchange_makes_up_for_the_rest_of_a_step(parts: StepParts, factor: float) -> None:
    """A step that is shorter than alone has less of the update."""
    step_s = factor * parts.step_s
    with_exchange = parts.with_exchange(step_s, "the network")
    assert with_exchange.step_s == pytest.approx(step_s)
    assert with_exchange.exchange == "the network"
    if factor >= 1:
        assert with_exchange.computing_s == parts.computing_s
        assert with_exchange.exchange_s == pytest.approx(step_s - parts.step_s)
    else:
        assert with_exchange.exchange_s == 0.0


def test_the_longest_part_comes_first_then_host_and_exchange() -> None:
    names = [name for name, _, _ in SOME.rows()]
    assert names == ["matmul", "a", "norm", "waiting for the host"]
    apart = SOME.with_exchange(10.0, "the network (10G)")
    assert apart.rows()[-1] == ("waiting for the network (10G)", 2.0, 20.0)
    assert SOME.rows()[0] == ("matmul", 4.0, 50.0)
    assert SOME.host_pct == 25.0


def test_the_bottleneck_is_the_largest_part() -> None:
    assert SOME.bottleneck is not None
    assert (SOME.bottleneck.part, SOME.bottleneck.pct) == ("matmul", 50.0)
    apart = SOME.with_exchange(16.0, "links").bottleneck
    assert apart is not None and (apart.part, apart.pct) == ("links", 50.0)
    equal = StepParts(computing_s={"b": 1.0, "a": 1.0}, host_s=0.5).bottleneck
    assert equal is not None and equal.part == "a"
    waiting = StepParts(computing_s={"b": 1.0}, host_s=3.0).bottleneck
    assert waiting is not None and waiting.pct == 75.0


def test_a_step_without_time_has_no_bottleneck() -> None:
    nothing = StepParts(computing_s={}, host_s=0.0)
    assert nothing.bottleneck is None
    assert nothing.host_pct == 0.0
    assert nothing.rows() == [("waiting for the host", 0.0, 0.0)]
    assert nothing.scaled(5.0).step_s == 0.0


@pytest.fixture(scope="module")
def ready() -> ReadyJob:
    return ReadyJob(load_job(net(32)))


def place(name: str) -> Place:
    return place_of(Setting.parse(name))


def test_a_device_alone_is_looked_at_once(ready: ReadyJob) -> None:
    alone = alone_of(ready, place("8xV100/NVLink"))
    assert alone_of(ready, place("1xV100")) is alone
    assert alone_of(ready, place("1xH100")) is not alone
    assert alone.parts.step_s == pytest.approx(alone.step_s)
    setting = Setting.parse("1xV100")
    there = place("1xV100")
    assert alone.step_s == simulated_step_s(ready.prepared, setting, there.calibration)
    assert all(seconds > 0 for seconds in alone.parts.computing_s.values())
    assert alone.parts.exchange_s == 0.0
    longest = list(alone.parts.computing_s.values())
    assert longest == sorted(longest, reverse=True) and len(longest) > 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1xV100", ""),
        ("2xV100/PCIe", "the links between devices (PCIe3)"),
        ("4xV100/PCIe", "the links between devices (PCIe3)"),
        ("4x1xV100/10G", "the network (10G)"),
        ("2x8xV100/NVLink+25G", "the network (25G)"),
    ],
)
def test_what_a_step_waits_for_is_what_joins_its_devices(
    ready: ReadyJob, name: str, words: str
) -> None:
    there = place(name)
    step_s = simulated_step_s(
        ready.prepared, there.setting, there.calibration, topology=there.topology
    )
    parts = parts_of(ready, there, step_s)
    assert parts is not None
    assert parts.step_s == pytest.approx(step_s)
    assert parts.exchange == words
    assert (parts.exchange_s > 0) is bool(words)


def test_servers_and_processors_have_no_parts(ready: ReadyJob) -> None:
    for name in ("V100-P1w2/ho-PCIe", "2xCPU"):
        assert parts_of(ready, place(name), 1.0) is None


def split_parts(
    name: str, waits_s: float, *, passes: int = 9, step_s: float = 20.0
) -> StepParts | None:
    """Of a step of 10 s, of which the first device waits so many, and 1 s for its host."""
    graph = replace(two_layers(), executions=np.full(4, passes))
    ready = SimpleNamespace(prepared=SimpleNamespace(graph=graph), job=SimpleNamespace(offload=()))
    share = (9 - waits_s) / (10 - waits_s)
    profile = StepProfile(
        step_s=10.0,
        device=(
            DeviceSpan(
                phase="forward", start_s=0.0, end_s=10 - waits_s, busy_share=share,
                memory_share=0.0,
            ),
        ),
    )  # fmt: skip
    return parts_of(ready, place(name), step_s, profile=profile)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "passes", "bubble_s"),
    [
        ("2xA100/NVLink@pp2", 9, 10 * 1 / 10),
        ("4xA100/NVLink@pp4", 7, 10 * 3 / 10),
        ("2xA100/NVLink@pp2", 1, 10 * 1 / 2),
    ],
)
def test_a_pipeline_waits_for_its_stages_or_for_its_links(
    name: str, passes: int, bubble_s: float
) -> None:
    """The bubble is p - 1 of m + p - 1 turns; it is named where it is over half of the waiting."""
    stages = int(name[-1])
    less = split_parts(name, min(1.99 * bubble_s, 8.0), passes=passes)
    assert less is not None
    assert less.exchange.startswith(f"other stages, the bubble of a pipeline of {stages} stages")
    assert f"with {passes} micro-batch" in less.exchange
    if 2.01 * bubble_s < 9:
        more = split_parts(name, 2.01 * bubble_s, passes=passes)
        assert more is not None and more.exchange.startswith("the links between devices (NVLink")


def test_parts_of_a_split_step_are_stretched_to_it() -> None:
    """10 s of which 6 are kernels, 1 is the host's and 3 are waited for, as a step of 20 s."""
    parts = split_parts("2xA100/NVLink@pp2", 3.0)
    assert parts is not None
    assert parts.computing_s == pytest.approx({"computing": 12.0})
    assert (parts.host_s, parts.exchange_s) == pytest.approx((2.0, 6.0))
    assert parts.step_s == pytest.approx(20.0)
    ready = SimpleNamespace()
    assert parts_of(ready, place("2xA100/NVLink@pp2"), 1.0) is None  # type: ignore[arg-type]


def test_a_split_over_machines_waits_for_both_kinds_of_links() -> None:
    parts = split_parts("2x2xA100/NVLink+25G@tp2-pp2", 8.0)
    assert parts is not None
    assert parts.exchange.startswith("the links within and between machines (NVLink")
    assert parts.exchange.endswith(", 25G)")


def test_shared_updates_make_a_step_shorter() -> None:
    """By the update alone, as far as there is any; then all parts shrink."""
    alone = StepParts(computing_s={"matmul": 6.0, "optimizer update": 3.0}, host_s=1.0)
    shorter = alone.with_exchange(8.0, "links")
    assert shorter.computing_s == pytest.approx({"matmul": 6.0, "optimizer update": 1.0})
    assert (shorter.host_s, shorter.exchange_s) == (1.0, 0.0)
    least = alone.with_exchange(3.5, "links")
    assert least.computing_s == pytest.approx({"matmul": 3.0, "optimizer update": 0.0})
    assert least.host_s == pytest.approx(0.5)
    same = alone.with_exchange(10.0, "links")
    assert same.computing_s == alone.computing_s and same.exchange_s == 0.0


def test_the_host_is_a_bottleneck_by_its_own_name() -> None:
    waiting = StepParts(computing_s={"b": 1.0}, host_s=3.0).bottleneck
    assert waiting is not None and waiting.is_host
    assert SOME.bottleneck is not None and not SOME.bottleneck.is_host
