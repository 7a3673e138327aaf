"""What is installed: optional packages, checked before a command starts its work, and Driple."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from driple.errors import MissingExtraError, install_hint

__all__ = [
    "driple_version",
    "require_mcp",
    "require_numba",
    "require_onnx",
    "require_tensorflow",
    "require_timm",
    "require_torch",
    "require_transformers",
    "require_web",
]


def driple_version() -> str:
    """The installed version, such as 0.2.0."""
    try:
        return version("driple")
    except PackageNotFoundError:
        return "not installed"


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


def require_web(task: str) -> None:
    """Raise MissingExtraError if the packages of the server are not installed."""
    for module, name in (("fastapi", "FastAPI"), ("uvicorn", "uvicorn"), ("jinja2", "Jinja2")):
        _require(module, name, "web", task)


def require_mcp(task: str) -> None:
    """Raise MissingExtraError if the package mcp is not installed; nothing is imported."""
    _require("mcp", "the package mcp", "mcp", task)


def _require(module: str, name: str, extra: str, task: str) -> None:
    if find_spec(module) is None:
        raise MissingExtraError(
            f"{task} needs {name}, which is not installed; {install_hint(extra)}"
        )
