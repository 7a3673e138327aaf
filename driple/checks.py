"""What an option may be: checks whose one line says what was found and what was needed.

name, value, what is allowed  ->  nothing, or ConfigError("NAME must be ..., got VALUE")
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from driple.errors import ConfigError

__all__ = [
    "MOST_SEED",
    "check_choice",
    "check_fields",
    "check_number",
    "check_switch",
    "check_text",
    "check_whole",
]

MOST_SEED = 2**32 - 1  # NumPy's and PyTorch's generators both take it


def check_choice(
    name: str,
    value: object,
    choices: Iterable[str],
    offers: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ConfigError unless the value is one of the choices.

    Args:
        name: of the value, as a user types it.
        value: to check.
        choices: what it may be.
        offers: what to take in place of other names, in small letters with `-` between words.
    """
    allowed = tuple(choices)
    if value not in allowed:
        offer = offers.get(str(value).lower().replace("_", "-"))
        advice = f"; {offer}" if offer else ""
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {value!r}{advice}")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise ConfigError unless the value is a whole number, no bool, within the bounds."""
    fits = (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value >= least
        and (most is None or value <= most)
    )
    if not fits:
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{name} must be a whole number {bounds}, got {value!r}")


def check_number(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Raise ConfigError unless the value is a finite number, no bool, within the bounds given."""
    fits = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max  # integers of JSON may be of any length
        and least <= value <= most
        and above < value < below
    )
    if not fits:
        bounds = {"at least": least, "above": above, "at most": most, "below": below}
        words = [f"{word} {bound:g}" for word, bound in bounds.items() if math.isfinite(bound)]
        needed = " and ".join(words) or "finite"
        raise ConfigError(f"{name} must be a number {needed}, got {value!r}")


def check_switch(name: str, value: object) -> None:
    """Raise ConfigError unless the value is True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, got {value!r}")


def check_text(name: str, value: object) -> None:
    """Raise ConfigError unless the value is a text."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be a text, got {value!r:.80}")


def check_fields(name: str, fields: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise ConfigError unless a stored configuration has all known fields and no other."""
    odd = set(fields) ^ set(known)
    if odd:
        raise ConfigError(f"{name} with unknown or missing fields: {', '.join(sorted(odd))}")
