"""What a command needs beyond the base installation is asked for before anything is done."""

from __future__ import annotations

from importlib.util import find_spec

from driple.errors import MissingExtraError

__all__ = ["require_tensorflow"]


def require_tensorflow(task: str) -> None:
    """Raise MissingExtraError if TensorFlow is not installed; nothing is imported.

    Args:
        task: what needs it, such as `measuring`.
    """
    if find_spec("tensorflow") is None:
        raise MissingExtraError(
            f"{task} needs TensorFlow, which is not installed; pip install 'driple[tensorflow]'"
        )
