"""Packages that Driple needs here, itself and by extra, with versions and licences.

pyproject.toml -> requirements -> metadata of the installed packages -> what those require -> ...
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["ROOT", "Package", "extras_of_project", "packages", "project"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package.

    Attributes:
        name: normalised.
        version: installed.
        licence: as the package states it, in its words; empty if it states none.
        needs: normalised names of the packages that it requires here.
        extras: of Driple that bring it; empty of what Driple itself needs.
    """

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]
    extras: tuple[str, ...]


def project() -> dict[str, object]:
    """The table `[project]` of pyproject.toml."""
    values = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(values)


def extras_of_project() -> dict[str, list[str]]:
    """Requirements by extra; those of Driple itself under the empty name."""
    values = project()
    extras = values["optional-dependencies"]
    base = values["dependencies"]
    if not isinstance(extras, dict) or not isinstance(base, list):
        raise TypeError("pyproject.toml has no lists of dependencies")
    return {"": base} | {name: lines for name, lines in extras.items() if name != "all"}


def packages(extras: Iterable[str] | None = None) -> tuple[list[Package], list[str]]:
    """All packages that some extras reach, by name, and the requirements that are not installed.

    Args:
        extras: names; all of them if None. Driple's own requirements are always among them.
    """
    asked = extras_of_project()
    names = set(asked) if extras is None else {"", *extras}
    brought: dict[str, set[str]] = {}
    distributions: dict[str, Distribution] = {}
    missing: set[str] = set()
    for extra in sorted(names):
        open_ = [Requirement(line) for line in asked[extra]]
        seen: set[tuple[str, frozenset[str]]] = set()
        while open_:
            wanted = open_.pop()
            name = canonicalize_name(wanted.name)
            if name == "driple":
                open_ += [Requirement(line) for each in wanted.extras for line in asked[each]]
                continue
            if (name, frozenset(wanted.extras)) in seen:
                continue
            seen.add((name, frozenset(wanted.extras)))
            try:
                distributions[name] = distribution(wanted.name)
            except PackageNotFoundError:
                missing.add(name)
                continue
            brought.setdefault(name, set()).add(extra)
            open_ += _needs(distributions[name], wanted.extras)
    return [
        _package(name, distributions[name], brought[name]) for name in sorted(distributions)
    ], sorted(missing)


def _needs(installed: Distribution, extras: Iterable[str] = ()) -> list[Requirement]:
    """What a package requires here, with some of its extras."""
    ways = [{"extra": extra} for extra in ("", *extras)]
    requirements = [Requirement(line) for line in installed.requires or ()]
    return [
        each
        for each in requirements
        if each.marker is None or any(each.marker.evaluate(way) for way in ways)
    ]


def _package(name: str, installed: Distribution, extras: set[str]) -> Package:
    return Package(
        name=name,
        version=installed.version,
        licence=licence_of(installed),
        needs=tuple(sorted({str(canonicalize_name(each.name)) for each in _needs(installed)})),
        extras=() if "" in extras else tuple(sorted(extras)),
    )


def licence_of(installed: Distribution) -> str:
    """What a package states of its licence: the expression, the classifiers, or its words."""
    facts = installed.metadata
    expression = _field(installed, "License-Expression")
    if expression:
        return expression
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in facts.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    words = _field(installed, "License").strip().splitlines()
    stated = "; ".join(dict.fromkeys([*classifiers, *words[:1]]))
    return re.sub(r"\s+", " ", stated)[:100]


def _field(installed: Distribution, name: str) -> str:
    """A field of the metadata; empty if the package does not state it."""
    return str(installed.metadata[name]) if name in installed.metadata else ""
