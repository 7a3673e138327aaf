"""Memory at the peak by module, with modules that are alike as one.

layers.0.mlp, layers.1.mlp, ... --> layers.* (12 modules)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driple.memory.timeline import ModuleBytes

__all__ = ["ModuleMemory", "modules_joined", "most_words"]

_DEPTH = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleMemory:
    """Memory of a module, or of several alike, at the peak.

    Attributes:
        module: its path, with `*` in place of the numbers of modules that are alike; empty for
            what belongs to no module.
        count: how many modules there are.
        by_kind: bytes of each kind.
    """

    module: str
    count: int
    by_kind: Mapping[str, int]

    @property
    def nbytes(self) -> int:
        """Bytes of all kinds."""
        return sum(self.by_kind.values())


def modules_joined(rows: Iterable[ModuleBytes], depth: int) -> tuple[ModuleMemory, ...]:
    """Modules down to a depth, those that differ by numbers alone as one, the largest first.

    Args:
        rows: of a timeline.
        depth: parts of a path; numbers that follow belong to them.
    """
    sums: dict[str, dict[str, int]] = {}
    paths: dict[str, set[str]] = {}
    for row in rows:
        path = _within(row.module, depth)
        form = re.sub(r"(?<![^./])\d+(?![^./])", "*", path)
        kinds = sums.setdefault(form, {})
        kinds[row.kind] = kinds.get(row.kind, 0) + row.nbytes
        paths.setdefault(form, set()).add(path)
    joined = []
    for form, kinds in sums.items():
        alike = paths[form]
        name = next(iter(alike)) if len(alike) == 1 else form
        joined.append(ModuleMemory(module=name, count=len(alike), by_kind=kinds))
    return tuple(sorted(joined, key=lambda one: (-one.nbytes, one.module)))


def _within(path: str, depth: int) -> str:
    """The first `depth` parts of a path, with the numbers that follow them."""
    separator = "/" if "/" in path else "."
    parts = path.split(separator) if path else []
    end = min(max(depth, 1), len(parts))
    while end < len(parts) and parts[end].isdigit():
        end += 1
    return separator.join(parts[:end])


def most_words(rows: Iterable[ModuleBytes], kind: str) -> str:
    """Where most bytes of a kind are: a module, or what no module contains.

    Args:
        rows: of a timeline.
        kind: one of its kinds.
    """
    joined = modules_joined((one for one in rows if one.kind == kind), _DEPTH)
    if not joined:
        return ""
    return joined[0].module or "the loss and other ops outside of modules"
