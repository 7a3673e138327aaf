"""The three commands that must keep working, run as typed, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENV = os.environ | {"PYTHONPATH": str(ROOT)}
DRIPLE = [sys.executable, "-m", "driple.cli.main"]
STOPPED = 130  # exit status after Ctrl-C


def typed(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line as a user types it, in a folder."""
    words = line.split()
    assert words[0] == "driple"
    return subprocess.run(
        [*DRIPLE, *words[1:]], cwd=folder, env=ENV, capture_output=True, text=True, check=False
    )


def test_predict_of_a_graph_in_the_current_folder(tmp_path: Path) -> None:
    shutil.copy(ROOT / "datasets" / "examples" / "resnet50.pbtxt", tmp_path / "graph.pbtxt")
    done = typed("driple predict graph.pbtxt", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step ")
    assert "graph.pbtxt on V100-P1w2/ho-PCIe" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[-4:]] == [
        "device_util", "device_mem_util", "net_tx", "net_rx",
    ]  # fmt: skip


def stopped_after(num_epochs: int, line: str, folder: Path) -> list[str]:
    """Epochs of the log once it has some, after which a command is stopped by Ctrl-C."""
    # A command in the background of a shell ignores Ctrl-C, and what it starts does too.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    with (folder / "stderr").open("w", encoding="utf-8") as errors:
        running = subprocess.Popen([*DRIPLE, *line.split()[1:]], cwd=folder, env=ENV, stderr=errors)
    signal.signal(signal.SIGINT, usual)
    deadline = time.monotonic() + 600
    while len(epochs_in(folder)) < num_epochs:
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(1)
    running.send_signal(signal.SIGINT)
    assert running.wait(120) == STOPPED
    return epochs_in(folder)


def epochs_in(folder: Path) -> list[str]:
    """Lines of the log of training; none before there is one."""
    return [line for log in folder.rglob("log.jsonl") for line in log.read_text().splitlines()]


@pytest.mark.slow
def test_train_for_a_setting_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Training takes long as typed: it is stopped twice, and keeps its epochs."""
    first = stopped_after(1, "driple train --setting V100-P1w2", tmp_path)
    second = stopped_after(len(first) + 1, "driple train --setting V100-P1w2", tmp_path)
    assert second[: len(first)] == first


@pytest.mark.slow
def test_transfer_from_one_device_to_another(tmp_path: Path) -> None:
    done = typed("driple transfer --from V100 --to 2080Ti", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2080Ti-P1w2/ho-PCIe" in done.stdout
    assert list(tmp_path.rglob("checkpoint.safetensors"))
