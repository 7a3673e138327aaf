"""What an answer depends on beside the request: version, code and data of this installation."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from driple.extras import driple_version

__all__ = ["data_fingerprint", "etag_of"]

_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = ("numpy", "torch", "transformers", "timm", "onnx", "tensorflow-cpu")
_DIGITS = 32


@cache
def data_fingerprint() -> str:
    """A digest of the package's files, its checkpoints, and versions of libraries that read jobs.

    Taken once: what changes on disk later is not seen by the server either.
    """
    from driple.inspector.checkpoint_places import settings_with_checkpoint

    digest = hashlib.sha256(sys.version.encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {_version(name)}\n".encode())
    digest.update(repr(settings_with_checkpoint()).encode())
    folders = [_PACKAGE, _PACKAGE / "checkpoints", _PACKAGE.parent / "checkpoints"]
    files = {
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    for file in sorted(files):
        digest.update(str(file.relative_to(_PACKAGE.parent)).encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def etag_of(*parts: str) -> str:
    """The strong ETag of an answer: of request, version and data."""
    digest = hashlib.sha256()
    for part in (driple_version(), data_fingerprint(), *parts):
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return f'"{digest.hexdigest()[:_DIGITS]}"'


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
