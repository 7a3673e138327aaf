"""Memory beside the answers of `predict`: the numbers, whether a job fits, and what would help."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from driple.api.memory import memory_beside, memory_dict
from driple.api.memory_remedies import with_remedies
from driple.api.plan_results import PlanResult
from driple.api.planning import plan
from driple.api.sweeping import sweep
from driple.catalog import read_catalog
from driple.cluster.setting import Setting, parse_setting
from driple.errors import CatalogError, ConfigError
from driple.jobs.load import JobOptions, JobReads, load_job
from driple.memory.batch_line import batched_memory
from driple.memory.calibration import shipped_memory_calibration
from driple.memory.estimate import memory_of, memory_of_places, memory_of_step
from driple.memory.graph_lifetimes import with_lifetimes
from driple.memory.place import MemoryPlace
from driple.memory.step_memory import StepMemory
from driple.render.memory_lines import memory_sentence
from driple.render.remarks import sentence, sentences

MODEL = "timm:vit_tiny_patch16_224"


def _asked(setting: str, batch: int, **options: object):  # type: ignore[no-untyped-def]
    asked = JobOptions(batch_size=batch, optimizer="adamw", **options)  # type: ignore[arg-type]
    there = Setting.parse(setting)
    job = load_job(MODEL, asked, setting=there)
    return with_remedies(memory_beside(job, there), job, there, JobReads(MODEL), asked)


def test_a_small_job_fits() -> None:
    """Each number holds the one before; the sentence states them and the margin."""
    memory = _asked("1xA100", 32)
    estimate = memory.estimate
    assert estimate is not None and estimate.fits == "yes" and not memory.remedies
    assert estimate.allocated.value <= estimate.reserved.value < estimate.device_total.value
    need_bytes = estimate.allocated.value + estimate.parts["outside the allocator"]
    share = shipped_memory_calibration().no_above  # of the usable memory, that runs reach
    assert estimate.margin_bytes == pytest.approx(share * estimate.usable_bytes - need_bytes)
    assert sum(estimate.parts.values()) == pytest.approx(
        estimate.allocated.value + estimate.parts["outside the allocator"]
    )
    assert ": fits, " in memory_sentence(estimate)


def test_a_compiled_model_needs_at_most_what_it_needs_uncompiled() -> None:
    """So that it may fit although the same model without compilation does not."""
    plain, compiled = (_asked("1x2080Ti", 512, compiled=one).estimate for one in (False, True))
    assert compiled.allocated == plain.allocated
    assert (plain.fits, compiled.fits) == ("no", "likely not")
    assert memory_sentence(compiled).startswith("memory at most ")


def test_what_does_not_fit_names_changes_that_do() -> None:
    """Every change that is said to fit does, by the estimate itself; a larger batch does not."""
    memory = _asked("2x2080Ti", 512)
    assert memory.estimate.fits == "no"
    flags = {one.flag.split()[0]: one for one in memory.remedies}
    assert set(flags) == {
        "--batch-size", "--activation-checkpointing", "--optimizer", "--scheme",
    }  # fmt: skip
    batch = int(flags["--batch-size"].flag.split()[1])
    assert _asked("2x2080Ti", batch).estimate.fits == "yes"
    assert _asked("2x2080Ti", batch + 2).estimate.fits != "yes"
    shown = memory_dict(memory)
    assert shown["fits"] == "no"
    assert [one["fits"] for one in shown["what_would_fit"]].count("yes") >= 1


@pytest.mark.parametrize("precision", ["bf16", "bf16-mixed"])
def test_states_of_8_bits_are_those_of_the_job_with_that_option(precision: str) -> None:
    """Masters in fp32 stay beside them: what a remedy needs is what its option needs."""
    memory = _asked("1x2080Ti", 2048, precision=precision)
    remedy = next(one for one in memory.remedies if one.flag == "--optimizer adam8bit")
    options = JobOptions(batch_size=2048, optimizer="adam8bit", precision=precision)
    setting = Setting.parse("1x2080Ti")
    alone = memory_of(load_job(MODEL, options, setting=setting), setting)
    assert remedy.memory.parts["optimizer"] == alone.parts["optimizer"]
    assert remedy.memory.device_total == alone.device_total


def test_processors_have_no_memory_answer() -> None:
    """A setting of CPU workers is asked for no device memory."""
    asked = JobOptions(batch_size=4)
    job = load_job(MODEL, asked)
    assert memory_beside(job, Setting.parse("CPU-P1w2/ho-200M")) is None


def test_a_device_without_memory_is_refused_by_the_field(tmp_path: Path) -> None:
    """A row of the user's catalog that lacks memory_bytes is named with that field."""
    file = tmp_path / "mine.toml"
    file.write_text(
        "format = 1\n[[devices]]\nname = 'Mine'\ngeneration = 'Ampere'\n"
        "fp32_flops = 1e13\nbytes_per_s = 1e12\npcie_generation = 4\npcie_lanes = 16\n"
    )
    setting = parse_setting("1xMine", [file])
    assert read_catalog([file]).find_device("Mine") is not None
    with pytest.raises(CatalogError, match="memory_bytes"):
        memory_of(load_job(MODEL, JobOptions(batch_size=4)), setting)


def test_batches_of_a_plan_are_the_answers_of_each_batch() -> None:
    """Memory at many batch sizes agrees with a job that is read at that size."""
    setting = Setting.parse("8xA100@fsdp")
    few, many = (load_job(MODEL, JobOptions(batch_size=size)) for size in (8, 16))
    at = batched_memory(few, many, setting)
    for size in (8, 24, 64):
        estimate = at(size)
        alone = memory_of(load_job(MODEL, JobOptions(batch_size=size)), setting)
        assert estimate.device_total == alone.device_total
        assert estimate.allocated == alone.allocated


