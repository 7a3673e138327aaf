"""What a candidate takes: the simulator's step, its price, and why it cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.by_simulator import ask_step
from driple.catalog import Price
from driple.cluster.setting import Setting
from driple.graph.opgraph import ReadReport
from driple.jobs.load import JobOptions
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.planning.amount import AmountAsked, amount_of
from driple.planning.evaluator import Evaluator, memory_reason, passes_kept
from driple.planning.offers import Offer
from driple.planning.places import Candidate, Refused, place_of_setting
from driple.planning.prices import PriceBook, PriceFile
from driple.planning.variants import JobVariants, Variant
from driple.simulate.place import place_of
from tests.simulate.jobs import net

BOOK = PriceBook(
    files=(PriceFile(prices={"8xV100/NVLink": (Price(per_hour=20.0, date=None, source="x"),)}),)
)
VARIANTS = JobVariants(net(16), JobOptions(batch_size=16))
EVALUATOR = Evaluator(
    VARIANTS, amount_of(VARIANTS.given, AmountAsked(samples=3.6e6, epochs=2)), BOOK
)


def candidate(name: str, **changes: object) -> Candidate:
    setting = Setting.parse(name)
    place = place_of_setting(Setting.parse(name.partition("@")[0]))
    variant = replace(VARIANTS.usual, **changes)  # type: ignore[arg-type]
    return Candidate(place=place, setting=setting, variant=variant)


def offered(name: str) -> Offer:
    offer = EVALUATOR.offer(candidate(name))
    assert isinstance(offer, Offer)
    return offer


@pytest.mark.parametrize("name", ["1xV100", "8xV100/NVLink", "8xV100/NVLink@fsdp"])
def test_an_offer_takes_what_the_simulator_answers(name: str) -> None:
    offer = offered(name)
    step_s = ask_step(EVALUATOR.ready(VARIANTS.usual, Setting.parse(name)),
                      place_of(Setting.parse(name))).step_s  # fmt: skip
    devices = Setting.parse(name).num_workers
    assert offer.iteration_s == step_s
    assert offer.devices == devices
    assert offer.samples_per_s == pytest.approx(16 * devices / step_s)
    assert offer.samples == 7.2e6
    assert offer.training_s == pytest.approx(7.2e6 / (16 * devices) * step_s)
    assert offer.provenance == "simulated"


def test_a_price_belongs_to_the_machines_whatever_the_scheme() -> None:
    for name in ("8xV100/NVLink", "8xV100/NVLink@fsdp"):
        offer = offered(name)
        assert offer.per_hour == 20.0
        assert offer.cost == pytest.approx(offer.training_s / 3600 * 20)
        assert offer.no_price is None
    bare = offered("1xV100")
    assert bare.price is None
    assert bare.no_price is not None and bare.no_price.code == "no_price_of_own"


def test_a_job_with_unknown_sizes_has_no_price() -> None:
    """However well the machines' price is known."""
    graph = replace(net(16), report=ReadReport(unknown_share=0.5, unknown_dimensions=3))
    variants = JobVariants(graph, JobOptions(batch_size=16))
    evaluator = Evaluator(variants, EVALUATOR.amount, BOOK)
    offer = evaluator.offer(candidate("8xV100/NVLink"))
    assert isinstance(offer, Offer)
    assert offer.price is None and offer.cost is None
    assert offer.no_price == variants.given.unknown


def test_a_device_alone_does_not_communicate() -> None:
    assert offered("1xV100").communication_pct == 0.0
    shared = offered("8xV100/PCIe").communication_pct
    assert shared is not None and shared > 0
    faster = offered("8xV100/NVLink").communication_pct
    assert faster is not None and faster < shared


def test_a_graph_is_read_once_and_has_no_other_batches() -> None:
    first, other = (EVALUATOR.ready(VARIANTS.usual, Setting.parse(name)) for name in
                  ("1xV100", "8xH100"))  # fmt: skip
    assert first is other
    assert EVALUATOR.largest_batches(candidate("8xV100/NVLink")) is None
    assert offered("8xV100/NVLink").largest is None


def test_a_variant_that_a_graph_does_not_have_is_refused() -> None:
    refused = EVALUATOR.offer(candidate("1xV100", batch_size=17))
    assert isinstance(refused, Refused)
    assert refused.name == "1xV100"
    assert "fixed graph" in refused.reason


