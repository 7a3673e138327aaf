"""What a command needs beyond the base installation is asked for before anything is done."""

from __future__ import annotations

from importlib.util import find_spec

from driple.errors import MissingExtraError, install_hint

__all__ = [
    "require_numba",
    "require_onnx",
    "require_tensorflow",
    "require_timm",
    "require_torch",
    "require_transformers",
]


def require_tensorflow(task: str) -> None:
    """Raise MissingExtraError if TensorFlow is not installed; nothing is imported.

    Args:
        task: what needs it, such as `measuring`.
    """
    _require("tensorflow", "TensorFlow", "tensorflow", task)


def require_numba(task: str) -> None:
    """Raise MissingExtraError if Numba is not installed; nothing is imported."""
    _require("numba", "Numba", "throughput", task)


def require_torch(task: str) -> None:
    """Raise MissingExtraError if PyTorch is not installed; nothing is imported."""
    _require("torch", "PyTorch", "torch", task)


def require_transformers(task: str) -> None:
    """Raise MissingExtraError if transformers or PyTorch is not installed; nothing is imported."""
    _require("torch", "PyTorch", "hf", task)
    _require("transformers", "transformers", "hf", task)


def require_timm(task: str) -> None:
    """Raise MissingExtraError if timm or PyTorch is not installed; nothing is imported."""
    _require("torch", "PyTorch", "timm", task)
    _require("timm", "timm", "timm", task)


def require_onnx(task: str) -> None:
    """Raise MissingExtraError if the package onnx is not installed; nothing is imported."""
    _require("onnx", "the package onnx", "onnx", task)


def _require(module: str, name: str, extra: str, task: str) -> None:
    if find_spec(module) is None:
        raise MissingExtraError(
            f"{task} needs {name}, which is not installed; {install_hint(extra)}"
        )
