"""A record is read up to its last whole block, whatever was cut, and trusts no number in it."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from driple.errors import MeasureError, TraceError
from driple.measure.record.store import BlockWriter, read_record
from tests.measure.record.records import START_NS, WALL_AHEAD_NS, write_record


def _record(folder: Path, num: int = 250) -> Path:
    rates = {"cpu_ns": [1e9] * num, "net_tx": [1e6] * num}
    return write_record(folder, rates, marks_s=[[0.1, 0.2, 0.3]], gauges={"x": [(0.5, -7)]})


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Rows, gauges, marks and both clocks."""
    record = read_record(_record(tmp_path / "r"))
    assert record.samples.names == ("cpu_ns", "net_tx")
    assert record.samples.values[:2].tolist() == [[10**7, 10**4], [2 * 10**7, 2 * 10**4]]
    assert len(record.samples.before_ns) == 250
    assert record.gauges["x"].values.tolist() == [-7]
    assert record.gauges["x"].times_ns.tolist() == [START_NS + 500_000_000]
    assert (record.marks[0].times_ns - START_NS).tolist() == [10**8, 2 * 10**8, 3 * 10**8]
    assert record.wall_offset_ns == WALL_AHEAD_NS
    assert record.unread_bytes == 0


def test_a_file_cut_anywhere_keeps_every_whole_block(tmp_path: Path) -> None:
    """A cut loses the block that it is in, and no other."""
    folder = _record(tmp_path / "r")
    data = (folder / "samples.bin").read_bytes()
    ends = [i for i in range(1, len(data)) if data[i : i + 4] == b"DRPB"] + [len(data)]
    assert len(ends) == 3
    for cut in range(ends[0], len(data), 7):
        (folder / "samples.bin").write_bytes(data[:cut])
        record = read_record(folder)
        whole = sum(end <= cut for end in ends)
        assert len(record.samples.before_ns) == 100 * whole
        assert record.unread_bytes == cut - ends[whole - 1]


def test_a_changed_byte_ends_the_record_before_it(tmp_path: Path) -> None:
    """No flipped byte is taken for a sample."""
    folder = _record(tmp_path / "r")
    data = bytearray((folder / "samples.bin").read_bytes())
    second = data.index(b"DRPB", 4)
    for place in range(second, second + 60, 3):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        (folder / "samples.bin").write_bytes(damaged)
        assert len(read_record(folder).samples.before_ns) == 100


def test_a_block_that_unpacks_to_gigabytes_is_not_read(tmp_path: Path) -> None:
    """The unpacked size of a block is bounded before it is unpacked."""
    folder = _record(tmp_path / "r")
    bomb = zlib.compress(bytes(64 * 2**20))
    block = b"DRPB" + len(bomb).to_bytes(4, "little") + zlib.crc32(bomb).to_bytes(4, "little")
    with (folder / "samples.bin").open("ab") as file:
        file.write(block + bomb)
    record = read_record(folder)
    assert len(record.samples.before_ns) == 250
    assert record.unread_bytes == len(block) + len(bomb)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 99}, "reads up to 1; update Driple"),
        ({"period_s": 0.0}, "both must be above 0"),
        ({"cores": -1.0}, "both must be above 0"),
        ({"columns": ["x"] * 2000}, "names over 1000 counters"),
        ({"columns": 3}, "record again"),
        ({"columns": ["cpu_ns"]}, "has no whole block"),
    ],
)
def test_damaged_facts_are_refused(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    """One line that says what is wrong."""
    folder = _record(tmp_path / "r")
    about = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(about | changes))
    with pytest.raises(TraceError, match=words):
        read_record(folder)


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    """A folder without record.json, and marks that are none."""
    with pytest.raises(TraceError, match=r"is no record: it has no record\.json"):
        read_record(tmp_path)
    folder = _record(tmp_path / "r")
    (folder / "steps" / "x.steps").write_bytes(b"something else")
    with pytest.raises(TraceError, match="holds no marks"):
        read_record(folder)


def test_a_jump_of_the_wall_clock_moves_no_sample(tmp_path: Path) -> None:
    """Samples are on the monotonic clock; the offset is that of most blocks."""
    jump = [WALL_AHEAD_NS] * 3 + [WALL_AHEAD_NS - 3_600_000_000_000]
    rates = {"cpu_ns": [1e9] * 400}
    record = read_record(write_record(tmp_path / "r", rates, wall_ahead_ns=jump))
    assert record.wall_offset_ns == WALL_AHEAD_NS
    assert np.diff(record.samples.before_ns).max() == 10**7


def test_a_writer_refuses_a_file_that_is_there(tmp_path: Path) -> None:
    """A record is never appended to another."""
    folder = _record(tmp_path / "r")
    with pytest.raises(MeasureError, match="cannot write"):
        BlockWriter(folder, 2)
