"""What GPUs without published runs reach, and how fast hosts are: numbers by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import pytest

from driple.catalog import DEVICES, Device
from driple.codec import from_json
from driple.errors import CatalogError, ConfigError
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_rates import (
    GpuReached,
    GpuShares,
    HostPace,
    balance_factor,
    host_factor,
    is_better,
    is_tuned,
    peaks,
    tuned_host,
    tuned_shares,
    tuning_remarks,
    with_host,
)

V100, P100, A100 = DEVICES["V100"], DEVICES["P100"], DEVICES["A100"]
RATES = ("fp16_flops", "fp32_flops", "bytes_per_s")
SHARES = GpuShares(half=0.5, tf32=0.6, plain=0.7, memory=0.8)
PACE = HostPace(
    op_s=2.0, torch1_op_s=3.0, tensorflow_op_s=5.0, compiled_s=7.0, update_s=0.11, step_s=0.013,
    sharpness=6.0,
)  # fmt: skip


def mine(like: Device = V100, times: float = 1.0, **facts: float) -> Device:
    """A device like another, with its rates by a factor, and other facts."""
    rates = {name: times * float(like.facts[name]) for name in RATES}
    if "tf32_flops" in like.facts:
        rates["tf32_flops"] = times * float(like.facts["tf32_flops"])
    return replace(like, name="mine", facts={**like.facts, **rates, **facts})


def having(**facts: float) -> Device:
    """A V100 with other facts."""
    return mine(V100, 1.0, **facts)


def reached(
    measured: Mapping[str, GpuShares], *, tensor_fall: float = 0.0, **generations: GpuShares
) -> GpuReached:
    """What GPUs reach, in the usual case `SHARES`."""
    return GpuReached(
        measured=measured, generations=generations, usual=SHARES, tensor_fall=tensor_fall
    )


def scaled(shares: GpuShares, factor: float) -> GpuShares:
    """All shares by a factor."""
    return GpuShares(**{name: factor * value for name, value in asdict(shares).items()})


def test_the_peaks_of_which_shares_are_stated() -> None:
    assert dict(peaks(A100)) == {
        "half": A100.facts["fp16_flops"], "tf32": A100.facts["tf32_flops"],
        "plain": A100.facts["fp32_flops"], "memory": A100.facts["bytes_per_s"],
    }  # fmt: skip
    assert peaks(V100)["tf32"] == V100.facts["fp32_flops"]


def test_shares_are_above_0() -> None:
    for name in ("half", "tf32", "plain", "memory"):
        assert getattr(replace(SHARES, **{name: 0.01}), name) == 0.01
        with pytest.raises(ConfigError, match=name):
            replace(SHARES, **{name: 0.0})


def test_a_device_with_published_runs_has_their_shares() -> None:
    """So has another chip of the same kind, and its source is that device."""
    known = reached({"V100": scaled(SHARES, 2.0)}, Volta=scaled(SHARES, 3.0))
    assert known.of(V100) == (scaled(SHARES, 2.0), "V100")
    assert known.of(mine(bytes_per_s=1e12)) == (scaled(SHARES, 2.0), "V100")


def test_a_device_without_any_has_those_of_its_generation_or_the_usual_ones() -> None:
    """Slower than all of the catalogue, so that no other device bounds it."""
    known = reached({}, Volta=scaled(SHARES, 3.0))
    slow = mine(times=1e-6, multiprocessors=81)
    assert known.of(slow) == (scaled(SHARES, 3.0), "Volta")
    assert known.of(mine(P100, times=1e-6)) == (SHARES, "")


@pytest.mark.parametrize(("flops", "factor"), [(1.25e14, 1.0), (5e14, 0.5), (3.125e13, 2.0)])
def test_tensor_cores_reach_less_the_more_they_compute_for_each_byte(
    flops: float, factor: float
) -> None:
    """Four times the balance of 125 FLOP/s a byte/s to the power -1/2 is a half."""
    device = mine(fp16_flops=flops, bytes_per_s=1e12)
    assert balance_factor(device, 0.5) == pytest.approx(factor)
    shares = reached({}, tensor_fall=0.5).of_generation(device)
    assert (shares.plain, shares.memory) == (SHARES.plain, SHARES.memory)
    assert shares.half == pytest.approx(factor * SHARES.half)
    assert shares.tf32 == pytest.approx(factor * SHARES.tf32)


@pytest.mark.parametrize(
    ("times", "usual", "share"),
    [
        (2.0, 0.1, 0.4),  # at least the rate of the worse V100, of which it has twice the peak
        (2.0, 0.5, 0.5),
        (0.5, 5.0, 1.6),  # at most the rate of the better one, of which it has half the peak
        (0.5, 1.5, 1.5),
        (1.0, 5.0, 5.0),  # no better and no worse
    ],
)
def test_rates_lie_between_those_of_measured_devices(
    times: float, usual: float, share: float
) -> None:
    measured, own = scaled(SHARES, 1.6), scaled(SHARES, 2 * usual)
    known = GpuReached(
        measured={"V100": measured, "mine": scaled(SHARES, 9.0)}, generations={}, usual=own,
        tensor_fall=0.0,
    )  # fmt: skip
    actual = known.of_generation(mine(times=times))
    assert actual.half == pytest.approx(share)
    assert actual.tf32 == pytest.approx(share * 1.2)
    assert actual.plain == pytest.approx(share * 1.4)
    assert actual.memory == pytest.approx(share * 1.6)


def test_a_device_better_in_one_rate_and_worse_in_another_is_not_bounded() -> None:
    known = reached({"V100": scaled(SHARES, 10.0)})
    assert known.of_generation(mine(times=2.0, bytes_per_s=1e9)) == SHARES


def test_no_device_has_a_lower_rate_than_an_unmeasured_one_that_is_worse_in_every_field() -> None:
    """Of another generation, whose shares are larger: the best of those counts."""
    known = reached({"P100": SHARES}, Volta=scaled(SHARES, 0.01))
    device = mine(times=3.0, multiprocessors=81)
    own = peaks(device)
    worse = []
    for other in DEVICES.values():
        if other.name == "P100" or other.is_cpu:
            continue
        try:
            its = peaks(other)
        except CatalogError:
            continue
        if all(its[name] <= own[name] for name in own):
            worse.append((known.of_generation(other), its))
    assert len(worse) > 20
    shares, origin = known.of(device)
    assert origin == "Volta"
    for name, peak in own.items():
        best = max(getattr(share, name) * its[name] for share, its in worse)
        assert best > getattr(SHARES, name) * peaks(P100)[name]
        assert getattr(shares, name) * peak == pytest.approx(best)


@pytest.mark.parametrize(
    ("device", "is_twin"),
    [
        (mine(), True),
        (mine(times=1.3), True),
        (mine(bytes_per_s=2e12), True),
        (mine(fp16_flops=1.09 * 112e12), True),
        (mine(fp16_flops=1.2 * 112e12), False),
        (mine(tf32_flops=1.2 * 14e12), False),
        (mine(multiprocessors=79), False),
        (replace(mine(), architecture=P100.architecture), False),
        (V100, False),
    ],
)
def test_a_twin_is_the_same_chip_with_other_clocks_or_memory(device: Device, is_twin: bool) -> None:
    twin = reached({"V100": SHARES, "nobody": SHARES}).twin_of(device)
    assert twin == (V100 if is_twin else None)


def test_a_device_with_an_unknown_part_has_no_twin() -> None:
    known = reached({"V100": SHARES})
    for name in ("multiprocessors", "fp16_flops"):
        facts = {key: fact for key, fact in mine().facts.items() if key != name}
        device = replace(V100, name="mine", facts=facts)
        assert known.twin_of(device) is None
        assert known.memory_gain(device) == 1.0
    cpu = next(device for device in DEVICES.values() if device.is_cpu)
    assert known.twin_of(cpu) is None


@pytest.mark.parametrize(("memory", "twin"), [(1.6e12, "A100"), (2.1e12, "A100-80G")])
def test_of_several_twins_the_one_with_the_nearest_memory_counts(memory: float, twin: str) -> None:
    """Whatever the order in which they were measured, and measured devices that are no twins."""
    names = ("A100-80G", "A100", "V100")
    for order in (names, names[::-1]):
        actual = reached(dict.fromkeys(order, SHARES)).twin_of(mine(A100, bytes_per_s=memory))
        assert actual is not None and actual.name == twin


def test_memory_gains_count_in_clocks_of_the_chip() -> None:
    """Half again the bytes/s at 1.2 times the clock are 1.25 times the bytes in each clock."""
    known = reached({"V100": SHARES})
    assert known.memory_gain(mine(times=1.2, bytes_per_s=1.5 * 900e9)) == pytest.approx(1.25)
    assert known.memory_gain(V100) == known.memory_gain(P100) == 1.0


def test_better_is_at_least_as_good_in_all_and_better_in_one() -> None:
    assert not is_better(mine(), V100)
    for name in RATES:
        faster = having(**{name: 1.01 * float(V100.facts[name])})
        assert is_better(faster, V100)
        assert not is_better(V100, faster)
    mixed = mine(fp16_flops=1e15, bytes_per_s=1e9)
    assert not is_better(mixed, V100)
    assert not is_better(V100, mixed)


def test_no_known_host_differs_from_the_usual_one_by_default() -> None:
    assert PACE.fastest == PACE.slowest == 1.0
    stated = {
        key: value for key, value in asdict(PACE).items() if key not in {"fastest", "slowest"}
    }
    assert from_json(HostPace, stated, where="host") == PACE


@pytest.mark.parametrize("name", list(asdict(PACE)))
def test_paces_are_above_0(name: str) -> None:
    assert getattr(replace(PACE, **{name: 0.5}), name) == 0.5
    with pytest.raises(ConfigError, match=name):
        replace(PACE, **{name: 0.0})


@pytest.mark.parametrize(
    ("runtime", "each_s"),
    [
        (Runtime(), 2.0), (Runtime("torch2.1"), 2.0), (Runtime("torch1"), 3.0),
        (Runtime("tensorflow"), 5.0), (Runtime("torch1", compiled=True), 7.0),
    ],
)  # fmt: skip
def test_seconds_for_an_op_by_library_and_compiler(runtime: Runtime, each_s: float) -> None:
    assert PACE.each_s(runtime) == each_s


@pytest.mark.parametrize(
    ("runtime", "launches", "runs", "seconds"),
    [
        # Ops, 2.3 ops for each of 10 tensors, 0.11 for each of 4 kernels of the update, the step.
        (Runtime(), 100.0, 100.0, 200.0 + 46.0 + 0.44 + 0.013),
        (Runtime("tensorflow"), 3.0, 3.0, 15.0 + 115.0 + 0.44 + 0.013),
        (Runtime(compiled=True), 10.0, 100.0, 70.0 + 46.0 + 0.44 + 0.013),
        (Runtime(compiled=True), 90.0, 100.0, 200.0 + 46.0 + 0.44 + 0.013),
        (Runtime("torch1", compiled=True), 90.0, 100.0, 300.0 + 69.0 + 0.44 + 0.013),
        # Replayed: 0.45 ops for each tensor.
        (Runtime(compiled=True, cuda_graphs=True), 90.0, 100.0, 9.0 + 0.44 + 0.013),
    ],
)
def test_seconds_of_a_hosts_step(
    runtime: Runtime, launches: float, runs: float, seconds: float
) -> None:
    found_s = PACE.of_step(runtime, launches=launches, runs=runs, updates=4, tensors=10)
    assert found_s == pytest.approx(seconds)


def test_a_slower_host_takes_longer_for_all_and_is_known_as_it_was() -> None:
    slow = replace(PACE, fastest=0.7, slowest=1.9).slower(3.0)
    expected = {name: 3 * value for name, value in asdict(PACE).items() if name.endswith("_s")}
    assert asdict(slow) == pytest.approx(
        expected | {"sharpness": 6.0, "fastest": 0.7, "slowest": 1.9}
    )


@pytest.mark.parametrize("name", ["half", "tf32", "plain", "memory", "host"])
def test_one_factor_of_the_users_runs_makes_a_device_tuned(name: str) -> None:
    assert not is_tuned(V100)
    assert not is_tuned(mine(tuned_runs=4))
    assert is_tuned(having(**{f"tuned_{name}": 1.5}))


def test_the_users_runs_change_the_shares_that_they_tell_of() -> None:
    assert tuned_shares(V100, SHARES) is SHARES
    assert tuned_shares(mine(tuned_half=1.0, tuned_host=3.0), SHARES) is SHARES
    assert tuned_shares(mine(tuned_half=0.5, tuned_memory=2.0), SHARES) == GpuShares(
        half=0.25, tf32=0.6, plain=0.7, memory=1.6
    )
    assert tuned_shares(mine(tuned_tf32=2.0), SHARES).tf32 == pytest.approx(1.2)
    every = {f"tuned_{name}": 2.0 for name in asdict(SHARES)}
    assert tuned_shares(having(**every), SHARES) == scaled(SHARES, 2.0)


@pytest.mark.parametrize(
    ("facts", "factor"),
    [
        ({}, 1.0),
        ({"tuned_host": 3.0, "tuned_host_runs": 5}, 3.0),
        ({"tuned_host": 3.0, "tuned_host_runs": 0}, 3.0),
        # Files of earlier versions: over the fastest known host, which takes half the usual time.
        ({"tuned_host": 3.0}, 1.5),
        ({"tuned_host": 3.0, "tuned_host_training": 1.8, "tuned_host_training_runs": 4}, 1.8),
        ({"tuned_host": 3.0, "tuned_host_training": 1.8, "tuned_host_training_runs": 1}, 1.8),
        ({"tuned_host": 3.0, "tuned_host_training": 1.8, "tuned_host_training_runs": 0}, 1.5),
        ({"tuned_host": 3.0, "tuned_host_training": 1.8, "tuned_host_runs": 5}, 1.8),
        ({"tuned_host_training": 1.8, "tuned_host_training_runs": 4}, 1.0),
        ({"tuned_half": 3.0}, 1.0),
    ],
)
def test_how_much_longer_the_host_takes_in_the_users_runs(
    facts: dict[str, float], factor: float
) -> None:
    host = replace(PACE, fastest=0.5)
    device = having(**facts)
    assert host_factor(device, host) == pytest.approx(factor)
    assert tuned_host(device, host).op_s == pytest.approx(factor * host.op_s)


def test_a_host_as_fast_as_usual_is_the_same_host() -> None:
    assert tuned_host(V100, PACE) is PACE
    assert tuned_host(mine(tuned_host=1.0, tuned_host_runs=3), PACE) is PACE


@pytest.mark.parametrize(
    ("facts", "runs"),
    [
        ({}, 1),
        ({"tuned_host": 9.0, "tuned_host_runs": 5}, 5),
        ({"tuned_host_runs": 0}, 1),
        ({"tuned_host": 9.0, "tuned_host_training": 1.8, "tuned_host_training_runs": 4}, 1),
    ],
)
def test_a_device_with_a_host_of_another_speed(facts: dict[str, float], runs: int) -> None:
    """Nothing of an earlier version's factors is left, so that the factor counts as it is."""
    device = with_host(having(tuned_half=0.5, **facts), 2.5)
    tuned = {name: fact for name, fact in device.facts.items() if name.startswith("tuned")}
    assert tuned == {"tuned_half": 0.5, "tuned_host": 2.5, "tuned_host_runs": runs}
    assert host_factor(device, replace(PACE, fastest=0.5)) == 2.5
    assert device.bytes_per_s == V100.bytes_per_s


def test_a_remark_says_how_a_device_was_tuned() -> None:
    assert tuning_remarks(V100) == ()
    facts = {
        "tuned_half": 0.5, "tuned_host": 2.0, "tuned_runs": 7, "tuned_median_pct": 4.0,
        "tuned_p90_pct": 9.0,
    }  # fmt: skip
    (remark,) = tuning_remarks(replace(having(**facts), origin="own.toml"))
    assert remark.code == "tuned_device"
    assert dict(remark.values) == {
        "device": "mine", "file": "own.toml", "names": ("half", "host"), "factors": (0.5, 2.0),
        "num_runs": 7, "median_pct": 4.0, "p90_pct": 9.0,
    }  # fmt: skip
