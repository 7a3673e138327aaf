"""Sweeps of devices, networks and batches, by the simulator."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from driple import predict, sweep
from driple.answers import network_speed
from driple.answers.network_speed import LITTLE, enough_bytes_per_s, waiting_share
from driple.answers.ready_job import ReadyJob
from driple.api import GridOptions
from driple.api.sweeping import SweepResult
from driple.cluster.resized import resized, with_rate
from driple.cluster.setting import Setting
from driple.errors import ConfigError, SettingError
from driple.jobs.load import JobOptions, load_job
from driple.render.remarks import sentences
from driple.simulate.place import Place, place_of
from driple.simulate.run import simulated_step_s
from tests.cli.test_main import driple, refused

CASES = Path(__file__).parents[1] / "data" / "cases"
UNET = f"{CASES / 'unet.py'}:UNet"
OF_UNET = ("--data", f"{CASES / 'unet.py'}:Tiles", "--loss", f"{CASES / 'unet.py'}:loss_fn",
           "--batch-size", 8, "--precision", "amp-bf16", "--optimizer", "adamw")  # fmt: skip
JOB = "timm:resnet50"
OPTIONS = JobOptions(batch_size=64, precision="amp-fp16", optimizer="momentum")


def swept(setting: str, *workers: int, rates: tuple[float, ...] = ()) -> SweepResult:
    grid = GridOptions(workers=workers, bandwidths_bits_per_s=rates)
    return sweep(JOB, setting, grid=grid, options=OPTIONS)


def test_a_unet_on_more_devices_and_other_networks() -> None:
    """These were refused: closed forms are of servers."""
    asked = ("sweep", UNET, *OF_UNET, "--setting", "8xH100")
    done = driple(*asked, "--workers", "1-64", "--bandwidth", "10G,100G")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    header = next(line for line in lines if line.startswith("devices"))
    for name in ("link", "step", "samples/s", "scaling", "waits", "< 10 % from", "memory"):
        assert name in header
    rows = [line.split() for line in lines if line[:1].isdigit()]
    assert [(row[0], row[1]) for row in rows if row[0] in {"1", "8", "16", "64"}] == [
        ("1", "-"), ("8", "NVLink"), ("16", "10G"), ("64", "10G"), ("16", "100G"), ("64", "100G"),
    ]  # fmt: skip


def test_several_machines_need_a_network() -> None:
    """What one machine holds is answered, the rest is named; one link alone may vary too."""
    result = sweep(JOB, "8xH100", grid=GridOptions(workers=tuple(range(1, 65))), options=OPTIONS)
    assert result.setting is not None and result.setting.name == "8xH100/NVLink"
    assert result.clusters["workers"] == [1, 2, 3, 4, 5, 6, 7, 8]
    said = " ".join(sentences(result.remarks))
    assert "names no network between machines; give --bandwidth" in said
    assert swept("8xH100", rates=(10e9, 100e9)).clusters["bandwidth_bits_per_s"] == [10e9, 100e9]


def test_a_point_is_what_predict_answers() -> None:
    """Step time, interval, memory and all: one number from two commands."""
    for name in ("2x4xV100-SXM2/NVLink+25G-TCP", "2x4xV100-SXM2/NVLink+25G@fsdp"):
        result = swept(name, 1, 4, 8)
        (answer,) = predict(JOB, name, options=OPTIONS, method="simulator").answers
        times = result.estimates["iteration_time_s"]
        ends = answer.iteration_time_s.interval
        assert times.value[-1] == answer.iteration_time_s.value
        assert times.interval is not None and ends is not None
        assert times.interval[-1] == (ends.low, ends.high)
        memory = answer.memory.estimate if answer.memory else None
        assert memory is not None and memory.device_total is not None
        assert result.estimates["device_total_bytes"].value[-1] == memory.device_total.value
        inside = "4xV100-SXM2/NVLink" + ("@fsdp" if "@" in name else "")
        (four,) = predict(JOB, inside, options=OPTIONS, method="simulator").answers
        assert times.value[1] == four.iteration_time_s.value


def test_efficiency_is_the_rate_of_a_device_over_that_of_one_alone() -> None:
    result = swept("8xH100", 1, 2, 8)
    rates, shares = (
        result.estimates[name].value for name in ("samples_per_s", "scaling_efficiency_pct")
    )
    for rate, share, count in zip(rates, shares, (1, 2, 8), strict=True):
        assert share == pytest.approx(100 * rate / (count * rates[0]))
    assert shares[0] == pytest.approx(100)
    assert all(later < sooner for sooner, later in pairwise(shares))


def test_a_faster_network_never_scales_worse() -> None:
    rates = (1e9, 10e9, 25e9, 100e9, 400e9)
    for scheme in ("", "@zero1", "@zero2", "@fsdp", "@hsdp"):
        result = swept(f"2x8xA100/NVLink+100G{scheme}", rates=rates)
        assert result.clusters["bandwidth_bits_per_s"] == list(rates)
        shares = result.estimates["scaling_efficiency_pct"].value
        assert all(slower <= faster for slower, faster in pairwise(shares))


@pytest.mark.parametrize("name", ["2x8xA100/NVLink+10G", "2x8xA100/NVLink+10G@fsdp", "8xA100"])
def test_at_the_stated_speed_a_step_waits_a_tenth(name: str) -> None:
    ready = ReadyJob(load_job(JOB, OPTIONS))
    place = place_of(Setting.parse(name))
    enough = enough_bytes_per_s(ready, place)
    assert enough is not None
    link = "between" if place.topology.between is not None else "within"
    for factor, waits_little in ((1.01, True), (0.98, False)):
        joined = replace(getattr(place.topology, link), bytes_per_s=factor * enough)
        there = replace(place, topology=replace(place.topology, **{link: joined}))
        step_s = simulated_step_s(
            ready.prepared, place.setting, place.calibration, topology=there.topology
        )
        share = waiting_share(ready, there, step_s)
        assert share is not None and (share < LITTLE) is waits_little
    assert enough_bytes_per_s(ready, place_of(Setting.parse("1xA100"))) is None


def test_the_speed_that_is_enough_is_worked_out_once_for_all_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not depend on the rate of the link, and does on the number of devices."""
    counted: list[int] = []
    halving = network_speed._enough

    def enough(ready: ReadyJob, place: Place) -> float | None:
        counted.append(len(place.topology.workers))
        return halving(ready, place)

    monkeypatch.setattr(network_speed, "_enough", enough)
    grid = GridOptions(workers=(8, 16), bandwidths_bits_per_s=(1e10, 2.5e10, 1e11))
    result = sweep(JOB, "2x8xV100-SXM2/NVLink+10G", grid=grid, options=OPTIONS)
    assert sorted(counted) == [8, 16]
    rates: dict[object, set[object]] = {}
    enough_rates = result.facts["enough_bandwidth_bits_per_s"]  # type: ignore[typeddict-item]
    for count, rate in zip(result.clusters["workers"], enough_rates, strict=True):
        rates.setdefault(count, set()).add(rate)
    assert all(len(some) == 1 for some in rates.values())


