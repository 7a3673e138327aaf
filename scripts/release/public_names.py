"""Public names of `driple` and `driple.api` with their signatures, and the hash of the JSON schema.

    driple, driple.api -> names, signatures, public members -> tests/data/public_names.txt

    python -m scripts.release.public_names             # what differs from the last release
    python -m scripts.release.public_names --write     # as part of a release

The file is written when a version is released. Until the next one, names may join; what is in the
file stays, or goes by the rule of deprecation (docs/versions.md).
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

__all__ = ["RESULT", "lines_now", "lost", "main"]

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "tests" / "data" / "public_names.txt"
SCHEMA = ROOT / "driple" / "api" / "schema.json"
MODULES = ("driple", "driple.api")
_SCHEMA = "schema.json sha256 "


def lines_now() -> list[str]:
    """A line for each public name, member of a public class, and the schema; in order."""
    lines = [f"{_SCHEMA}{hashlib.sha256(SCHEMA.read_bytes()).hexdigest()}"]
    for module in MODULES:
        there = import_module(module)
        for name in there.__all__:
            value = getattr(there, name)
            lines.append(f"{module}.{name}{_signature(value)}")
            if inspect.isclass(value):
                lines += [f"{module}.{name}.{member}" for member in _members(value)]
    return sorted(lines)


def _signature(value: object) -> str:
    """Parameters of what can be called; nothing of other things."""
    if not callable(value):
        return ""
    try:
        return str(inspect.signature(value))
    except ValueError:  # of a class that C makes
        return ""


def _members(kind: type) -> list[str]:
    """Public attributes, properties and methods of a class, with the parameters of methods."""
    fields = {name for part in kind.__mro__ for name in inspect.get_annotations(part)}
    names = {name for name in {*dir(kind), *fields} if not name.startswith("_")}
    return sorted(
        name + (_signature(value) if inspect.isroutine(value := getattr(kind, name, None)) else "")
        for name in names
        if not hasattr(Exception, name)
    )


def lost(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Lines of the last release whose calls would fail now, the hash of the schema aside."""
    there = dict(_parted(line) for line in now)
    return [
        line for line in before if not line.startswith(_SCHEMA) and not _still(_parted(line), there)
    ]


def _still(line: tuple[str, tuple[str, ...]], there: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a name takes what it took: its parameters in their order, and others by default."""
    name, before = line
    if name not in there:
        return False
    kept = [parameter for parameter in there[name] if parameter in before]
    joined = [parameter for parameter in there[name] if parameter not in before]
    return kept == list(before) and all(" = " in parameter for parameter in joined)


def _parted(line: str) -> tuple[str, tuple[str, ...]]:
    """Name and parameters of a line; the type of the result is the last of them."""
    name, bracket, rest = line.partition("(")
    if not bracket:
        return name, ()
    parameters: list[str] = []
    depth, begin, quoted = 0, 0, False
    for place, sign in enumerate(rest):
        quoted ^= sign == "'"
        depth += not quoted and sign in "([{"
        depth -= not quoted and sign in ")]}"
        if depth < 0:
            return name, (*parameters, rest[begin:place].strip(), rest[place:])
        if sign == "," and not depth and not quoted:
            parameters.append(rest[begin:place].strip())
            begin = place + 1
    return name, (*parameters, rest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what joined and what is lost; 1 if anything is lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="as the names of a release")
    options = parser.parse_args(arguments)
    now = lines_now()
    if options.write:
        RESULT.write_text("\n".join(now) + "\n", encoding="utf-8")
    before = RESULT.read_text(encoding="utf-8").splitlines()
    for line in now:
        if line not in before:
            print(f"+ {line}")
    gone = lost(before, now)
    for line in gone:
        print(f"- {line}")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
