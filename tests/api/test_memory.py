"""Memory beside the answers of `predict`: the numbers, whether a job fits, and what would help."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from driple.api.memory import memory_beside, memory_dict, memory_sentence
from driple.api.memory_remedies import with_remedies
from driple.catalog import read_catalog
from driple.cluster.setting import Setting, parse_setting
from driple.errors import CatalogError
from driple.jobs.load import JobOptions, load_job
from driple.memory.estimate import memory_at_batches, memory_of

MODEL = "timm:vit_tiny_patch16_224"


def _asked(setting: str, batch: int, **options: object):  # type: ignore[no-untyped-def]
    asked = JobOptions(batch_size=batch, optimizer="adamw", **options)  # type: ignore[arg-type]
    there = Setting.parse(setting)
    job = load_job(MODEL, asked, setting=there)
    return with_remedies(memory_beside(job, there), job, there, MODEL, asked)


def test_a_small_job_fits() -> None:
    """Each number holds the one before; the sentence states them and the margin."""
    found = _asked("1xA100", 32)
    made = found.estimate
    assert made is not None and made.fits == "yes" and not found.remedies
    assert made.allocated.value <= made.reserved.value < made.device_total.value
    assert made.margin_bytes == pytest.approx(
        made.usable_bytes - made.allocated.value - made.parts["outside the allocator"]
    )
    assert sum(made.parts.values()) == pytest.approx(
        made.allocated.value + made.parts["outside the allocator"]
    )
    assert ": fits, " in memory_sentence(made)


def test_a_compiled_model_needs_at_most_what_it_needs_uncompiled() -> None:
    """So that it may fit although the same model without compilation does not."""
    plain, compiled = (_asked("1x2080Ti", 512, compiled=one).estimate for one in (False, True))
    assert compiled.allocated == plain.allocated
    assert (plain.fits, compiled.fits) == ("no", "likely not")
    assert memory_sentence(compiled).startswith("memory at most ")


def test_what_does_not_fit_names_changes_that_do() -> None:
    """Every change that is said to fit does, by the estimate itself; a larger batch does not."""
    found = _asked("2x2080Ti", 512)
    assert found.estimate.fits == "no"
    flags = {one.flag.split()[0]: one for one in found.remedies}
    assert set(flags) == {
        "--batch-size", "--activation-checkpointing", "--optimizer", "--scheme",
    }  # fmt: skip
    batch = int(flags["--batch-size"].flag.split()[1])
    assert _asked("2x2080Ti", batch).estimate.fits == "yes"
    assert _asked("2x2080Ti", batch + 2).estimate.fits != "yes"
    shown = memory_dict(found)
    assert shown["fits"] == "no"
    assert [one["fits"] for one in shown["what_would_fit"]].count("yes") >= 1


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
    found = memory_at_batches(few, many, setting, [8, 24, 64])
    for size, made in zip((8, 24, 64), found, strict=True):
        alone = memory_of(load_job(MODEL, JobOptions(batch_size=size)), setting)
        assert made.device_total == alone.device_total
        assert made.allocated == alone.allocated


def test_devices_that_split_a_model_have_no_estimate() -> None:
    """Tensor and pipeline parallelism: no number, and the reason in words."""
    setting = Setting.parse("8xA100@tp2-pp4")
    found = memory_beside(load_job(MODEL, JobOptions(batch_size=8)), setting)
    assert found.estimate is None
    assert "not estimated" in found.reason
