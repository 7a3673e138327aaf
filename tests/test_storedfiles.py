"""Files of others: what they claim is checked before it is believed."""

from __future__ import annotations

import io
import os
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from driple.storedfiles import (
    MAX_JSON_BYTES,
    check_regular,
    is_lfs_pointer,
    parse_json,
    read_bytes,
    read_json,
    read_npz,
)

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": ' * 100_000, "nested too deep"),
        (b"NaN", "it holds NaN"),
        (b'{"a": -Infinity}', "it holds -Infinity"),
        (b"9" * 5000, "4300 digits"),
        (b"\xff", "decode"),
        (b"{", "Expecting"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands twice in one object"),
        (POINTER, "a Git LFS pointer, not a JSON file; run git lfs pull"),
    ],
)
def test_bad_json_is_a_value_error(text: bytes, words: str) -> None:
    """And nothing else, so that readers need to expect nothing else."""
    with pytest.raises(ValueError, match=words):
        parse_json(text)


def test_a_json_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    """The limit counts bytes."""
    file = tmp_path / "a.json"
    file.write_bytes(b'{"a": 1}')
    assert read_json(file) == {"a": 1}
    with pytest.raises(ValueError, match="over 7 bytes"):
        read_json(file, 7)
    assert MAX_JSON_BYTES < 2**30
    with pytest.raises(OSError, match="No such file"):
        read_json(tmp_path / "none")


def test_a_pipe_that_nobody_writes_to_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no program writes to"):
        read_bytes(tmp_path / "pipe", 10, wait_s=0.05)


@pytest.mark.parametrize("delay_s", [0.0, 0.3])
def test_what_a_program_writes_into_a_pipe_is_read_whole(tmp_path: Path, delay_s: float) -> None:
    """It may open the pipe later, and write in pieces with a rest between."""
    pipe, content = tmp_path / "pipe", bytes(range(256)) * 1000

    def write() -> None:
        time.sleep(delay_s)
        with pipe.open("wb", buffering=0) as opened:
            time.sleep(delay_s)
            opened.write(content[:7])
            time.sleep(delay_s)
            opened.write(content[7:])

    os.mkfifo(pipe)
    writer = threading.Thread(target=write)
    writer.start()
    read = read_bytes(pipe, len(content))
    writer.join()
    assert read == content


def test_folders_and_devices_are_refused_and_a_large_file_is_not_read_whole(
    tmp_path: Path,
) -> None:
    with pytest.raises(OSError, match="a device or a socket"):
        read_bytes(Path("/dev/zero"), 10)
    with pytest.raises(OSError, match="it is a folder"):
        read_bytes(tmp_path, 10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        check_regular(tmp_path / "pipe")
    (tmp_path / "a").write_bytes(b"12345678")
    assert read_bytes(tmp_path / "a", 3) == b"1234"
    assert read_bytes(tmp_path / "a", 8) == b"12345678"


def test_pointers_of_git_lfs() -> None:
    """By their first line."""
    assert is_lfs_pointer(POINTER)
    assert not is_lfs_pointer(b"version 1")


def packed(file: Path, header: str, data: bytes, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """An array file with a header of our choice."""
    text = header.encode() + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data
    with zipfile.ZipFile(file, "w", method) as parts:
        parts.writestr("a.npy", array)
    return file


def header(shape: str, kind: str = "<i8") -> str:
    """As NumPy writes it."""
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (header("(10000000000000,)"), "needs 80000000000000 bytes, it has 16"),
        (header("(-2,)"), "needs -16 bytes"),
        (header("(1,)"), "needs 8 bytes, it has 16"),
        (header("(2,)", "|O"), "not plain numbers or text"),
        ("{'descr': '<i8', 'shape': (", "damaged header"),
        ("(" * 500, "damaged header"),
    ],
)
def test_headers_of_arrays_are_not_believed(tmp_path: Path, text: str, words: str) -> None:
    """The bytes that are there decide."""
    file = packed(tmp_path / "a.npz", text, bytes(16))
    with pytest.raises(ValueError, match=words):
        read_npz(file, ["a"], 2**20)


def test_arrays_come_back(tmp_path: Path) -> None:
    """In both orders, of all plain kinds, however packed."""
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "c": np.array(["x", "yz"]),
        "d": np.float64(2.5),
        "e": np.zeros((0, 4), dtype=np.int8),
    }
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, **arrays)  # type: ignore[arg-type]  # numpy's stubs want one array
        file = tmp_path / "a.npz"
        file.write_bytes(stream.getvalue())
        read = read_npz(file, arrays, 2**20)
        for name, array in arrays.items():
            np.testing.assert_array_equal(read[name], array)
        with pytest.raises(ValueError, match="at most 0 are read"):
            read_npz(file, ["a"], 100)
        with pytest.raises(ValueError, match="no array 'z'"):
            read_npz(file, ["z"], 2**20)


def test_other_packings_are_refused(tmp_path: Path) -> None:
    """NumPy writes two; others may unpack to anything."""
    file = packed(tmp_path / "a.npz", header("(2,)"), bytes(16), zipfile.ZIP_LZMA)
    with pytest.raises(ValueError, match="packed by method 14"):
        read_npz(file, ["a"], 2**20)
