"""Recording real processes: their exit status, their signals, and nothing lost when it fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError, MeasureError
from driple.measure.record import recorder
from driple.measure.record.recorder import RecordPlan, record_command, record_process
from driple.measure.record.store import HostRecord, read_record
from tests.measure.record.test_gpus import FakeNvml

STEPS = "import driple, time\nfor _ in range(30): time.sleep(0.02); driple.mark_step()\n"


def _record(folder: Path, code: str, **options: object) -> tuple[int, HostRecord, list[str]]:
    sentences: list[str] = []
    plan = RecordPlan(folder=folder, allocations=False)
    status = record_command(
        [sys.executable, "-c", code], plan, show=lambda _: None, say=sentences.append, **options
    )  # type: ignore[arg-type]
    return status, read_record(folder), sentences


def _background(folder: Path, command: list[str]) -> subprocess.Popen[str]:
    """`driple record` as a process of its own, in a session of its own.

    It hears SIGINT, which what a shell starts in the background ignores, as these tests may be.
    """
    words = ["env", "--default-signal=INT", sys.executable, "-m", "driple", "record"]
    words += ["-o", str(folder)]
    running = subprocess.Popen(
        [*words, "--set", "allocations=off", *command],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    give_up = time.monotonic() + 30
    while not (folder / "samples.bin").exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    return running


def test_the_status_of_the_command_is_passed_on_and_its_steps_are_marked(tmp_path: Path) -> None:
    """Rows each 10 ms, 30 marks, and the end."""
    status, record, _ = _record(tmp_path / "r", STEPS + "raise SystemExit(7)")
    assert status == 7
    assert record.about.end is not None
    assert record.about.end.status == 7
    assert [len(process.times_ns) for process in record.marks] == [30]
    assert np.median(np.diff(record.samples.before_ns)) == pytest.approx(1e7, rel=0.2)
    cpu = record.samples.values[:, record.samples.names.index("cpu_ns")]
    assert (np.diff(cpu) >= 0).all()
    assert cpu[-1] > 10_000_000


def test_a_command_that_a_signal_ends_has_the_status_of_a_shell(tmp_path: Path) -> None:
    """128 and the number of the signal."""
    code = "import os, signal, time; time.sleep(.2); os.kill(os.getpid(), signal.SIGTERM)"
    assert _record(tmp_path / "r", code)[0] == 128 + signal.SIGTERM


def test_a_busy_gpu_is_said_and_recorded(tmp_path: Path) -> None:
    """Other processes on it are in its counters."""
    nvml = FakeNvml(["whole", "mig"], pids=(1,))
    _, record, sentences = _record(tmp_path / "r", "import time; time.sleep(0.3)", nvml=nvml)
    assert [
        "gpu0 is busy: its counters include 1 other process" in words for words in sentences
    ] == [True]
    assert record.about.log == tuple(sentences)
    assert "MIG" in record.about.missing["gpu1"]
    assert set(record.gauges["gpu0.device_util"].values.tolist()) == {80}


def test_a_clock_that_jumps_is_said_and_moves_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour forward after a second: rows stay 10 ms apart, and the record says so."""
    begin_ns = time.monotonic_ns()

    class Jumping:
        monotonic, monotonic_ns = time.monotonic, time.monotonic_ns
        process_time = time.process_time

        @staticmethod
        def time_ns() -> int:
            return time.time_ns() + 3_600_000_000_000 * (
                time.monotonic_ns() - begin_ns > 1_500_000_000
            )

    monkeypatch.setattr(recorder, "time", Jumping)
    _, record, sentences = _record(tmp_path / "r", "import time; time.sleep(2.5)")
    assert "the wall clock jumped by +3.6e+03 s" in sentences[0]
    assert record.about.log == tuple(sentences)
    assert np.diff(record.samples.before_ns).max() < 1e9


