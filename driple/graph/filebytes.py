"""Bytes of a graph file, gzipped or not, never more than a bound.

file -> bytes, all members of gzip unpacked in chunks
"""

from __future__ import annotations

import zlib
from pathlib import Path

from driple.errors import GraphError
from driple.storedfiles import read_bytes

__all__ = ["DEFAULT_MAX_BYTES", "unpacked", "unpacked_bytes"]

DEFAULT_MAX_BYTES = 512 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's number for a gzip header
_GZIP_CHUNK_BYTES = 65_536
_MOST_GZIP_MEMBERS = 100_000


def unpacked_bytes(file: Path, max_bytes: int) -> bytes:
    """The content of a graph file, after gunzip if it is packed.

    Args:
        file: to read.
        max_bytes: largest file that is read, and largest size after gunzip.

    Raises:
        OSError: it cannot be read.
        GraphError: too large, or a damaged gzip file.
    """
    size = file.stat().st_size
    if size > max_bytes:
        raise GraphError(_too_large(f"{size} bytes", max_bytes))
    return unpacked(read_bytes(file, max_bytes), max_bytes)


def unpacked(data: bytes, max_bytes: int) -> bytes:
    """The same of content that is in memory.

    Raises:
        GraphError: too large, or damaged gzip.
    """
    if len(data) > max_bytes:
        raise GraphError(_too_large(f"over {max_bytes} bytes", max_bytes))
    return _gunzip(data, max_bytes) if data.startswith(_GZIP_MAGIC) else data


def _too_large(size: str, max_bytes: int) -> str:
    return f"file has {size}, at most {max_bytes} are read; raise the limit with --set max_mib=N"


def _gunzip(data: bytes, max_bytes: int) -> bytes:
    """Unpack all members, in chunks, never more than `max_bytes`."""
    pieces, left, num_members = [], max_bytes, 0
    member = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for start in range(0, len(data), _GZIP_CHUNK_BYTES):
            chunk = data[start : start + _GZIP_CHUNK_BYTES]
            while chunk:
                if member.eof:
                    chunk = chunk.lstrip(b"\0")  # padding between members
                    if not chunk:
                        break
                    member = zlib.decompressobj(_GZIP_WINDOW)
                    num_members += 1
                piece = member.decompress(chunk, left + 1)
                if len(piece) > left:
                    raise GraphError(_too_large(f"over {max_bytes} bytes when unpacked", max_bytes))
                if num_members > _MOST_GZIP_MEMBERS:
                    raise GraphError(f"gzip has over {_MOST_GZIP_MEMBERS} members; pack it again")
                pieces.append(piece)
                left -= len(piece)
                chunk = member.unused_data
    except zlib.error as error:
        raise GraphError(f"gzip file is corrupt ({error}); copy it again") from error
    if not member.eof:
        raise GraphError("gzip file is cut off; copy it again")
    return b"".join(pieces)
