"""Rates of links as people write them: `100M`, `25G`."""

from __future__ import annotations

import re

from driple.errors import ConfigError

__all__ = ["rate_of"]

_RATE = re.compile(r"(\d+(?:\.\d+)?)([MG])", re.IGNORECASE)
_FACTORS = {"m": 1e6, "g": 1e9}


def rate_of(flag: str, text: str) -> float:
    """Bits per second from `100M` or `25G`.

    Raises:
        ConfigError: it is no rate above 0.
    """
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _FACTORS[match[2].lower()] if match else 0.0
    if rate <= 0:
        raise ConfigError(f"{flag} needs a rate in bit/s such as 100M or 10G, got '{text}'")
    return rate
