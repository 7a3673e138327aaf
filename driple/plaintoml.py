"""TOML that others wrote, read within bounds: catalogues, price files, training configs.

text --dots of a line, depth--> values

Whatever is wrong with the content is a ValueError whose text says what, in one line.
"""

from __future__ import annotations

import tomllib
from typing import Any

__all__ = ["read_plain_toml"]

_MOST_DOTS = 100  # of one line: a key of many parts takes the parser the square of them
_LONGEST_REASON = 200  # characters


def read_plain_toml(text: str) -> dict[str, Any]:
    """What a TOML text holds; whoever reads the file bounds its size.

    Raises:
        ValueError: no TOML, nested too deep, or a line with very many dots.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS:
            raise ValueError(f"over {_MOST_DOTS} dots in line {number}; write it on several lines")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # tomllib's own error is one
        raise ValueError(" ".join(str(error).split())[:_LONGEST_REASON]) from error
    except RecursionError as error:
        raise ValueError("nested too deep") from error
