"""The allocation counter on a real process."""

import subprocess
import sys
from pathlib import Path

import pytest

from driple.errors import MeasureError
from driple.measure.counters import memory
from driple.measure.counters.memory import (
    AllocationCounter,
    build_alloc_counter,
    write_bandwidth_bytes_per_s,
)
from driple.measure.counters.sampler import open_counter


def counted_bytes(tmp_path: Path, program: str) -> int:
    """Bytes that a Python program is seen to allocate."""
    library = build_alloc_counter(tmp_path)
    counter = AllocationCounter("test")
    try:
        subprocess.run(
            [sys.executable, "-c", program], env=counter.environment(library), check=True
        )
        return open_counter(f"mmap:{counter.path}")()
    finally:
        counter.close()
        assert not counter.path.exists()


def test_large_blocks_are_counted(tmp_path: Path) -> None:
    """Ten blocks of 8 MB more are 80 MB more, within the size of the page tables."""
    base = counted_bytes(tmp_path, "pass")
    more = counted_bytes(tmp_path, "x = [bytearray(8_000_000) for _ in range(10)]")
    assert more - base == pytest.approx(80e6, rel=0.02)


def test_memory_write_rate_is_plausible() -> None:
    """Between 0.2 and 200 GB/s on any machine that can run this."""
    assert 2e8 < write_bandwidth_bytes_per_s() < 2e11


def test_without_a_compiler_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cc, no gcc."""
    monkeypatch.setattr(memory.shutil, "which", lambda _name: None)
    with pytest.raises(MeasureError, match="install gcc"):
        build_alloc_counter(tmp_path)
