"""A study's page: `page.in.md` with its places filled in from stored results.

page.in.md + parts  --fill-->  page.md, at most 1,500 words beside its tables
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.errors import ConfigError
from driple.files import atomic_write

MOST_WORDS = 1500
TEMPLATE, PAGE = "page.in.md", "page.md"
# First line of a page whose results were not made again with today's reader and simulator.
OLD_NUMBERS = (
    "**Numbers here are of an earlier reader and simulator (before decision 0020): compare them "
    "with each other, and take errors of today's inspectors from the study on accuracy.**"
)
Parts = Mapping[str, str | Sequence[str]]  # text, or the lines of a table

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def num_words(text: str) -> int:
    """Words of a page beside its tables."""
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith("|"))


def fill(template: str, parts: Parts) -> str:
    """Put parts into the places `{{name}}` of a template; `{{old_numbers}}` is always there.

    Raises:
        ConfigError: a place without a part, a part without a place, or too many words.
    """
    places = set(_PLACE.findall(template))
    known = {"old_numbers": OLD_NUMBERS, **parts}
    if missing := sorted(places - set(known)):
        raise ConfigError(f"{TEMPLATE} has a place {missing[0]}, but the report has no such part")
    if unused := sorted(set(parts) - places):
        raise ConfigError(f"the report has a part {unused[0]}, but {TEMPLATE} has no such place")

    def text_of(place: re.Match[str]) -> str:
        part = known[place[1]]
        return part if isinstance(part, str) else "\n".join(part)

    filled = _PLACE.sub(text_of, template)
    if (words := num_words(filled)) > MOST_WORDS:
        raise ConfigError(f"the page has {words} words beside its tables; {MOST_WORDS} are allowed")
    return filled


def places(folder: Path) -> set[str]:
    """Names of the places in a study's template."""
    return set(_PLACE.findall((folder / TEMPLATE).read_text(encoding="utf-8")))


def page_of(folder: Path, parts: Parts) -> str:
    """The page of a study with these parts."""
    return fill((folder / TEMPLATE).read_text(encoding="utf-8"), parts)


def write_page(folder: Path, parts: Parts) -> None:
    """Write a study's page."""
    atomic_write(folder / PAGE, page_of(folder, parts).encode(), error=ConfigError)
    print(f"wrote {folder.name}/{PAGE}")
