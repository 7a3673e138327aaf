"""What an offer takes and costs: by time, machines and price, or by a measured profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.error_statement import StatedError
from driple.catalog import Price, shipped_catalog
from driple.cluster.setting import Setting
from driple.errors import ConfigError, MeasureError
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.planning.amount import AmountAsked
from driple.planning.offers import Offer, measured_offer, needed_bytes
from driple.planning.places import Candidate, place_of_setting
from driple.planning.prices import PriceBook, PriceFile
from driple.planning.variants import Variant
from driple.profiler.stall_profile import read_profile
from driple.remarks import Remark
from tests.planning.offers import answered, made_up
from tests.profiler.profiles import write_profile

INSTANCE = shipped_catalog().instances["p3.8xlarge"]
FOUR_DOLLARS = PriceBook(
    files=(PriceFile(prices={"p3.8xlarge": (Price(per_hour=4.0, date=None, source="test"),)}),)
)
_Some = st.floats(1e-3, 1e6)


@given(_Some, _Some, _Some, st.integers(1, 100))
def test_a_training_costs_its_hours_times_the_price_of_all_machines(
    samples: float, rate: float, price: float, machines: int
) -> None:
    offer = Offer(
        name="x", devices=8, machines=machines, iteration_s=1.0, samples=samples,
        samples_per_s=rate, price=Price(per_hour=price, date=None, source="test"),
    )  # fmt: skip
    assert offer.training_s == pytest.approx(samples / rate)
    assert offer.per_hour == pytest.approx(price * machines)
    assert offer.cost == pytest.approx(samples / rate / 3600 * price * machines)


def test_without_a_price_there_is_no_cost() -> None:
    offer = made_up("x", 2.0, None)
    assert (offer.per_hour, offer.cost) == (None, None)
    assert offer.training_s == 7200.0


def memory(value: float, upper: float | None = None, *, fits: str | None = "yes") -> MemoryEstimate:
    return MemoryEstimate(
        allocated=Bytes(value=value, upper=upper), fits=fits, capacity_bytes=80.0  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "recommended", "unsure"),
    [
        (None, True, False),
        (memory(40, None, fits=None), True, False),
        (memory(40), True, False),
        (memory(40, 80.0), True, False),
        (memory(40, 80.5), True, True),
        (memory(79, 90, fits="likely not"), False, True),
        (memory(99, 120, fits="no"), False, True),
    ],
)
def test_what_speaks_against_memory(
    known: MemoryEstimate | None, recommended: bool, unsure: bool
) -> None:
    """Only what fits, or is not known, is recommended; an upper end above 80 bytes is unsure."""
    offer = replace(made_up("x", 1, 1), memory=known)
    assert (offer.may_be_recommended, offer.may_not_fit) == (recommended, unsure)
    assert offer.memory_bytes == (None if known is None else needed_bytes(known))


def test_needed_bytes_are_the_best_that_is_known() -> None:
    all_three = MemoryEstimate(
        allocated=Bytes(value=1), reserved=Bytes(value=2), device_total=Bytes(value=3)
    )
    assert needed_bytes(all_three) == 3
    assert needed_bytes(replace(all_three, device_total=None)) == 2
    assert needed_bytes(replace(all_three, device_total=None, reserved=None)) == 1
    assert needed_bytes(MemoryEstimate(allocated=None)) is None


def test_the_device_that_has_least_room_is_named() -> None:
    offer = made_up("x", 1, 1)
    assert offer.memory is not None
    assert offer.fits_words == "yes"
    assert replace(offer, memory=replace(offer.memory, device="V100")).fits_words == "yes (V100)"
    assert replace(offer, memory=None).fits_words == ""
    assert replace(offer, memory=replace(offer.memory, fits=None)).fits_words == ""


def candidate(name: str) -> Candidate:
    place = place_of_setting(Setting.parse(name))
    return Candidate(
        place=place, setting=place.setting, variant=Variant(batch_size=8, precision="fp32")
    )


def test_names_say_the_scheme_only_where_devices_share_work() -> None:
    many = replace(made_up("2xH100", 1, 1), devices=2, candidate=candidate("2xH100@fsdp"))
    assert many.full_name == "2xH100 (fsdp, batch 8, fp32)"
    assert (many.scheme, many.setting) == ("fsdp", "2xH100/NVLink@fsdp")
    alone = replace(made_up("1xH100", 1, 1), candidate=candidate("1xH100"))
    assert alone.full_name == "1xH100 (batch 8, fp32)"
    measured = made_up("p3.8xlarge", 1, 1)
    assert (measured.full_name, measured.scheme, measured.setting) == ("p3.8xlarge", "", "")
    assert measured.variant is None


def test_errors_come_from_the_answer() -> None:
    error = StatedError(runs=Remark.of_text("x"), num_runs=9, low_factor=0.5, high_factor=3.0)
    offer = replace(made_up("x", 1, 1), answer=answered(error))
    assert offer.error is error
    assert offer.factors == pytest.approx((0.5, 3.0))
    assert offer.error_factors == pytest.approx((0.5, 3.0))
    assert offer.slow_host is None
    bare = made_up("x", 1, 1)
    assert (bare.error, bare.factors, bare.error_factors, bare.slow_host) == (None,) * 4


def measured(folder: Path, times: dict[int, list[float]], asked: AmountAsked) -> Offer:
    profile = read_profile(write_profile(folder / "profile", times))
    return measured_offer(profile, INSTANCE, FOUR_DOLLARS, asked)


def test_a_measured_offer_is_that_of_cached_data(tmp_path: Path) -> None:
    """Step 4, 0.25 s for 2 processes of 4 samples: 32 samples/s; 10 batches are an epoch."""
    times = {1: [0.1, 0.1], 2: [0.2, 0.22], 4: [0.2, 0.3]}
    offer = measured(tmp_path, times, AmountAsked(epochs=3))
    assert offer.iteration_s == pytest.approx(0.25)
    assert offer.samples_per_s == pytest.approx(32)
    assert offer.samples == 10 * 8 * 3
    assert offer.training_s == pytest.approx(10 * 3 * 0.25)
    assert offer.cost == pytest.approx(7.5 / 3600 * 4)
    assert offer.communication_pct == pytest.approx(100 * (0.21 - 0.1) / 0.1)
    assert (offer.provenance, offer.devices, offer.name) == ("measured", 4, "p3.8xlarge")
    assert offer.no_price is None
    assert offer.factors is None


def test_synthetic_data_stand_in_where_cached_data_were_not_measured(tmp_path: Path) -> None:
    offer = measured(tmp_path, {2: [0.2, 0.4]}, AmountAsked(samples=1200))
    assert offer.iteration_s == pytest.approx(0.3)
    assert offer.samples == pytest.approx(1200)
    assert offer.training_s == pytest.approx(1200 / 8 * 0.3)
    assert offer.communication_pct is None


def test_more_samples_take_proportionally_longer(tmp_path: Path) -> None:
    profile = read_profile(write_profile(tmp_path / "profile", {4: [0.5]}))
    few, many = (
        measured_offer(profile, INSTANCE, FOUR_DOLLARS, AmountAsked(samples=count, epochs=2))
        for count in (1000, 3000)
    )
    assert many.training_s == pytest.approx(3 * few.training_s)
    assert few.cost is not None and many.cost == pytest.approx(3 * few.cost)


def test_without_a_price_the_reason_is_stated(tmp_path: Path) -> None:
    profile = read_profile(write_profile(tmp_path / "profile", {4: [0.5]}))
    offer = measured_offer(
        profile, INSTANCE, PriceBook(region="nowhere"), AmountAsked(samples=1000)
    )
    assert offer.price is None
    assert offer.no_price is not None and offer.no_price.code == "price_not_known"


def test_a_profile_that_states_too_little_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="neither step 2 nor step 4"):
        measured(tmp_path / "one", {1: [0.1], 3: [0.2]}, AmountAsked())
    profile = read_profile(write_profile(tmp_path / "two", {4: [0.5]}))
    bare = replace(
        profile,
        launches={
            key: replace(launch, batches_per_epoch=None) for key, launch in profile.launches.items()
        },
    )
    with pytest.raises(MeasureError, match="does not tell how long an epoch is"):
        measured_offer(bare, INSTANCE, FOUR_DOLLARS, AmountAsked())
    assert measured_offer(bare, INSTANCE, FOUR_DOLLARS, AmountAsked(samples=8)).samples == 8


def test_without_a_batch_size_samples_are_iterations(tmp_path: Path) -> None:
    """The time of an epoch is known all the same; samples of the user's own cannot be counted."""
    profile = read_profile(write_profile(tmp_path / "profile", {4: [0.5]}))
    bare = replace(
        profile,
        launches={
            key: replace(launch, batch_size=None) for key, launch in profile.launches.items()
        },
    )
    offer = measured_offer(bare, INSTANCE, FOUR_DOLLARS, AmountAsked(epochs=2))
    assert offer.training_s == pytest.approx(2 * 10 * 0.5)
    with pytest.raises(ConfigError, match="leave --samples out"):
        measured_offer(bare, INSTANCE, FOUR_DOLLARS, AmountAsked(samples=1e6))


def test_tokens_of_a_profile_are_refused(tmp_path: Path) -> None:
    """Else a measured offer would train an epoch of its own beside simulated ones of so many."""
    profile = read_profile(write_profile(tmp_path / "profile", {4: [0.5]}))
    with pytest.raises(ConfigError, match="--tokens counts texts of known length"):
        measured_offer(profile, INSTANCE, FOUR_DOLLARS, AmountAsked(tokens=1e6))
