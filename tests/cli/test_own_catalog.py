"""`--catalog`: one row of a user's file works in every command that takes a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driple.cli.main import app
from tests.texts import texts

EXAMPLE = Path(__file__).parents[2] / "datasets/examples/resnet20.pbtxt"
ROW = """
[[devices]]
name = "MyGPU"
generation = "Hopper"
fp32_flops = 60e12
fp16_flops = 900e12
bf16_flops = 900e12
tf32_flops = 450e12
tensor_cores = true
bytes_per_s = 3e12
memory_bytes = 80e9
cache_bytes = 50e6
multiprocessors = 130
pcie_generation = 5
pcie_lanes = 16
pcie_peers = true
counter_window_s = 0.16
source = "a data sheet"

[[instances]]
name = "my.large"
provider = "mine"
device = "MyGPU"
num_devices = 8
interconnect = "PCIe"
price_per_hour = 4.0
source = "a price list"
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(ROW)
    return file


def answer(*arguments: object) -> dict[str, object]:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_predict_takes_a_device_of_an_own_row(catalog: Path) -> None:
    result = answer("predict", EXAMPLE, "--catalog", catalog, "--setting", "1xMyGPU")
    (reply,) = result["answers"]  # type: ignore[misc]
    assert reply["setting"] == "1xMyGPU"  # type: ignore[index]
    assert any("MyGPU" in words for words in texts(reply["assumptions"]))  # type: ignore[index]


def test_sweep_takes_a_device_of_an_own_row(catalog: Path) -> None:
    setting = "MyGPU-P1w2/ho-10G"
    result = answer(
        "sweep", EXAMPLE, "--catalog", catalog, "--setting", setting, "--workers", "1,2"
    )
    assert result["setting"] == setting


def test_plan_takes_a_device_and_an_instance_of_own_rows(catalog: Path) -> None:
    options = ("--batch-size", 24, "--instance", "my.large")
    result = answer("plan", EXAMPLE, "--catalog", catalog, *options)
    (offer,) = result["offers"]  # type: ignore[misc]
    assert offer["name"] == "my.large"  # type: ignore[index]
    assert offer["price_per_hour"] == 4.0  # type: ignore[index]


def test_inspect_takes_a_device_of_an_own_row(catalog: Path) -> None:
    result = answer("inspect", EXAMPLE, "--catalog", catalog, "--setting", "1xMyGPU")
    assert (result["setting"], result["device"]) == ("1xMyGPU", "MyGPU")
    assert result["compute_s"]["value"] > 0  # type: ignore[index, call-overload]
    assert any("MyGPU" in words for words in texts(result["assumptions"]))  # type: ignore[attr-defined]


def test_profile_links_takes_a_device_of_an_own_row(catalog: Path) -> None:
    options = ("--catalog", catalog, "--setting", "8xMyGPU", "--bandwidth", "10G")
    result = answer("profile", "links", EXAMPLE, *options)
    assert result["setting"] == "8xMyGPU/PCIe"
    assert [one["name"] for one in result["channels"]][1] == "10G"  # type: ignore[index]


def test_a_missing_fact_is_named_with_the_device(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(ROW.replace("pcie_generation = 5\n", "").replace("multiprocessors = 130\n", ""))
    done = CliRunner().invoke(
        app, ["predict", str(EXAMPLE), "--catalog", str(file), "--setting", "1xMyGPU"]
    )
    assert done.exit_code != 0
    assert "MyGPU has no multiprocessors, pcie_generation in" in str(done.exception)


def test_nvlink_of_an_own_row_names_the_field_to_add(catalog: Path) -> None:
    command = ["predict", str(EXAMPLE), "--catalog", str(catalog), "--setting", "8xMyGPU/NVLink"]
    done = CliRunner().invoke(app, command)
    assert "add nvlink = 'NVLink-H100', or another link, to its row in" in str(done.exception)
    catalog.write_text(ROW.replace('name = "MyGPU"', 'name = "MyGPU"\nnvlink = "NVLink-H100"', 1))
    assert CliRunner().invoke(app, command).exit_code == 0