def test_samples_per_second_have_the_interval_of_the_step() -> None:
    result = sweep(JOB, "8xA100", batch_sizes=[16, 32], options=replace(OPTIONS, batch_size=None))
    times, rates = result.estimates["iteration_time_s"], result.estimates["samples_per_s"]
    assert times.interval is not None and rates.interval is not None
    assert rates.level == times.level
    for number, (low, high) in enumerate(rates.interval):
        samples = rates.value[number] * times.value[number]
        shortest, longest = times.interval[number]
        assert longest is not None and high is not None
        assert (low, high) == pytest.approx((samples / longest, samples / shortest))


def test_batches_scale_too() -> None:
    """A larger batch hides more of the exchange; devices, links and batches may vary at once."""
    result = sweep(
        JOB,
        "2x8xV100-SXM2/NVLink+10G",
        batch_sizes=[16, 64],
        grid=GridOptions(workers=(8, 16)),
        options=replace(OPTIONS, batch_size=None),
    )
    assert result.clusters["batch_size"] == [16, 16, 64, 64]
    assert result.clusters["workers"] == [8, 16, 8, 16]
    shares = result.estimates["scaling_efficiency_pct"].value
    assert shares[1] < shares[3]


def test_a_measured_network_is_that_of_all_points() -> None:
    result = sweep(JOB, "2x8xV100-SXM2/NVLink+25G", link_bandwidth="0.6GB/s",
                 grid=GridOptions(workers=(8, 16, 32)), options=OPTIONS)  # fmt: skip
    usual = swept("2x8xV100-SXM2/NVLink+25G", 8, 16, 32)
    slow, fast = (one.estimates["iteration_time_s"].value for one in (result, usual))
    assert slow[0] == fast[0] and slow[1] > fast[1] and slow[2] > fast[2]
    assert any("as stated" in words for words in sentences(result.assumptions))
    with pytest.raises(ConfigError, match="leave out one of them"):
        sweep(JOB, "2x8xV100-SXM2/NVLink+25G", link_bandwidth="0.6GB/s",
              grid=GridOptions(bandwidths_bits_per_s=(1e9,)), options=OPTIONS)  # fmt: skip


