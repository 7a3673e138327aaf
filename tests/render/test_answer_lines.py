"""An answer is read in ten seconds: eight lines, the question's answer first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from driple import JobOptions, predict
from driple.api.predicting import Answer
from driple.memory.calibration import shipped_memory_calibration
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.render.answer_lines import MOST_LABELS, answer_lines, shows_targets
from driple.render.memory_lines import memory_sentence
from tests.planning.gpt import write_gpt

WIDTH = 100  # columns
SENTENCES = JobOptions(batch_size=32, seq_len=128)
AMP = JobOptions(batch_size=16, precision="amp-bf16")


def lines_of(answer: Answer) -> dict[str, str]:
    """Words by label; each label once."""
    lines, last = answer_lines(answer), ""
    assert max(map(len, lines)) <= WIDTH
    said: dict[str, str] = {}
    for line in lines:
        label = line[:10].strip()
        assert label not in said
        last = label or last
        said[last] = f"{said[last]} {line[10:]}" if last in said else line[10:]
    assert len(said) <= MOST_LABELS
    return said


def explained(answer: Answer) -> str:
    """The line on memory of --explain."""
    assert answer.memory is not None and answer.memory.estimate is not None
    return memory_sentence(answer.memory.estimate)


def test_a_job_of_pytorch_on_one_gpu() -> None:
    answer = predict("resnet18", "1xH100", options=AMP).answers[0]
    lines = lines_of(answer)
    assert next(iter(lines)) == "step"
    assert "samples/s" in lines["step"] and "MFU" in lines["step"]
    assert "80 GiB: fits; largest batch that fits: " in lines["memory"]
    assert "network none" in lines["use"]
    assert "off in the median" in lines["how sure"]
    assert lines["job"].startswith("resnet18 on 1xH100: 16 samples")
    assert not shows_targets(answer)
    assert "--precision" not in lines["assumed"]  # it was given


def test_the_largest_batches_that_fit_are_the_last_ones() -> None:
    """One more does not: by the estimate, and by the upper end of its interval."""
    first = predict("resnet18", "1xT4", options=AMP).answers[0]
    largest = first.memory.largest if first.memory is not None else None
    assert largest is not None and largest.sure is not None
    assert 0 < largest.sure < largest.expected
    words = f"largest batch that fits: {largest.expected} ({largest.sure} surely)"
    assert words in lines_of(first)["memory"]

    def memory_at(batch_size: int) -> MemoryEstimate:
        options = JobOptions(batch_size=batch_size, precision="amp-bf16")
        memory = predict("resnet18", "1xT4", options=options).answers[0].memory
        assert memory is not None and memory.estimate is not None
        return memory.estimate

    for more, fits in ((0, True), (1, False)):
        assert (memory_at(largest.expected + more).fits == "yes") is fits
        sure = memory_at(largest.sure + more)
        assert sure.fits == "yes" and sure.device_total is not None
        assert sure.device_total.upper is not None and sure.capacity_bytes is not None
        assert (sure.device_total.upper <= sure.capacity_bytes) is fits


def test_a_device_that_the_cache_fills_states_what_is_needed() -> None:
    """The number beside the verdict is below the device's; the cache stands apart."""
    answer = predict("resnet18", "1xT4", options=AMP).answers[0]
    memory = answer.memory
    assert memory is not None and memory.estimate is not None and memory.estimate.usable_bytes
    assert not memory.estimate.is_full
    full = replace(memory.estimate, device_total=Bytes(value=memory.estimate.usable_bytes))
    assert full.is_full and full.without_cache is not None and full.margin_bytes is not None
    needed = shipped_memory_calibration().no_above * memory.estimate.usable_bytes
    needed -= full.margin_bytes  # the number that the verdict rests on
    assert full.without_cache.value == pytest.approx(needed)
    lines = lines_of(replace(answer, memory=replace(memory, estimate=full)))
    words = f"{needed / 2**30:.2f} of 15 GiB: fits ({full.usable_bytes / 2**30:.1f} with the "
    assert lines["memory"].startswith(words)


def test_what_contradicts_the_user_comes_first_of_what_is_assumed() -> None:
    options = JobOptions(batch_size=2, precision="bf16")
    answer = predict("resnet18", "8xA100@zero2", options=options).answers[0]
    assert lines_of(answer)["assumed"].startswith("zero2 is DeepSpeed's")


def test_what_does_not_fit_comes_first() -> None:
    options = JobOptions(batch_size=4096, precision="amp-bf16")
    lines = lines_of(predict("resnet50", "1xT4", options=options).answers[0])
    assert next(iter(lines)) == "memory"
    assert "does not fit" in lines["memory"] and "fits with --batch-size" in lines["memory"]


@pytest.mark.parametrize("words_of", [lambda answer: lines_of(answer)["memory"], explained])
def test_what_is_too_little_is_the_difference_of_two_numbers_beside_it(
    words_of: Callable[[Answer], str],
) -> None:
    """Needed at the peak, usable of the device, and what is missing; the total is the device's."""
    options = JobOptions(batch_size=1024, precision="amp-fp16")
    words = words_of(predict("resnet50", "1xV100", options=options).answers[0])
    needed = re.search(r"([\d.]+) (?:of 16 GiB|GiB needed)", words)
    usable = re.search(r"([\d.]+) GiB (?:are )?usable", words)
    missing = re.search(r"([\d.]+) GiB too little", words)
    assert needed and usable and missing and "of 16 GiB" in words
    left = float(needed[1]) - float(usable[1])
    assert float(missing[1]) == pytest.approx(left, abs=0.06)
    assert 14.5 < float(usable[1]) < 16


