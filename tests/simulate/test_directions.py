"""Directions in which an answer may not move, on stored steps of public models and shipped numbers.

Each job is simulated as `driple predict --method simulator` does it, with the shipped calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from driple.catalog import Device, shipped_hardware
from driple.cluster.setting import Setting
from driple.errors import CatalogError
from driple.graph import read_graph
from driple.runs.step_key import StepKey
from driple.runs.step_store import StepStore
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s

ROOT = Path(__file__).parents[2]
STEPS = 3
ROUNDING = 1.0005
# More multiprocessors may leave a larger part of the last wave of tiles idle.
LAST_WAVE = 1.02
PHASES = 1.03
RATES = ("fp32_flops", "fp16_flops", "bytes_per_s")
RESNET, VIT, BERT = "timm:resnet50", "timm:vit_base_patch16_224", "own:bert-base-squad"
KEYS = {
    "resnet50": StepKey(job=RESNET, size=224, precision="fp32"),
    "resnet50-amp": StepKey(job=RESNET, size=224, precision="amp-fp16"),
    "vit-amp": StepKey(job=VIT, size=224, precision="amp-fp16"),
    "bert": StepKey(job=BERT, size=384, precision="fp32"),
    "bert-half": StepKey(job=BERT, size=384, precision="fp16"),
}
SAME_IN_HALF = {"resnet50": "resnet50-amp", "bert": "bert-half"}
SCHEMES = ("ddp", "zero1", "zero2", "fsdp", "hsdp", "hierarchical")
NETWORKS = ("1G", "10G", "25G", "100G", "200G", "400G", "8x100G", "8x400G")
# Volta and Turing use tensor cores only for sides that are multiples of 8: 17 samples of a
# Transformer take longer than 32, so batches are even multiples.
BATCHES = (8, 16, 32, 64, 96, 128)


@cache
def store() -> StepStore:
    return StepStore.open(ROOT / "datasets" / "runs" / "published" / "steps")


@cache
def job_of(name: str, batch_size: int) -> PreparedJob:
    return store().step(KEYS[name]).job(batch_size)


def step_s(job: PreparedJob, setting: str) -> float:
    place = Setting.parse(setting)
    return simulated_step_s(job, place, shipped_calibration(place), num_steps=STEPS)


def gpus() -> list[Device]:
    return [one for one in shipped_hardware().devices.values() if not one.is_cpu]


def falls(times: Sequence[float]) -> bool:
    """Whether no time is longer than the one before it."""
    return all(later <= ROUNDING * earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("machines", ["4x8xH100", "4x8xV100-SXM2", "4x4xT4"])
def test_a_faster_network_is_not_slower(machines: str, scheme: str) -> None:
    for job in (job_of("resnet50-amp", 64), job_of("bert", 8)):
        assert falls([step_s(job, f"{machines}+{rate}@{scheme}") for rate in NETWORKS])


@pytest.mark.parametrize("setting", ["V100-P1w2/ho-{}", "A100-P2w2/ho-{}"])
def test_a_faster_link_of_servers_is_not_slower(setting: str) -> None:
    """Of a PyTorch step, and of the shipped graph of TensorFlow, which is synchronous.

    Asynchronous workers meet at servers in phases that the rate of the link sets: means move.
    """
    graph = PreparedJob(read_graph(ROOT / "datasets" / "examples" / "resnet50.pbtxt"))
    for job in (job_of("resnet50-amp", 64), graph):
        times = [step_s(job, setting.format(rate)) for rate in ("10G", "100G", "400G")]
        phases = 1.0 if job.is_synchronous else PHASES
        assert all(later <= phases * ROUNDING * earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize("device", ["H100", "A100", "V100-SXM2"])
def test_nvlink_is_not_slower_than_pcie(device: str) -> None:
    for name in KEYS:
        job = job_of(name, 8)
        assert falls([step_s(job, f"8x{device}/{link}") for link in ("PCIe", "NVLink")])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_more_machines_pass_more_samples(scheme: str) -> None:
    for job in (job_of("resnet50-amp", 64), job_of("bert", 8)):
        per_sample = [step_s(job, f"{n}x8xH100+100G@{scheme}") / n for n in (2, 4, 8, 16)]
        assert falls(per_sample)


@pytest.mark.parametrize("setting", ["1xH100", "1xV100", "1x3090", "8xA100@fsdp"])
@pytest.mark.parametrize("name", KEYS)
def test_a_larger_batch_is_not_shorter(name: str, setting: str) -> None:
    times = [step_s(job_of(name, batch_size), setting) for batch_size in BATCHES]
    assert falls(times[::-1])


@pytest.mark.parametrize("name", SAME_IN_HALF)
def test_half_precision_is_not_slower_on_devices_with_its_units(name: str) -> None:
    """Where the device decides: casts take time of the host, also of runs that we measured."""
    for device in gpus():
        if device.find("tensor_cores"):
            setting = f"1x{device.name}"
            try:
                times = [step_s(job_of(one, 256), setting) for one in (name, SAME_IN_HALF[name])]
            except CatalogError:
                continue  # a fact that no source states
            assert falls(times), setting


def is_better(device: Device, other: Device) -> bool:
    """Whether no number of the catalogue is smaller and all rates are larger, of one maker.

    Of two devices with the same rates the published rows decide, not the catalogue.
    """
    if device.maker != other.maker or device.architecture.order < other.architecture.order:
        return False
    if not all(float(device.require(name)) > float(other.require(name)) for name in RATES):
        return False
    return all(
        float(device.find(name) or 0) >= float(other.find(name) or 0)
        for name in {*device.facts, *other.facts} - {"counter_window_s"}
        if not isinstance(device.find(name) or other.find(name), str)
    )


# A T4 has 70 W: published rows reach 0.88 to 0.91 of what other devices do of its peaks.
SHORT_OF_POWER = {"T4": 0.88}


@pytest.mark.parametrize("name", ["resnet50", "resnet50-amp", "bert-half"])
def test_a_device_that_is_better_in_every_field_is_not_slower(name: str) -> None:
    job, times = job_of(name, 64), {}
    for device in gpus():
        try:
            times[device] = step_s(job, f"1x{device.name}")
        except CatalogError:
            continue  # a fact that no source states
    pairs = [(one, other) for one, other in permutations(times, 2) if is_better(one, other)]
    assert len(pairs) > 500
    for better, other in pairs:
        longest = LAST_WAVE * times[other] / SHORT_OF_POWER.get(better.name, 1)
        assert times[better] <= longest, (better.name, other.name)
