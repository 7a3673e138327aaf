"""The committed tables that programs of this folder write: records, and predictions.

records --write_records--> FILE.csv.gz --driple.runs.tables.read_records--> the same records
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path

from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.published_runs import FACTS, PublishedRun
from driple.runs.tables import PUBLISHED
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.runs.validation.held_out import TENSORFLOW_FILE, HeldOutPrediction, run_ids
from driple.runs.validation.predictions import Predictions

__all__ = ["write_predictions", "write_published", "write_records", "write_tensorflow"]

_DIGITS = 5  # of predictions
_HELD_OUT = ("id", "held_out", "name", "seconds", "simulated_s", "roofline_s", "asked_s")


def write_records(
    file: Path,
    facts: Sequence[str],
    records: Iterable[object],
    column_of: Mapping[str, str] | None = None,
) -> None:
    """Write facts of records as a packed table; the same records give the same bytes.

    Args:
        file: to write.
        facts: attributes of the records, in the order of the columns.
        records: to write.
        column_of: columns of facts that the table calls otherwise.

    Raises:
        ConfigError: the file cannot be written.
    """
    names = [(column_of or {}).get(fact, fact) for fact in facts]
    rows = [[_cell(getattr(record, fact)) for fact in facts] for record in records]
    _write(file, names, rows)


def _write(
    file: Path,
    names: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    data = stream.getvalue().encode("utf-8")
    if file.name.endswith(".gz"):
        data = gzip.compress(data, compresslevel=9, mtime=0)
    atomic_write(file, data, error=ConfigError)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return str(value)


def write_published(file: Path, runs: Iterable[PublishedRun]) -> None:
    """Write a table that `read_published` reads; the same runs give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_records(file, FACTS, runs, PUBLISHED)


def write_predictions(predictions: Predictions, file: Path) -> None:
    """Write a table that `read_predictions` reads, the same bytes for the same predictions.

    Raises:
        ConfigError: it cannot be written.
    """
    rows = [
        (run_id, split, f"{prediction.seconds:.{_DIGITS}g}")
        for (split, run_id), prediction in sorted(predictions.by_split.items())
    ]
    _write(file, ("id", "split", "seconds"), rows)


def write_tensorflow(predictions: Iterable[HeldOutPrediction], folder: Path) -> None:
    """Write the table, the same bytes for the same predictions.

    Raises:
        ConfigError: it cannot be written, or a prediction is of no run of the folder.
    """
    numbers: dict[TensorFlowRun, list[str]] = {}
    for name, run in run_ids(folder).items():
        numbers.setdefault(run, []).append(name)
    taken: Counter[tuple[TensorFlowRun, str, str]] = Counter()
    rows = []
    for prediction in predictions:
        names = numbers.get(prediction.run)
        if names is None:
            raise ConfigError(
                f"no published run of {folder} is {prediction.run}; predict its runs anew"
            )
        key = (prediction.run, prediction.held_out, prediction.name)
        rows.append((
            names[taken[key] % len(names)], prediction.held_out, prediction.name,
            f"{prediction.run.step_s:.6g}", f"{prediction.simulated_s:.5g}",
            f"{prediction.roofline_s:.5g}",
            "" if prediction.asked_s is None else f"{prediction.asked_s:.5g}",
        ))  # fmt: skip
        taken[key] += 1
    _write(folder / TENSORFLOW_FILE, _HELD_OUT, rows)
