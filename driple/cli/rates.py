"""Rates of links as people write them: `100M`, `25G`."""

from __future__ import annotations

import re

from driple.errors import ConfigError

__all__ = ["rate_of"]

_MOST_BITS_PER_S = 1e15
_RATE = re.compile(r"(\d+(?:\.\d+)?)([MG])", re.IGNORECASE)
_FACTORS = {"m": 1e6, "g": 1e9}


def rate_of(flag: str, text: str) -> float:
    """Bits per second from `100M` or `25G`.

    Raises:
        ConfigError: it is no rate above 0 and up to 1e15 bit/s.
    """
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _FACTORS[match[2].lower()] if match else 0.0
    if not 0 < rate <= _MOST_BITS_PER_S:
        raise ConfigError(
            f"{flag} needs a rate above 0 and up to 1000000G (bit/s), such as 100M or 10G, got "
            f"'{text[:40]}'"
        )
    return rate
