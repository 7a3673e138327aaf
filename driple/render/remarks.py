"""Sentences of remarks, by code.

Remark  --sentence-->  text for people
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driple.remarks import Remark

__all__ = ["SENTENCES", "sentence"]

SENTENCES: Mapping[str, str | Callable[..., str]] = {}
"""Code -> a template with the names of its values, or a function of them."""


def sentence(remark: Remark) -> str:
    """The remark as one sentence, without a full stop.

    Args:
        remark: its code is one of `SENTENCES`.
    """
    words = SENTENCES[remark.code]
    values: dict[str, Any] = dict(remark.values)
    return words.format(**values) if isinstance(words, str) else words(**values)
