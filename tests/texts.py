"""Sentences in the JSON that commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["texts"]


def texts(remarks: Sequence[Any]) -> list[str]:
    """The sentence of each remark."""
    return [remark["text"] for remark in remarks]