def test_a_guess_has_no_single_number() -> None:
    """The interval is stated first, in samples per second; the JSON keeps the value."""
    answer = predict("resnet50", "64x8xH100/NVLink+400G@fsdp").answers[0]
    time = answer.iteration_time_s
    assert time.is_guess and answer.to_dict()["is_guess"] is True
    lines = lines_of(answer)
    assert next(iter(lines)) == "a guess:" and "step" not in lines
    assert lines["a guess:"].startswith("between ")
    assert "samples/s" in lines["a guess:"] and "driple transfer --from gpu" in lines["a guess:"]


@pytest.mark.parametrize("method", ["inspector", "simulator", "analytic"])
def test_settings_with_servers_are_followed_by_the_twelve_numbers(method: str) -> None:
    graph = "datasets/examples/resnet20.pbtxt"
    answer = predict(graph, "V100-P1w2/ho-PCIe", method=method).answers[0]  # type: ignore[arg-type]
    assert shows_targets(answer)
    lines = lines_of(answer)
    assert lines["limit"] in {
        "the workers' devices",
        "the network link of a worker",
        "the network links of the parameter servers",
    }


def test_a_pipeline_that_waits_is_not_busy(tmp_path: Path) -> None:
    """Of 4 stages with 1 micro-batch each computes a quarter of the time, and waits for others."""
    answer = predict(write_gpt(tmp_path, layers=4), "4xA100@pp4", options=SENTENCES).answers[0]
    lines = lines_of(answer)
    assert answer.simulation is not None and answer.simulation.step is not None
    busy = answer.simulation.step.usage()["device_util"].mean
    assert busy < 50 and lines["use"].startswith(f"GPU {busy:.0f} % busy in ")
    counted_pct, _ = answer.simulation.step.counted_pct()
    assert counted_pct > busy + 50 and f"(nvidia-smi: {counted_pct:.0f} %)" in lines["use"]
    assert lines["limit"].startswith("other stages, the bubble of a pipeline of 4 stages with 1 mi")


def test_what_a_tensor_group_waits_for_is_its_link(tmp_path: Path) -> None:
    answer = predict(write_gpt(tmp_path), "4xA100/PCIe3@tp4", options=SENTENCES).answers[0]
    assert answer.parts is not None and answer.simulation is not None
    assert answer.parts.step_s == pytest.approx(answer.iteration_time_s.value)
    assert answer.simulation.step is not None
    waits_s = answer.simulation.step.phases_s()["exchange"]
    assert answer.parts.exchange_s == pytest.approx(waits_s)
    assert answer.parts.exchange == "the links between devices (PCIe3)"
    assert answer.parts.bottleneck is not None
    assert lines_of(answer)["limit"].startswith(answer.parts.bottleneck.part)


@pytest.mark.parametrize(
    ("job", "setting", "options"),
    [
        ("resnet50", "8xA100@zero2", JobOptions(batch_size=64, precision="bf16-mixed")),
        ("bert-large", "2x8xA100/NVLink+25G-TCP", AMP),
        ("bert-base", "4xT4", JobOptions(batch_size=4096, optimizer="adamw")),
        ("resnet50", "1xH100", JobOptions(batch_size=1, channels_last=True, precision="fp16")),
        ("datasets/examples/resnet50.pbtxt", "V100-P1w2/ho-PCIe", None),
        ("datasets/examples/resnet50.pbtxt", "4xA100/NVLink", None),
    ],
)
def test_no_line_is_wider_than_a_terminal(
    job: str, setting: str, options: JobOptions | None
) -> None:
    """Lines go on under their label, and nothing but a name is cut."""
    lines = lines_of(predict(job, setting, options=options).answers[0])
    assert lines["how sure"] and lines["job"].startswith(job.rpartition("/")[2])


def test_where_the_host_decides_the_stated_error_is_of_kernels() -> None:
    """The interval is that of the host, so that the error of kernels does not contradict it."""
    small = predict("resnet18", "1xH100", options=JobOptions(batch_size=1)).answers[0]
    sure = lines_of(small)["how sure"]
    time = small.iteration_time_s
    assert time.interval is not None and time.interval.high is not None
    low, high = time.interval.low / time.value, time.interval.high / time.value
    assert sure.startswith("kernels ")
    assert f"the host decides: {low:.2g} to {high:.2g} times the step" in sure
    given = predict("resnet18", "1xH100", options=JobOptions(batch_size=1), host_us_per_op=20)
    known = lines_of(given.answers[0])["how sure"]
    assert known.startswith("kernels ") and known.endswith(" times the step")
    large = predict("resnet50", "1xH100", options=JobOptions(batch_size=256)).answers[0]
    assert "kernels" not in lines_of(large)["how sure"]


def test_a_machine_file_marks_its_answers_and_refuses_another_host(tmp_path: Path) -> None:
    """What was measured beside other programs is told first; the option it refuses is not."""
    options = JobOptions(batch_size=1)
    file = tmp_path / "machine.toml"
    text = Path("docs/machine.toml").read_text(encoding="utf-8")
    assert "disturbed = false" in text
    busy = text.replace("disturbed = false", "disturbed = true")
    file.write_text(busy, encoding="utf-8")
    lines = lines_of(predict("resnet18", "1xH100", options=options, machine=file).answers[0])
    assert lines["assumed"].startswith("other programs used ")
    assert "on a host that takes" in lines["limit"] and "measure" not in lines["limit"]
    untold = lines_of(predict("resnet18", "1xH100", options=options).answers[0])
    assert "driple measure --machine" in untold["limit"]
