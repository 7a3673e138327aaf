"""The memory of a device from a small step and constants that are chosen, every number by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.graph.step_facts import OptimizerUpdate, TensorRole
from driple.memory.calibration import ErrorRange, MemoryCalibration
from driple.memory.estimate import (
    error_kind,
    memory_of_places,
    memory_of_step,
    memory_of_steps,
)
from driple.memory.memory_estimate import COMMUNICATION_PART, OUTSIDE_PART, MemoryEstimate
from driple.memory.place import MemoryPlace
from driple.memory.step_memory import StepMemory, Weights
from driple.remarks import remark

MIB = 2**20
GRADIENT, ACTIVATION = int(TensorRole.GRADIENT), int(TensorRole.ACTIVATION)
# A parameter of 40 MiB, its gradient, 80 MiB of states, and an activation of 100 MiB. At the last
# of three nodes all are there: 260 MiB. The states take the activation's segment in the first
# step, and 20 MiB of it are of no use in the second: 280 MiB are reserved.
STEP = StepMemory(
    num_nodes=3,
    nbytes=np.array([100 * MIB, 40 * MIB]),
    made_by=np.array([0, 2]),
    freed_after=np.array([2, 3]),
    roles=np.array([ACTIVATION, GRADIENT], dtype=np.int8),
    is_cast=np.zeros(2, dtype=np.bool_),
    weights=Weights(
        nbytes=np.array([40 * MIB]),
        elements=np.array([10 * MIB]),
        is_trained=np.array([True]),
        gradient_at=np.array([2]),
        block_of=np.array([0]),
        forward_at=np.array([0]),
        forward_end=np.array([0]),
        backward_at=np.array([-1]),
        complete_at=np.array([2]),
        sharers=np.ones(1),
    ),
    update=OptimizerUpdate(state_bytes=80 * MIB),
)
ERROR = ErrorRange(low=0.8, high=1.5, median_pct=3.0, p90_pct=20.0, runs=17)
KNOWN = MemoryCalibration(
    workspace_bytes={"": 1.0 * MIB, "Hopper": 2.0 * MIB},
    context_bytes={"": 10.0 * MIB, "Hopper": 20.0 * MIB},
    group_bytes=5.0 * MIB,
    cache_share={"": 0.2, "torch2": 0.1},
    usable_share=0.9,
    yes_below=0.98,
    no_above=1.0,
    errors={"allocated": {"": replace(ERROR, high=1.2)}, "device_total": {"": ERROR}},
)
PLACE = MemoryPlace(scheme="ddp", generation="Hopper", capacity_bytes=1000.0 * MIB)


def estimated(
    place: MemoryPlace = PLACE, step: StepMemory = STEP, **changes: Any
) -> MemoryEstimate:
    """Memory with the chosen constants."""
    return memory_of_step(step, place, replace(KNOWN, **changes))


def with_room(mib: float) -> MemoryPlace:
    """A device where the allocator has so many MiB, beside 20 of context and 2 of workspaces."""
    return replace(PLACE, capacity_bytes=(mib + 22) * MIB / 0.9)


def mib_of(value: float | None) -> float | None:
    return None if value is None else value / MIB


def test_what_a_device_needs() -> None:
    """Of what a step adds to what it keeps, 100 MiB, a tenth stays in the allocator's cache."""
    estimate = estimated()
    assert estimate.allocated is not None and estimate.reserved is not None
    assert estimate.device_total is not None
    assert mib_of(estimate.allocated.value) == pytest.approx(262)
    assert mib_of(estimate.reserved.value) == pytest.approx(280 + 10 + 2)
    assert mib_of(estimate.device_total.value) == pytest.approx(292 + 20)
    assert mib_of(estimate.capacity_bytes) == 1000 and mib_of(estimate.usable_bytes) == 900
    assert mib_of(estimate.margin_bytes) == pytest.approx(900 - 262 - 20)
    assert estimate.fits == "yes"
    parts = {name: mib_of(value) for name, value in estimate.parts.items() if value}
    assert parts == pytest.approx({
        "parameters": 40, "gradients": 40, "optimizer": 80, "activations": 100, "temporary": 2,
        OUTSIDE_PART: 20,
    })  # fmt: skip
    assert not estimate.is_lower_bound and not estimate.is_upper_bound
    assert estimate.device == "" and estimate.host_bytes is None
    named = estimated(replace(PLACE, device="H100"))
    assert named.device == "H100"


