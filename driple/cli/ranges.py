"""Lists of numbers as people write them: `1G,10G`, `1-4,8`, `0-0.9`.

flag, text -> rates_of, wholes_of, shares_of -> numbers, or ConfigError naming the flag
"""

from __future__ import annotations

import re

from driple.checks import check_number
from driple.cli.rates import rate_of
from driple.errors import ConfigError

__all__ = ["rates_of", "shares_of", "wholes_of"]

_RANGE = re.compile(r"(?P<low>[\d.]+)\s*-\s*(?P<high>[\d.]+)")


def rates_of(flag: str, text: str) -> list[float]:
    """Bytes per second from `1G,10G`."""
    return [rate_of(flag, part) / 8 for part in filter(None, text.split(","))]


def wholes_of(flag: str, text: str, most: int) -> list[int]:
    """Whole numbers from `1-4,8`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        match = _RANGE.fullmatch(part.strip())
        low, high = (match["low"], match["high"]) if match else (part.strip(), part.strip())
        good = all(end.isdecimal() and len(end) <= len(str(most)) for end in (low, high))
        if not (good and 1 <= int(low) <= int(high) <= most):
            raise ConfigError(
                f"{flag} needs numbers from 1 to {most} such as 4, 1-64 or 1,2,4, got '{text[:40]}'"
            )
        found |= set(range(int(low), int(high) + 1))
    return sorted(found)


def shares_of(flag: str, text: str) -> list[float]:
    """Shares from `0-0.9` (in tenths) or `0,0.5`."""
    import numpy as np

    match = _RANGE.fullmatch(text.strip())
    ends = [match["low"], match["high"]] if match else text.split(",")
    try:
        shares = [float(end) for end in ends]
    except ValueError as error:
        raise ConfigError(
            f"{flag} needs shares such as 0.5, 0-0.9 or 0,0.5, got '{text[:40]}'"
        ) from error
    for share in shares:
        check_number(flag, share, least=0, below=1)
    if match is None:
        return shares
    tenths: list[float] = np.round(np.arange(shares[0], shares[1] + 1e-9, 0.1), 10).tolist()
    if not tenths:
        raise ConfigError(f"{flag} needs a range that goes up, such as 0-0.9, got '{text}'")
    return tenths
