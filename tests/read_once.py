"""A job that several tests ask about is read once, as most tests of answers would only read it.

JOB, `reading_key`, state of its file  ->  the job that was read for the same before

A folder of tests takes part by a conftest.py that imports `jobs_read_once`; what counts how often
something is worked out is marked `reads_anew`. Readers have tests of their own, which read.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

import pytest

from driple.jobs import load
from driple.jobs.job import Job
from driple.jobs.options import JobOptions
from driple.jobs.readers import JobReader, JobRequest, reader_of

_SINGLE_FILES = (".pb", ".pbtxt", ".gz")  # no other file belongs to them
_READ: dict[Hashable, Job] = {}


def _state(text: str) -> Hashable | None:
    """What tells a job's file from that of another time; None if there is more than a file."""
    path = Path(text)
    if not path.exists():
        return None if ":" in text else ()
    if path.suffix not in _SINGLE_FILES:
        return None
    stat = path.stat()
    return str(path.absolute()), stat.st_ino, stat.st_size, stat.st_mtime_ns


def _reader_once(text: str, options: JobOptions) -> JobReader:
    reader = reader_of(text, options)

    def read(request: JobRequest) -> Job:
        state = _state(request.text)
        if state is None or request.content is not None:
            return reader.read(request)
        decided = load.reading_key(text, request.options, request.setting)
        key = (reader.name, text, state, request.training, decided)
        if key not in _READ:
            _READ[key] = reader.read(request)
        return _READ[key]

    return replace(reader, read=read)


@pytest.fixture(autouse=True)
def jobs_read_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `load_job` read a job once in this process."""
    if request.node.get_closest_marker("reads_anew") is None:
        monkeypatch.setattr(load, "reader_of", _reader_once)
