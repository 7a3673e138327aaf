"""Candidates keep the global batch, fit, and come in one order."""

from dataclasses import replace
from pathlib import Path

import pytest

from driple.api.planning import PlanResult, plan
from driple.catalog import shipped_catalog
from driple.engine.local import LocalEngine
from driple.errors import ConfigError, SettingError
from driple.jobs.load import JobOptions
from driple.jobs.training_config import read_training_config
from driple.memory.last_that import last_that
from driple.planning.amount import AmountAsked, amount_of
from driple.planning.evaluator import Evaluator
from driple.planning.places import places_of
from driple.planning.prices import PriceBook
from driple.planning.ranking import TrainingLimits, choose
from driple.planning.search import Asked, search
from driple.planning.variants import JobVariants
from driple.render.remarks import sentences
from tests.planning.gpt import write_gpt
from tests.simulate.jobs import net

OPTIONS = JobOptions(seq_len=64)
KNOWN = shipped_catalog().instances
CASES = Path(__file__).resolve().parents[1] / "data" / "cases"


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gpt(tmp_path_factory.mktemp("gpt"))


def test_the_global_batch_is_kept(gpt: str) -> None:
    result = plan(
        gpt, options=OPTIONS, samples=1e4, instances=["p4d", "g5.xlarge"], machines=[1, 2, 3],
        global_batch=96,
    )  # fmt: skip
    assert {offer.devices for offer in result.offers} == {1, 2, 3, 8, 16, 24}
    for offer in result.offers:
        assert offer.variant is not None
        assert offer.variant.samples_per_update * offer.devices == 96
        assert offer.samples_per_s == pytest.approx(96 / offer.iteration_s)
    whole = plan(
        gpt, options=JobOptions(seq_len=64, batch_size=6), samples=1e4, instances=["p4d"],
        machines=[1, 2, 3], global_batch=96,
    )  # fmt: skip
    assert {offer.variant.parts[0] for offer in whole.offers if offer.variant} == {
        "batch 6 x 2", "batch 6"}  # fmt: skip
    (odd,) = whole.refused
    assert odd.name == "3xp4d.24xlarge"
    assert "no multiple of the batch of 6" in odd.reason


def test_each_candidate_is_an_offer_or_has_its_reason() -> None:
    """A group without candidates counts as one: a graph of 16 samples has no batch of 24."""
    variants = JobVariants(net(16), JobOptions(batch_size=16))
    evaluator = Evaluator(
        variants, amount_of(variants.given, AmountAsked(samples=1e4)), PriceBook()
    )
    places, _ = places_of([KNOWN["p3.2xlarge"], KNOWN["p3.8xlarge"]], [1])
    counts = {}
    for global_batch in (24, 64):
        result = search(evaluator, places, Asked(schemes=("ddp",), global_batch=global_batch))
        counts[global_batch] = (result.tried, len(result.offers), len(result.refused))
    assert counts == {24: (2, 0, 2), 64: (2, 1, 1)}


def test_the_same_question_has_the_same_answer(gpt: str) -> None:
    ask = {"options": OPTIONS, "samples": 1e4, "instances": ["p4d", "g5"], "machines": [1, 2]}
    first, two = (plan(gpt, **ask) for _ in range(2))  # type: ignore[arg-type]
    assert first.to_dict() == two.to_dict()


def test_processes_find_what_a_loop_finds(gpt: str) -> None:
    """Offers, refusals and their order, of more kinds of instances than there are processes."""
    asked = Asked(vary=("checkpointing",))
    variants = JobVariants(gpt, replace(OPTIONS, precision="amp-bf16"))
    amount = amount_of(variants.given, AmountAsked(samples=1e4))
    places, _ = places_of(  # a V100 has no bfloat16
        [KNOWN[name] for name in ("p4d.24xlarge", "g5.xlarge", "p3.8xlarge")], [1, 2]
    )
    steps: dict[int, list[int]] = {}
    results = {}
    for workers in (0, 2):
        evaluator = Evaluator(variants, amount, PriceBook())
        advance = steps.setdefault(workers, []).append
        if not workers:
            results[workers] = search(evaluator, places, asked, advance)
            continue
        with LocalEngine(workers) as engine:
            results[workers] = search(evaluator, places, asked, advance, engine)
    assert results[0].refused
    assert len({offer.name for offer in results[0].offers}) > 3
    assert results[0] == results[2]
    assert steps[0] == steps[2]


