"""What a checkpoint is, from the header of its file: setting, preset, labels, workloads.

checkpoint file --first bytes--> CheckpointCard; the weights are not read

`load_checkpoint` reads and checks all of a checkpoint; a list of many needs the headers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from driple.errors import CheckpointError
from driple.inspector.checkpoint import MAX_HEADER_BYTES, metadata_of_header
from driple.inspector.metadata import object_of, text_of
from driple.storedfiles import check_regular

__all__ = ["CheckpointCard", "read_checkpoint_card"]

_LENGTH_BYTES = 8  # of the number that a safetensors file begins with


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointCard:
    """The description of a checkpoint.

    Attributes:
        setting: name of the setting.
        preset: of the inspector.
        provenance: of the labels: `measured`, `simulated` or `published`.
        num_workloads: workloads of the data set; None if not recorded.
    """

    setting: str
    preset: str
    provenance: str
    num_workloads: int | None


def read_checkpoint_card(path: Path) -> CheckpointCard:
    """The description in the header of a checkpoint file.

    Raises:
        CheckpointError: no such file, or no checkpoint.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            start = file.read(_LENGTH_BYTES)
            length = min(int.from_bytes(start, "little"), MAX_HEADER_BYTES)
            data = start + file.read(length)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read, {error}") from error
    try:
        fields = metadata_of_header(data)
        trained_on = object_of(fields, "trained_on")
        workloads = trained_on.get("num_workloads")
        return CheckpointCard(
            setting=text_of(fields, "setting"),
            preset=text_of(fields, "preset"),
            provenance=text_of(fields, "provenance"),
            num_workloads=workloads if isinstance(workloads, int) else None,
        )
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
