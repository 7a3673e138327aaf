"""A trace is read event by event, in either form; what is cut or damaged says so in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from driple.errors import TraceError
from driple.measure.kineto import stream
from driple.measure.kineto.stream import TraceStream
from tests.measure.kineto.traces import gpu_steps, write


def read(path: Path) -> list[dict[str, object]]:
    return list(TraceStream(path).events())


def test_events_are_those_that_json_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = gpu_steps(4)
    path = write(tmp_path / "trace.json.gz", events, "Tesla V100-SXM2-32GB")
    for size in (1, 7, 2**20):  # chunks that end anywhere, also within a number or a character
        monkeypatch.setattr(stream, "_CHUNK_BYTES", size)
        reader = TraceStream(path)
        assert list(reader.events()) == events
        assert reader.header["deviceProperties"][0]["name"].startswith("Tesla")
        assert reader.num_bytes == len(gzip.decompress(path.read_bytes()))


def test_a_bare_list_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"name": "a"}, 3, {"name": "b"}]))
    assert read(path) == [{"name": "a"}, {"name": "b"}]
    path.write_text("[]")
    assert read(path) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("   ", "cut off"),
        ("hello", "no JSON trace"),
        ("{}", "no list traceEvents"),
        ('{"traceEvents": 3}', "no list traceEvents"),
        ('{"traceEvents": [{"name": "a"}', "cut off"),
        ('{"traceEvents": [{"name": "a"} {"name": "b"}]}', "comma"),
        ('{"traceEvents": [{"name": }]}', "damaged"),
        ('{"traceEvents": []} more', "follows its end"),
        ('{"traceEvents" []}', "colon"),
        ("{3: 4}", "name is missing"),
        ('{"traceEvents": [' + "[" * 100_000, "deeply"),
        ('{"traceEvents": [' + '{"a":' * 100_000, "deeply"),
        ('{"traceEvents": [1' + "1" * 10_000 + "]}", "damaged"),
    ],
)
def test_what_is_no_trace_says_so_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=words) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_cut_and_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.json.gz", gpu_steps(50))
    whole = path.read_bytes()
    for data in (
        whole[:-20],
        whole[: len(whole) // 2],
        whole[:12],
        whole[:40] + bytes(20) + whole[60:],
    ):
        path.write_bytes(data)
        with pytest.raises(TraceError, match=r"cut off|damaged"):
            read(path)


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "trace.json", gpu_steps(20))
    monkeypatch.setattr(stream, "MOST_BYTES", 1000)
    with pytest.raises(TraceError, match="fewer steps"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr(stream, "_MOST_VALUE_CHARS", 1000)
    monkeypatch.setattr(stream, "_CHUNK_BYTES", 500)
    path.write_text('{"traceEvents": [{"name": "' + "x" * 100_000 + '"}]}')
    with pytest.raises(TraceError, match="longer than 1000"):
        read(path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", Path("/dev/zero")):
        with pytest.raises(TraceError, match="cannot read"):
            read(path)
