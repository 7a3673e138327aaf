"""Enter the shipped inspectors, on rows of a setting that has one.

    python -m scripts.entries.inspector

They learned from labels of a simulator that was fitted to all rows: the entry is of the split
`nothing` alone.

Steps are traced anew, as stored ones have no edges.

step of a row --inspector of its setting--> datasets/runs/benchmark/entries/inspector.csv.gz
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import CheckpointError, DripleError, SettingError
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.inspector.predict import predict
from driple.runs.measured_run import MeasuredRun
from driple.runs.step_key import StepKey
from driple.runs.stored_steps import key_of
from scripts.entries.table import Entry, benchmark_rows, write_entry
from scripts.published.pytorch_steps import traced

__all__ = ["inspector_of", "main"]

NAME, _PRESET = "inspector", "default"


@cache
def inspector_of(name: str) -> Checkpoint | None:
    """The inspector of a setting, whether its name spells out the usual link or not; None if none.

    Args:
        name: of the setting.
    """
    setting = Setting.parse(name)
    candidates = [setting]
    with suppress(SettingError):  # several machines need the name of their network
        short = Setting.parse(name.partition("/")[0])
        same_link = topology_of(short).joined_by == topology_of(setting).joined_by
        if same_link and short.scheme == setting.scheme:
            candidates.append(short)
    for candidate in candidates:
        with suppress(CheckpointError):
            return load_checkpoint(checkpoint_path(candidate, _PRESET))
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Ask the inspectors, and write the entry."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args(argv)
    rows, seconds, refused = benchmark_rows(), {}, {}
    asked: dict[tuple[StepKey, int], list[MeasuredRun]] = {}
    for row in rows:
        if inspector_of(row.setting) is None:
            refused[row.id] = "no inspector of the setting"
        else:
            asked.setdefault((key_of(row), row.batch_size or 1), []).append(row)
    for (key, batch_size), some in asked.items():
        print(f"{key.name}, {batch_size}", flush=True)
        answer = _seconds(key, batch_size, some[0].setting)
        for row in some:
            if isinstance(answer, str):
                refused[row.id] = answer
            else:
                seconds[row.id] = answer
    write_entry(Entry(name=NAME, seconds=seconds, refused=refused, split="nothing"), rows)
    return 0


def _seconds(key: StepKey, batch_size: int, setting: str) -> float | str:
    """The inspector's step time, or why it gives none."""
    checkpoint = inspector_of(setting)
    if checkpoint is None:
        return "no inspector of the setting"
    try:
        return predict(traced(key, batch_size), checkpoint).iteration_time_s
    except DripleError as error:
        return f"fails: {type(error).__name__}"


if __name__ == "__main__":
    sys.exit(main())