def test_constants_are_those_of_the_generation_and_the_library() -> None:
    other = estimated(replace(PLACE, generation="Volta"))
    assert other.allocated is not None and other.device_total is not None
    assert mib_of(other.allocated.value) == pytest.approx(261)
    assert mib_of(other.device_total.value) == pytest.approx(280 + 10 + 1 + 10)
    old = memory_of_step(STEP, PLACE, KNOWN, library="torch1")
    assert old.reserved is not None
    assert mib_of(old.reserved.value) == pytest.approx(280 + 20 + 2)


def test_devices_of_a_group_have_buffers() -> None:
    """DDP's buckets of 40 MiB, and NCCL's 5; no more of either on more devices."""
    alone = estimated()
    for devices in (2, 8):
        several = estimated(replace(PLACE, shards=devices, replicas=devices))
        assert several.allocated is not None and alone.allocated is not None
        assert mib_of(several.allocated.value) == pytest.approx(262 + 40)
        assert mib_of(several.parts[COMMUNICATION_PART]) == 40
        assert mib_of(several.parts[OUTSIDE_PART]) == 25


@pytest.mark.parametrize(
    ("yes_below", "no_above", "fits"),
    [
        (282 / 900, 1.0, "yes"),
        (281.9 / 900, 1.0, "likely not"),
        (0.1, 282.1 / 900, "likely not"),
        (0.1, 282 / 900, "no"),
    ],
)
def test_between_two_shares_of_the_memory_it_likely_does_not_fit(
    yes_below: float, no_above: float, fits: str
) -> None:
    """262 MiB of tensors and 20 outside, of 900 that can be used."""
    estimate = estimated(yes_below=yes_below, no_above=no_above)
    assert estimate.fits == fits
    assert mib_of(estimate.margin_bytes) == pytest.approx(900 * no_above - 282)
    bound = replace(STEP, is_lower_bound=True)
    least = estimated(step=bound, yes_below=yes_below, no_above=no_above)
    assert least.fits == ("no" if fits == "no" else None)
    assert least.is_lower_bound


@pytest.mark.parametrize(
    ("room", "reserved", "fits"),
    [
        (290, 292, "yes"),  # all of the cache
        (285, 287, "yes"),  # a part of it
        (280, 282, "yes"),
        (279, 292, "likely not"),  # fragments: 260 would do
        (262, 292, "likely not"),
        (259, 292, "no"),
    ],
)
def test_where_memory_is_short_the_cache_gives_way(room: float, reserved: float, fits: str) -> None:
    """The allocator is played with what there is: requests that are met run, others fail."""
    estimate = estimated(with_room(room), yes_below=1.0)
    assert estimate.reserved is not None
    assert mib_of(estimate.reserved.value) == pytest.approx(reserved)
    assert estimate.fits == fits


def test_intervals_are_in_proportion() -> None:
    """Each number with its own error, none without; the upper end of a lower bound is open."""
    estimate = estimated()
    allocated, total = estimate.allocated, estimate.device_total
    assert allocated is not None and total is not None and estimate.reserved is not None
    assert (mib_of(allocated.lower), mib_of(allocated.upper)) == pytest.approx((209.6, 314.4))
    assert (mib_of(total.lower), mib_of(total.upper)) == pytest.approx((249.6, 468))
    assert (estimate.reserved.lower, estimate.reserved.upper) == (None, None)
    bound = estimated(step=replace(STEP, is_lower_bound=True)).device_total
    assert bound is not None and bound.upper is None and mib_of(bound.lower) == pytest.approx(249.6)


@pytest.mark.parametrize(("images", "high"), [(True, 1.1), (False, 1.3)])
def test_errors_are_those_of_the_kind(images: bool, high: float) -> None:
    """Of one device with images, or with text or sound; and the numbers of runs are stated."""
    errors = {
        "images": replace(ERROR, high=1.1, runs=3),
        "others": replace(ERROR, high=1.3, runs=4),
    }
    kinds = {f"single {kind}": error for kind, error in errors.items()}
    estimate = estimated(
        step=replace(STEP, has_images=images), errors={"device_total": {**kinds, "": ERROR}}
    )
    assert estimate.device_total is not None
    assert mib_of(estimate.device_total.upper) == pytest.approx(312 * high)
    assert estimate.source == remark(
        "memory_by_lifetimes_checked", num_runs=3 if images else 4, median_pct=3.0, p90_pct=20.0
    )
    kind = "images" if images else "others"
    assert error_kind(PLACE, images=images) == f"single {kind}"
    assert error_kind(replace(PLACE, replicas=2), images=images) == f"ddp {kind}"


