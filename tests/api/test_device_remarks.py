"""What an answer does in another way on the devices of a setting stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from driple.api.device_remarks import device_remarks
from driple.api.planning import plan
from driple.api.predicting import predict
from driple.catalog import read_catalog
from driple.catalog.fields import TUNING_FACTS
from driple.cluster.setting import Setting, parse_setting
from driple.jobs.load import JobOptions, load_job
from driple.render.remarks import sentence, sentences

MODEL = "timm:vit_tiny_patch16_224"


@pytest.mark.parametrize(
    ("precision", "setting", "words"),
    [
        ("amp-bf16", "1xV100", "V100 has no units for bfloat16"),
        ("bf16", "1xP100", "run in single precision"),
        ("tf32", "1x2080Ti", "2080Ti has no TF32"),
        ("amp-bf16", "1xA100", ""),
        ("tf32", "1xA100", ""),
        ("amp-fp16", "1xV100", ""),
        ("fp32", "1xV100", ""),
        ("fp8", "1xH100", "fp8 is that of linear layers"),
    ],
)
def test_a_number_format_that_a_device_lacks_is_said(
    precision: str, setting: str, words: str
) -> None:
    there = Setting.parse(setting)
    job = load_job("mobilenet_v2", JobOptions(precision=precision), setting=there)  # type: ignore[arg-type]
    texts = sentences(device_remarks(job, there, "simulator"))
    assert len(texts) == bool(words)
    assert words in "".join(texts)
    assert ("fp16" in "".join(texts)) == (setting == "1xV100" and bool(words))


def test_a_mixed_clusters_attention_is_that_of_its_first_device(tmp_path: Path) -> None:
    """Only where the devices differ in it, and the model has any."""
    file = tmp_path / "mixed.yaml"
    machines = "machines:\n- {device: V100, devices: 2}\n- {device: %s, devices: 2}\nnetwork: 40G\n"
    half = JobOptions(precision="amp-fp16")
    for other, expected in (("A100", 1), ("V100-SXM2", 0)):
        file.write_text(machines % other)
        there = parse_setting(str(file))
        remarks = device_remarks(load_job(MODEL, half, setting=there), there, "simulator")
        assert len(remarks) == expected
        assert not device_remarks(load_job("mobilenet_v2", half, setting=there), there, "simulator")
        # In single precision both run the same kernel.
        assert not device_remarks(load_job(MODEL, setting=there), there, "simulator")


def test_a_plan_says_what_the_devices_of_its_offers_lack() -> None:
    job = load_job(MODEL, JobOptions(precision="amp-fp16"), setting=Setting.parse("1xA100"))
    other = plan(job, settings="1xV100", samples=1000, vary="none")
    assert any("V100 takes other kernels" in words for words in sentences(other.remarks))
    assert not plan(job, settings="1xA100", samples=1000, vary="none").remarks
    single = JobOptions(precision="tf32")
    (lack,) = plan(MODEL, options=single, settings="1xV100", samples=1000, vary="none").remarks
    assert sentence(lack) == "V100 has no TF32: products run in fp32"


def test_an_inspector_says_that_it_leaves_a_tuning_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    values = "".join(f"{name} = 2\n" for name in TUNING_FACTS)
    file.write_text(
        f'format = 1\n[[devices]]\nname = "V100"\nsource = "a test"\ndate = 2026-11-27\n{values}'
    )
    there = Setting.parse("V100-P1w2", catalog=read_catalog([file]))
    job = load_job("mobilenet_v2", setting=there)
    (text,) = sentences(device_remarks(job, there, "inspector"))
    assert text.startswith("V100 is tuned by ") and "leaves the tuning out" in text
    assert not device_remarks(job, there, "simulator")


def test_several_settings_answer_as_each_does_alone() -> None:
    """A V100 has no flash attention, an A100 has: each answer is for its own device's kernels."""
    options = JobOptions(batch_size=8, precision="amp-fp16")
    names = ["1xV100", "1xA100", "1xH100"]
    together = predict(MODEL, names, options=options, num_steps=4).answers
    for name, answer in zip(names, together, strict=True):
        (alone,) = predict(MODEL, name, options=options, num_steps=4).answers
        assert answer.to_dict() == alone.to_dict()
    assert together[0].job is not together[1].job
    assert together[1].job is together[2].job