def test_devices_that_split_a_model_need_less() -> None:
    """Tensor and pipeline parallelism: at every batch size what a job read at that size needs."""
    setting = Setting.parse("6xA100@tp3-pp2")
    few, many = (load_job(MODEL, JobOptions(batch_size=size)) for size in (8, 16))
    at = batched_memory(few, many, setting)
    for size in (8, 24):
        job = load_job(MODEL, JobOptions(batch_size=size))
        estimate, alone = memory_of(job, setting), memory_of(job, Setting.parse("1xA100"))
        assert at(size).device_total == estimate.device_total
        assert estimate.allocated.value < alone.allocated.value / 2


UNLIKE = """machines:
  - {count: 4, devices: 8, device: H100, link: NVLink}
  - {count: 1, devices: 4, device: V100}
network: 400G
"""


@pytest.mark.parametrize("is_first", [True, False])
def test_unlike_devices_are_answered_with_the_one_that_has_least_room(
    tmp_path: Path, is_first: bool
) -> None:
    """Whichever kind of device is listed first: 16 GiB of a V100 decide, not 80 of an H100."""
    file = tmp_path / "cluster.yaml"
    first, second, third, *rest = UNLIKE.splitlines()
    rows = [second, third] if is_first else [third, second]
    file.write_text("\n".join([first, *rows, *rest]) + "\n")
    estimate = _asked(str(file), 1024).estimate
    alone = _asked("4xV100", 1024).estimate
    assert (estimate.fits, estimate.device, estimate.capacity_bytes) == ("no", "V100", 16 * 2.0**30)
    assert estimate.margin_bytes == alone.margin_bytes
    assert " of 16 GiB on V100, which has least room: does not fit, " in memory_sentence(estimate)
    assert memory_dict(_asked(str(file), 1024))["device"] == "V100"
    small = _asked(str(file), 8).estimate
    assert (small.fits, small.device) == ("yes", "V100")


def test_the_unlike_workers_of_a_setting_by_name_count_too() -> None:
    """Six of ten workers of V100-P5w10 are 2080Ti with 11 GiB; CPUs beside GPUs need no memory."""
    estimate = _asked("V100-P5w10/he-1G", 32).estimate
    assert (estimate.device, estimate.capacity_bytes) == ("2080Ti", 11 * 2.0**30)


def test_devices_of_one_kind_are_answered_without_a_name(tmp_path: Path) -> None:
    """Processors beside them have no such memory, and change nothing."""
    file = tmp_path / "cluster.yaml"
    file.write_text("machines:\n  - {devices: 2, device: H100}\n  - {device: CPU}\nnetwork: 100G\n")
    estimate = _asked(str(file), 32).estimate
    assert (estimate.device, estimate.capacity_bytes) == ("", 80 * 2.0**30)
    assert " of 80 GiB: fits, " in memory_sentence(estimate)


def test_the_smallest_machine_decides_where_a_scheme_shards_within_machines(
    tmp_path: Path,
) -> None:
    """Under hsdp, 2 devices hold larger shards than 8 of the same kind."""
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "machines:\n  - {devices: 8, device: H100}\n  - {devices: 2, device: H100}\n"
        "network: 100G\nscheme: hsdp\n"
    )
    kinds = MemoryPlace.of_kinds(Setting.parse(str(file)))
    assert [place.shards for place in kinds] == [8, 2]
    job = load_job(MODEL, JobOptions(batch_size=8, optimizer="adamw"))
    step = StepMemory.of(with_lifetimes(job.graph))
    eight, two = (memory_of_step(step, place) for place in kinds)
    assert memory_of_places([step], kinds) == two != eight


def test_a_sweep_states_the_device_with_least_room(tmp_path: Path) -> None:
    """A batch size that fits an H100 alone is not called one that fits."""
    file = tmp_path / "cluster.yaml"
    file.write_text(UNLIKE)
    result = sweep(MODEL, str(file), batch_sizes=[8, 1024], options=JobOptions(optimizer="adamw"))
    assert result.facts["fits"] == ["yes", "no"]
    assert result.facts["device"] == ["V100", "V100"]
    assert result.facts["device_capacity_bytes"] == [16 * 2.0**30] * 2
    assert sentences(result.remarks) == (
        "the largest of these batch sizes that fits: 8; least room: V100",
    )


def test_a_plan_recommends_nothing_that_one_kind_of_device_cannot_hold(tmp_path: Path) -> None:
    """A batch that only the H100s hold is refused by the V100's name; a small one names it too."""
    file = tmp_path / "cluster.yaml"
    file.write_text(UNLIKE)

    def asked(batch: int, **options: object) -> PlanResult:
        given = JobOptions(batch_size=batch, **options)  # type: ignore[arg-type]
        return plan(
            MODEL, options=given, settings=[str(file)], samples=1e4, schemes=["ddp"], vary=[]
        )

    fitting, too_large = asked(8), asked(1024)
    (offer,) = fitting.offers
    assert offer.fits_words == "yes (V100)"
    assert fitting.to_dict()["offers"][0]["memory"]["device"] == "V100"
    assert not too_large.offers
    assert "and V100 has 16 GiB" in too_large.refused[0].reason
    assert "V100 has least memory, 16 GiB each" in sentence(too_large.remedy)
    with pytest.raises(ConfigError, match="bfloat16, which V100"):
        asked(8, precision="amp-bf16")
