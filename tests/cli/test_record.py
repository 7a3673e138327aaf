"""`driple record` as it is typed: exit status 2 and one line for bad input, no sample lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driple.measure.record.store import read_record
from tests.api.test_schema import errors_of
from tests.measure.record.records import write_record
from tests.measure.record.test_use import NUM, STEP, square


def _driple(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "driple", *words], capture_output=True, text=True, check=False
    )


def _refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "needs a command after -- or --pid PID"),
        (("--pid", "1", "--", "true"), "and not both"),
        (("--pid", "999999999"), "--pid 999999999: No such process"),
        (("--", "/no/such/program"), "cannot start /no/such/program: No such file"),
        (("--set", "period_ms=0.1", "--", "true"), "--set period_ms"),
        (("--set", "interfaces=eth77", "--pid", str(os.getpid())), "no interface eth77 to count"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """What was found, what was needed, and nothing recorded."""
    assert line in _refused(_driple("record", "-o", str(tmp_path / "r"), *words))
    assert not (tmp_path / "r" / "samples.bin").exists()


def test_a_command_is_recorded_and_its_status_and_output_are_its_own(tmp_path: Path) -> None:
    """Its stdout is untouched; the summary goes to stderr."""
    code = "import time; print('trained'); time.sleep(1); raise SystemExit(3)"
    done = _driple("record", "-o", str(tmp_path / "r"), "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (3, "trained\n")
    assert "% of a core for the recorder" in done.stderr
    assert "not recorded: gpu (" in done.stderr
    again = _driple("record", "-o", str(tmp_path / "s"), "--json", "--", "sleep", "0.3")
    result = json.loads(again.stdout)
    assert errors_of(result) == []
    assert (result["status"], result["steps"]) == (0, None)
    record = read_record(tmp_path / "r")
    assert "allocated_bytes" in record.samples.names or "device_mem_util" in done.stderr


def test_an_interface_that_does_not_exist_stops_no_command(tmp_path: Path) -> None:
    """The command is refused before it starts."""
    marker = tmp_path / "ran"
    words = ("--set", "interfaces=eth77", "--", "touch", str(marker))
    assert "no interface eth77" in _refused(_driple("record", "-o", str(tmp_path / "r"), *words))
    time.sleep(0.2)
    assert not marker.exists()


def _labelled(*words: str) -> subprocess.CompletedProcess[str]:
    job = str(Path(__file__).parents[2] / "datasets/examples/resnet20.pbtxt")
    return _driple("data", "label", *words, "--job", job, "--setting", "CPU-P1w2")


def test_a_record_becomes_a_data_set(tmp_path: Path) -> None:
    """Labels of source `measured`, which `data show` shows."""
    rates = {
        "cpu_ns": square(NUM, STEP, 2e9, width=30),
        "net_tx": square(NUM, STEP, 1e8),
        "net_rx": square(NUM, STEP, 1e8),
        "allocated_bytes": square(NUM, STEP, 5e9, width=30),
    }
    marks = [i / 2 for i in range(58)]
    record = write_record(tmp_path / "r", rates, marks_s=[marks])
    done = _labelled(str(record), "-o", str(tmp_path / "own"))
    assert (done.returncode, done.stdout) == (0, "1 workload, 1 run\n")
    job = ("--job", str(Path(__file__).parents[2] / "datasets/examples/resnet20.pbtxt"))
    elsewhere = ("--setting", "1xA100", "-o", str(tmp_path / "gpu"))
    assert "the records are of CPUs" in _refused(
        _driple("data", "label", str(record), *job, *elsewhere)
    )
    assert not (tmp_path / "gpu").exists()
    shown = _driple("data", "show", str(tmp_path / "own"), "resnet20.pbtxt")
    assert "measured" in shown.stdout
    assert "iteration time 0.500 s" in shown.stdout
    again = _labelled(str(record), "-o", str(tmp_path / "own"))
    assert again.returncode == 0
    assert "with 1 run; these records replace it" in " ".join(again.stderr.split())


def test_records_without_steps_or_without_a_job_are_refused(tmp_path: Path) -> None:
    """A trace without steps, a missing --job, and options of records for a campaign."""
    rates = {"cpu_ns": [1e9] * 1000, "net_tx": [1e6] * 1000, "net_rx": [1e6] * 1000}
    record = str(write_record(tmp_path / "r", rates))
    out = ("-o", str(tmp_path / "own"))
    assert "call driple.mark_step()" in _refused(_labelled(record, *out))
    assert "needs --job and --setting" in _refused(_driple("data", "label", record, *out))
    assert "--job, --setting apply to folders of" in _refused(_labelled(str(tmp_path), *out))
    assert not (tmp_path / "own").exists()
