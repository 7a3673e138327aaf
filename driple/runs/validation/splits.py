"""Which rows a fit may see and which it predicts: every row is predicted once in each split.

family   10 fixed folds of model families, one fold left out at a time
device   each device left out
source   each source left out
nothing  no row left out: what the shipped calibration was fitted to
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.runs.measured_run import MeasuredRun, fold_of
from driple.runs.tables import read_table

__all__ = ["HeldOutPart", "parts_of", "read_folds"]


@dataclass(frozen=True, slots=True)
class HeldOutPart:
    """One part of a split.

    Attributes:
        split: one of `predictions.SPLITS`.
        name: what is left out: `fold 3`, `sizes 3` (`scripts/fits/sizes.py`), `A100`, a source;
            empty of nothing.
        train: positions of the rows that a fit may see.
        test: positions of the rows that it predicts.
    """

    split: str
    name: str
    train: tuple[int, ...]
    test: tuple[int, ...]


def read_folds(file: Path) -> dict[str, int]:
    """Fold of each model family, from a table with the columns `family` and `fold`.

    Raises:
        ConfigError: the table is not as described.
    """
    folds: dict[str, int] = {}
    for line in read_table(file, ("family", "fold")):
        family, text = line.text("family"), line.text("fold")
        if not family or family in folds:
            raise line.error("family", f"is empty, or stands there twice: {family[:60]!r}")
        if not (text.isascii() and text.isdigit()):
            raise line.error("fold", f"needs a whole number, got {text[:40]!r}")
        folds[family] = int(text)
    return folds


def parts_of(
    rows: Sequence[MeasuredRun],
    split: str,
    folds: Mapping[str, int] | None = None,
) -> list[HeldOutPart]:
    """The parts of a split; a part is left out where no row would remain to fit to.

    Args:
        rows: all rows.
        split: `family`, `device`, `source` or `nothing`.
        folds: fold of each family; one that is not there gets a fold by its name.
    """
    if split == "nothing":
        everything = tuple(range(len(rows)))
        return [HeldOutPart(split, "", everything, everything)]
    key: dict[str, Callable[[MeasuredRun], str]] = {
        "family": lambda row: f"fold {fold_of(row.family, folds)}",
        "device": lambda row: row.device,
        "source": lambda row: row.source,
    }
    names = [key[split](row) for row in rows]
    parts = []
    for name in sorted(set(names)):
        test = tuple(i for i, one in enumerate(names) if one == name)
        train = tuple(i for i, one in enumerate(names) if one != name)
        if train:
            parts.append(HeldOutPart(split, name, train, test))
    return parts