def test_what_the_numbers_rest_on() -> None:
    assert estimated(errors={}).source == remark("memory_by_lifetimes")
    near = MemoryPlace.of(Setting.parse("2xH100/NVLink@tp2"))
    assert near.is_nearest_kind
    estimate = estimated(near)
    assert estimate.source == remark(
        "memory_by_lifetimes_nearest", kind=near.kind, num_runs=17, median_pct=3.0, p90_pct=20.0
    )
    assert estimate.device_total is not None and estimate.device_total.upper is not None
    wider = estimate.device_total.upper / estimate.device_total.value
    assert wider == pytest.approx(1.5**near.widening) and wider > 1.5
    assert estimate.device_total.lower == pytest.approx(
        0.8**near.widening * estimate.device_total.value
    )


def test_a_processor_has_tensors_alone() -> None:
    estimate = estimated(replace(PLACE, capacity_bytes=None))
    assert estimate.allocated is not None
    assert mib_of(estimate.allocated.value) == 260
    assert (estimate.reserved, estimate.device_total, estimate.fits) == (None, None, None)
    assert estimate.source == remark("memory_of_tensors")
    assert mib_of(sum(estimate.parts.values())) == 260
    assert estimated(
        replace(PLACE, capacity_bytes=None), replace(STEP, is_lower_bound=True)
    ).is_lower_bound


@pytest.mark.parametrize(
    ("host_mib", "per_machine", "lacking_mib"),
    [(None, 2, None), (320, 2, None), (319, 2, 1), (160, 1, None), (120, 1, 40)],
)
def test_what_is_kept_on_the_host_must_fit_there(
    host_mib: float | None, per_machine: int, lacking_mib: float | None
) -> None:
    """States of 80 MiB, a gradient and a parameter of 40 MiB, for each device of a machine."""
    place = replace(
        PLACE, scheme="fsdp", per_machine=per_machine, offload=("states", "parameters"),
        host_capacity_bytes=None if host_mib is None else host_mib * MIB,
    )  # fmt: skip
    estimate = estimated(place)
    assert mib_of(estimate.host_bytes) == pytest.approx(160 * per_machine)
    assert estimate.host_capacity_bytes == place.host_capacity_bytes
    assert estimate.margin_bytes is not None
    if lacking_mib is None:
        assert estimate.fits == "yes" and estimate.margin_bytes > 0
    else:
        assert estimate.fits == "no"
        assert mib_of(estimate.margin_bytes) == pytest.approx(-lacking_mib)
        tight = estimated(replace(place, capacity_bytes=1.0 * MIB))  # the device lacks more
        assert tight.margin_bytes is not None and tight.margin_bytes < -lacking_mib * MIB
    assert estimated(replace(place, offload=())).host_bytes is None


def test_the_device_that_fits_least_decides() -> None:
    """Then the one with least room; an unknown answer is worse than one that fits."""

    def place(mib: float) -> MemoryPlace:
        return replace(PLACE, capacity_bytes=mib * MIB, device=f"{mib:g}")

    def least(*mib: float) -> str:
        return memory_of_places([STEP], [place(one) for one in mib]).device

    assert least(9000, 4000, 8000) == "4000"
    assert least(9000, 100, 50) == "50"
    small = replace(STEP, nbytes=np.array([10 * MIB, 40 * MIB]))
    both = memory_of_places([small, STEP, small], [place(9000)])
    whole = memory_of_places([STEP], [place(9000)])
    assert both.allocated == whole.allocated
    bound = replace(small, is_lower_bound=True)
    assert memory_of_places([STEP, bound], [place(9000)]).fits is None


def test_a_scheme_without_a_model_of_its_memory_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryPlace, "sharding", None)
    estimate = estimated(replace(PLACE, device="H100"))
    assert estimate.allocated is None and estimate.fits is None
    assert estimate.capacity_bytes == PLACE.capacity_bytes and estimate.device == "H100"
    assert estimate.source is not None and estimate.source.code == "memory_not_estimated"
    assert estimate.source.values["scheme"] == "ddp"


@pytest.mark.parametrize(("mib", "fits"), [(100, "likely not"), (9000, "yes")])
def test_a_compiled_step_needs_at_most_as_much(mib: float, fits: str) -> None:
    places = [replace(PLACE, capacity_bytes=mib * MIB)]
    plain, compiled = (
        memory_of_steps(SimpleNamespace(library=None, compiled=flag), [STEP], places)  # type: ignore[arg-type]
        for flag in (False, True)
    )
    assert plain.fits == ("no" if mib == 100 else "yes") and not plain.is_upper_bound
    assert compiled.fits == fits and compiled.is_upper_bound
    assert compiled.allocated == plain.allocated
    assert compiled.source == remark("memory_of_uncompiled", source=plain.source)
