"""Whether a checkpoint learned from graphs that were read as they are read today.

versions in the checkpoint, versions of this program -> a remark, or None where they are equal
"""

from __future__ import annotations

from driple.features.version import FEATURES_VERSION
from driple.graph.version import READER_VERSION
from driple.inspector.checkpoint import Checkpoint
from driple.remarks import Remark, remark

__all__ = ["outdated_remark"]


def outdated_remark(checkpoint: Checkpoint) -> Remark | None:
    """The difference, its consequence, and what a new checkpoint is made of.

    None if the checkpoint was trained with the reader and the features of this program.
    """
    pairs = (
        ("reader", checkpoint.reader_version, READER_VERSION),
        ("features", checkpoint.features_version, FEATURES_VERSION),
    )
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    if not differing:
        return None
    origin = checkpoint.trained_on.transferred_from
    return remark(
        "outdated_checkpoint",
        setting=checkpoint.setting,
        parts=tuple(name for name, _, _ in differing),
        versions=tuple(version for _, version, _ in differing),
        own_versions=tuple(version for _, _, version in differing),
        is_newer=all(version > own for _, version, own in differing),
        preset=checkpoint.preset,
        transferred_from=None if origin is None else origin.setting,
        provenance=checkpoint.provenance,
    )