def test_few_passes_stand_for_many(gpt: str) -> None:
    """64 passes of FSDP, of which eight are simulated, against all of them."""
    from driple.cluster.setting import Setting
    from driple.jobs.load import load_job
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob
    from driple.simulate.run import simulated_step_s

    result = plan(
        gpt, options=JobOptions(seq_len=64, batch_size=1), samples=1e4, instances=["p4d"],
        schemes=["fsdp"], vary=[], global_batch=8 * 64,
    )  # fmt: skip
    (offer,) = result.offers
    job = load_job(gpt, JobOptions(seq_len=64, batch_size=1, grad_accumulation=64))
    whole_s = simulated_step_s(
        PreparedJob.of_job(job), Setting.parse("p4d.24xlarge@fsdp"), shipped_calibration(),
        num_steps=20,
    )  # fmt: skip
    assert offer.iteration_s == pytest.approx(whole_s, rel=0.01)


def test_a_batch_that_is_free_is_the_largest_that_fits(tmp_path: Path) -> None:
    """On a device of 4 GB a smaller batch is tried than on one of 80 GB."""
    job = write_gpt(tmp_path, layers=2, width=256)
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[[devices]]\nname = "A100-4G"\ngeneration = "Ampere"\nmemory_bytes = 4e9\n'
        + "".join(f"{name} = {value}\n" for name, value in FACTS.items())
        + '[[instances]]\nname = "small"\ndevice = "A100-4G"\nnum_devices = 1\n'
        'interconnect = "PCIe"\nprice_per_hour = 1\n'
    )
    result = plan(
        job, options=JobOptions(seq_len=256), samples=1e4, instances=["small", "p4d"],
        catalogs=[mine], vary=["batch"], schemes=["ddp"], global_batch=8 * 512,
    )  # fmt: skip
    sizes = {
        name: max(
            one.variant.batch_size for one in result.offers if one.name == name and one.variant
        )
        for name in ("small", "p4d.24xlarge")
    }
    assert sizes["small"] < sizes["p4d.24xlarge"]
    assert all(offer.fits == "yes" for offer in result.offers)


FACTS = {
    "fp32_flops": 19.5e12, "fp16_flops": 312e12, "bf16_flops": 312e12, "tf32_flops": 156e12,
    "tensor_cores": "true", "datacentre": "true", "bytes_per_s": 1.55e12, "cache_bytes": 40e6,
    "multiprocessors": 108, "pcie_generation": 4, "pcie_lanes": 16, "pcie_peers": "true",
    "counter_window_s": 0.1667,
}  # fmt: skip


def test_the_last_number_is_found() -> None:
    for count in (0, 1, 2, 7):
        for last in range(-1, count):
            for guess in range(-1, count + 2):
                assert last_that(set(range(last + 1)).__contains__, count, guess) == last


def test_what_may_vary_is_checked() -> None:
    with pytest.raises(ConfigError, match="--set vary"):
        Asked(vary=("colour",))
    with pytest.raises(ConfigError, match="--global-batch"):
        Asked(global_batch=0)


