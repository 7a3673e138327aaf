"""Whether a checkpoint learned from graphs that were read as they are read today.

versions in the checkpoint, versions of this program -> one sentence, or none where they are equal
"""

from __future__ import annotations

from driple.errors import upgrade_hint
from driple.features.version import FEATURES_VERSION
from driple.graph.version import READER_VERSION
from driple.inspector.checkpoint import Checkpoint

__all__ = ["outdated_words"]


def outdated_words(checkpoint: Checkpoint) -> str:
    """Sentence on the difference, its consequence, and the command that makes a new checkpoint.

    Empty if the checkpoint was trained with the reader and the features of this program.
    """
    pairs = (
        ("reader", checkpoint.reader_version, READER_VERSION),
        ("features", checkpoint.features_version, FEATURES_VERSION),
    )
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    if not differing:
        return ""
    theirs = " and ".join(f"{name} version {version}" for name, version, _ in differing)
    ours = " and ".join(f"{name} version {version}" for name, _, version in differing)
    newer = all(version > own for _, version, own in differing)
    return (
        f"the checkpoint for {checkpoint.setting} was trained with {theirs}, this Driple has "
        f"{ours}: it gets other numbers of this graph than it learned from, so its errors and "
        f"intervals may not hold; {_advice(checkpoint, newer=newer)}"
    )


def _advice(checkpoint: Checkpoint, *, newer: bool) -> str:
    """Advice on the command to run."""
    if newer:
        return f"{upgrade_hint()} gets the newer program"
    setting, preset = checkpoint.setting, checkpoint.preset
    origin = checkpoint.trained_on.transferred_from
    if preset == "default":
        train = f"driple train --setting {setting}"
        transfer = f"driple transfer --from {{}} --to {setting}"
    else:
        train = f"driple train --setting {setting} --preset {preset}"
        transfer = f"driple transfer --from {{}} --to {setting} --preset {preset}"
    command = train if origin is None else transfer.format(origin.setting)
    if checkpoint.provenance == "simulated":
        made = (
            "simulate the data set again (driple jobs build --list paper, driple data simulate), "
            "then"
        )
    elif checkpoint.provenance == "measured":
        made = "build the data set again (driple data label), then"
    else:
        made = "import the data set again (driple data import), then"
    return f"to make a new one: {made} {command}"
