"""Enter the shipped inspectors, on rows of a setting that has one.

    python -m scripts.entries.inspector

They learned from labels of a simulator that was fitted to all rows: the entry is of the split
`nothing` alone.

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
from scripts.entries.table import Entry, shipped, write_entry

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
    known, seconds, refused = shipped(), {}, {}
    for row in sorted(known.rows, key=lambda row: repr(row.step_key)):
        checkpoint = inspector_of(row.setting)
        if checkpoint is None:
            refused[row.id] = "no inspector of the setting"
            continue
        try:
            prediction = predict(known.steps.prepared(row).graph, checkpoint)
        except DripleError as error:
            refused[row.id] = f"{type(error).__name__}"
            continue
        seconds[row.id] = prediction.iteration_time_s
    write_entry(Entry(name=NAME, seconds=seconds, refused=refused, split="nothing"), known.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