@pytest.mark.parametrize("setting", ["1xH100", "8xH100"])
def test_an_offer_holds_a_slower_host_as_a_prediction_does(gpt: str, setting: str) -> None:
    """The host decides how long a small transformer takes."""
    from driple import predict

    options = JobOptions(seq_len=64, batch_size=1)
    result = plan(gpt, options=options, samples=1e4, settings=[setting], schemes=["ddp"], vary=[])
    (offer,) = result.offers
    (answer,) = predict(gpt, setting, options=options, method="simulator").answers
    ends = answer.iteration_time_s.interval
    assert answer.slow_host is not None and ends is not None and ends.high is not None
    assert ends.low is not None
    assert offer.slow_host == answer.slow_host
    assert offer.factors is not None
    assert offer.factors[1] * offer.iteration_s == pytest.approx(ends.high)
    assert offer.error is not None and offer.error_factors is not None
    assert offer.error_factors == pytest.approx(offer.error.interval_of(1.0))
    assert offer.factors[0] * offer.iteration_s == pytest.approx(ends.low)
    assert offer.factors != offer.error_factors  # by what hosts take, not by errors of kernels


def test_an_offer_that_is_not_recommended_says_what_stands_in_for_its_device(gpt: str) -> None:
    """Without a price nothing is recommended."""
    result = plan(gpt, options=OPTIONS, samples=1e4, devices=["MI300X"], schemes=["ddp"], vary=[])
    assert result.choice.best is None and result.offers
    assert any("no measured run on MI300X" in words for words in sentences(result.remarks))


UNET = f"{CASES / 'unet.py'}:UNet"
UNET_OPTIONS = JobOptions(batch_size=8, precision="amp-bf16", optimizer="adamw")


@pytest.fixture(scope="module")
def unet_plan() -> PlanResult:
    """The largest batch is up to the plan, on one H100 and on eight."""
    options = replace(
        UNET_OPTIONS, data=f"{CASES / 'unet.py'}:Tiles", loss=f"{CASES / 'unet.py'}:loss_fn"
    )
    return plan(
        UNET, options=options, epochs=50, instances=["p5.4xlarge", "p5.48xlarge"], vary="batch"
    )


def test_the_largest_batch_is_not_bounded_by_the_given_one(unet_plan: PlanResult) -> None:
    """A UNet was planned with 32 samples, four times those given, where 96 fit."""
    alone = {
        offer.variant.batch_size: offer
        for offer in unet_plan.offers
        if offer.variant is not None and offer.name == "p5.4xlarge"
    }
    assert set(alone) == {8, 16, 64, 96}
    assert alone[96].fits == "yes" and alone[96].may_not_fit
    assert alone[96].memory_bytes == pytest.approx(78.5 * 2**30, rel=0.01)
    assert not alone[64].may_not_fit
    (largest,) = {offer.largest for offer in alone.values()}
    assert largest is not None and largest.sure is not None
    assert 96 <= largest.expected < 128 and 64 <= largest.sure < 96


def test_a_batch_that_may_not_fit_must_be_worth_it(unet_plan: PlanResult) -> None:
    """A larger one that saves less than 5 % is not recommended; one that saves more is."""
    best = unet_plan.choice.best
    assert best is not None and best.variant is not None and best.variant.batch_size == 64
    assert unet_plan.choice.why is not None
    assert "surely fits" in sentences([unet_plan.choice.why])[0]
    faster = [
        replace(offer, samples_per_s=2 * offer.samples_per_s) if offer.may_not_fit else offer
        for offer in unet_plan.offers
    ]
    choice = choose(faster, TrainingLimits())
    assert choice.best is not None and choice.best.may_not_fit and choice.why is not None
    assert "Its memory may reach" in sentences([choice.why])[0]
    sure = choice.best.largest.sure if choice.best.largest else None
    assert f"a batch of {sure} surely fits" in sentences([choice.why])[0]


def test_a_plan_and_a_prediction_have_the_same_largest_batches(unet_plan: PlanResult) -> None:
    from driple import predict

    options = replace(
        UNET_OPTIONS, data=f"{CASES / 'unet.py'}:Tiles", loss=f"{CASES / 'unet.py'}:loss_fn"
    )
    memory = predict(UNET, "1xH100", options=options).answers[0].memory
    (planned,) = {one.largest for one in unet_plan.offers if one.name == "p5.4xlarge"}
    assert memory is not None and memory.largest == planned


