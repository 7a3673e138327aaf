"""`driple measure` for real: one small workload, twice asked for, into a data set."""

import json
from pathlib import Path

from tests.api.test_schema import errors_of
from tests.cli.test_main import driple, refused
from tests.measure.testbed.test_cluster import needs_cluster

WORKLOAD = "lenet-x0.25/mnist/b8/momentum/async"
QUICK = (
    *("--set", "iterations=10", "--set", "seconds=0.5", "--set", "tries=1"),
    *("--set", "quiet_wait=0"),
)


@needs_cluster
def test_measure_fills_a_data_set_and_does_nothing_twice(tmp_path: Path) -> None:
    """The second run of the same command finds everything done."""
    command = ("measure", WORKLOAD, "--output", tmp_path / "runs", *QUICK)
    first = driple(*command, "--dataset", tmp_path / "data", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["examples"] == 1
    assert errors_of(json.loads(first.stdout)) == []
    run = next((tmp_path / "runs").glob("*.r0")) / "run.json"
    measured = run.read_bytes()
    again = driple(*command, "--dataset", tmp_path / "data", "--json")
    assert json.loads(again.stdout)["examples"] == 1
    assert run.read_bytes() == measured
    built = driple("data", "label", tmp_path / "runs", "-o", tmp_path / "built")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "built/samples-0.parquet").exists()
    label = driple("data", "show", tmp_path / "built", WORKLOAD, "--json")
    assert json.loads(label.stdout)["details"]["batch_size"] == 8


def test_bad_options_of_measuring_get_one_line(tmp_path: Path) -> None:
    """Counts below one, settings that this machine is not."""
    assert "--set tries" in refused("measure", WORKLOAD, "--set", "tries=0", "-o", tmp_path / "a")
    assert "CPU settings" in refused("measure", WORKLOAD, "--setting", "V100", "--output", tmp_path)
