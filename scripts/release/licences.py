"""No package that Driple or an extra of it brings has a licence that would bind its users.

    python -m scripts.release.licences     # a line for each package; 1 if one is not allowed

ALLOWED are words of permissive licences, and of the MPL, which binds its own files alone. A package
that states none of them is refused until a person has looked it up: STATED.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from scripts.release.dependencies import Package, packages

__all__ = ["STATED", "main", "refused"]

ALLOWED = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|HPND|0BSD|CC0|Unlicense|"
    r"Zlib|CNRI|public domain)\b",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"\b[AL]?GPL|GNU (Affero|Lesser|General)", re.IGNORECASE)
# Of packages whose metadata name none, as their licence files have it.
STATED = {"namex": "Apache-2.0"}


def refused(listed: Iterable[Package]) -> list[str]:
    """A line for each package whose licence is not known to be permissive.

    A choice (`MIT OR GPL-2.0`) is fine, since its permissive side may be taken; an exception to
    the GPL is not looked at.
    """
    lines = []
    for package in listed:
        licence = STATED.get(package.name, package.licence)
        sides = re.split(r"\bOR\b", licence)
        if not any(ALLOWED.search(side) and not COPYLEFT.search(side) for side in sides):
            brought = ", ".join(package.extras) or "driple itself"
            lines.append(
                f"{package.name} {package.version} ({brought}): {licence or 'states no licence'}"
            )
    return lines


def main() -> int:
    """Print licences; 1 if one is refused or a package is not installed."""
    installed, missing = packages()
    for package in installed:
        print(f"{package.name} {package.version}: {STATED.get(package.name, package.licence)}")
    wrong = refused(installed)
    for line in wrong:
        print(f"not allowed, or not known: {line}", file=sys.stderr)
    if missing:
        print(f"not installed, so not looked at: {', '.join(missing)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
