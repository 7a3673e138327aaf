"""From the runs of a campaign to labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import MeasureError
from driple.jobs import Workload
from driple.measure.testbed.campaign import CampaignRecord
from driple.measure.testbed.cluster import RunPlan
from driple.measure.testbed.collect import collect_dataset
from driple.trace.provenance import MeasuringHost
from tests.measure.runs import run_folder

JOB = Workload.parse("lenet/mnist/b2/sgd/async")


def about(setting: str) -> CampaignRecord:
    """What a campaign's campaign.json says."""
    return CampaignRecord(
        setting=setting,
        plan=RunPlan(),
        host=MeasuringHost(memory_write_bytes_per_s=10**9),
        created="2026-03-01T00:00:00+00:00",
    )


def test_labels_of_a_mixed_cluster_are_those_of_the_settings_own_worker(tmp_path: Path) -> None:
    """A slow partner halves the mean of a homogeneous cluster, and does not touch a mixed one's."""
    run_folder(tmp_path, JOB, 0, "2026-03-01T00:00", slower=2)
    by_setting = {
        name: collect_dataset(tmp_path, name="set", about=about(name)).examples[0]
        for name in ("CPU-P1w2/ho-200M", "CPU-P1w2/he-200M", "CPU25-P1w2/he-200M")
    }
    both, fast, slow_share = by_setting.values()
    tx = [item.targets.to_dict()["net_tx"]["burst_amount"] for item in (both, fast)]
    assert tx[0] == pytest.approx(0.75 * tx[1], rel=0.01)
    assert fast.iteration_time_s == pytest.approx(0.1)
    assert both.iteration_time_s == pytest.approx(0.15, rel=0.01)
    # The same CPU seconds are a larger share of a smaller device.
    cpu = [item.targets.to_dict()["device_util"]["burst_amount"] for item in (fast, slow_share)]
    assert cpu[1] == pytest.approx(cpu[0] * 0.4 / 0.25)


def test_a_run_of_another_setting_is_refused(tmp_path: Path) -> None:
    """A run of two workers has no third one."""
    run_folder(tmp_path, JOB, 0, "2026-03-01T00:00")
    with pytest.raises(MeasureError, match="no worker w2"):
        collect_dataset(tmp_path, name="set", about=about("CPU-P1w3/ho-200M"))


def test_repeats_are_recorded_run_by_run(tmp_path: Path) -> None:
    """Two runs that are alike do not differ; a workload that ran once has no repeatability."""
    once = Workload.parse("lenet/mnist/b4/sgd/async")
    for job, repeat in ((JOB, 0), (JOB, 1), (once, 0)):
        run_folder(tmp_path, job, repeat, "2026-03-01T00:00")
    data = collect_dataset(tmp_path, name="set", about=about("CPU-P1w2/ho-200M"))
    repeatability = data.about.repeatability
    assert repeatability is not None
    assert repeatability.workloads == 1
    assert repeatability.smape_pct_by_workload == {JOB.name: 0.0}
    assert repeatability.smape_pct["iteration_time"] == 0.0
