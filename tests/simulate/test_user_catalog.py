"""A device that only the user's catalogue file knows: one row, in simulation and closed forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.analytic.closed_forms import (
    shipped_closed_forms,
    zeng_published,
    zeng_repaired,
    zhang_pipeline,
)
from driple.analytic.quick import quick_step_s
from driple.answers.stated_error import stated_error
from driple.api.planning import plan
from driple.cluster.setting import Setting, parse_setting
from driple.cluster.topology import topology_of
from driple.errors import CatalogError
from driple.jobs.load import JobOptions
from driple.render.errors_stated import stated_error_sentence
from driple.render.remarks import sentences
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from tests.simulate.jobs import net

ROW = """format = 1
[[devices]]
name = "Z9"
generation = "Hopper"
fp32_flops = 60e12
fp16_flops = 900e12
bf16_flops = 900e12
tf32_flops = 450e12
tensor_cores = true
datacentre = true
bytes_per_s = 3e12
memory_bytes = 80e9
cache_bytes = 50e6
multiprocessors = 132
pcie_generation = 5
pcie_lanes = 16
pcie_peers = true
counter_window_s = 0.1667
"""


@pytest.fixture
def row(tmp_path: Path) -> Path:
    file = tmp_path / "own.toml"
    file.write_text(ROW)
    return file


@pytest.fixture(scope="module")
def job() -> PreparedJob:
    return PreparedJob(net(8, sync=True))


@pytest.mark.parametrize(
    "name", ["Z9", "4xZ9", "2x4xZ9/PCIe+100G@hierarchical", "Z9-P1w2/ho-PCIe", "Z9-P1w2/ho-10G"]
)
def test_one_row_adds_a_device_to_simulations(job: PreparedJob, row: Path, name: str) -> None:
    """The answer says whose measurements stand in for it, and states an error or why not."""
    setting = parse_setting(name, [row])
    calibration = shipped_calibration(setting)
    simulation = simulate(job, setting, calibration, num_steps=3)
    assert simulation.iteration_time_s > 0
    assert any(
        "no measured run on Z9" in sentence for sentence in sentences(simulation.assumptions)
    )
    assert stated_error_sentence(stated_error(setting, job.graph))
    if setting.num_workers > 1:
        assert quick_step_s(job, setting) > 0


def test_one_row_adds_a_device_to_closed_forms(job: PreparedJob, row: Path) -> None:
    setting = parse_setting("Z9-P1w2/ho-10G", [row])
    topology, calibration = topology_of(setting), shipped_calibration(setting)
    exchange = shipped_closed_forms().exchange
    forms = [
        zeng_published(job, topology),
        zeng_repaired(job, topology, calibration, exchange),
        zhang_pipeline(job, topology, calibration),
    ]
    assert all(form.iteration_time_s > 0 for form in forms)


def test_one_row_adds_an_instance_to_plans(job: PreparedJob, row: Path) -> None:
    row.write_text(
        ROW + '[[instances]]\nname = "z.8"\ndevice = "Z9"\nnum_devices = 8\n'
        'interconnect = "PCIe"\nnetwork_gbps = 100\nprices = [{per_hour = 8.0}]\n'
    )
    result = plan(
        job.graph,
        options=JobOptions(batch_size=8),
        samples=1600,
        instances=["z.8"],
        machines=[1, 2],
        catalogs=[row],
    )
    first, two = sorted(result.offers, key=lambda offer: offer.machines)
    assert two.setting == "2xz.8"
    assert two.iteration_s >= first.iteration_s
    assert first.cost is not None


def test_a_faster_row_under_a_shipped_name_is_what_is_simulated(
    job: PreparedJob, tmp_path: Path
) -> None:
    """Nothing below the setting looks the name up in the installed catalogue."""
    file = tmp_path / "fast.toml"
    file.write_text(
        'format = 1\n[[devices]]\nname = "V100"\nfp32_flops = 15.7e13\nbytes_per_s = 9e12\n'
        '[[links]]\nname = "PCIe3"\nbytes_per_s = 15.75e10\n'
    )
    for name in ("V100-R1/ho-PCIe", "V100-R4/ho-PCIe", "V100-P1w2/ho-PCIe"):
        own, shipped = parse_setting(name, [file]), Setting.parse(name)
        calibration = shipped_calibration(own)
        times = [
            simulate(job, setting, calibration, num_steps=3).iteration_time_s
            for setting in (own, shipped)
        ]
        assert times[0] < times[1]


@pytest.mark.parametrize("fact", ["bytes_per_s", "pcie_generation"])
def test_a_missing_field_is_named(job: PreparedJob, tmp_path: Path, fact: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text("\n".join(line for line in ROW.splitlines() if not line.startswith(fact)))
    setting = parse_setting("Z9-P1w2/ho-PCIe", [file])
    with pytest.raises(CatalogError, match=f"Z9 has no {fact}"):
        simulate(job, setting, shipped_calibration(setting), num_steps=3)