def test_a_command_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """Before anything is recorded."""
    with pytest.raises(ConfigError, match="cannot start no-such-program: No such file"):
        record_command(
            ["no-such-program"],
            RecordPlan(folder=tmp_path / "r", allocations=False),
            show=lambda _: None,
            say=lambda _: None,
        )
    assert not (tmp_path / "r" / "samples.bin").exists()


def test_a_watched_process_that_ends_ends_its_record(tmp_path: Path) -> None:
    """Its end is the end of the record, and no failure."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.8)"])
    time.sleep(0.2)  # its command line is there once it runs
    plan = RecordPlan(folder=tmp_path / "r")
    record_process(process.pid, plan, show=lambda _: None, say=lambda _: None)
    process.wait()
    record = read_record(tmp_path / "r")
    assert record.about.end is not None
    assert record.about.end.status is None
    assert record.about.command[1] == "-c"
    with pytest.raises(MeasureError, match=f"--pid {process.pid}: No such process"):
        record_process(process.pid, plan, show=lambda _: None, say=lambda _: None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_recorder_stops_both_and_keeps_the_record(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The command gets it, and the record is whole."""
    running = _background(tmp_path / "r", ["--", "sleep", "60"])
    time.sleep(1.2)
    running.send_signal(number)
    assert running.wait(timeout=20) == 128 + number
    record = read_record(tmp_path / "r")
    assert record.about.end is not None
    assert record.unread_bytes == 0


def test_a_killed_recorder_loses_one_block_and_the_job_goes_on(tmp_path: Path) -> None:
    """SIGKILL: the record ends less than two blocks before, the command ends by itself."""
    marker = tmp_path / "done"
    code = f"import time, pathlib; time.sleep(3); pathlib.Path({str(marker)!r}).touch()"
    running = _background(tmp_path / "r", ["--", sys.executable, "-c", code])
    time.sleep(1.6)
    running.kill()
    killed_ns = time.monotonic_ns()
    running.wait()
    record = read_record(tmp_path / "r")
    assert record.about.end is None
    assert 0 < killed_ns - record.samples.before_ns[-1] < 1.3e9
    give_up = time.monotonic() + 20
    while not marker.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert marker.exists()


def test_two_recorders_and_a_record_that_is_there_are_refused(tmp_path: Path) -> None:
    """One line and exit status 2; the first recorder goes on."""
    running = _background(tmp_path / "r", ["--", "sleep", "1.5"])
    second = _background(tmp_path / "r", ["--", "sleep", "1"])
    _, words = second.communicate(timeout=20)
    assert second.returncode == 2
    assert "another recorder writes to it" in words
    assert running.wait(timeout=20) == 0
    third = _background(tmp_path / "r", ["--", "sleep", "1"])
    _, words = third.communicate(timeout=20)
    assert third.returncode == 2
    assert words.count("\n") == 1
    assert "holds a record already" in words


def test_a_full_disk_stops_the_record_and_not_the_job(tmp_path: Path) -> None:
    """The blocks of before are whole, and the command ends as it would."""
    code = (
        "import resource, sys, pathlib\n"
        "from driple.measure.record.recorder import RecordPlan, record_command\n"
        "from driple.errors import MeasureError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
        f"plan = RecordPlan(folder=pathlib.Path({str(tmp_path / 'r')!r}),"
        " period_s=0.002, allocations=False)\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(4); print(\"trained\")']\n"
        "try: record_command(command, plan, show=lambda _: None, say=print)\n"
        "except MeasureError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "trained" in done.stdout
    assert "recording has stopped, the job goes on: cannot write" in done.stdout
    assert "free some space or choose another place" in done.stdout
    record = read_record(tmp_path / "r")
    assert record.unread_bytes == 0
    assert len(record.samples.before_ns) >= 100


def test_the_recorder_needs_little_of_a_core(tmp_path: Path) -> None:
    """A loose bound for a loaded machine: 5 % of a core at 10 ms (scripts/checks/records.md)."""
    _, record, _ = _record(tmp_path / "r", "import time; time.sleep(2)")
    end = record.about.end
    assert end is not None
    assert end.sampler_cpu_s / end.seconds < 0.05
