"""The sampler process on real files."""

import mmap
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from driple.measure.counters.sampler import open_counter


def test_counters_read_the_first_number_or_a_mapped_word(tmp_path: Path) -> None:
    """Plain files, files with words in them, and shared pages."""
    plain, stat, page = tmp_path / "plain", tmp_path / "stat", tmp_path / "page"
    plain.write_text("123456789012345\n")
    stat.write_text("usage_usec 77\nuser_usec 5\n")
    page.write_bytes(struct.pack("<q", 9) + bytes(mmap.PAGESIZE - 8))
    assert open_counter(str(plain))() == 123456789012345
    assert open_counter(str(stat))() == 77
    read = open_counter(f"mmap:{page}")
    assert read() == 9
    with page.open("r+b") as file:
        file.write(struct.pack("<q", 10))
    assert read() == 10


def test_rows_keep_to_absolute_deadlines(tmp_path: Path) -> None:
    """Rows carry their own times, in order; deadlines are never made up for in a burst."""
    counter, out = tmp_path / "counter", tmp_path / "rows"
    counter.write_text("5")
    process = subprocess.Popen(
        [sys.executable, "-m", "driple.measure.counters.sampler", str(out), "0.01", f"c={counter}"]
    )
    time.sleep(1.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    rows = np.fromfile(out, dtype=np.int64).reshape(-1, 3)
    assert len(rows) > 20
    assert (rows[:, 1] >= rows[:, 0]).all()
    assert (rows[:, 2] == 5).all()
    # A row may be late by what the machine is busy with, but deadlines lie on one grid.
    gaps = np.diff(rows[:, 0])
    assert (gaps > 0).all()
    assert abs(np.median(gaps) - 10e6) < 2e6
