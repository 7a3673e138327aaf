r"""Text from files on a terminal: control characters are shown, never obeyed.

    stdout, stderr --escaped_streams--> the same, with `\x1b` in place of an escape character

Names in graphs and data sets are chosen by whoever made the file. Written as they are, an escape
sequence in one can clear the screen, change the window's title or fake a line of output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

__all__ = ["ReaderGoneError", "escaped", "escaped_streams", "one_line", "unescaped"]

# C0 and C1 controls but tab and line feed, and the marks that reorder or break lines.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    r"""The text with each control character as Python would write it, such as `\x1b`."""
    return _CONTROLS.sub(_shown, text)


def one_line(text: str) -> str:
    """The text on one line: runs of white space are one blank, control characters are escaped."""
    return escaped(" ".join(text.split()))


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class ReaderGoneError(Exception):
    """Nobody reads what is printed any more, as after `| head -1`; no fault of the command.

    It is no OSError: libraries and commands turn those into errors of their own.
    """


class _WatchedStream:
    """A text stream that says by an error of its own that nobody reads any more.

    Raises:
        ReaderGoneError: by any write, as soon as nobody reads.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _EscapedStream(_WatchedStream):
    """A text stream whose writes are escaped; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.unescaped = _WatchedStream(stream)

    def write(self, text: str) -> int:
        return super().write(escaped(text))


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape all that the block writes to stdout and stderr, but for `unescaped` writes."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _EscapedStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unescaped(stream: TextIO) -> TextIO:
    """The stream for our own colours and progress bars; write no text of a file to it."""
    return cast("TextIO", getattr(stream, "unescaped", stream))
