"""Checks that an optional package is installed, before a command starts its work."""

from __future__ import annotations

from importlib.util import find_spec

from driple.errors import MissingExtraError, install_hint

__all__ = ["require_numba", "require_tensorflow", "require_torch"]


def require_tensorflow(task: str) -> None:
    """Raise MissingExtraError if TensorFlow is not installed; nothing is imported.

    Args:
        task: what needs it, such as `measuring`.
    """
    _require("tensorflow", "TensorFlow", "tensorflow", task)


def require_numba(task: str) -> None:
    """Raise MissingExtraError if Numba is not installed; nothing is imported."""
    _require("numba", "Numba", "async", task)


def require_torch(task: str, *, extra: str = "torch") -> None:
    """Raise MissingExtraError if PyTorch is not installed; nothing is imported.

    Args:
        task: what needs it, such as `profiling`.
        extra: extra of Driple that installs PyTorch together with the rest that the task needs.
    """
    _require("torch", "PyTorch", extra, task)


def _require(module: str, name: str, extra: str, task: str) -> None:
    if find_spec(module) is None:
        raise MissingExtraError(
            f"{task} needs {name}, which is not installed; {install_hint(extra)}"
        )