@pytest.mark.parametrize("precision", ["bf16", "amp-bf16", "bfloat16", "bf16-mixed"])
def test_devices_that_only_emulate_bfloat16_are_refused(precision: str) -> None:
    refused = EVALUATOR.refusal(candidate("8xV100/NVLink", precision=precision))
    assert refused is not None
    assert "bfloat16, which V100 (Volta) only emulates; train in float16" in refused.reason
    assert refused.needed_bytes is None


@pytest.mark.parametrize("precision", ["fp16", "amp-fp16", "fp32", ""])
def test_other_formats_are_not(precision: str) -> None:
    usual = EVALUATOR.refusal(candidate("8xV100/NVLink"))
    assert usual is None
    fits = MemoryEstimate(allocated=Bytes(value=1.0), fits="yes")
    evaluator = Evaluator(VARIANTS, EVALUATOR.amount, BOOK)
    evaluator.memory = lambda _: fits  # type: ignore[method-assign]
    assert evaluator.refusal(candidate("8xV100/NVLink", precision=precision)) is None
    assert evaluator.refusal(candidate("8xH100/NVLink", precision="bf16")) is None


@pytest.mark.parametrize(("fits", "is_refused"), [("no", True), ("likely not", False),
                                                  ("yes", False), (None, False)])  # fmt: skip
def test_only_what_surely_lacks_memory_is_refused(fits: str | None, is_refused: bool) -> None:
    memory = MemoryEstimate(
        allocated=Bytes(value=60e9), capacity_bytes=32e9, fits=fits, largest="activations of a"  # type: ignore[arg-type]
    )  # fmt: skip
    evaluator = Evaluator(VARIANTS, EVALUATOR.amount, BOOK)
    evaluator.memory = lambda _: memory  # type: ignore[method-assign]
    refused = evaluator.refusal(candidate("8xV100/NVLink@fsdp"))
    assert (refused is not None) is is_refused
    if refused is not None:
        assert refused.needed_bytes == 60e9
        assert refused.name == "8xV100/NVLink"


def test_the_reason_says_what_is_needed_and_what_there_is() -> None:
    memory = MemoryEstimate(
        allocated=Bytes(value=60 * 2.0**30), capacity_bytes=32 * 2.0**30, fits="no"
    )
    shared = memory_reason(memory, candidate("8xV100/NVLink@fsdp"))
    assert shared.startswith("each device needs 60") and "(fsdp, batch 16" in shared
    assert ", and V100 has 32" in shared and "largest" not in shared
    alone = memory_reason(replace(memory, largest="the head"), candidate("1xV100"))
    assert "(batch 16" in alone and alone.endswith("; the largest part is the head")
    nothing = replace(memory, allocated=Bytes(value=0.0))
    assert memory_reason(nothing, candidate("1xV100")).startswith("each device needs 0 ")
    mixed = memory_reason(replace(memory, device="T4"), candidate("1xV100"))
    assert "and T4 has" in mixed


@given(st.integers(1, 500), st.sampled_from(["8xH100", "8xH100@pp8", "8xH100@pp4-vpp2"]))
def test_more_passes_than_stages_keep_no_more(passes: int, name: str) -> None:
    setting = Setting.parse(name)
    kept = passes_kept(Variant(batch_size=1, grad_accumulation=passes), setting)
    most = {"8xH100": 2, "8xH100@pp8": 8, "8xH100@pp4-vpp2": 8}[name]
    assert kept == min(passes, most)


@pytest.mark.parametrize(
    ("fits", "upper", "may", "surely"),
    [("yes", 50.0, True, True), ("yes", 90.0, True, False), ("no", 50.0, False, False),
     (None, None, True, False)],
)  # fmt: skip
def test_what_may_fit_and_what_surely_does(
    fits: str | None, upper: float | None, may: bool, surely: bool
) -> None:
    memory = MemoryEstimate(
        allocated=Bytes(value=40.0, upper=upper), capacity_bytes=80.0, fits=fits  # type: ignore[arg-type]
    )  # fmt: skip
    evaluator = Evaluator(VARIANTS, EVALUATOR.amount, BOOK)
    evaluator.quick_memory = lambda _: memory  # type: ignore[method-assign]
    asked = candidate("8xV100/NVLink")
    assert (evaluator.may_fit(asked), evaluator.surely_fits(asked)) == (may, surely)
    evaluator.quick_memory = lambda _: None  # type: ignore[method-assign]
    assert (evaluator.may_fit(asked), evaluator.surely_fits(asked)) == (True, False)
