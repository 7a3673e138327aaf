"""Names of the methods."""

from __future__ import annotations

__all__ = ["METHOD_WORDS"]

METHOD_WORDS = {
    "measured": "measured",
    "inspector": "inspector",
    "simulator": "simulator",
    "zhang": "Zhang",
    "zeng-repaired": "Zeng, repaired",
    "zeng": "Zeng, as published",
}