def test_machines_in_another_number() -> None:
    base = Setting.parse("2x8xA100/NVLink+100G@tp4")
    four = resized(base, 32)
    assert (four.name, four.num_replicas) == ("4x8xA100/NVLink-A100+100G@tp4", 8)
    assert resized(base, 4).cluster.network is None
    assert Setting.parse(four.name).cluster == four.cluster
    tcp = resized(with_rate(Setting.parse("2x8xA100/NVLink+25G-TCP"), 50e9, between=True), 16)
    assert tcp.name == "2x8xA100/NVLink-A100+50G-TCP"
    for count, said in ((12, "not whole machines of 8"), (2, "each of 4 devices")):
        with pytest.raises(SettingError, match=said):
            resized(base, count)
    with pytest.raises(SettingError, match="not whole machines"):
        swept("8xA100", 12)


def test_options_of_servers_are_refused_without_servers() -> None:
    asked = ("sweep", JOB, "--setting", "8xA100", "--workers", "1-8")
    assert "--ps and --compress are" in refused(*asked, "--ps", "2")
    assert "--ps and --compress are" in refused(*asked, "--compress", "0.5")
    assert "more than 1000" in refused(*asked[:4], "--workers", "8-16000", "--bandwidth", "1G,2G")
    assert "--workers" in refused(*asked[:4], "--workers", "20000")


def test_a_picture_of_a_sweep(tmp_path: Path) -> None:
    picture = tmp_path / "sweep.png"
    done = driple("sweep", JOB, "--batch-size", 64, "--setting", "8xH100", "--workers", "1-32",
                  "--bandwidth", "10G,100G", "--plot", picture)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("setting", "job", "options", "published"),
    [
        # DLPerf, PyTorch ResNet-50 with DALI, fp32, batch 128, V100-SXM2, 100 Gbit/s InfiniBand:
        # 350.66 images/s on one, 2707.42 on 8, 5193.09 on 16, 10032.7 on 32
        (
            "2x8xV100-SXM2/NVLink+100G-RDMA", JOB,
            JobOptions(batch_size=128, precision="fp32", optimizer="momentum"),
            {1: 350.66, 8: 2707.42, 16: 5193.09, 32: 10032.7},
        ),
        # MosaicML llm-foundry, MPT-125M, FSDP, bf16, 26 samples of 2048 tokens a device, A100-40G,
        # 1600 Gbit/s RoCE: tokens/s
        (
            "2x8xA100/NVLink+1600G-RDMA@fsdp", "gpt2",
            JobOptions(batch_size=26, seq_len=2048, precision="amp-bf16", optimizer="adamw"),
            {8: 1090678, 16: 2088560, 32: 4067922, 64: 8015010, 128: 15863837},
        ),
    ],
)  # fmt: skip
def test_published_scaling(
    setting: str, job: str, options: JobOptions, published: dict[int, float], tmp_path: Path
) -> None:
    """Efficiency is at most 8 points above, and not below, that of published tables.

    Devices of a simulation do not differ, so that none waits for a slower one.
    """
    if job == "gpt2":
        pytest.importorskip("transformers")
        (tmp_path / "config.json").write_text(
            json.dumps({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
                        "n_positions": 2048})
        )  # fmt: skip
        job = f"hf:{tmp_path}"
    result = sweep(job, setting, grid=GridOptions(workers=tuple(published)), options=options)
    rates = dict(zip(published, result.estimates["samples_per_s"].value, strict=True))
    first = min(published)
    for count, rate in published.items():
        measured = rate / published[first] / (count / first)
        simulated = rates[count] / rates[first] / (count / first)
        assert 0 <= simulated - measured + 0.01 <= 0.09
