"""`measure --calibrate` and `predict --set host=FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driple.api.own_host import HOST_FILE, known_inspector, known_workloads
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.inspector.host import HostTuning, write_host
from driple.jobs import cpu_workloads
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused
from tests.measure.testbed.test_cluster import needs_cluster

MEASURED = ROOT / "datasets/examples/resnet20.pbtxt"
ASK = ("predict", MEASURED, "--setting", "CPU-P1w2")


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host that computes for half as long again."""
    tuning = HostTuning(
        setting="CPU-P1w2/ho-200M",
        workloads=tuple(f"net{i}" for i in range(5)),
        computing_factor=1.5,
        log_spread=0.02,
        before_pct=20.0,
        after_pct=1.0,
    )
    write_host(tuning, tmp_path / HOST_FILE)
    return tmp_path / HOST_FILE


def test_known_workloads_are_of_several_families() -> None:
    """All of the list that was measured."""
    workloads = known_workloads()
    assert len(set(workloads)) == 6
    assert set(workloads) <= set(cpu_workloads())
    assert len({one.model for one in workloads}) >= 3


def test_only_measured_settings_can_be_calibrated() -> None:
    """Said before anything is measured."""
    assert known_inspector(Setting.parse("CPU-P1w2")).provenance == "measured"
    with pytest.raises(ConfigError, match="labels of V100-P1w2/ho-PCIe are simulated"):
        known_inspector(Setting.parse("V100-P1w2"))
    with pytest.raises(ConfigError, match="needs an inspector of the setting"):
        known_inspector(Setting.parse("2xH100"))
    line = refused("measure", "--calibrate", "--setting", "V100-P1w2")
    assert "--calibrate is for measured settings" in line
    half = refused("measure", "--calibrate", "--set", "share=0.5")
    assert "--calibrate compares with workers on 0.4 of a core, got --set share=0.5" in half
    few = refused("measure", "resnet20/cifar10/b32/sgd/sync", "--calibrate")
    assert "a host is known by 4 workloads or more, got 1" in few


def test_the_answer_is_for_the_host(host: Path) -> None:
    """What it computes takes longer, its interval is narrower, and it says why."""
    (usual,) = json.loads(driple(*ASK, "--json").stdout)["answers"]
    result = json.loads(driple(*ASK, "--set", f"host={host}", "--json").stdout)
    assert errors_of(result) == []
    (own,) = result["answers"]
    assert usual["host"] is None and own["host"]["computing_factor"] == 1.5

    def time_of(answer: dict[str, dict[str, float]]) -> float:
        return answer["iteration_time_s"]["value"]

    def width(answer: dict[str, dict[str, dict[str, float]]]) -> float:
        ends = answer["iteration_time_s"]["interval"]
        return ends["high"] / ends["low"]

    assert 1.1 * time_of(usual) < time_of(own) < 1.5 * time_of(usual)
    assert width(own) < width(usual)
    shown = driple(*ASK, "--set", f"host={host}")
    assert "this host computes for 1.50 times as long" in shown.stdout
    plain = driple(*ASK)
    assert "driple measure --calibrate" in plain.stderr


def test_a_host_that_does_not_belong_to_the_answer_is_refused(host: Path) -> None:
    """Another setting, another method, no such file."""
    given = ("--set", f"host={host}")
    assert "the answer is for" in refused("predict", MEASURED, "--setting", "CPU-P2w2", *given)
    assert "the method is simulator" in refused(*ASK, "--method", "simulator", *given)
    assert "cannot read the host" in refused(*ASK, "--set", "host=nothing.json")


@needs_cluster
@pytest.mark.slow
def test_a_host_is_measured(tmp_path: Path) -> None:
    """Four small workloads for real; the file is one that `predict` takes."""
    names = [f"lenet-x0.25/mnist/b{batch}/momentum/async" for batch in (8, 16, 32, 64)]
    quick = ("iterations=10", "seconds=0.5", "tries=1", "quiet_wait=0")
    values = [part for one in quick for part in ("--set", one)]
    done = driple("measure", *names, "--calibrate", "-o", tmp_path / "runs", *values, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert errors_of(result) == []
    assert result["host"]["workloads"] == sorted(names)
    answer = driple(*ASK, "--set", f"host={tmp_path / 'runs' / HOST_FILE}")
    assert "this host takes" in answer.stdout
