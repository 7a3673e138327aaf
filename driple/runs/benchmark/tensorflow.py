"""Held-out predictions of TensorFlow runs as a committed table: their fits take minutes.

HeldOutPrediction, ... <-> heldout_tensorflow.csv.gz

A run has no name of its own in the published tables: its id is its position among the runs of its
source, in the order of `read_published`, and its published time is stored to check that.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from driple.runs.benchmark.tables import read_table
from driple.runs.leave_one_out import Graphs
from driple.runs.published import PublishedRun, read_published
from driple.runs.validate import HeldOutPrediction
from driple.errors import ConfigError
from driple.files import atomic_write

__all__ = ["TENSORFLOW_FILE", "read_tensorflow", "run_ids", "write_tensorflow"]

TENSORFLOW_FILE = "heldout_tensorflow.csv.gz"
_COLUMNS = ("id", "held_out", "name", "seconds", "simulated_s", "roofline_s")
_ASKED = "asked_s"  # empty where it is the simulated one; tables before it do not have it
_HELD_OUT = ("nothing", "model", "device")
_ROUNDING = 1e-4


def run_ids(folder: Path) -> dict[str, PublishedRun]:
    """Published TensorFlow runs by id.

    Raises:
        ConfigError: a table is missing or damaged.
    """
    counts: Counter[str] = Counter()
    found = {}
    for run in read_published(folder):
        found[f"{run.source}-{counts[run.source]}"] = run
        counts[run.source] += 1
    return found


def write_tensorflow(predictions: Iterable[HeldOutPrediction], folder: Path) -> None:
    """Write the table, the same bytes for the same predictions.

    Raises:
        ConfigError: it cannot be written, or a prediction is of no run of the folder.
    """
    numbers: dict[PublishedRun, list[str]] = {}
    for name, run in run_ids(folder).items():
        numbers.setdefault(run, []).append(name)
    taken: Counter[tuple[PublishedRun, str, str]] = Counter()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, _ASKED))
    for item in predictions:
        names = numbers.get(item.run)
        if names is None:
            raise ConfigError(f"no published run of {folder} is {item.run}; predict its runs anew")
        key = (item.run, item.held_out, item.name)
        writer.writerow((
            names[taken[key] % len(names)], item.held_out, item.name, f"{item.run.seconds:.6g}",
            f"{item.simulated_s:.5g}", f"{item.roofline_s:.5g}",
            "" if item.asked_s is None else f"{item.asked_s:.5g}",
        ))  # fmt: skip
        taken[key] += 1
    data = gzip.compress(text.getvalue().encode(), mtime=0)
    atomic_write(folder / TENSORFLOW_FILE, data, error=ConfigError)


def read_tensorflow(folder: Path, graphs: Graphs | None = None) -> list[HeldOutPrediction]:
    """The predictions of a folder.

    Args:
        folder: of published tables.
        graphs: of models; runs of others are left out. None keeps all.

    Raises:
        ConfigError: the table is missing, damaged, or of other published runs.
    """
    runs = run_ids(folder)
    found = []
    for line in read_table(folder / TENSORFLOW_FILE, _COLUMNS):
        run = runs.get(line.text("id"))
        if run is None or abs(run.seconds / line.number_of("seconds") - 1) > _ROUNDING:
            raise line.error("id", "no published run has this id and time; make the table again")
        if graphs is not None and (run.model, run.half) not in graphs:
            continue
        item = HeldOutPrediction(
            run=run,
            held_out="nothing",
            name=line.text("name"),
            simulated_s=line.number_of("simulated_s"),
            roofline_s=line.number_of("roofline_s"),
            asked_s=line.number_of(_ASKED) if line.text(_ASKED) else None,
        )
        held_out = line.choice("held_out", _HELD_OUT, "nothing")
        found.append(replace(item, held_out=held_out))  # type: ignore[arg-type]  # one of the three
    return found
