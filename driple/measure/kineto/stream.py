"""Events of a trace file of the PyTorch profiler, one at a time.

    trace.json or .json.gz -> chunks of text -> header values, events (JSON objects)

The file is never held as a whole: memory is that of a chunk and of the longest event. Both forms of
Chrome's trace format are read: an object with `traceEvents`, and a bare list of events.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from driple.errors import TraceError
from driple.files import wrap_os_error
from driple.storedfiles import check_regular

__all__ = ["MOST_BYTES", "TraceStream"]

MOST_BYTES = 16 * 2**30  # after gunzip
_CHUNK_BYTES = 2**20
_MOST_VALUE_CHARS = 8 * 2**20  # of one event, or of one value of the header
_MOST_KEYS = 10_000
_GZIP_MAGIC = b"\x1f\x8b"
_SPACE = " \t\r\n"
_EVENTS = "traceEvents"
_HEADER = frozenset({"deviceProperties", "schemaVersion", "with_stack"})
_HINT = "export it again with torch.profiler (export_chrome_trace)"


class TraceStream:
    """One pass over a trace.

    Attributes:
        header: `deviceProperties` and the like, where they were read already.
        num_bytes: bytes of text that were read so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.num_bytes = 0
        self._text, self._at, self._ended = "", 0, False
        self._decoder = json.JSONDecoder(strict=False)  # names may hold control characters
        self._chars = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._file: BinaryIO | None = None

    def events(self) -> Generator[dict[str, Any], None, None]:
        """The events in the order of the file; what is no JSON object is left out.

        Raises:
            TraceError: no trace, cut, damaged, or beyond a limit; one line.
        """
        with wrap_os_error(TraceError, f"read {self.path}", "check the path"):
            check_regular(self.path)
            opened = self.path.open("rb")
        with opened:
            packed = opened.read(2) == _GZIP_MAGIC
            opened.seek(0)
            self._file = cast("BinaryIO", gzip.GzipFile(fileobj=opened)) if packed else opened
            yield from self._events()

    def _events(self) -> Iterator[dict[str, Any]]:
        first = self._next_char()
        if first == "[":
            yield from self._list()
        elif first == "{":
            yield from self._object()
        else:
            raise TraceError(f"{self.path}: it is no JSON trace; {_HINT}")
        if self._next_char(may_end=True):
            raise self._damaged("text follows its end")

    def _object(self) -> Iterator[dict[str, Any]]:
        self._at += 1
        seen = False
        for number in range(_MOST_KEYS):
            char = self._next_char()
            if char == "}":
                break
            if number and char == ",":
                self._at += 1
            elif number:
                raise self._damaged("a comma is missing")
            if self._next_char() != '"':
                raise self._damaged("a name is missing")
            key = str(self._value())
            if self._next_char() != ":":
                raise self._damaged("a colon is missing")
            self._at += 1
            if key == _EVENTS and self._next_char() == "[":
                seen = True
                yield from self._list()
                continue
            value = self._value()
            if key in _HEADER:
                self.header[key] = value
        else:
            raise self._damaged(f"it has over {_MOST_KEYS} values beside the events")
        self._at += 1
        if not seen:
            raise TraceError(f"{self.path}: it has no list {_EVENTS}; {_HINT}")

    def _list(self) -> Iterator[dict[str, Any]]:
        self._at += 1
        if self._next_char() == "]":
            self._at += 1
            return
        while True:
            event = self._value()
            if isinstance(event, dict):
                yield event
            char = self._next_char()
            self._at += 1
            if char == "]":
                return
            if char != ",":
                raise self._damaged("a comma is missing")

    def _value(self) -> Any:
        """The JSON value that comes next."""
        self._next_char()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self._damaged("an event is nested too deeply") from error
            except ValueError as error:  # incomplete so far, or damaged
                if len(self._text) - self._at > _MOST_VALUE_CHARS:
                    reason = f"a value is damaged, or longer than {_MOST_VALUE_CHARS} characters"
                    raise self._damaged(reason) from error
                if not self._refill():
                    raise self._damaged("it is cut off or damaged") from error
                continue
            if end < len(self._text) or not self._refill():  # a number may go on
                self._at = end
                return value

    def _next_char(self, *, may_end: bool = False) -> str:
        """The next character that is no space; it is not consumed."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._refill():
                if may_end:
                    return ""
                raise self._damaged("it is cut off" if self.num_bytes else "it is empty")

    def _refill(self) -> bool:
        """Read on; False at the end of the file."""
        if self._ended or self._file is None:
            return False
        left = len(self._text) - self._at
        try:
            data = self._file.read(max(_CHUNK_BYTES, left))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._damaged("its gzip data is cut off or damaged") from error
        except OSError as error:
            raise TraceError(f"cannot read {self.path}: {error.strerror or error}") from error
        self.num_bytes += len(data)
        if self.num_bytes > MOST_BYTES:
            raise TraceError(
                f"{self.path}: it has over {MOST_BYTES // 2**30} GiB of text; record fewer steps"
            )
        self._ended = not data
        more = self._chars.decode(data, final=not data)
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(data)

    def _damaged(self, reason: str) -> TraceError:
        return TraceError(f"{self.path}: {reason}, near byte {self.num_bytes}; {_HINT}")