def test_any_scheme_tries_degrees_that_fit(gpt: str) -> None:
    """Those that suit of their own accord, and tensor groups; a name beside is tried alone."""

    def tried(*schemes: str) -> set[str]:
        result = plan(
            gpt, options=OPTIONS, samples=1e4, settings=["8xA100"], vary=[], schemes=schemes
        )
        return {one.candidate.setting.scheme.suffix for one in result.offers if one.candidate}

    usual, every, named = tried(), tried("any"), tried("any", "fsdp")
    assert usual < every
    assert {scheme for scheme in every if scheme.startswith("tp")} == every - usual != set()
    assert named == {"fsdp", *(every - usual)}


def test_degrees_are_answered_by_placements_that_have_them(gpt: str) -> None:
    """One device has no tp2: it is refused with the reason, in place of an answer without."""
    result = plan(
        gpt, options=OPTIONS, samples=1e4, instances=["p3.2xlarge", "p3.8xlarge"], schemes=["tp2"]
    )
    assert {offer.scheme for offer in result.offers} == {"tp2"}
    (alone,) = {one.reason for one in result.refused if one.name == "p3.2xlarge"}
    assert "tp2 needs groups of 2 devices" in alone
    with pytest.raises(SettingError, match="--scheme tp3 needs groups of 3 devices"):
        plan(
            gpt, options=OPTIONS, samples=1e4, instances=["p3.2xlarge", "p3.8xlarge"],
            schemes=["tp3"],
        )  # fmt: skip


def test_a_scheme_that_no_machine_runs_is_said_beside_the_answer_in_another(gpt: str) -> None:
    """tp16 has 16 devices here and not as many heads: the answer in fsdp said nothing of it."""
    result = plan(
        gpt, options=OPTIONS, samples=1e4, settings=["8xA100", "16xA100"], schemes=["tp16", "fsdp"]
    )
    assert {offer.scheme for offer in result.offers} == {"fsdp"}
    (words,) = sentences(one for one in result.remarks if one.code == "scheme_refused")
    assert "--scheme tp16 runs on none of these machines: tp16 does not divide" in words
    for named in (["tp2", "fsdp"], ["any", "fsdp"], []):  # one device runs neither tp2 nor fsdp
        answered = plan(
            gpt, options=OPTIONS, samples=1e4, instances=["p3.2xlarge", "p3.8xlarge"], schemes=named
        )
        assert not any(one.code == "scheme_refused" for one in answered.remarks)


def test_a_refused_scheme_is_said_beside_a_setting_that_states_its_own(gpt: str) -> None:
    result = plan(
        gpt, options=OPTIONS, samples=1e4, settings=["8xA100@fsdp", "4xA100"],
        schemes=["tp3", "fsdp"],
    )  # fmt: skip
    assert {offer.scheme for offer in result.offers} == {"fsdp"}
    (words,) = sentences(one for one in result.remarks if one.code == "scheme_refused")
    assert "tp3 needs groups of 3 devices" in words


def test_degrees_of_a_training_config_are_not_answered_by_one_device(
    gpt: str, tmp_path: Path
) -> None:
    """tp4 of a torchtitan file: four devices run it, and one is refused with the reason."""
    file = tmp_path / "train.toml"
    file.write_text(
        "[training]\nlocal_batch_size = 1\nseq_len = 64\n"
        "[parallelism]\ntensor_parallel_degree = 4\ndata_parallel_shard_degree = 1\n"
    )
    options = JobOptions(config=read_training_config(file))
    assert options.config.scheme == "tp4"
    result = plan(gpt, options=options, samples=1e4, instances=["g5.xlarge", "g5.12xlarge"])
    assert {(offer.name, offer.scheme) for offer in result.offers} == {("g5.12xlarge", "tp4")}
    (alone,) = {one.reason for one in result.refused if one.name == "g5.xlarge"}
    assert "tp4 needs groups of 4 devices" in alone
    with pytest.raises(ConfigError, match="tp4 needs groups of 4 devices"):
        plan(gpt, options=options, samples=1e4, instances=["g5.xlarge"])
