"""`driple list` and `driple data list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driple.errors import CheckpointError
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_card import read_checkpoint_card
from tests.cli.test_main import ROOT, driple, refused


def test_every_kind_is_listed_for_people_and_machines() -> None:
    for kind, name in (
        ("devices", "V100"),
        ("links", "PCIe4"),
        ("instances", "p5.48xlarge"),
        ("settings", "V100-P1w2/ho-PCIe"),
    ):
        rows = json.loads(driple("list", kind, "--json").stdout)["rows"]
        assert name in {row["name"] for row in rows}
        assert name in driple("list", kind).stdout


def test_rows_are_filtered() -> None:
    rows = json.loads(driple("list", "devices", "amd", "--json").stdout)["rows"]
    assert {row["maker"] for row in rows} == {"AMD"}
    rows = json.loads(driple("list", "instances", "h100", "--json").stdout)["rows"]
    assert rows
    assert all("H100" in row["device"] for row in rows)


def test_a_setting_names_its_inspectors() -> None:
    rows = json.loads(driple("list", "settings", "CPU25-P1w2/ho", "--json").stdout)["rows"]
    assert [row["inspectors"] for row in rows] == [["default", "paper"]]


def test_checkpoints_are_listed_from_their_headers(tmp_path: Path) -> None:
    """The same as what their files hold; a file cut off after its header is still listed."""
    listing = driple("list", "checkpoints", "CPU-P1w2/ho-200M", "--json").stdout
    rows = json.loads(listing)["rows"]
    for row in rows:
        file = ROOT / "checkpoints" / row["file"]
        whole = load_checkpoint(file)
        assert (row["setting"], row["preset"]) == (whole.setting, whole.preset)
        assert row["num_workloads"] == whole.trained_on.num_workloads
        assert row["labels"] == whole.provenance
        data = file.read_bytes()
        short = tmp_path / "short.safetensors"
        short.write_bytes(data[: 8 + int.from_bytes(data[:8], "little")])
        assert read_checkpoint_card(short) == read_checkpoint_card(file)
        short.write_bytes(data[:100])
        with pytest.raises(CheckpointError, match="truncated"):
            read_checkpoint_card(short)
    assert len(rows) == 2


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    assert "one of devices, links" in refused("list", "gpus")
    assert "driple list devices shows all" in refused("list", "devices", "nosuch")
    assert "none.toml" in refused("list", "devices", "--catalog", tmp_path / "none.toml")
    assert "holds no data set" in refused("data", "list", tmp_path)


def test_data_sets_are_listed_from_their_headers() -> None:
    rows = json.loads(driple("data", "list", "--json").stdout)["data_sets"]
    by_folder = {row["folder"]: row for row in rows}
    assert by_folder["datasets/settings/CPU-P1w2_ho-200M"]["num_examples"] == 336
    assert by_folder["datasets/settings/CPU-P1w2_ho-200M"]["label_source"] == "measured"
