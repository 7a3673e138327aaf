"""Stored results of a study: one JSON object a line, appended when an experiment is done."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]


def read_results(path: Path) -> list[Row]:
    """Finished experiments; none if the file is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def add_result(path: Path, row: Row) -> None:
    """Append a finished experiment; several processes may append to one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def pick(rows: Iterable[Row], **fields: object) -> list[Row]:
    """Rows whose fields are these."""
    return [row for row in rows if all(row[name] == value for name, value in fields.items())]


def mean_and_std(rows: Iterable[Row], name: str) -> tuple[float, float]:
    """Mean and standard deviation of a field; the deviation of one row is 0."""
    values = np.array([row[name] for row in rows], dtype=float)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
