"""Tables and numbers of a study in one JSON file, so that its page is made without running it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.errors import ConfigError
from driple.files import atomic_write
from scripts.studies.kit.page import Parts, places
from scripts.studies.kit.tables import cells, markdown


def write_stored(
    path: Path, tables: Mapping[str, Sequence[str]], numbers: Mapping[str, str]
) -> None:
    """Write tables, given as lines of Markdown, and numbers, given as text."""
    stored = {
        "numbers": dict(numbers),
        "tables": {
            name: {"head": cells(lines[0]), "rows": [cells(line) for line in lines[2:]]}
            for name, lines in tables.items()
        },
    }
    atomic_write(path, (json.dumps(stored, indent=0) + "\n").encode(), error=ConfigError)


def read_stored(path: Path) -> Parts:
    """All tables, as lines of Markdown, and numbers."""
    stored = json.loads(path.read_bytes())
    tables = {
        name: markdown(table["head"], table["rows"]) for name, table in stored["tables"].items()
    }
    return {**stored["numbers"], **tables}


def shown_parts(folder: Path, name: str = "tables.json") -> Parts:
    """The stored tables and numbers that the page of a study shows; the others are data alone."""
    return {key: part for key, part in read_stored(folder / name).items() if key in places(folder)}
