"""`driple data simulate`: every graph of a folder becomes a data set of each setting."""

import json
from pathlib import Path

from driple.dataset import read_dataset
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple

QUICK = ("--set", "steps=20")


def test_every_graph_of_a_folder_becomes_a_data_set_of_each_setting(tmp_path: Path) -> None:
    out = tmp_path / "sets"
    command = ("data", "simulate", ROOT / "datasets/graphs/paper", "-o", out, *QUICK)
    done = driple(*command, "--setting", "V100-P1w2", "--setting", "2080Ti-P1w2", "--json")
    assert done.returncode == 0, done.stderr
    assert errors_of(json.loads(done.stdout)) == []
    for name in ("V100-P1w2_ho-PCIe", "2080Ti-P1w2_ho-PCIe"):
        data = read_dataset(out / name)
        assert {item.label_source for item in data.examples} == {"simulated"}
        assert f"{len(data.examples)} workloads, simulated" in done.stderr
