"""Messages between the server and its child processes: eight bytes of length, then the content."""

from __future__ import annotations

import socket
import struct

__all__ = ["MOST_BYTES", "receive", "send"]

MOST_BYTES = 2**31
_LENGTH = struct.Struct(">Q")


def send(stream: socket.socket, content: bytes) -> None:
    """Send one message."""
    stream.sendall(_LENGTH.pack(len(content)))
    stream.sendall(content)


def receive(stream: socket.socket) -> bytes:
    """The next message.

    Raises:
        EOFError: the other end is gone, or claims to send too much.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > MOST_BYTES:
        raise EOFError(f"a message of {length} bytes, at most {MOST_BYTES} are taken")
    return bytes(_exactly(stream, length))


def _exactly(stream: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, done = memoryview(content), 0
    while done < length:
        count = stream.recv_into(view[done:])
        if not count:
            raise EOFError("the other process has ended")
        done += count
    return content
